//! Configuration tables, as in `planscope estimate`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::configurations::read(bytes));
