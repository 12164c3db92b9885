//! Kernel, layer and scheme profiles. All readers read every file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::profile::read(bytes));
