//! Tables of patterns that a user writes: the table up to a line `---`, the log behind it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log_table::read(bytes));
