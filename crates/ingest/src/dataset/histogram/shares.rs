//! Validates shares and cumulative shares.

use super::super::ImportError;
use super::bins::Form;
use super::{known, refuse};

/// Report sentence for counts that are shares.
pub(in super::super) const UNKNOWN: &str = "The counts are shares: the number of samples is not known.";

/// Returns whether a sum of shares is 1 or 100.
pub(super) fn is_full_sum(sum: f64) -> bool {
    (sum - 1.0).abs() <= 0.02 || (sum - 100.0).abs() <= 2.0
}

/// Validates that shares, sorted by length, sum to 1 or 100. `is_percent` is true if they have a
/// percent sign.
pub(super) fn check(form: &mut Form, name: &str, is_percent: bool, shares: &[f64]) -> Result<(), ImportError> {
    if !is_percent && !known::is_share(name) {
        return Ok(());
    }
    let sum: f64 = shares.iter().sum();
    if is_full_sum(sum) {
        form.warn(UNKNOWN);
        return Ok(());
    }
    let last = shares.last().copied().unwrap_or_default();
    if shares.len() > 2 && shares.is_sorted() && is_full_sum(last) {
        return Err(refuse(format!(
            "{name} rises to {last}, as a cumulative share does. Name the column cdf if it is one; shares sum to 1 or 100"
        )));
    }
    form.warn(format!(
        "{name} sums to {}, which is neither 1 nor 100: the numbers are read as relative counts",
        round(sum)
    ));
    Ok(())
}

/// Returns whether the counts are fractions with a sum of at most 1.
pub(in super::super) fn are(counts: &[f64]) -> bool {
    counts.iter().sum::<f64>() <= 1.02 && counts.iter().any(|count| count.fract() != 0.0)
}

/// Warns if cumulative shares do not reach the total, because longer samples are then missing.
pub(super) fn check_end(form: &mut Form, name: &str, last: f64) {
    let name = super::normal(name);
    let is_percent = ["pct", "percent", "percentile"].iter().any(|word| name.contains(word));
    let is_share = ["cdf", "ecdf", "quantile"].contains(&name.as_str()) || name.contains("share");
    let end = if last <= 1.0 {
        1.0
    } else if is_percent || (is_share && (50.0..=100.0).contains(&last)) {
        100.0
    } else {
        return;
    };
    let missing = (1.0 - last / end) * 100.0;
    if missing > 0.01 {
        form.warn(format!(
            "the cumulative shares end at {last} and not at {end}: the longest {} % of the samples are missing",
            round(missing)
        ));
    }
}

/// Rounds a number for a sentence.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// Occurrences of percent signs in a count column.
#[derive(Debug, Default)]
pub(super) struct Signs {
    with: bool,
    without: bool,
}

impl Signs {
    pub(super) fn from_cells<'c>(cells: impl Iterator<Item = &'c str>) -> Self {
        let mut signs = Self::default();
        cells.for_each(|cell| signs.see(cell));
        signs
    }

    pub(super) fn see(&mut self, cell: &str) {
        match super::number(cell) {
            Some(count) => self.without |= count != 0.0,
            None => self.with |= super::percent(cell).is_some(),
        }
    }

    /// Returns whether the counts are percentages. All counts or none must have the sign.
    pub(super) fn are_percent(&self, name: &str) -> Result<bool, ImportError> {
        if self.with && self.without {
            return Err(refuse(format!(
                "{name} holds numbers with and without a percent sign; write all of them in the same way"
            )));
        }
        Ok(self.with)
    }
}
