//! Builds histograms from percentiles: `p50,p90,p99`, and `describe()` of pandas.

use super::super::{ImportError, Imported};
use super::bins::{Bin, Form, bins};
use super::refuse;

/// An entry of a summary.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    /// Share of samples that do not exceed the length.
    Quantile(f64),
    /// Number of samples.
    Count,
    /// Mean or standard deviation, which the histogram does not use.
    Moment,
}

impl Entry {
    /// Parses an entry name, for example "p50", "99%", "median", "max".
    fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Self::from_word(&name).or_else(|| Self::from_word(&plain(&name)?))
    }

    /// Parses an entry name in lower case.
    fn from_word(name: &str) -> Option<Self> {
        let percent = |text: &str| text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        Some(match name {
            "count" | "n" | "samples" => Self::Count,
            "mean" | "std" | "avg" | "average" | "stddev" | "null_count" | "unique" | "top" | "freq" | "sum"
            | "var" | "variance" | "mode" | "skew" | "kurtosis" => Self::Moment,
            "min" | "minimum" => Self::Quantile(0.0),
            "median" | "q2" => Self::Quantile(0.5),
            "max" | "maximum" => Self::Quantile(1.0),
            "q1" => Self::Quantile(0.25),
            "q3" => Self::Quantile(0.75),
            name => {
                let digits = name.strip_prefix("percentile_").or_else(|| name.strip_prefix(['p', 'q']));
                let digits = digits.or_else(|| name.strip_suffix('%'));
                let digits = digits.or_else(|| name.strip_suffix("th")).or_else(|| name.strip_suffix("th percentile"));
                Self::Quantile(percent(digits?)? / 100.0)
            }
        })
    }
}

/// Returns a label without the words for the counted quantity: `mean` for "mean length"; `None` for a
/// label without such words.
fn plain(label: &str) -> Option<String> {
    const COUNTED: [&str; 10] =
        ["length", "lengths", "len", "tokens", "token", "sequence", "seq", "sample", "samples", "per"];
    if ["total samples", "number of samples", "num samples", "num_samples", "n_samples"].contains(&label) {
        return Some("count".to_owned());
    }
    let terms: Vec<&str> = label.split([' ', '_']).filter(|word| !word.is_empty()).collect();
    let others: Vec<&str> = terms.iter().copied().filter(|word| !COUNTED.contains(word)).collect();
    match others.as_slice() {
        ["total"] if terms.len() > 1 => Some("sum".to_owned()),
        [only] if terms.len() > 1 => Some((*only).to_owned()),
        _ => None,
    }
}

/// Returns whether a name denotes a statistic.
pub(super) fn is_known(name: &str) -> bool {
    Entry::from_name(name).is_some()
}

/// Returns whether the names form a summary: two percentiles, and otherwise only summary names.
pub(super) fn are<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
    let mut percentiles = 0;
    for name in names {
        match Entry::from_name(name) {
            Some(Entry::Quantile(share)) if share > 0.0 && share < 1.0 => percentiles += 1,
            Some(_) => {}
            None => return false,
        }
    }
    percentiles >= 2
}

/// Returns the names of quantiles that are fractions, as `quantile()` of pandas has them: `p50` for 0.5;
/// `None` for other names.
pub(super) fn from_fractions<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Vec<String>> {
    let fractions: Vec<f64> = names
        .into_iter()
        .map(|name| super::number(name).filter(|share| (0.0..=1.0).contains(share)))
        .collect::<Option<_>>()?;
    let inner = fractions.iter().filter(|share| share.fract() != 0.0).count();
    let are_quantiles = inner >= 2 && fractions.is_sorted_by(|previous, next| previous < next);
    are_quantiles.then(|| fractions.iter().map(|share| format!("p{}", (share * 1e8).round() / 1e6)).collect())
}

/// Error text for a summary without percentiles.
pub(super) const TOO_FEW: &str = "it is a summary with count, mean and extremes, which is too little for a histogram. Add percentiles, for example \
                                  with summary() of Spark, or upload the lengths";

/// Returns whether the names form a summary without percentiles: mean or standard deviation, and
/// two further names.
pub(super) fn lacks<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
    let entries: Option<Vec<Entry>> = names.into_iter().map(Entry::from_name).collect();
    entries.is_some_and(|entries| entries.len() > 2 && entries.contains(&Entry::Moment))
}

/// Builds the histogram from a summary.
pub(super) fn read<'a>(
    mut form: Form,
    entries: impl IntoIterator<Item = (&'a str, f64)>,
) -> Result<Imported, ImportError> {
    let mut samples = None;
    let mut quantiles = Vec::new();
    for (name, value) in entries {
        match Entry::from_name(name) {
            Some(Entry::Quantile(share)) => quantiles.push((share, value)),
            Some(Entry::Count) => samples = Some(value),
            Some(Entry::Moment) | None => {}
        }
    }
    quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(lowest, first)) = quantiles.first() else { return Err(refuse("it has no percentiles")) };
    form.warn("approximate: between two percentiles, lengths are spread evenly");
    if samples.is_none() {
        form.warn("the number of samples is not known: counts are percent");
    }
    let samples = samples.unwrap_or(100.0);
    let mut found = Vec::new();
    if lowest > 0.0 {
        form.warn(format!("there is no minimum: lengths below {} are spread from 1", rounded(first)));
        found.push(Bin { left: first.min(1.0), right: first, count: lowest * samples });
    }
    for [(share, left), (next, right)] in quantiles.array_windows() {
        if right < left {
            return Err(refuse(format!("the percentiles fall from {left} to {right}")));
        }
        found.push(Bin { left: *left, right: *right, count: (next - share) * samples });
    }
    if let Some(&(highest, last)) = quantiles.last()
        && highest < 1.0
    {
        let rest = (1.0 - highest) * 100.0;
        form.warn(format!("there is no maximum: the longest {} % count as {}", rounded(rest), rounded(last)));
        found.push(Bin { left: last, right: last, count: (1.0 - highest) * samples });
    }
    found.retain(|bin| bin.count > 0.0);
    bins(form, found)
}

/// Rounds a value for a sentence of the report.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
