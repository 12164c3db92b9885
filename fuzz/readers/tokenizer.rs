//! Tokenizers in the form of Hugging Face, and a text that the accepted ones count.

use ingest::dataset::Tokenizer;

/// Reads one input.
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
