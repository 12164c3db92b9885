//! Logs with several runs, processes, models or microbatches.

use std::collections::{BTreeMap, BTreeSet};

use super::Reader;
use crate::log::Limits;
use crate::log::labels::{Labels, Process, is_microbatch};
use crate::log::point::{Named, Point};
use crate::log::reading::Reading;
use crate::log::report::{Location, Report};
use crate::log::steps::{Mark, Steps};
use crate::log::text::clip;

/// Minimum delay of a row on another host that continues from a checkpoint, in microseconds.
const RESTART_US: i64 = 30_000_000;
/// Maximum number of listed names.
const MAX_LISTED: usize = 20;

/// Labels of earlier rows.
#[derive(Debug, Clone, Default)]
pub(super) struct LabelState {
    /// Run of the last row without its repetition.
    run: Option<String>,
    /// First process per run.
    first: BTreeMap<Option<String>, u32>,
    /// Named processes; their position is their number.
    processes: Vec<String>,
    /// Models of reinforcement learning in order of first occurrence.
    roles: Vec<String>,
    /// True if a row of a pipeline stage has a loss of 0.
    has_zero_loss: bool,
    /// Losses by step from rows of other pipeline stages that are left out.
    late: BTreeMap<u64, f64>,
    /// Rows with a title, and the different titles.
    titled: u64,
    titles: BTreeSet<String>,
    has_training_metric: bool,
}

/// Returns names as a list. Names beyond the limit are counted.
pub(super) fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let list = names.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

impl Reader {
    /// Completes the points of a file: adds losses from rows of the last pipeline stage that follow
    /// all rows of another stage, and removes the steps of a workflow.
    pub(in crate::log) fn complete_file(&self, points: &mut Vec<Point>, report: &mut Report) {
        let LabelState { late, titled, titles, has_training_metric, .. } = &self.labels;
        for point in &mut *points {
            point.loss = point.loss.or_else(|| late.get(&point.step).copied());
        }
        let is_named = *titled > 1 && *titled as usize == points.len() && titles.len() * 2 > points.len();
        if is_named && !has_training_metric {
            for Point { line, offset, .. } in points.drain(..) {
                report.skip("rows are named steps of a workflow, not of training", Location { line, offset });
            }
        }
    }

    /// Adds a JSON or CSV row to its run.
    pub(super) fn row(
        &mut self,
        mut reading: Reading,
        labels: Labels,
        rank: Option<u32>,
        place: Location,
        limits: &Limits,
    ) {
        let step = match &reading {
            Reading::Step { point, .. } => Some(point.step),
            _ => None,
        };
        if let Some(run) = self.run_name(&labels, step) {
            self.turn_to(&run, place, limits);
        }
        self.labels.run.clone_from(&labels.run);
        let is_rank = matches!(labels.process, Some(Process::Rank(_)));
        let process = labels.process.and_then(|process| self.process_number(process, limits));
        if let Reading::Step { point, mark, .. } = &mut reading {
            if labels.has_stage && point.loss == Some(0.0) {
                point.loss = None;
                self.labels.has_zero_loss = true;
            }
            if *mark == Mark::Named {
                self.steps.continue_epochs(point, &mut self.report);
            }
            if self.repeats_process(point, process, is_rank, place) {
                if let Some(loss) = point.loss.filter(|_| labels.has_stage && self.labels.late.len() < limits.points) {
                    self.labels.late.insert(point.step, loss);
                }
                return;
            }
            if let Some(role) = &labels.role
                && self.separate_role(point, role, place, limits)
            {
                return;
            }
            self.mark_microbatch(point);
            self.mark_title(point, labels.title);
        }
        self.take(reading, rank.or(process), place, "", limits);
    }

    /// Returns the run of a row. A new repetition is a run only if its steps begin again.
    fn run_name(&self, labels: &Labels, step: Option<u64>) -> Option<String> {
        let names: Vec<&str> = [&labels.run, &labels.repetition].into_iter().flatten().map(String::as_str).collect();
        if names.is_empty() {
            return None;
        }
        let name = names.join(", ");
        let is_new = !self.runs.contains(&name);
        let open = self.steps.open().map(|open| open.step);
        let goes_on = step.zip(open).is_none_or(|(step, open)| step > open);
        let is_same_run = self.run.is_some() && labels.run == self.labels.run;
        (!(is_new && is_same_run && goes_on)).then_some(name)
    }

    /// Selects the run named in a line. Runs may be interleaved and have separate steps.
    pub(super) fn turn_to(&mut self, run: &str, location: Location, limits: &Limits) {
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
                self.steps.parallel_run()
            }
            None => {
                self.report
                    .problem("there are more runs than are told apart; the row is read as of the run before", location);
                self.run = Some(before);
                return;
            }
        };
        self.run = Some(run.to_owned());
        std::mem::swap(&mut self.steps, &mut steps);
        self.others.push((before, steps));
    }

    /// Returns the number of a process. Names beyond the limit have no number.
    fn process_number(&mut self, process: Process, limits: &Limits) -> Option<u32> {
        let name = match process {
            Process::Rank(rank) => return Some(rank),
            Process::Named(name) => name,
        };
        let names = &mut self.labels.processes;
        let known = names.iter().position(|known| *known == name).or_else(|| {
            let is_free = names.len() < limits.ranks;
            is_free.then(|| {
                names.push(name);
                names.len() - 1
            })
        });
        known.and_then(|at| u32::try_from(at).ok())
    }

    /// True if a row repeats a step for a process other than the first of its run, and the step is
    /// not open. Such rows are counted and skipped: processes log the same steps, so this is not a
    /// restart. Named processes may also continue the run of the first.
    fn repeats_process(&mut self, point: &Point, process: Option<u32>, is_rank: bool, place: Location) -> bool {
        let Some(process) = process else { return false };
        let first = *self.labels.first.entry(self.run.clone()).or_insert(process);
        let repeats = |open: &Point| {
            let delay = point.time_us.zip(open.time_us).map_or(0, |(now, before)| now.saturating_sub(before));
            point.step < open.step && (delay < RESTART_US || point.step + 1 == open.step)
        };
        let is_other = first != process
            && match self.steps.open() {
                None => true,
                Some(open) if is_rank => open.step != point.step,
                Some(open) => repeats(open),
            };
        if is_other {
            Steps::repeat(point.source, &mut self.report);
            let reason = if is_rank {
                "a row of another rank repeats a step, and is left out"
            } else {
                "a row of another host or worker repeats a step, and is left out"
            };
            self.report.problem(reason, place);
        }
        is_other
    }

    /// Stores the metrics of a row under names with its model, unless it is the first model.
    /// Returns true if the step of the row is complete; the row is then left out.
    fn separate_role(&mut self, point: &mut Point, role: &str, place: Location, limits: &Limits) -> bool {
        let roles = &mut self.labels.roles;
        if !roles.iter().any(|known| known == role) {
            roles.push(role.to_owned());
        }
        if roles.first().is_some_and(|first| first == role) {
            return false;
        }
        if self.steps.open().is_some_and(|open| point.step < open.step) {
            Steps::repeat(point.source, &mut self.report);
            self.report.problem("a row of another model repeats a step, and is left out", place);
            return true;
        }
        let row = std::mem::replace(
            point,
            Point {
                source: point.source,
                step: point.step,
                time_us: point.time_us,
                total_steps: point.total_steps,
                ..Point::default()
            },
        );
        let fields = [
            ("loss", row.loss),
            ("learning_rate", row.learning_rate),
            ("grad_norm", row.grad_norm),
            ("step_time_s", row.step_time_s),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        for (name, value) in fields.chain(row.others.into_iter().map(|other| (other.name, other.value))) {
            if name != "epoch" && point.others.len() < limits.values {
                point.others.push(Named { name: clip(&format!("{role}/{name}"), limits.name_chars), value });
            }
        }
        false
    }

    /// Removes the times of rows for microbatches of the open step.
    fn mark_microbatch(&mut self, point: &mut Point) {
        let index =
            |point: &Point| point.others.iter().find(|other| is_microbatch(&other.name)).map(|other| other.value);
        let Some(open) = self.steps.open_mut().filter(|open| open.step == point.step) else { return };
        let differs = index(open).zip(index(point)).is_some_and(|(open, row)| (open - row).abs() > 0.0);
        if !differs {
            return;
        }
        for point in [open, point] {
            (point.step_time_s, point.step_time_origin) = (None, None);
            point.others.retain(|other| !crate::log::metric::is_step_time(&other.name));
        }
        self.report.assume(
            "rows are microbatches: the loss of a step is that of its first microbatch, and times of microbatches are not read",
        );
    }

    /// Records whether rows are named steps without metrics of training.
    fn mark_title(&mut self, point: &Point, title: Option<String>) {
        let state = &mut self.labels;
        let rates = [point.tokens_per_s, point.tokens_per_s_per_device, point.samples_per_s, point.tflops_per_device];
        let metrics = [point.loss, point.learning_rate, point.grad_norm, point.mfu];
        state.has_training_metric |= rates.into_iter().chain(metrics).any(|metric| metric.is_some())
            || !point.memory.is_empty()
            || point.others.iter().any(|other| other.name.to_ascii_lowercase().contains("loss"));
        if let Some(title) = title.filter(|_| !state.has_training_metric) {
            state.titled += 1;
            state.titles.insert(title);
        }
    }

    /// Reports the labels of rows in a step.
    pub(super) fn report_labels(&mut self) {
        let LabelState { processes, roles, has_zero_loss, .. } = &self.labels;
        if processes.len() > 1 {
            self.report.assume(&format!(
                "rows are of several processes ({}): each step is read from its first row",
                listed(processes)
            ));
        }
        if let [first, .., _] = &roles[..] {
            self.report.assume(&format!(
                "rows are of several models ({}): times and loss of a step are those of {first}; metrics of others are stored as \
                 MODEL/METRIC",
                listed(roles)
            ));
        }
        if *has_zero_loss {
            self.report.assume(
                "only the last pipeline stage has a loss: a loss of 0 in rows with a pipeline rank is not read",
            );
        }
    }
}
