//! Choices of the user about a file, owned, so that they can travel to the thread that reads it.

use std::sync::Arc;

use ingest::dataset::{CHARACTERS_PER_TOKEN, Options, Tokenizer, Unit};
use planner::workload::preprocessing::Preprocessing;

/// Choices of the user about a file; see [`Options`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// Column or key with the lengths.
    pub(crate) column: Option<String>,
    /// Column whose lengths are added; an empty name: none.
    pub(crate) add: Option<String>,
    /// Column with the number of samples of each row; an empty name: none.
    pub(crate) weight: Option<String>,
    /// Unit of the numbers of the column.
    pub(crate) unit: Option<Unit>,
    /// Characters per token.
    pub(crate) characters_per_token: Option<f64>,
    /// Counts the tokens of texts.
    pub(crate) tokenizer: Option<Arc<Tokenizer>>,
    /// Rule that converts media.
    pub(crate) preprocessing: Option<Preprocessing>,
}

impl Choice {
    /// The options for the readers of `ingest`.
    pub(crate) fn options(&self) -> Options<'_> {
        Options {
            column: self.column.as_deref(),
            add: self.add.as_deref(),
            weight: self.weight.as_deref(),
            unit: self.unit,
            characters_per_token: self.characters_per_token.unwrap_or(CHARACTERS_PER_TOKEN),
            tokenizer: self.tokenizer.as_deref(),
            preprocessing: self.preprocessing,
            ..Options::default()
        }
    }
}
