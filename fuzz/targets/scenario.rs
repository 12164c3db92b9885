//! Scenarios. A valid scenario has the same identifier in any notation.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::scenario::read(bytes));
