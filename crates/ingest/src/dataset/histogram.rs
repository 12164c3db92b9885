//! Reads histograms of lengths: the format "hist/1", and formats that other programs write.
//!
//! [`table`], [`json`] and [`text`] detect a format and return the histogram, or `None` if the
//! input matches no format.

mod bins;
mod columns;
mod edges;
mod interval;
pub(super) mod json;
mod keyed;
mod known;
mod percentiles;
mod printed;
pub(super) mod samples;
pub(super) mod scale;
pub(super) mod shares;
mod summary;
mod table;
mod text;

use std::collections::BTreeMap;

use planner::workload::Dataset;

use bins::Form;

use super::sniff::{Delimiter, Format};
use super::{ImportError, Imported, MAX_BINS, MAX_LENGTH, Options, Report};

/// Name of the histogram format.
pub(super) const SCHEMA: &str = "hist/1";

/// If all edges are below this value and some are fractions, the histogram does not contain
/// lengths.
const SMALL: f64 = 20.0;

/// Validates a histogram. Two equal adjacent edges are a point mass.
pub(super) fn import(unit: Option<&str>, edges: Vec<f64>, counts: Vec<f64>) -> Result<Imported, ImportError> {
    let refuse = |detail: String| Err(ImportError::Histogram { detail });
    if unit.is_some_and(|unit| unit != "tokens") {
        return refuse(format!("unit must be \"tokens\", not {:?}; convert the edges first", unit.unwrap_or_default()));
    }
    if counts.is_empty() {
        return refuse("it has no bins".to_owned());
    }
    if counts.len() > MAX_BINS {
        return refuse(format!("{} bins; at most {MAX_BINS} are accepted, join neighbours", counts.len()));
    }
    if edges.len() != counts.len() + 1 {
        return refuse(format!(
            "{} edges for {} counts; there must be one edge more than counts",
            edges.len(),
            counts.len()
        ));
    }
    for (index, &edge) in edges.iter().enumerate() {
        if !edge.is_finite() || edge < 0.0 || edge > f64::from(MAX_LENGTH) {
            return refuse(format!("edge {} is {edge}; edges lie between 0 and {MAX_LENGTH}", index + 1));
        }
        if index > 0 && edge < edges[index - 1] {
            return refuse(format!("edge {} ({edge}) is below the edge before it ({})", index + 1, edges[index - 1]));
        }
    }
    for (index, &count) in counts.iter().enumerate() {
        if !count.is_finite() || count < 0.0 {
            return refuse(format!("count {} is {count}; counts are zero or more", index + 1));
        }
        if count > 0.0 && edges[index + 1] < 1.0 {
            return refuse(format!("bin {} counts samples shorter than one token", index + 1));
        }
    }
    // With a declared unit, the edges are lengths.
    if unit.is_none() && edges.iter().all(|&edge| edge < SMALL) && edges.iter().any(|edge| edge.fract() != 0.0) {
        return refuse(format!(
            "its edges are fractions below {SMALL}, as those of scores and seconds are. If they are lengths in tokens, write \
             {{\"schema\": \"{SCHEMA}\", \"unit\": \"tokens\", \"edges\": [..], \"counts\": [..]}}"
        ));
    }
    let samples: f64 = counts.iter().sum();
    if samples <= 0.0 {
        return refuse("every count is zero".to_owned());
    }
    if samples > 1e15 {
        return refuse(format!("the counts sum to {samples:e}; at most 1e15 samples are accepted"));
    }
    let report = Report {
        format: format!("histogram {SCHEMA}"),
        source: "edges and counts".to_owned(),
        // Shares may sum to less than one sample.
        parsed: (samples.round() as u64).max(1),
        ..Report::default()
    };
    Ok(Imported { dataset: Dataset::Histogram { edges, counts }, report })
}

/// Maximum size of a JSON document that is searched for a histogram, in bytes.
const MAX_DOCUMENT: usize = 8 << 20;

/// Returns the histogram of a text; `None` if the text matches no format. If the user chooses
/// columns, they are read as rows, except in a summary.
pub(super) fn recognise(text: &str, format: Format, options: &Options<'_>) -> Option<Result<Imported, ImportError>> {
    if options.weight.is_some() {
        return None;
    }
    match format {
        Format::Table(Delimiter::Byte(delimiter)) => {
            text::read(text, options).or_else(|| table::read(text, delimiter, options))
        }
        Format::Table(Delimiter::Bar) => table::read_bars(text, options).or_else(|| text::read(text, options)),
        Format::Json if text.len() <= MAX_DOCUMENT && !text.contains("\"schema\"") => {
            match serde_json::from_str(text) {
                Ok(document) => json::read(&document, options),
                // Python may write invalid JSON.
                Err(_) => text::read(text, options).or_else(|| text::literal(text, options)),
            }
        }
        Format::JsonLines => None,
        _ => text::read(text, options),
    }
}

/// Returns the histogram of rows with named edges and counts; `None` for other rows.
pub(super) fn from_edges(
    format: &str,
    header: &[String],
    rows: &mut dyn Iterator<Item = Vec<String>>,
    options: &Options<'_>,
) -> Option<Result<Imported, ImportError>> {
    let has = |known: &[&str]| header.iter().any(|name| known.contains(&normal(name).as_str()));
    let is_pair = |(left, right): &(&str, &str)| has(&[left]) && has(&[right]);
    let is_narrow = header.len() < 4;
    let has_edges = has(&known::LEFT) && has(&known::RIGHT)
        || (is_narrow && (known::PAIRS.iter().any(is_pair) || has(&known::CENTERS)));
    let has_bins = has(&["bin", "bins", "range", "interval", "bucket", "category"]) && is_narrow;
    if !((has_edges || has_bins) && has(&known::COUNTS)) {
        return None;
    }
    table::read_rows(format, header, rows, options)
}

/// Returns whether a number is inside a bin such as `0-512`; `None` if the text is not a bin.
pub(super) fn is_inside(bin: &str, number: f64) -> Option<bool> {
    let bin = interval::read(bin)?;
    Some(bin.left <= number && bin.right.is_none_or(|right| number <= right))
}

/// Returns whether a text labels a sum of rows.
pub(super) fn is_total(text: &str) -> bool {
    known::is_total(text)
}

/// Normalizes a name to lower case with underscores.
fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-', '.'], "_")
}

/// Builds a histogram with a zero-width bin for each length.
pub(super) fn weighted(weights: BTreeMap<u32, f64>, report: Report) -> Result<Imported, ImportError> {
    let points = weights.into_iter().map(|(length, samples)| (f64::from(length), samples)).collect();
    let Imported { dataset, report: bin_report } = bins::exact(Form::new("", ""), points)?;
    let warnings = [report.warnings, bin_report.warnings].concat();
    Ok(Imported { dataset, report: Report { warnings, ..report } })
}

/// Converts rows without images to a histogram; returns other datasets unchanged.
pub fn from_rows(imported: Imported) -> Result<Imported, ImportError> {
    match &imported.dataset {
        Dataset::Rows { text_tokens, images, shaped: None } if images.iter().all(|&images| images == 0) => {
            let mut weights = BTreeMap::new();
            for &length in text_tokens {
                *weights.entry(length).or_default() += 1.0;
            }
            weighted(weights, imported.report)
        }
        _ => Ok(imported),
    }
}

/// Creates the error for unreadable input.
fn refuse(detail: impl Into<String>) -> ImportError {
    ImportError::Histogram { detail: detail.into() }
}

/// Parses a cell as a number. Thousands separators are accepted; words are not numbers.
fn number(cell: &str) -> Option<f64> {
    match super::number::read(cell)? {
        super::number::Number::Integer(integer) => Some(integer as f64),
        super::number::Number::Repaired(number) => Some(number),
    }
}

/// Parses a count, or a share in percent such as `12.5%`.
fn count(cell: &str) -> Option<f64> {
    number(cell).or_else(|| percent(cell))
}

/// Parses a share in percent.
fn percent(cell: &str) -> Option<f64> {
    match super::number::quantity(cell)? {
        (value, super::number::Suffix::Percent) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
