//! Why a length file is refused.

use super::{Candidate, MAX_BINS, MAX_ROWS};

/// Why a length file is refused: the place, what is wrong there, and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ImportError {
    /// No bytes, or nothing but white space.
    #[error("file is empty")]
    Empty,
    /// Not text.
    #[error("this looks like {looks_like}, not a length file; {remedy}")]
    Binary {
        /// What the first bytes say.
        looks_like: &'static str,
        /// What to upload in its place.
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
        /// What stands there.
        value: String,
        /// Why it is wrong.
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
        /// First of them, and why.
        first: String,
    },
    /// More than a tenth of the rows hold media that cannot be.
    #[error(
        "{skipped} of {rows} rows cannot be read, first {first}. At most one in ten may be left out; correct them and upload the file again"
    )]
    MediaUnreadable {
        /// Rows that cannot be read.
        skipped: u64,
        /// All rows.
        rows: u64,
        /// First of them, and why.
        first: String,
    },
    /// The column that was asked for is not there.
    #[error("there is no column {asked:?}; there are {}", available.join(", "))]
    NoSuchColumn {
        /// What was asked for.
        asked: String,
        /// What is there.
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
    /// Numbers such as 1.261 in every row.
    #[error(
        "column {column} has two readings: {value} is {} with thousands points or {value} with decimals. Write numbers without points, and upload the file again",
        value.replace('.', "")
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
    /// A `tokenizer.json` that cannot be used.
    #[error("the tokenizer cannot be used: {detail}. Choose the tokenizer.json of a Hugging Face model")]
    Tokenizer {
        /// The reason.
        detail: String,
    },
    /// A binary file that is not what its first bytes promise, or uses what is not read.
    #[error("this {format} is refused: {detail}")]
    Broken {
        /// Format that was recognised.
        format: &'static str,
        /// What is wrong, and where.
        detail: String,
    },
    /// Broken JSON.
    #[error("not JSON: {detail}")]
    Json {
        /// What the parser says, with line and column.
        detail: String,
    },
    /// JSON of another shape.
    #[error(
        "the JSON holds {found}; a list of numbers, a list of objects with a key like num_tokens, {{\"text_tokens\": [..]}} or a histogram {{\"schema\": \"hist/1\", \"unit\": \"tokens\", \"edges\": [..], \"counts\": [..]}} is needed"
    )]
    Shape {
        /// What it is.
        found: String,
    },
    /// A histogram that breaks a rule.
    #[error("the histogram is refused: {detail}")]
    Histogram {
        /// Which rule, and where.
        detail: String,
    },
    /// More rows than are accepted.
    #[error("more than {MAX_ROWS} rows; upload a random sample of them, or a histogram of at most {MAX_BINS} bins")]
    TooManyRows,
}

/// Names of candidates in one line.
fn names(candidates: &[Candidate]) -> String {
    candidates.iter().map(|candidate| candidate.name.as_str()).collect::<Vec<_>>().join(", ")
}
