//! Detects rows that may not be samples: sums or statistics of other rows.

use super::super::choice::{Images, Length};
use super::super::histogram;
use super::super::rows::Samples;
use super::super::value::{Location, Row, Value};
use super::super::{ImportError, number, profile};

/// Maximum label length, in bytes.
const MAX: usize = 32;
/// Statistics labels.
const STATISTICS: [&str; 19] = [
    "mean",
    "avg",
    "average",
    "min",
    "minimum",
    "max",
    "maximum",
    "median",
    "std",
    "stddev",
    "stdev",
    "mittelwert",
    "durchschnitt",
    "moyenne",
    "promedio",
    "среднее",
    "平均",
    "平均值",
    "médiane",
];
/// Labels that denote statistics only if other rows also have statistics labels.
const WITH_OTHERS: [&str; 17] = [
    "count", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9", "5%", "25%", "50%", "75%", "95%",
    "99%",
];

/// A deferred row that may or may not be a sample.
#[derive(Debug)]
pub(super) struct DeferredRow {
    pub(super) location: Location,
    /// Text of the row; empty if only the length has a value.
    pub(super) label: String,
    /// Length in tokens.
    pub(super) tokens: f64,
    pub(super) length: Length,
    pub(super) images: Option<Images>,
    pub(super) samples: Samples,
}

/// Deferred rows, and statistics of the other rows.
#[derive(Debug, Default)]
pub(super) struct Aside {
    deferred: Vec<DeferredRow>,
    /// Labels that several rows share; they are properties of samples.
    ordinary: Vec<String>,
    sum: f64,
    count: u32,
    min_tokens: f64,
    max_tokens: f64,
    /// True if the last row is the sum of the previous rows.
    is_sum: bool,
    /// Length of the first sample.
    first: Option<f64>,
    /// Sum and count of the rows since the last sum row.
    run: (f64, u32),
    /// Number of rows that are the sum of the previous rows.
    subtotals: u32,
    /// Last number, and the count of strictly increasing numbers; 0 after a number that does not
    /// increase.
    rise: Option<(f64, u32)>,
}

/// Decision about the deferred rows.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) samples: Vec<DeferredRow>,
    /// A sentence per skipped row, and per doubt.
    pub(super) warnings: Vec<String>,
    /// Number of skipped rows.
    pub(super) left_out: u64,
}

/// Returns the label of a row whose only text is a word for a sum or a statistic.
pub(super) fn label(row: &Row<'_>) -> Option<String> {
    fn add<'v>(value: &'v Value<'_>, found: &mut Option<&'v str>) -> bool {
        let text = match value {
            Value::Missing | Value::Number(_) => return true,
            Value::Text(text) => text.trim(),
            _ => return false,
        };
        if text.is_empty() || is_number(text) {
            return true;
        }
        text.len() <= MAX && found.replace(text).is_none()
    }
    let mut found = None;
    let is_plain = match row {
        Row::Single(_) => false,
        Row::Cells(cells) => cells.iter().all(|cell| add(cell, &mut found)),
        Row::Object(members) => members.iter().all(|(_, value)| add(value, &mut found)),
    };
    let label = found.filter(|_| is_plain)?.trim_end_matches(':').to_lowercase();
    is_label(&label).then_some(label)
}

fn is_label(label: &str) -> bool {
    let word = key(label);
    histogram::is_total(word) || STATISTICS.contains(&word) || WITH_OTHERS.contains(&word)
}

/// Returns whether a label denotes a sum, or a row in which only the length has a value.
pub(super) fn is_sum(label: &str) -> bool {
    label.is_empty() || histogram::is_total(key(label))
}

/// Returns the word for a sum or statistic without the words for the counted quantity: `total` for
/// "total tokens". Returns the complete label if it contains other words.
fn key(label: &str) -> &str {
    const COUNTED: [&str; 29] = [
        "tokens",
        "token",
        "samples",
        "sample",
        "rows",
        "row",
        "length",
        "lengths",
        "len",
        "size",
        "of",
        "the",
        "number",
        "num",
        "dev",
        "deviation",
        "standard",
        "value",
        "sequence",
        "documents",
        "document",
        "grand",
        "per",
        "source",
        "sources",
        "file",
        "files",
        "split",
        "splits",
    ];
    if ["number of samples", "num samples", "number of rows", "number of documents"].contains(&label) {
        return "count";
    }
    if ["std dev", "standard deviation"].contains(&label) {
        return "std";
    }
    let terms = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty() && !COUNTED.contains(word));
    let mut others = terms.clone();
    match (others.next(), others.next()) {
        (Some(only), None) if !only.starts_with(|c: char| c.is_ascii_digit()) => only,
        (Some(first), Some(_)) if terms.clone().all(histogram::is_total) => first,
        _ => label,
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && !text.ends_with('%')
        && (number::read(text).is_some() || number::quantity(text).is_some())
}

impl Aside {
    /// Returns the deferred unlabelled row when a further row is read. A row without a label is a
    /// sum only at the end of the file.
    pub(super) fn before_next(&mut self) -> Option<DeferredRow> {
        let last = self.deferred.pop_if(|deferred| deferred.label.is_empty())?;
        self.see(last.tokens);
        Some(last)
    }

    /// Adds the length of a sample.
    pub(super) fn see(&mut self, tokens: f64) {
        self.is_sum = self.count >= 3 && self.sum.total_cmp(&tokens).is_eq();
        self.first.get_or_insert(tokens);
        if self.run.1 > 2 && self.run.0.total_cmp(&tokens).is_eq() {
            self.subtotals += 1;
            self.run = (0.0, 0);
        } else {
            self.run = (self.run.0 + tokens, self.run.1 + 1);
        }
        self.min_tokens = if self.count == 0 { tokens } else { self.min_tokens.min(tokens) };
        self.max_tokens = self.max_tokens.max(tokens);
        self.sum += tokens;
        self.count = self.count.saturating_add(1);
    }

    /// Adds a number in file order.
    pub(super) fn order(&mut self, number: f64) {
        self.rise = Some(match self.rise {
            None => (number, 1),
            Some((last, count)) if count > 0 && number > last => (number, count.saturating_add(1)),
            Some(_) => (number, 0),
        });
    }

    /// Defers a row. Returns the rows whose label occurs several times, because they are samples.
    pub(super) fn hold(&mut self, row: DeferredRow) -> Vec<DeferredRow> {
        let is_known = self.ordinary.contains(&row.label);
        let before =
            self.deferred.iter().position(|deferred| deferred.label == row.label).map(|at| self.deferred.remove(at));
        if !is_known && before.is_none() {
            self.deferred.push(row);
            return Vec::new();
        }
        if !is_known {
            self.ordinary.push(row.label.clone());
        }
        let samples: Vec<DeferredRow> = before.into_iter().chain(std::iter::once(row)).collect();
        for sample in &samples {
            self.see(sample.tokens);
        }
        samples
    }

    /// Decides about the deferred rows.
    pub(super) fn settle(self) -> Result<Settled, ImportError> {
        let mut settled = Settled::default();
        let has_labels = self
            .deferred
            .iter()
            .any(|deferred| !WITH_OTHERS.contains(&key(&deferred.label)) && !deferred.label.is_empty());
        let is_summary = has_labels && self.deferred.len() > 1;
        if self.count == 0 && is_summary {
            let labels: Vec<&str> = self.deferred.iter().map(|deferred| deferred.label.as_str()).collect();
            return Err(ImportError::Histogram {
                detail: format!(
                    "its rows are statistics of lengths ({}) and no samples; upload the lengths, or percentiles in a row such as p50,p90,p99",
                    labels.join(", ")
                ),
            });
        }
        if self.is_sum && self.deferred.is_empty() {
            settled.warnings.push(format!(
                "The last row is the sum of the rows before it, {}. It is read as a sample. If it is a total, remove it.",
                self.sum / 2.0
            ));
        }
        if self.rise.is_some_and(|(_, count)| count > 9) {
            settled.warnings.push(
                "Each number is larger than the one before. If they are running sums or offsets, upload their differences."
                    .to_owned(),
            );
        }
        if self.subtotals > 1 {
            settled.warnings.push(format!(
                "{} rows are each the sum of the rows before them. They are read as samples. If they are totals, remove them.",
                self.subtotals
            ));
        }
        // The last row may be deferred.
        let all = self.sum
            + self
                .deferred
                .iter()
                .filter(|deferred| deferred.label.is_empty())
                .map(|deferred| deferred.tokens)
                .sum::<f64>();
        if self.count > 3
            && let Some(first) = self.first.filter(|first| (all - first).total_cmp(first).is_eq())
        {
            settled.warnings.push(format!(
                "The first row is the sum of the other rows, {first}. It is read as a sample. If it is a total, remove it."
            ));
        }
        let (sum, mean) = (self.sum, self.sum / f64::from(self.count.max(1)));
        for deferred in self.deferred {
            let tokens = deferred.tokens;
            let is_close = |expected: f64| (tokens - expected).abs() <= 0.005 * expected;
            let is_total = histogram::is_total(key(&deferred.label)) || deferred.label.is_empty();
            let is_no_sample = match key(&deferred.label) {
                _ if self.count == 0 => false,
                "" => self.count > 1 && sum.total_cmp(&tokens).is_eq(),
                "all" | "overall" => is_close(sum),
                _ if is_total => is_close(sum) || tokens > sum,
                "max" | "maximum" => is_summary || tokens >= self.max_tokens,
                "min" | "minimum" => is_summary || tokens <= self.min_tokens,
                "mean" | "avg" | "average" => is_summary || is_close(mean),
                label => is_summary || STATISTICS.contains(&label),
            };
            if !is_no_sample {
                if is_total && !deferred.label.is_empty() && self.count > 0 {
                    settled.warnings.push(format!(
                        "The row {} is read as a sample: it is not the sum of the other rows.",
                        deferred.label
                    ));
                }
                settled.samples.push(deferred);
                continue;
            }
            settled.left_out += 1;
            settled.warnings.push(match deferred.label.as_str() {
                "" => "The last row has a length and nothing else. It is left out: it is the sum of the other rows."
                    .to_owned(),
                label if is_total && is_close(sum) => {
                    format!("The row {label} is left out: it is the sum of the other rows.")
                }
                label if is_total => {
                    format!(
                        "The row {label} is left out; its number {tokens} differs from the sum of the other rows, {sum}."
                    )
                }
                label => format!("The row {label} is left out: it is a statistic of the other rows."),
            });
        }
        Ok(settled)
    }
}

/// Returns whether a row has values only in the columns that are read, although the file has other
/// columns.
pub(super) fn is_bare<'v>(mut unread: impl Iterator<Item = &'v Value<'v>>) -> bool {
    let Some(first) = unread.next() else { return false };
    profile::is_missing(first) && unread.all(profile::is_missing)
}
