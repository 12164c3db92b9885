//! Length files in chunks, Arrow files from a source, and a Parquet footer alone.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::dataset_stream::read(bytes));
