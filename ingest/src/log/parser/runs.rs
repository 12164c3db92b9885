//! Logs with several runs and several processes.

use super::Reader;
use crate::log::Limits;
use crate::log::reading::Reading;
use crate::log::report::Place;
use crate::log::steps::Steps;

impl Reader {
    /// Selects the run named in a line. Runs may be interleaved and have separate steps.
    pub(super) fn turn_to(&mut self, run: &str, place: Place, limits: &Limits) {
        if self.run.as_deref() == Some(run) {
            return;
        }
        let known = self.others.iter().position(|(name, _)| name == run);
        let Some(before) = self.run.take() else {
            self.runs.push(run.to_owned());
            self.run = Some(run.to_owned());
            return;
        };
        let mut steps = match known {
            Some(known) => {
                let (_, mut steps) = self.others.swap_remove(known);
                steps.go_on_after(&mut self.steps);
                steps
            }
            None if self.others.len() < limits.ranks => {
                self.runs.push(run.to_owned());
                self.steps.beside()
            }
            None => {
                self.report
                    .problem("there are more runs than are told apart; the row is read as of the run before", place);
                self.run = Some(before);
                return;
            }
        };
        self.run = Some(run.to_owned());
        std::mem::swap(&mut self.steps, &mut steps);
        self.others.push((before, steps));
    }

    /// True if a row repeats a step for a process other than the first of its run, and the step is
    /// not open. Such rows are counted and skipped: processes log the same steps, so this is not a
    /// restart.
    pub(super) fn is_of_other_process(&mut self, reading: &Reading, process: Option<u32>, place: Place) -> bool {
        let (Some(process), Reading::Step { point, .. }) = (process, reading) else { return false };
        let first = *self.processes.entry(self.run.clone()).or_insert(process);
        let is_other = first != process && self.steps.open().is_none_or(|open| open.step != point.step);
        if is_other {
            Steps::repeat(point.source, &mut self.report);
            self.report.problem("a row of another rank repeats a step, and is left out", place);
        }
        is_other
    }
}
