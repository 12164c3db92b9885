//! Complete logs in all formats, compressed or not.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log::read(bytes));
