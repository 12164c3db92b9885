//! Length files: the lengths of the samples of a dataset.
//!
//! Formats: plain numbers, tables (CSV and its relatives), JSON, JSONL, histograms, statistics of Hugging Face datasets, Megatron-LM's
//! `.idx`, NumPy, Parquet and Arrow. Every format gives named columns; one table of names decides which of them are lengths. Rows may
//! hold media: a rule converts them to items of the encoder and tokens of the backbone ([`media`]).

pub mod arrow;
mod bordered;
mod candidate;
mod choice;
mod commas;
mod contain;
mod error;
mod foreign;
mod histogram;
mod json;
mod json_text;
mod lines;
mod meaning;
pub mod media;
mod megatron;
mod merge;
mod names;
mod npy;
mod npz;
mod number;
mod numbers;
pub mod parquet;
mod plain;
mod profile;
mod python;
mod quotes;
mod reader;
mod rows;
mod sniff;
mod stated;
mod statistics;
mod stream;
mod table;
mod text;
mod token_ids;
mod tokenizer;
mod value;

pub use candidate::Candidate;
pub use error::ImportError;
pub use histogram::from_rows;
pub use meaning::{Kind, Meaning, Unit};
pub use media::MediaReport;
pub use merge::merge;
pub use stream::Stream;
pub use tokenizer::Tokenizer;

use std::ops::RangeInclusive;

use planner::workload::Dataset;
use planner::workload::preprocessing::Preprocessing;

use sniff::Format;

/// Maximum number of rows in a file.
pub const MAX_ROWS: usize = 5_000_000;
/// Maximum sample length, in tokens.
pub const MAX_LENGTH: u32 = 1_000_000_000;
/// Maximum number of images in a sample.
pub const MAX_IMAGES: u32 = 1_000_000;
/// Maximum number of histogram bins.
pub const MAX_BINS: usize = 100_000;
/// Characters per token of English text; tokenizers of current models give 4 to 4.5.
pub const CHARACTERS_PER_TOKEN: f64 = 4.0;
/// Accepted characters per token.
pub const CHARACTERS_PER_TOKEN_RANGE: RangeInclusive<f64> = 0.1..=100.0;

/// Import options that the user chooses. The default uses only the table of names.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Column or key with the lengths; columns without a header are numbered from 1.
    pub column: Option<&'a str>,
    /// Column whose lengths are added, for example the tokens of the completion. It needs `column`; without both, prompt and
    /// completion are added.
    pub add: Option<&'a str>,
    /// Column with the number of samples per row. If the name is empty, each row is one sample.
    pub weight: Option<&'a str>,
    /// Unit of the numbers. Without it, the column name determines the unit.
    pub unit: Option<Unit>,
    /// Characters per token, applied to texts and to numbers that count characters or bytes.
    pub characters_per_token: f64,
    /// Tokenizer that counts the tokens of texts; replaces `characters_per_token` for texts.
    pub tokenizer: Option<&'a Tokenizer>,
    /// Rule that converts media to items of the encoder and tokens of the backbone.
    pub preprocessing: Option<Preprocessing>,
    /// Aggregates the rows by length, so that the row count is not limited. Rows with images are
    /// rejected.
    pub as_histogram: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            column: None,
            add: None,
            weight: None,
            unit: None,
            characters_per_token: CHARACTERS_PER_TOKEN,
            tokenizer: None,
            preprocessing: None,
            as_histogram: false,
        }
    }
}

impl Options<'_> {
    /// Checks the values that do not depend on a file.
    fn check(&self) -> Result<(), ImportError> {
        if !CHARACTERS_PER_TOKEN_RANGE.contains(&self.characters_per_token) {
            return Err(ImportError::CharactersPerToken { value: self.characters_per_token });
        }
        let is_named = |name: Option<&str>| name.is_some_and(|name| !name.is_empty());
        if is_named(self.add) && !is_named(self.column) {
            return Err(ImportError::AddedToNone { column: clip_name(self.add.unwrap_or_default()) });
        }
        Ok(())
    }

    /// Returns an error if a chosen column is none of the columns of a file without named columns.
    fn check_columns(&self, available: &[&str]) -> Result<(), ImportError> {
        let mut chosen = [self.column, self.add, self.weight].into_iter().flatten();
        chosen.find(|name| !name.is_empty() && !available.contains(name)).map_or(Ok(()), |name| {
            Err(ImportError::NoSuchColumn {
                requested: clip_name(name),
                available: available.iter().map(|&name| name.to_owned()).collect(),
            })
        })
    }
}

fn clip_name(name: &str) -> String {
    name.chars().take(80).collect()
}

/// A dataset and the report of its import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The dataset.
    pub dataset: Dataset,
    /// What was read and what was not.
    pub report: Report,
}

/// Report of an import: rows read, repaired and skipped.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Detected format, for example "CSV with header".
    pub format: String,
    /// Source of the lengths, for example "column num_total_tokens".
    pub source: String,
    /// Other columns or keys that the user can choose.
    pub candidates: Vec<Candidate>,
    /// Rows read without a change.
    pub parsed: u64,
    /// Rows read after a repair: thousands separators, decimals, a missing image count.
    pub repaired: u64,
    /// Skipped rows.
    pub skipped: u64,
    /// First row that was repaired or skipped, and the reason.
    pub first_problem: Option<String>,
    /// Media in the rows; `None` if the rows have no media.
    pub media: Option<MediaReport>,
    /// Assumptions that change the lengths, one sentence each.
    pub warnings: Vec<String>,
}

/// Reads a length file.
pub fn import(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    options.check()?;
    let options = &Options { column: options.column.filter(|column| !column.is_empty()), ..options.clone() };
    if options.preprocessing.is_none() {
        return read(bytes, options);
    }
    let shaped = read(bytes, options);
    if shaped.as_ref().is_ok_and(|imported| imported.dataset.shaped().is_some()) {
        return shaped;
    }
    let mut plain = match (shaped, read(bytes, &Options { preprocessing: None, ..options.clone() })) {
        (Ok(_), plain) => plain?,
        // Without media, the rule did not cause the error.
        (Err(_), Ok(plain)) if plain.report.media.is_none() => plain,
        (Err(error), _) => return Err(error),
    };
    let hint = media::hint(&plain.report.candidates).map(|hint| format!(". {hint}")).unwrap_or_default();
    let advice = format!(
        "Rows hold no sizes of images, no frames and no seconds of sound under known names: there is nothing to preprocess, and lengths \
         count as they are{hint}"
    );
    plain.report.media = Some(MediaReport { advice: Some(advice), ..MediaReport::default() });
    Ok(plain)
}

fn read(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    if stream::is_packed(bytes) {
        let mut stream = Stream::new(options, stream::MAX_UNPACKED);
        stream.push(bytes)?;
        return stream.finish();
    }
    read_unpacked(bytes, options)
}

/// Reads a file that is not compressed with gzip or zstd.
fn read_unpacked(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    if bytes.starts_with(megatron::MAGIC) {
        return megatron::import(bytes, options);
    }
    if bytes.starts_with(npy::MAGIC) {
        return npy::import(bytes, options);
    }
    if parquet::is(bytes) {
        return parquet::import(bytes, options);
    }
    if arrow::is(bytes) {
        return arrow::import_from(bytes, options);
    }
    if bytes.starts_with(npz::MAGIC)
        && let Some(archive) = npz::import(bytes, options)
    {
        return archive;
    }
    if let Some(refusal) = foreign::refuse(bytes) {
        return Err(refusal);
    }
    let text = sniff::text(bytes)?;
    if options.column.is_none()
        && let Some(separator) = plain::Separator::find(&text)
    {
        return separator.import(&text, options);
    }
    if let Some(plain) = bordered::strip(&text) {
        let mut imported = read_text(&plain.text, options)?;
        if plain.is_shortened {
            imported.report.warnings.push(bordered::SHORTENED.to_owned());
        }
        return Ok(imported);
    }
    let read = read_text(python::plain(&text).as_deref().unwrap_or(&text), options);
    // The first line of a plain text is no column.
    read.map_err(|error| match options.column {
        None => foreign::refuse_text(&text).or_else(|| plain::refuse(&text)).unwrap_or(error),
        Some(_) => error,
    })
}

/// Detects the format of a text and reads it.
fn read_text(text: &str, options: &Options<'_>) -> Result<Imported, ImportError> {
    let format = sniff::format(text);
    if let Some(plain) = quotes::unquote(text, format) {
        let mut imported = read_text(&plain.text, options)?;
        imported.report.warnings.push(quotes::sentence(plain.line));
        return Ok(imported);
    }
    if format == Format::Json
        && let Some(detail) = value::repeated_key(text)
    {
        return Err(ImportError::Json { detail });
    }
    let mut imported = match histogram::recognise(text, format, options) {
        Some(histogram) => histogram?,
        None => read_rows(text, format, options)?,
    };
    if matches!(format, Format::Table(_)) && options.column.is_none() {
        imported.report.warnings.extend(table::unread_comment(text));
    }
    Ok(imported)
}

fn read_rows(text: &str, format: Format, options: &Options<'_>) -> Result<Imported, ImportError> {
    match format {
        Format::Numbers => numbers::import(text, options),
        Format::Table(delimiter) => table::import(text, delimiter, options),
        Format::Json | Format::JsonLines if statistics::is(text) => statistics::import(text, options),
        Format::Json => json::import(text, options),
        Format::JsonLines => lines::import(text, options),
    }
}

#[cfg(test)]
mod tests;
