//! A log in chunks must give the same result as the complete log. The first byte is the chunk
//! length.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log_in_pieces::read(bytes));
