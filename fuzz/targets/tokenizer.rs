//! Tokenizers in the form of Hugging Face, and a text that the accepted ones count.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::tokenizer::read(bytes));
