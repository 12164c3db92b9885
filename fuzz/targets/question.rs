//! Requests to the schedule comparison and to the solver, action times, formulas.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::question::read(bytes));
