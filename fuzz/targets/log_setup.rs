//! Job information at the beginning of a log.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log_setup::read(bytes));
