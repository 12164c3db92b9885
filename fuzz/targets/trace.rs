//! Traces in all formats, compressed or not, and their levels of detail.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::trace::read(bytes));
