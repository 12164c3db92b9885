//! Questions to the schedule bench and to the solver, times of actions, formulas.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::job_config::read(bytes));
