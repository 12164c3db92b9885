//! Links that contain a scenario: as text, and as correctly packed bytes and JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::link::read(bytes));
