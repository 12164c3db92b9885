//! Length files of every format; a first byte below four says which column is asked for, one below eight which rule reads media.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::dataset::read(bytes));
