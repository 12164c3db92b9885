//! Errors of imports.

use super::{Candidate, MAX_BINS, MAX_ROWS, Meaning};

/// Reason of a failed import, with the place and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportError {
    /// No bytes, or nothing but white space.
    #[error("file is empty")]
    Empty,
    /// Not text.
    #[error("this looks like {looks_like}, not a length file; {remedy}")]
    Binary {
        /// Kind of the file by its first bytes.
        looks_like: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// Text without a single length.
    #[error(
        "no length found in {format}; a length file has one whole number per line, or a column or key named like num_tokens"
    )]
    NoNumbers {
        /// Format that was recognised.
        format: &'static str,
    },
    /// A number that cannot be a length.
    #[error("{place}: {value} {why}. Correct or remove it and upload the file again; nothing was stored")]
    BadNumber {
        /// Line or row, for example "line 3".
        place: String,
        /// The value.
        value: String,
        /// The rule that it breaks.
        why: String,
    },
    /// More than a tenth of the rows hold no number.
    #[error(
        "{skipped} of {rows} rows hold no length, first {first}. At most one in ten may be left out; choose another column or clean the file"
    )]
    MostlyUnreadable {
        /// Rows without a length.
        skipped: u64,
        /// All rows.
        rows: u64,
        /// The first of them, with the reason.
        first: String,
    },
    /// More than a tenth of the rows hold media with impossible values.
    #[error(
        "{skipped} of {rows} rows cannot be read, first {first}. At most one in ten may be left out; correct them and upload the file again"
    )]
    MediaUnreadable {
        /// Rows that cannot be read.
        skipped: u64,
        /// All rows.
        rows: u64,
        /// The first of them, with the reason.
        first: String,
    },
    /// The chosen column does not exist.
    #[error("there is no column {asked:?}; the file has {}", available.join(", "))]
    NoSuchColumn {
        /// The chosen name.
        asked: String,
        /// Columns of the file.
        available: Vec<String>,
    },
    /// No column is a length by its name. The user chooses one of the candidates.
    #[error("it is not clear which column holds the lengths; choose one of: {}", names(candidates))]
    Unclear {
        /// Columns that can be chosen.
        candidates: Vec<Candidate>,
    },
    /// A column whose values are no lengths.
    #[error("column {column} holds {kind}, which are not lengths; choose another column")]
    NoLengths {
        /// The column.
        column: String,
        /// Kind of its values.
        kind: &'static str,
    },
    /// The column of the lengths is also the one that is added.
    #[error("column {column} is chosen twice; choose another column to add, or none")]
    AddedTwice {
        /// The column.
        column: String,
    },
    /// Numbers such as 1.261 in every row.
    #[error(
        "column {column} has two readings: {value} is {} with thousands separators or {} with decimals. Write numbers without separators, and upload the file again",
        value.replace(['.', ','], ""),
        value.replace(',', ".")
    )]
    TwoReadings {
        /// The column.
        column: String,
        /// A value of it.
        value: String,
    },
    /// Shards that do not hold the same quantity.
    #[error("{first} and {other} cannot be merged: {detail}. Upload them as two datasets")]
    Merge {
        /// Name of the first shard.
        first: String,
        /// Name of the shard that differs.
        other: String,
        /// The difference.
        detail: String,
    },
    /// Characters per token that no tokenizer has.
    #[error("{value} characters per token: enter a number between 0.5 and 20")]
    CharactersPerToken {
        /// The number.
        value: f64,
    },
    /// A `tokenizer.json` that cannot be used.
    #[error("the tokenizer cannot be used: {detail}. Choose the tokenizer.json of a Hugging Face model")]
    Tokenizer {
        /// The reason.
        detail: String,
    },
    /// A binary file that is broken or uses features that are not read.
    #[error("this {format} is refused: {detail}")]
    Broken {
        /// Format that was recognised.
        format: &'static str,
        /// The reason and its place.
        detail: String,
    },
    /// Broken JSON.
    #[error("not JSON: {detail}")]
    Json {
        /// The message of the parser, with line and column.
        detail: String,
    },
    /// JSON of another shape.
    #[error(
        "the JSON holds {found}; a list of numbers, a list of objects with a key like num_tokens, {{\"text_tokens\": [..]}} or a histogram {{\"schema\": \"hist/1\", \"unit\": \"tokens\", \"edges\": [..], \"counts\": [..]}} is needed"
    )]
    Shape {
        /// The shape.
        found: String,
    },
    /// A histogram that breaks a rule.
    #[error("the histogram is refused: {detail}")]
    Histogram {
        /// The rule and the place.
        detail: String,
    },
    /// More rows than are accepted.
    #[error("more than {MAX_ROWS} rows; upload a random sample of them, or a histogram of at most {MAX_BINS} bins")]
    TooManyRows,
}

/// Names of candidates in one line, each with its meaning if it has one.
fn names(candidates: &[Candidate]) -> String {
    let name = |candidate: &Candidate| match candidate.meaning {
        Meaning::Unknown => candidate.name.clone(),
        known => format!("{} ({})", candidate.name, known.title()),
    };
    candidates.iter().map(name).collect::<Vec<_>>().join(", ")
}
