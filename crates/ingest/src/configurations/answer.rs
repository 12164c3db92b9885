//! Writes the estimates: the input cells followed by the result columns.

use std::io;

use planner::certainty::{self, Features};
use planner::estimate::{Configuration, Estimate, Inconsistent};

use super::without_effect::{self, StatedColumn};
use super::{Rejection, Table};

/// Columns appended after the input columns.
pub const ANSWERS: [&str; 14] = [
    "iteration_time_s",
    "iteration_time_low_s",
    "iteration_time_high_s",
    "tokens_per_s_per_gpu",
    "tflops_per_gpu",
    "mfu",
    "peak_memory_gib",
    "out_of_memory_probability",
    "bubble_fraction",
    "exposed_comm_fraction",
    "feasible",
    "reason",
    "defaults",
    "without_effect",
];

/// Row counts of an estimated table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Number of rows below the header.
    pub rows: u64,
    /// Number of feasible rows.
    pub feasible: u64,
    /// Infeasible rows grouped by their first failed check, most frequent first.
    pub infeasible: Vec<Obstacle>,
    /// Cells that have no effect in their row.
    pub without_effect: WithoutEffect,
}

/// Counts of stated cells that have no effect in their row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WithoutEffect {
    /// Number of cells.
    pub cells: u64,
    /// Number of rows with such cells.
    pub rows: u64,
    /// Number of the first such row and its columns with reasons. The header is row 1.
    pub first: Option<(u64, String)>,
    /// Columns that state other values than their default, and have an effect in no row.
    pub columns: Vec<&'static str>,
    /// Columns that have an effect in a row.
    used: Vec<&'static str>,
}

/// Rows that fail the same check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// A column name, `memory` if device memory is too small, or `layout` if the planner rejects
    /// the layout.
    pub check: &'static str,
    /// Number of rows.
    pub rows: u64,
    /// Number of the first such row. The header is row 1.
    pub first: u64,
    /// Reason for the first such row.
    pub reason: String,
}

/// Estimates all rows and writes the result as CSV.
///
/// # Errors
/// I/O errors from `out`.
pub fn write(
    table: &Table<'_>,
    mut estimate: impl FnMut(&Configuration) -> Result<Estimate, Inconsistent>,
    out: impl io::Write,
) -> io::Result<Summary> {
    let mut writer = csv::WriterBuilder::new().delimiter(table.delimiter()).flexible(true).from_writer(out);
    let mut summary = Summary::default();
    let header = table.header().iter().map(String::as_str).chain(ANSWERS);
    writer.write_record(header).map_err(closed)?;
    for row in table.rows() {
        summary.rows += 1;
        let outcome = match row.configuration {
            Ok(configuration) => Outcome::new(&configuration, estimate(&configuration)),
            Err(Rejection { column, says }) => Outcome::infeasible(column, format!("{column}: {says}")),
        };
        let feasible = outcome.obstacle.is_none();
        let (check, reason) = outcome.obstacle.unwrap_or_default();
        let numbers = outcome.numbers.iter().map(String::as_str);
        let without_effect = without_effect::describe(&row.stated);
        let feasibility = [if feasible { "true" } else { "false" }, &reason, &row.defaults, &without_effect];
        writer.write_record(row.cells.iter().chain(numbers).chain(feasibility)).map_err(closed)?;
        summary.without_effect.count(&row.stated, summary.rows + 1, without_effect);
        if feasible {
            summary.feasible += 1;
        } else {
            summary.count(check, reason);
        }
    }
    summary.infeasible.sort_by(|a, b| b.rows.cmp(&a.rows).then(a.first.cmp(&b.first)));
    writer.flush()?;
    Ok(summary)
}

impl WithoutEffect {
    /// Counts the columns of a row.
    fn count(&mut self, stated: &[StatedColumn], row: u64, description: String) {
        for StatedColumn { column, without_effect, is_neutral } in stated {
            let is_used = self.used.contains(column);
            if without_effect.is_none() && !is_used {
                self.used.push(column);
                self.columns.retain(|unused| unused != column);
            } else if without_effect.is_some() && !is_used && !is_neutral && !self.columns.contains(column) {
                self.columns.push(column);
            }
        }
        let cells = stated.iter().filter(|stated| stated.without_effect.is_some()).count();
        if cells > 0 {
            self.cells += cells as u64;
            self.rows += 1;
            self.first.get_or_insert((row, description));
        }
    }
}

impl Summary {
    fn count(&mut self, check: &'static str, reason: String) {
        match self.infeasible.iter_mut().find(|obstacle| obstacle.check == check) {
            Some(obstacle) => obstacle.rows += 1,
            None => self.infeasible.push(Obstacle { check, rows: 1, first: self.rows + 1, reason }),
        }
    }
}

/// Result columns of one row.
struct Outcome {
    numbers: [String; 10],
    /// Failed check and reason.
    obstacle: Option<(&'static str, String)>,
}

impl Outcome {
    fn new(configuration: &Configuration, estimate: Result<Estimate, Inconsistent>) -> Self {
        let estimate = match estimate {
            Ok(estimate) => estimate,
            Err(Inconsistent(rule)) => return Self::infeasible("layout", rule),
        };
        let features = Features::of_estimate(configuration, &estimate);
        let has_no_data = certainty::reason_for(&configuration.model, &configuration.cluster).is_some();
        let step = certainty::step_time_interval(estimate.iteration.secs(), &features, has_no_data);
        let peak_gib = estimate.peak_memory.total() / GIB;
        let memory = certainty::memory_certainty(peak_gib, configuration.cluster.device.memory_gib);
        let numbers = [
            estimate.iteration.secs(),
            step.low,
            step.high,
            estimate.tokens_per_s_per_device,
            estimate.tflops_per_device,
            estimate.mfu,
            peak_gib,
            memory.probability_out_of_memory,
            estimate.bubble_fraction,
            estimate.exposed_communication,
        ];
        if numbers.iter().any(|number| !number.is_finite()) {
            return Self::infeasible("layout", "the numbers are too large to be estimated".to_owned());
        }
        Self { numbers: numbers.map(significant), obstacle: estimate.infeasibility.map(|misfit| ("memory", misfit)) }
    }

    fn infeasible(check: &'static str, reason: String) -> Self {
        Self { numbers: Default::default(), obstacle: Some((check, reason)) }
    }
}

const GIB: f64 = 1_073_741_824.0;

/// Formats a number with six significant digits, without an exponent.
fn significant(number: f64) -> String {
    let rounded = format!("{number:.5e}").parse().unwrap_or(number);
    format!("{rounded}")
}

/// Returns the underlying I/O error, so that callers can detect a closed pipe.
fn closed(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_significant_digits() {
        for (number, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.123_456_789, "0.123457"),
            (12_345.678_9, "12345.7"),
            (1_234_567.8, "1234570"),
            (0.000_000_123_456_7, "0.000000123457"),
        ] {
            assert_eq!(significant(number), expected);
        }
    }
}
