//! Tables of configurations, estimated as `planscope estimate` does.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::configurations::read(bytes));
