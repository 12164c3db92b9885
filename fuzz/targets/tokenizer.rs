//! Tokenizers in the Hugging Face format. Valid tokenizers count the tokens of a text.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::tokenizer::read(bytes));
