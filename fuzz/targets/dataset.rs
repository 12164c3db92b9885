//! Length files in all formats. A first byte below 4 selects the column, a byte from 4 to 7 selects
//! the media rule.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::dataset::read(bytes));
