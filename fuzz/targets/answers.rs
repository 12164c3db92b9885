//! What the browser takes apart: timelines, overviews, answers to what-ifs and views of traces.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::answers::read(bytes));
