//! Traces of every format, packed or not, and the levels that are drawn of them.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::trace::read(bytes));
