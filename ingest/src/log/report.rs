//! What was read of a log and what was not.

use serde::{Deserialize, Serialize};

use super::Limits;
use super::point::{Point, Source};
use super::reading::Tear;
use super::text::clip;

/// Lines that were not read as they stand, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// Line of the first, counting from 1 by line feeds.
    pub line: u64,
    /// First byte of that line.
    pub offset: u64,
}

/// A line of a step that is not whole, as it is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TornLine {
    /// Its number, counting from 1 by line feeds.
    pub line: u64,
    /// Its first byte.
    pub offset: u64,
    /// Its text, cut where it is long.
    pub text: String,
}

/// Lines by the kind they were read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCount {
    /// The kind.
    pub source: Source,
    /// Lines of steps of that kind.
    pub lines: u64,
}

/// What was read of a log and what was not. Every line is counted once among steps, companions, ignored, skipped and
/// torn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Bytes seen.
    pub bytes: u64,
    /// Lines that are not empty; of event files records, of lists rows.
    pub lines: u64,
    /// Lines that speak of a step.
    pub steps: u64,
    /// Lines of timers, memory, validation and events, which belong to a step.
    pub companions: u64,
    /// Lines that hold no figures of the training.
    pub ignored: u64,
    /// Lines that could not be read.
    pub skipped: u64,
    /// Lines of steps that are cut, mixed with another line, or hold a value that is not a number.
    pub torn: u64,
    /// Of the lines that were read, those that needed a repair.
    pub repaired: u64,
    /// Of the lines of steps, those that say again what another said: of other ranks, and redrawn progress bars.
    pub repeated: u64,
    /// Points.
    pub points: u64,
    /// Restarts: steps that went back, and starts of the program behind a step.
    pub restarts: u32,
    /// Kinds of lines of steps, in the order in which they first came.
    pub sources: Vec<SourceCount>,
    /// What was repaired, skipped and repeated, by reason.
    pub problems: Vec<Problem>,
    /// The first torn lines as they stand.
    pub torn_lines: Vec<TornLine>,
    /// What the log does not say and was taken so.
    pub assumptions: Vec<String>,
    /// Entries of tables that described lines of steps, by their names, in the order in which they first came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// How the trainer counts the operations of its TFLOP/s, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_formula: Option<String>,
}

/// Where a line stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// Its number.
    pub(super) line: u64,
    /// Its first byte.
    pub(super) offset: u64,
}

impl Report {
    /// Counts a problem by its reason.
    pub(super) fn problem(&mut self, reason: &str, place: Place) {
        if let Some(problem) = self.problems.iter_mut().find(|problem| problem.reason == reason) {
            problem.count += 1;
        } else {
            let Place { line, offset } = place;
            self.problems.push(Problem { reason: reason.to_owned(), count: 1, line, offset });
        }
    }

    /// Counts a line that could not be read.
    pub(super) fn skip(&mut self, reason: &str, place: Place) {
        self.skipped += 1;
        self.problem(reason, place);
    }

    /// Counts a line that was read after a repair.
    pub(super) fn repair(&mut self, reason: &str, place: Place) {
        self.repaired += 1;
        self.problem(reason, place);
    }

    /// Counts a step of whose values some are missing: those for which there is no room, and those that are no numbers.
    pub(super) fn missing_values(&mut self, point: &Point, left_out: u64) {
        let place = Place { line: point.line, offset: point.offset };
        if left_out > 0 {
            self.problem("a step has more values than are kept", place);
        }
        if !point.not_finite.is_empty() {
            self.problem("a value is not a number or not finite, and is missing", place);
        }
    }

    /// Counts a line that is not whole and stores the first of them.
    pub(super) fn tear(&mut self, tear: Tear, text: &str, place: Place, limits: &Limits) {
        self.torn += 1;
        self.problem(tear.reason(), place);
        if self.torn_lines.len() < limits.torn_lines {
            let Place { line, offset } = place;
            self.torn_lines.push(TornLine { line, offset, text: clip(text, limits.torn_chars) });
        }
    }

    /// Counts a line of a step by its kind.
    pub(super) fn source(&mut self, source: Source) {
        match self.sources.iter_mut().find(|count| count.source == source) {
            Some(count) => count.lines += 1,
            None => self.sources.push(SourceCount { source, lines: 1 }),
        }
    }

    /// Tells, once, what the log does not say.
    pub(super) fn assume(&mut self, assumption: &str) {
        if !self.assumptions.iter().any(|told| told == assumption) {
            self.assumptions.push(assumption.to_owned());
        }
    }
}
