//! Event files: unchanged input, and records with correct checksums. A length byte precedes each
//! record.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::tensorboard::read(bytes));
