//! Links that hold a scenario: as text, and with bytes and JSON packed as they should be.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::link::read(bytes));
