//! Counts of parsed and unparsed lines.

use serde::{Deserialize, Serialize};

use super::Limits;
use super::point::{Point, Source};
use super::reading::{LeftOut, Tear};
use super::text::clip;

/// Lines that were skipped or repaired for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Reason text.
    pub reason: String,
    /// Number of lines.
    pub count: u64,
    /// First affected line, from 1, counting line feeds.
    pub line: u64,
    /// Byte offset of that line.
    pub offset: u64,
}

/// An incomplete step line as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornLine {
    /// Line number, from 1, counting line feeds.
    pub line: u64,
    /// Byte offset of the line.
    pub offset: u64,
    /// Line text, truncated if long.
    pub text: String,
}

/// Number of step lines per format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCount {
    /// Format of the lines.
    pub source: Source,
    /// Number of step lines.
    pub lines: u64,
}

/// Counts of parsed and unparsed lines. Every line counts exactly once as step, companion, ignored,
/// skipped or torn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Bytes processed.
    pub bytes: u64,
    /// Non-empty lines; records for event files, rows for lists.
    pub lines: u64,
    /// Step lines.
    pub steps: u64,
    /// Timer, memory, validation and event lines that accompany a step.
    pub companions: u64,
    /// Lines without training metrics.
    pub ignored: u64,
    /// Unreadable lines.
    pub skipped: u64,
    /// Step lines that are truncated, mixed with another line, or contain an invalid number.
    pub torn: u64,
    /// Parsed lines that required a repair.
    pub repaired: u64,
    /// Step lines with duplicate information: other ranks and redrawn progress bars.
    pub repeated: u64,
    /// Number of points.
    pub points: u64,
    /// Restarts: the step number decreased, or the program started after a step.
    pub restarts: u32,
    /// Step line formats in order of first occurrence.
    pub sources: Vec<SourceCount>,
    /// Repaired, skipped and repeated lines, by reason.
    pub problems: Vec<Problem>,
    /// The first torn lines as text.
    pub torn_lines: Vec<TornLine>,
    /// Assumptions about values missing in the log.
    pub assumptions: Vec<String>,
    /// Pattern table entries that matched step lines, in order of first occurrence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// FLOP formula behind the trainer's TFLOP/s, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_formula: Option<String>,
}

/// Position of a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Location {
    /// Line number.
    pub(super) line: u64,
    /// Byte offset.
    pub(super) offset: u64,
}

impl Report {
    pub(super) fn problem(&mut self, reason: &str, location: Location) {
        if let Some(problem) = self.problems.iter_mut().find(|problem| problem.reason == reason) {
            problem.count += 1;
        } else {
            let Location { line, offset } = location;
            self.problems.push(Problem { reason: reason.to_owned(), count: 1, line, offset });
        }
    }

    /// Counts an unreadable line.
    pub(super) fn skip(&mut self, reason: &str, location: Location) {
        self.skipped += 1;
        self.problem(reason, location);
    }

    /// Counts a repaired line.
    pub(super) fn repair(&mut self, reason: &str, location: Location) {
        self.repaired += 1;
        self.problem(reason, location);
    }

    /// Counts a step with dropped or invalid values.
    pub(super) fn missing_values(&mut self, point: &Point, left_out: LeftOut) {
        let location = Location { line: point.line, offset: point.offset };
        if left_out.beyond_limit > 0 {
            self.problem("a step has more values than can be stored", location);
        }
        if left_out.unreadable > 0 {
            self.problem("a value of a step is not a number, and is missing", location);
        }
        if !point.not_finite.is_empty() {
            self.problem("a value is not a number or not finite, and is missing", location);
        }
    }

    /// Counts an incomplete line and stores the first ones.
    pub(super) fn tear(&mut self, tear: Tear, text: &str, location: Location, limits: &Limits) {
        self.torn += 1;
        self.problem(tear.reason(), location);
        if self.torn_lines.len() < limits.torn_lines {
            let Location { line, offset } = location;
            self.torn_lines.push(TornLine { line, offset, text: clip(text, limits.torn_chars) });
        }
    }

    /// Counts torn lines as ignored: lines of another format are not torn.
    pub(super) fn forget_torn_lines(&mut self) {
        self.ignored += std::mem::take(&mut self.torn);
        self.torn_lines.clear();
        self.problems.retain(|problem| Tear::ALL.iter().all(|tear| tear.reason() != problem.reason));
    }

    pub(super) fn source(&mut self, source: Source) {
        match self.sources.iter_mut().find(|count| count.source == source) {
            Some(count) => count.lines += 1,
            None => self.sources.push(SourceCount { source, lines: 1 }),
        }
    }

    /// Records an assumption once.
    pub(super) fn assume(&mut self, assumption: &str) {
        if !self.assumptions.iter().any(|known| known == assumption) {
            self.assumptions.push(assumption.to_owned());
        }
    }
}
