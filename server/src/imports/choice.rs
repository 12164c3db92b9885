//! User options for a file, in an owned form that can be sent to the parser thread.

use std::sync::Arc;

use ingest::dataset::{CHARACTERS_PER_TOKEN, Options, Tokenizer, Unit};
use planner::workload::preprocessing::Preprocessing;

/// User options for a file; see [`Options`].
#[derive(Debug, Clone, Default)]
pub(crate) struct ImportOptions {
    /// Column or key with the lengths.
    pub(crate) column: Option<String>,
    /// Column added to the lengths. An empty name selects no column.
    pub(crate) add: Option<String>,
    /// Column with the number of samples per row. An empty name selects no column.
    pub(crate) weight: Option<String>,
    /// Unit of the column.
    pub(crate) unit: Option<Unit>,
    pub(crate) characters_per_token: Option<f64>,
    /// Tokenizer for text columns.
    pub(crate) tokenizer: Option<Arc<Tokenizer>>,
    /// Rule that converts media to input sizes.
    pub(crate) preprocessing: Option<Preprocessing>,
}

impl ImportOptions {
    /// Returns the options for the parsers in `ingest`.
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
