//! Length files that come in pieces, Arrow files from a source, and the footer of a Parquet file by itself.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::dataset_stream::read(bytes));
