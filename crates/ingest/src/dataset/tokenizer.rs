//! Counts text tokens with a Hugging Face `tokenizer.json`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;

use super::ImportError;
use super::contain::contain;

/// Maximum size of a `tokenizer.json`, in bytes.
pub(super) const MAX_TOKENIZER: usize = 64 << 20;

/// Models that a `tokenizer.json` may have.
const MODELS: [&str; 4] = ["BPE", "WordPiece", "WordLevel", "Unigram"];

/// The parts of a `tokenizer.json` that show its kind.
#[derive(Deserialize)]
struct Head {
    model: Option<Model>,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// A Hugging Face tokenizer.
#[derive(Debug, Clone)]
pub struct Tokenizer(Box<tokenizers::Tokenizer>);

impl Tokenizer {
    /// Reads a `tokenizer.json`. Disables truncation and padding.
    pub fn read(bytes: &[u8]) -> Result<Self, ImportError> {
        let refuse = |detail: String| ImportError::Tokenizer { detail };
        if bytes.len() > MAX_TOKENIZER {
            return Err(refuse(format!("it is larger than {} MiB", MAX_TOKENIZER >> 20)));
        }
        // The crate panics if a decoder is invalid JSON. Other panics are converted to errors.
        let head: Head = serde_json::from_slice(bytes).map_err(|error| {
            let found =
                if bytes.starts_with(b"{") || bytes.starts_with(b"[") { "invalid or other JSON" } else { "no JSON" };
            refuse(format!("the file is {found} ({error})"))
        })?;
        let Some(model) = head.model else {
            return Err(refuse("it has no model; vocabularies and tokenizer_config.json are other files".to_owned()));
        };
        if let Some(kind) = model.kind.filter(|kind| !MODELS.contains(&kind.as_str())) {
            let kind: String = kind.chars().take(40).collect();
            return Err(refuse(format!("its model {kind:?} is none of {}", MODELS.join(", "))));
        }
        let read = || tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| refuse(error.to_string()));
        let mut tokenizer = contain("tokenizer.json", read)?;
        tokenizer.with_truncation(None).map_err(|error| refuse(error.to_string()))?;
        tokenizer.with_padding(None);
        Ok(Self(Box::new(tokenizer)))
    }

    /// Counts the tokens of a text without special tokens; returns `None` if the tokenizer cannot
    /// encode the text.
    pub fn count(&self, text: &str) -> Option<usize> {
        let encoded = catch_unwind(AssertUnwindSafe(|| self.0.encode_fast(text, false)));
        encoded.ok()?.ok().map(|encoding| encoding.len())
    }
}
