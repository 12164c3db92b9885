//! Tokenizers in the Hugging Face format. Valid tokenizers count the tokens of a text.

use ingest::dataset::Tokenizer;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    match Tokenizer::read(bytes) {
        Ok(tokenizer) => {
            for text in ["", "a b c", "\u{1f600} \u{0}\n"] {
                let _ = tokenizer.count(text);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
