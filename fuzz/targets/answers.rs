//! Data decoded in the browser: timelines, overviews, what-if responses, trace views.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::answers::read(bytes));
