//! Import errors.

use super::{Candidate, MAX_BINS, MAX_ROWS, Meaning};

/// Reason for a failed import, with position and remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportError {
    /// The file is empty or contains only white space.
    #[error("file is empty")]
    Empty,
    /// The file is not text.
    #[error("this looks like {looks_like}, not a length file; {remedy}")]
    Binary {
        /// File type by its first bytes.
        looks_like: &'static str,
        /// Remedy.
        remedy: &'static str,
    },
    /// The text contains no length.
    #[error(
        "no length found in {format}; a length file has one whole number per line, or a column or key named like num_tokens"
    )]
    NoNumbers {
        /// Format that was recognised.
        format: &'static str,
    },
    /// A number that cannot be a length.
    #[error("{location}: {value} {why}. Correct or remove it and upload the file again; nothing was stored")]
    BadNumber {
        location: String,
        value: String,
        /// Violated rule.
        why: String,
    },
    /// More than a tenth of the rows contain no number.
    #[error(
        "{skipped} of {rows} rows hold no length, first {first}. At most one in ten may be left out; choose another column or clean the file"
    )]
    MostlyUnreadable {
        skipped: u64,
        rows: u64,
        /// First such row, with the reason.
        first: String,
    },
    /// More than a tenth of the rows contain media with impossible values.
    #[error(
        "{skipped} of {rows} rows cannot be read, first {first}. At most one in ten may be left out; correct them and upload the file again"
    )]
    MediaUnreadable {
        skipped: u64,
        rows: u64,
        /// First such row, with the reason.
        first: String,
    },
    /// The chosen column does not exist.
    #[error("there is no column {requested:?}; the file has {}", available.join(", "))]
    NoSuchColumn {
        /// Name that the user chose.
        requested: String,
        available: Vec<String>,
    },
    /// No column name denotes a length. The user must choose a candidate.
    #[error(
        "it is not clear which column holds the lengths; choose one of: {}{}",
        names(candidates),
        histogram(candidates)
    )]
    Unclear { candidates: Vec<Candidate> },
    /// The column values are not lengths.
    #[error("column {column} holds {kind}, which are not lengths; choose another column")]
    NoLengths {
        column: String,
        /// Kind of the column values.
        kind: &'static str,
    },
    /// The length column is also the added column.
    #[error("column {column} is chosen twice; choose another column to add, or none")]
    AddedTwice { column: String },
    /// An added column without the column that it is added to.
    #[error("column {column} is to be added, but no column of lengths is chosen; choose both")]
    AddedToNone { column: String },
    /// The notation is ambiguous: all numbers look like 1.261.
    #[error(
        "column {column} has two readings: {value} is {} with thousands separators or {} with decimals. Write numbers without separators, and upload the file again",
        value.replace(['.', ','], ""),
        value.replace(',', ".")
    )]
    TwoReadings {
        column: String,
        /// A value of the column.
        value: String,
    },
    /// The shards contain different quantities.
    #[error("{first} and {other} cannot be merged: {detail}. Upload them as two datasets")]
    Merge {
        /// Name of the first shard.
        first: String,
        /// Name of the shard that differs.
        other: String,
        detail: String,
    },
    /// The number of characters per token is implausible.
    #[error("{value} characters per token: enter a number between 0.1 and 100")]
    CharactersPerToken { value: f64 },
    /// The `tokenizer.json` cannot be used.
    #[error("the tokenizer cannot be used: {detail}. Choose the tokenizer.json of a Hugging Face model")]
    Tokenizer { detail: String },
    /// A binary file is invalid or uses unsupported features.
    #[error("this {format} is refused: {detail}")]
    Broken {
        /// Detected format.
        format: &'static str,
        /// Reason and position.
        detail: String,
    },
    /// The JSON is invalid.
    #[error("not JSON: {detail}")]
    Json {
        /// The message of the parser, with line and column.
        detail: String,
    },
    /// The JSON has an unsupported structure.
    #[error(
        "the JSON holds {found}; a list of numbers, a list of objects with a key like num_tokens, {{\"text_tokens\": [..]}} or a histogram {{\"schema\": \"hist/1\", \"unit\": \"tokens\", \"edges\": [..], \"counts\": [..]}} is needed"
    )]
    Shape {
        /// Detected structure.
        found: String,
    },
    /// The histogram violates a rule.
    #[error("the histogram is refused: {detail}")]
    Histogram {
        /// Rule and position.
        detail: String,
    },
    /// The file has too many rows.
    #[error("more than {MAX_ROWS} rows; upload a random sample of them, or a histogram of at most {MAX_BINS} bins")]
    TooManyRows,
}

/// Returns the names of a histogram if a candidate is a number of samples.
fn histogram(candidates: &[Candidate]) -> &'static str {
    if candidates.iter().any(|candidate| matches!(candidate.meaning, Meaning::Weight | Meaning::BinEdge)) {
        ". A histogram has the columns length and count, or left, right and count, or length and cumulative"
    } else {
        ""
    }
}

/// Lists the candidate names in one line, with known meanings.
fn names(candidates: &[Candidate]) -> String {
    let name = |candidate: &Candidate| match candidate.meaning {
        Meaning::Unknown => candidate.name.clone(),
        known => format!("{} ({})", candidate.name, known.title()),
    };
    candidates.iter().map(name).collect::<Vec<_>>().join(", ")
}
