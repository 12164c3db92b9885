//! Readings that other lines complete: companion lines, events of MLPerf, bars of a log without steps.

use super::super::reading::Reading;
use super::super::report::Location;
use super::super::steps::Mark;
use super::super::{Limits, bars};
use super::Reader;

impl Reader {
    /// Makes the progress bars the steps of a log that has no others.
    pub(super) fn take_bars(&mut self, limits: &Limits) {
        if self.report.steps > 0 {
            return;
        }
        let steps = std::mem::take(&mut self.bars).steps();
        if !steps.is_empty() {
            self.report.assume(bars::NOTE);
        }
        for point in steps {
            self.steps.take(point, Mark::Named, None, limits, &mut self.report);
        }
    }

    pub(super) fn companion(&mut self, is_stored: bool, location: Location) {
        self.report.companions += 1;
        if !is_stored {
            self.report.problem(
                "a line beside the steps came before any step, or there are more than can be stored",
                location,
            );
        }
    }

    /// Processes MLPerf events whose unit is decided.
    pub(super) fn take_decided(&mut self, reading: Reading, rank: Option<u32>, location: Location, limits: &Limits) {
        match reading {
            Reading::Mlperf(event) => {
                let (reading, is_restart) = self.mlperf.step(event, limits, &mut self.report);
                if is_restart {
                    self.restart(limits);
                }
                self.take(reading, rank, location, "", limits);
            }
            Reading::Note(note) => {
                // The header of MLPerf states the job before the first step.
                let is_header = self.steps.open().is_none();
                let is_stored = self.steps.note(note, limits) || is_header;
                self.companion(is_stored, location);
            }
            other => self.take(other, rank, location, "", limits),
        }
    }
}
