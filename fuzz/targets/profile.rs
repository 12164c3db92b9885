//! Profiles of kernels, layers and schemes; every reader sees every file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::profile::read(bytes));
