//! Event files: as they stand, and as records whose checksums are right, each of so many bytes as its first byte says.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::tensorboard::read(bytes));
