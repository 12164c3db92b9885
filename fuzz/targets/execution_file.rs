//! Execution plan files, which the checker simulates.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::execution_file::read(bytes));
