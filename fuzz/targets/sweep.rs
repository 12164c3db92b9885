//! Sweeps, and the files of rows that others have planned.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::sweep::read(bytes));
