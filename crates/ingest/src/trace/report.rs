//! Counts of parsed and skipped trace events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Events that were skipped or repaired for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Reason text.
    pub reason: String,
    /// Number of events.
    pub count: u64,
    /// First affected event, counting from 1.
    pub event: u64,
    /// Decompressed offset of its end in bytes.
    pub offset: u64,
}

/// Counts of parsed and skipped trace events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Decompressed size in bytes.
    pub bytes: u64,
    /// Events, packets or nodes in the file.
    pub events: u64,
    /// Event count by phase.
    pub phases: BTreeMap<String, u64>,
    /// Used events: slices, metadata, counters, flows.
    pub used: u64,
    /// Used events that required a repair.
    pub repaired: u64,
    /// Skipped events.
    pub skipped: u64,
    /// Slices on additional lanes because they overlap without nesting.
    pub overflowed: u64,
    /// True if the file is truncated. Content before the truncation was parsed.
    pub cut: bool,
    /// Repaired and skipped events by reason.
    pub problems: Vec<Problem>,
    /// Assumptions about information missing in the file.
    pub assumptions: Vec<String>,
}

impl Report {
    /// Counts a problem at the current event.
    pub(super) fn problem(&mut self, reason: &str) {
        if let Some(problem) = self.problems.iter_mut().find(|problem| problem.reason == reason) {
            problem.count += 1;
        } else {
            let (event, offset) = (self.events, self.bytes);
            self.problems.push(Problem { reason: reason.to_owned(), count: 1, event, offset });
        }
    }

    pub(super) fn skip(&mut self, reason: &str) {
        self.skipped += 1;
        self.problem(reason);
    }

    /// Counts a repaired event.
    pub(super) fn repair(&mut self, reason: &str) {
        self.repaired += 1;
        self.problem(reason);
    }

    /// Records an assumption once.
    pub(super) fn assume(&mut self, assumption: &str) {
        if !self.assumptions.iter().any(|known| known == assumption) {
            self.assumptions.push(assumption.to_owned());
        }
    }
}
