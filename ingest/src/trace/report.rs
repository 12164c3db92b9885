//! What was read of a trace and what was not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Events that were not read as they stand, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
    /// The first of them, counting events from 1.
    pub event: u64,
    /// Bytes of the unpacked file up to its end.
    pub offset: u64,
}

/// What was read of a trace and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Bytes, unpacked.
    pub bytes: u64,
    /// Events, packets or nodes of the file.
    pub events: u64,
    /// Events by their phase.
    pub phases: BTreeMap<String, u64>,
    /// Events that were used: slices, metadata, counters, arrows.
    pub used: u64,
    /// Of them, those that needed a repair.
    pub repaired: u64,
    /// Events that were left out.
    pub skipped: u64,
    /// Slices on lanes of their own, because they overlap without nesting.
    pub overflowed: u64,
    /// Whether the file breaks off; what stands before was read.
    pub cut: bool,
    /// What was repaired and left out, by reason.
    pub problems: Vec<Problem>,
    /// What the file does not say and was taken so.
    pub assumptions: Vec<String>,
}

impl Report {
    /// Counts a problem by its reason, at the present event.
    pub(super) fn problem(&mut self, reason: &str) {
        if let Some(problem) = self.problems.iter_mut().find(|problem| problem.reason == reason) {
            problem.count += 1;
        } else {
            let (event, offset) = (self.events, self.bytes);
            self.problems.push(Problem { reason: reason.to_owned(), count: 1, event, offset });
        }
    }

    /// Counts an event that is left out.
    pub(super) fn skip(&mut self, reason: &str) {
        self.skipped += 1;
        self.problem(reason);
    }

    /// Counts an event that is used after a repair.
    pub(super) fn repair(&mut self, reason: &str) {
        self.repaired += 1;
        self.problem(reason);
    }

    /// Tells, once, what the file does not say.
    pub(super) fn assume(&mut self, assumption: &str) {
        if !self.assumptions.iter().any(|told| told == assumption) {
            self.assumptions.push(assumption.to_owned());
        }
    }
}
