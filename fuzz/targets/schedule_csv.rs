//! Schedules in the torch action grammar.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::schedule_csv::read(bytes));
