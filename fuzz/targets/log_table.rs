//! Custom pattern tables. The table ends at a line `---`; the log follows.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log_table::read(bytes));
