//! Sweeps, and result files from external planners.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::sweep::read(bytes));
