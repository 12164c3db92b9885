//! What the head of a log states of its job.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log_setup::read(bytes));
