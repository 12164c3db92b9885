//! Length files: what the samples of a dataset cost.
//!
//! Understood are plain numbers, CSV with and without a header, JSON (a list of numbers, a list of objects,
//! lists by name, a histogram "hist/1", or the statistics of a Hugging Face dataset), JSONL, Megatron-LM's `.idx`, NumPy's
//! `.npy` and Parquet. [`column`] says which column counts as the length. Rows may hold media beside their text ([`media`]): by a rule
//! they become items of the encoder and tokens of the backbone.

mod cell;
pub mod column;
mod error;
mod histogram;
mod json;
mod lines;
pub mod media;
mod megatron;
mod npy;
mod number;
mod numbers;
mod parquet;
mod rows;
mod sniff;
mod statistics;
mod table;

pub use error::ImportError;
pub use media::MediaReport;
pub use statistics::CHARACTERS_PER_TOKEN;

use planner::data_aware::Preprocessing;
use planner::workload::Dataset;

use sniff::Format;

/// Most rows that one file may hold.
pub const MAX_ROWS: usize = 5_000_000;
/// Longest sample, in tokens.
pub const MAX_LENGTH: u32 = 1_000_000_000;
/// Most images of one sample.
pub const MAX_IMAGES: u32 = 1_000_000;
/// Most bins of a histogram.
pub const MAX_BINS: usize = 100_000;

/// A dataset and how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The dataset.
    pub dataset: Dataset,
    /// What was read and what was not.
    pub report: Report,
}

/// What an import read and what it did not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Format that was recognised, for example "CSV with header".
    pub format: String,
    /// Where the lengths were found, for example "column num_total_tokens".
    pub source: String,
    /// Other columns or keys that could have been meant.
    pub alternatives: Vec<String>,
    /// Rows read as they stand.
    pub parsed: u64,
    /// Rows read after a repair: thousands separators, decimals, a missing image count.
    pub repaired: u64,
    /// Rows left out.
    pub skipped: u64,
    /// First row that was repaired or left out, and why.
    pub first_problem: Option<String>,
    /// What became of media; `None` where rows hold none.
    pub media: Option<MediaReport>,
}

/// Reads a length file. `asked` names the column or key that holds the lengths; without it the best known
/// name is taken.
pub fn import(bytes: &[u8], asked: Option<&str>) -> Result<Imported, ImportError> {
    read(bytes, asked, None)
}

/// Reads a length file whose media become items of the encoder by a rule. A file without media is read as if none was chosen, and
/// the report says so.
pub fn import_by(bytes: &[u8], asked: Option<&str>, rule: Preprocessing) -> Result<Imported, ImportError> {
    let shaped = read(bytes, asked, Some(rule));
    if shaped.as_ref().is_ok_and(|imported| imported.dataset.shaped().is_some()) {
        return shaped;
    }
    let mut plain = match (shaped, read(bytes, asked, None)) {
        (Ok(_), plain) => plain?,
        // Without media the rule has nothing to do with what is wrong.
        (Err(_), Ok(plain)) if plain.report.media.is_none() => plain,
        (Err(error), _) => return Err(error),
    };
    let advice = "Rows hold no sizes of images, no frames and no seconds of sound: there is nothing to preprocess, and lengths count as they stand";
    plain.report.media = Some(MediaReport { advice: Some(advice.to_owned()), ..MediaReport::default() });
    Ok(plain)
}

fn read(bytes: &[u8], asked: Option<&str>, rule: Option<Preprocessing>) -> Result<Imported, ImportError> {
    if bytes.starts_with(megatron::MAGIC) {
        return megatron::import(bytes, asked);
    }
    if bytes.starts_with(npy::MAGIC) {
        return npy::import(bytes);
    }
    if bytes.starts_with(parquet::MAGIC) {
        return parquet::import(bytes, asked, rule);
    }
    let text = sniff::text(bytes)?;
    match sniff::format(&text) {
        Format::Numbers => numbers::import(&text),
        Format::Table(delimiter) => table::import(&text, delimiter, asked, rule),
        Format::Json | Format::JsonLines if statistics::is(&text) => statistics::import(&text, asked),
        Format::Json => json::import(&text, asked, rule),
        Format::JsonLines => lines::import(&text, asked, rule),
    }
}

#[cfg(test)]
mod tests;
