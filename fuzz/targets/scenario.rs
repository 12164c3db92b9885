//! Scenarios: what is accepted has one identifier, whatever way it is written.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::scenario::read(bytes));
