//! A log that comes in pieces says what it says as a whole: the first byte is the length of a piece.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::log_in_pieces::read(bytes));
