//! Merges the lines of a step into a point.
//!
//! A point stays open until a later step begins, because timers, memory, validation and lines from
//! other programs follow the line with the step number. The order of ranks differs between steps.
//! Therefore the first line from any rank opens the point and the others are merged into it.

mod epochs;

use std::collections::BTreeMap;

use epochs::Epochs;

use super::Limits;
use super::pace::{Job, Pace};
use super::point::{Memory, Note, Point, Source, StepTimeOrigin, Timer};
use super::report::{Location, Report};

/// Minimum time between lines for the same step in different starts, in microseconds.
const RESTART_US: i64 = 30_000_000;
/// Maximum relative difference between ranks for the times of a step.
const RANKS_DIFFER: f64 = 0.02;
/// Maximum disorder between rank lines, in microseconds.
const MAX_DISORDER_US: i64 = 1_000_000;
/// Restart count that raises a doubt, and a low number of points per restart.
const MANY_RESTARTS: u32 = 3;
const FEW_POINTS: u64 = 3;

/// Step of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The step in the point.
    Named,
    /// The open step. Without an open step, the line belongs to no step.
    Open,
    /// The next step, because the log has no step numbers.
    Counted,
}

/// Note for a log whose steps and clock times decrease together.
pub(super) const EARLIER: &str = "the times of day go back where the steps go back: the log may hold the lines of several ranks or jobs one \
                                  after another; each part is a segment";
/// Note for a log with few points per restart.
pub(super) const MIXED: &str = "the steps go back every few points: lines of several jobs, or rows without an order, may be mixed; \
                                upload each job alone, with its steps in order";

/// Points collected so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    open: Option<Point>,
    /// Number of values in the first line of the open step.
    first_values: usize,
    done: Vec<Point>,
    segment: u32,
    /// Last segment over all runs.
    last_segment: u32,
    /// Job size for the next step. Lines before a step do not apply to the open one.
    ahead: Option<Job>,
    /// True if a start line follows the last step.
    started: bool,
    /// Last step per line kind and rank.
    last: BTreeMap<(Source, Option<u32>), u64>,
    /// Last two different steps per line kind.
    recent: BTreeMap<Source, [u64; 2]>,
    /// Counted steps per rank.
    counted: BTreeMap<Option<u32>, u64>,
    pace: Pace,
    epochs: Epochs,
    early: Vec<(u64, Memory)>,
    /// Values of the next step line, which print before it.
    before_step: Option<Point>,
    setup: Vec<Timer>,
}

impl Steps {
    /// Returns the point that later lines can extend.
    pub(super) fn open(&self) -> Option<&Point> {
        self.open.as_ref()
    }

    pub(super) fn open_mut(&mut self) -> Option<&mut Point> {
        self.open.as_mut()
    }

    /// Numbers the step of a row on from earlier epochs, if steps begin again in each epoch.
    pub(super) fn continue_epochs(&mut self, point: &mut Point, report: &mut Report) {
        self.epochs.number(point, report);
    }

    /// Returns the timers before the first step.
    pub(super) fn setup(&self) -> &[Timer] {
        &self.setup
    }

    /// Returns completed points once.
    pub(super) fn take_done(&mut self) -> Vec<Point> {
        std::mem::take(&mut self.done)
    }

    /// Completes the open point and reports conclusions from all points.
    pub(super) fn finish(&mut self, limits: &Limits, report: &mut Report) {
        self.without_step_line(limits, report);
        self.close(limits, report);
        self.pace.finish(report);
    }

    /// Holds values until their step line.
    pub(super) fn hold(&mut self, point: Point, limits: &Limits, report: &mut Report) {
        self.without_step_line(limits, report);
        self.before_step = Some(point);
    }

    /// Uses values whose step line is missing. Timers belong to the open step. A step time is a step of its own in a log
    /// without step lines.
    fn without_step_line(&mut self, limits: &Limits, report: &mut Report) {
        let Some(point) = self.before_step.take() else { return };
        if point.step_time_s.is_none() {
            for timer in point.timers {
                self.timer(timer, limits);
            }
        } else if self.open.as_ref().is_none_or(|open| open.step_counted) {
            self.take(point, Mark::Counted, None, limits, report);
        } else {
            let location = Location { line: point.line, offset: point.offset };
            report.problem("the time of a step has no step line", location);
        }
    }

    pub(super) fn close(&mut self, limits: &Limits, report: &mut Report) {
        if let Some(mut point) = self.open.take() {
            self.pace.complete(&mut point, report, limits);
            report.points += 1;
            self.done.push(point);
        }
    }

    /// Counts a repeated line.
    pub(super) fn repeat(source: Source, report: &mut Report) {
        report.steps += 1;
        report.repeated += 1;
        report.source(source);
    }

    /// Sets an average step time if the log has no other.
    pub(super) fn average(&mut self, step_s: f64) {
        if let Some(open) = &mut self.open {
            open.set_step_time(step_s, StepTimeOrigin::RunAverage);
        }
    }

    /// Stores the job size for the next steps.
    pub(super) fn job(&mut self, job: Job) {
        self.ahead = Some(self.ahead.unwrap_or_default().with(job));
    }

    /// Records a program start.
    pub(super) fn started(&mut self) {
        self.started = true;
    }

    /// Starts a parallel run in its own segment and moves completed points to it.
    pub(super) fn parallel_run(&mut self) -> Self {
        let segment = self.last_segment + 1;
        Self { segment, last_segment: segment, done: std::mem::take(&mut self.done), ..Self::default() }
    }

    /// Continues after another run and takes its completed points.
    pub(super) fn go_on_after(&mut self, other: &mut Self) {
        self.last_segment = self.last_segment.max(other.last_segment);
        self.done = std::mem::take(&mut other.done);
    }

    /// Begins a segment.
    pub(super) fn restart(&mut self, limits: &Limits, report: &mut Report) {
        self.close(limits, report);
        self.last_segment += 1;
        self.segment = self.last_segment;
        report.restarts += 1;
        if report.restarts >= MANY_RESTARTS && report.points < FEW_POINTS * u64::from(report.restarts) {
            report.assume(MIXED);
        }
        self.last.clear();
        self.recent.clear();
        self.counted.clear();
    }

    /// Adds a step line.
    pub(super) fn take(
        &mut self,
        mut point: Point,
        mark: Mark,
        rank: Option<u32>,
        limits: &Limits,
        report: &mut Report,
    ) {
        let location = Location { line: point.line, offset: point.offset };
        report.steps += 1;
        report.source(point.source);
        if mark == Mark::Named
            && let Some(before) = self.before_step.take_if(|before| before.source == point.source)
        {
            point.merge(before, limits);
        }
        match mark {
            Mark::Named => {}
            Mark::Open => match &mut self.open {
                Some(open) => return open.merge(point, limits),
                None => return report.problem("a line of a step came before any step was named", location),
            },
            Mark::Counted => {
                // If another program numbers the steps, this line belongs to the open step.
                let program = point.source;
                if let Some(open) = self.open.as_mut().filter(|open| !open.step_counted && open.source != program) {
                    return open.merge(point, limits);
                }
                // Each rank counts its lines, so that a step printed by all ranks is a single step.
                let rank = rank.filter(|_| self.counted.len() < limits.ranks);
                let numbered = self.open.as_ref().filter(|open| !open.step_counted).map_or(0, |open| open.step);
                let counted = self.counted.entry(rank).or_default();
                *counted = (*counted).max(numbered) + 1;
                point.step = *counted;
                point.step_counted = true;
                report.assume("the log does not number its steps; points are counted from 1");
            }
        }
        let (source, step) = (point.source, point.step);
        let key = (source, rank.filter(|_| self.last.len() < limits.ranks));
        let open = self.open.as_ref().map(|open| open.step);
        let is_new_start = std::mem::take(&mut self.started) || self.is_timed_otherwise(&point);
        let is_earlier = self.is_earlier(&point);
        let went_back = match (self.last.get(&key), self.recent.get(&source)) {
            // Counted steps continue after a start; numbered steps can continue or repeat.
            (Some(&last), _) => step < last || (is_new_start && mark == Mark::Named),
            // Another rank may lag by about a step, or its lines may follow all lines of the first
            // rank. A larger decrease at a later time is a new start.
            (None, Some(recent)) => {
                let is_back = open.is_some_and(|open| step < open) && !recent.contains(&step);
                let is_clocked = is_back && point.time_us.is_some();
                if is_back && rank.is_some() && !is_clocked {
                    report.assume(
                        "lines of another rank begin at an earlier step: they are read as a restart, but may repeat the steps of the rank \
                         before",
                    );
                }
                is_back && !(is_earlier && rank.is_some())
            }
            (None, None) => false,
        };
        if went_back {
            self.restart(limits, report);
            if is_earlier {
                report.assume(EARLIER);
            }
        }
        let known = self.last.insert(key, step) == Some(step) && !went_back;
        let recent = self.recent.entry(source).or_insert([step; 2]);
        let again = known || (recent.contains(&step) && open.is_some_and(|open| step <= open) && !went_back);
        if step > recent[1] {
            *recent = [recent[1], step];
        }
        let same_source = self.open.as_ref().is_some_and(|open| open.source == source);
        match self.open.as_mut() {
            Some(open) if open.step == step => {
                if again && same_source {
                    report.repeated += 1;
                }
                // A line that a crash cut has fewer values than the same line after the restart.
                let values = point.values();
                if known && same_source && source.is_line() && values > self.first_values {
                    self.first_values = values;
                    open.replace_by(point, limits);
                } else {
                    open.merge(point, limits);
                }
            }
            Some(open) if step < open.step => {
                report.repeated += 1;
                report.problem("a line of a step that is complete already", location);
            }
            _ => {
                self.close(limits, report);
                if let Some(job) = self.ahead.take() {
                    self.pace.job(job);
                }
                point.segment = self.segment;
                self.first_values = point.values();
                let mut waiting = std::mem::take(&mut self.early);
                waiting.retain(|(early, _)| *early <= step);
                for (_, memory) in waiting {
                    point.add_memory(memory, limits);
                }
                self.open = Some(point);
            }
        }
    }

    /// True if the timestamp precedes the open step.
    fn is_earlier(&self, point: &Point) -> bool {
        let times = self.open.as_ref().and_then(|open| open.time_us).zip(point.time_us);
        times.is_some_and(|(before, now)| before.saturating_sub(now) > MAX_DISORDER_US)
    }

    /// True if a line repeats the open step after a program start: it is much later or, without
    /// timestamps, has a much shorter time since the start or a different step time. Ranks print the same step within seconds and with
    /// nearly equal step times.
    fn is_timed_otherwise(&self, point: &Point) -> bool {
        let Some(open) = self.open.as_ref().filter(|open| open.step == point.step && open.source == point.source)
        else {
            return false;
        };
        if let Some((before, now)) = open.time_us.zip(point.time_us) {
            return now.saturating_sub(before) > RESTART_US;
        }
        // The time since the start begins again.
        if open.elapsed_s.zip(point.elapsed_s).is_some_and(|(before, now)| now * 2.0 < before) {
            return true;
        }
        let megatron_time = |point: &Point| (point.source == Source::Megatron).then_some(point.step_time_s).flatten();
        let times = megatron_time(open).zip(megatron_time(point));
        times.is_some_and(|(before, now)| (now - before).abs() > RANKS_DIFFER * before)
    }

    /// Adds memory measured after a step. Ranks may print it before the step line.
    pub(super) fn memory(&mut self, step: Option<u64>, memory: Memory, limits: &Limits) -> bool {
        match (&mut self.open, step) {
            (Some(open), step) if step.is_none_or(|step| step <= open.step) => open.add_memory(memory, limits),
            (_, Some(step)) if self.early.len() < limits.ranks => {
                self.early.push((step, memory));
                true
            }
            _ => false,
        }
    }

    /// Adds a timer to the open step. Returns false if the limit is reached. DeepSpeed prints the timers of every
    /// microbatch, which are summed over the step.
    pub(super) fn timer(&mut self, timer: Timer, limits: &Limits) -> bool {
        let timers = self.open.as_mut().map_or(&mut self.setup, |open| &mut open.timers);
        if timer.name.ends_with("_microstep")
            && let Some(known) = timers.iter_mut().find(|known| known.name == timer.name)
        {
            known.time_s = known.time_s.zip(timer.time_s).map(|(sum, time)| sum + time);
            return true;
        }
        let has_capacity = timers.len() < limits.timers;
        if has_capacity {
            timers.push(timer);
        }
        has_capacity
    }

    /// Returns the last added timer, to which subsequent rank times belong.
    pub(super) fn last_timer(&mut self) -> Option<&mut Timer> {
        self.open.as_mut().map_or(&mut self.setup, |open| &mut open.timers).last_mut()
    }

    /// Adds a note to the open step. Returns false if there is none or the limit is reached.
    pub(super) fn note(&mut self, note: Note, limits: &Limits) -> bool {
        self.open.as_mut().filter(|open| open.notes.len() < limits.notes).is_some_and(|open| {
            open.notes.push(note);
            true
        })
    }
}
