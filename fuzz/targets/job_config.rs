//! Training job configurations in all formats.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::job_config::read(bytes));
