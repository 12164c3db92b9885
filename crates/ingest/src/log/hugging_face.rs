//! Hugging Face trainer and derived programs: Python dicts on standard output, interleaved with a
//! progress bar, and `trainer_state.json`.
//!
//! A dict contains no step number. The step is taken from the first available source: a dict entry
//! (`global_step/max_steps` in ms-swift), the preceding progress bar, or the epoch times steps per
//! epoch. Otherwise dicts are counted.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use super::clock::time_us;
use super::point::{Named, Note, NoteKind, Point, Source, StepTimeOrigin};
use super::progress_bar::{Bar, bar};
use super::quantity::duration_s;
use super::reading::{Draft, Length, Reading, Tear};
use super::report::Report;
use super::steps::Mark;
use super::text::{clip, float, number};
use super::{Limits, LogError};

/// Note for logs with steps derived from epochs.
const ROUNDED: &str = "steps follow from the epoch, which the trainer rounds: a step may be wrong by half of the last printed place of the \
                       epoch times the steps of an epoch, and figures per step with it";
/// Note for logs with pairs of dicts.
const PAIRS: &str = "dicts of one epoch and learning rate follow each other: if several ranks print them, the log has fewer steps than are \
                     counted";
/// Decimal places of an epoch printed with full precision.
const FULL_PLACES: usize = 8;
/// Minimum dict count before pairs count as evidence.
const MIN_DICTS: u32 = 4;

/// Maximum relative difference of a figure that two programs round to four decimal places.
const ROUNDING: f64 = 1e-3;
/// Maximum difference of an epoch that is rounded to two decimal places.
const EPOCH_ROUNDING: f64 = 0.0051;

/// Number of recent dicts compared for duplicates: ranks without prefixes each print the same dict.
const RECENT: usize = 16;
/// Minimum training step time in seconds. A faster bar counts rows or files.
const MIN_STEP_S: f64 = 0.01;
/// Below this step time in seconds, a full bar belongs to training only if the epoch is an integer.
const SHORT_STEP_S: f64 = 0.1;

/// A dict with its context in the line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dict {
    pub(super) reading: Box<Reading>,
    /// Progress bar in the same line.
    pub(super) bar: Option<Bar>,
    /// Hash of the dict text.
    pub(super) hash: u64,
    /// Hash of the names.
    pub(super) keys: u64,
}

/// Figures that two programs print for the same step.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Printed {
    keys: u64,
    rank: Option<u32>,
    loss: f64,
    learning_rate: f64,
    epoch: f64,
}

impl Printed {
    fn new(point: &Point, keys: u64, rank: Option<u32>, epoch: Option<f64>) -> Option<Self> {
        Some(Self { keys, rank, loss: point.loss?, learning_rate: point.learning_rate?, epoch: epoch? })
    }

    /// True if another dict has other names, and the same figures apart from their rounding.
    fn is_same_step(&self, other: &Self) -> bool {
        let is_near = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
        self.keys != other.keys
            && self.rank == other.rank
            && is_near(self.loss, other.loss)
            && is_near(self.learning_rate, other.learning_rate)
            && (self.epoch - other.epoch).abs() <= EPOCH_ROUNDING
    }
}

/// Entries with the step, possibly as `12/94`.
const STEPS: [&str; 6] = ["global_step/max_steps", "global_step", "iteration", "iter", "step", "current_steps"];

/// Parses `{'loss': 2.1322, 'grad_norm': nan, 'learning_rate': 4.9e-05, 'epoch': 0.02}` at any
/// position in the line. A dict that begins with another entry needs a loss, and a step, an epoch or a
/// learning rate.
pub(super) fn dict(text: &str, limits: &Limits) -> Option<Reading> {
    const STARTS: [&str; 4] = ["{'loss'", "{'eval_", "{'train_", "{'grad_norm'"];
    let known = STARTS.iter().filter_map(|start| text.find(start)).min();
    let at = known.or_else(|| text.find("{'").filter(|&at| text[at..].contains("'loss':")))?;
    let Some((pairs, rest)) = entries(&text[at..]) else { return Some(Reading::Torn(Tear::Cut)) };
    let mut draft = Point { source: Source::HuggingFaceDict, time_us: time_us(&text[..at]), ..Point::default() };
    let mut mark = Mark::Counted;
    let mut numbers = Vec::new();
    for (name, value) in pairs {
        let value = value.trim_matches(['\'', '"']);
        match name {
            name if STEPS.contains(&name) && value.contains('/') => {
                if let Some((step, total)) = fraction(value) {
                    (draft.step, draft.total_steps, mark) = (step, Some(total), Mark::Named);
                }
            }
            "elapsed_time" => draft.elapsed_s = duration_s(value),
            "remaining_time" | "percentage" => {}
            name => numbers.push((name, number(value).or_else(|| wrapped(value)))),
        }
    }
    let has = |names: &[&str]| numbers.iter().any(|(name, value)| names.contains(name) && value.is_some());
    let is_training = has(&["loss"]) && (mark == Mark::Named || has(&STEPS) || has(&["epoch", "learning_rate", "lr"]));
    if known.is_none() && !is_training {
        return None;
    }
    let bar = bar(rest).or_else(|| bar(&text[..at]));
    let keys = hash(numbers.iter().map(|(name, _)| *name));
    let mut hasher = DefaultHasher::new();
    text[at..text.len() - rest.len()].hash(&mut hasher);
    let reading = Box::new(reading(&numbers, draft, mark, limits));
    Some(Reading::Dict(Dict { reading, bar, hash: hasher.finish(), keys }))
}

fn hash<'a>(words: impl Iterator<Item = &'a str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.for_each(|word| word.hash(&mut hasher));
    hasher.finish()
}

/// Parses the number in `tensor(1.5000, device='cuda:0')` and `np.float64(1.5)`.
fn wrapped(value: &str) -> Option<f64> {
    let (name, inner) = value.strip_suffix(')')?.split_once('(')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    number(inner.split(',').next()?.trim_matches(['[', ']', ' '])).filter(|_| is_name)
}

/// Parses `12/94` as step and total steps.
pub(super) fn fraction(text: &str) -> Option<(u64, u64)> {
    let (step, total) = text.split_once('/')?;
    let (step, total) = (step.trim().parse().ok()?, total.trim().parse().ok()?);
    (step < 1 << 53 && total > 0).then_some((step, total))
}

/// Parses `Total optimization steps = 12,345` and `Num Epochs = 3`, printed before the first step.
pub(super) fn length(text: &str) -> Option<Reading> {
    let after = |word: &str| {
        let (_, rest) = text.split_once(word)?;
        let word = rest.trim_start().strip_prefix('=')?.split_whitespace().next()?;
        Some(word.replace(',', ""))
    };
    let steps = || after("Total optimization steps")?.parse().ok().map(Length::Steps);
    let epochs = || after("Num Epochs")?.parse().ok().map(Length::Epochs);
    steps().or_else(epochs).map(Reading::Length)
}

/// Returns names and scalar values as text, and the text after the dict; `None` if the dict is
/// truncated. List and dict values are omitted.
fn entries(text: &str) -> Option<(Vec<(&str, &str)>, &str)> {
    let mut rest = text.strip_prefix('{')?;
    let mut entries = Vec::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((entries, behind));
        }
        let (name, after) = rest.strip_prefix(['\'', '"'])?.split_once(['\'', '"'])?;
        let after = after.strip_prefix(':')?.trim_start();
        if after.starts_with(['[', '(', '{']) {
            rest = behind_brackets(after)?;
            continue;
        }
        let end = match after.strip_prefix(['\'', '"']) {
            Some(quoted) => quoted.find(['\'', '"'])? + 2,
            None => value_end(after)?,
        };
        entries.push((name, after.get(..end)?));
        rest = after.get(end..)?;
    }
}

/// Returns the end of an unquoted value: the first comma or brace outside brackets.
fn value_end(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.find(|c| {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, ',' | '}')
    })
}

fn behind_brackets(text: &str) -> Option<&str> {
    let mut depth = 0_u32;
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return text.get(at + c.len_utf8()..);
        }
    }
    None
}

/// Converts a metrics row for training, evaluation, or the complete run.
fn reading(pairs: &[(&str, Option<f64>)], point: Point, mark: Mark, limits: &Limits) -> Reading {
    let has = |prefix: &str| pairs.iter().any(|(name, _)| name.starts_with(prefix));
    let is_step = |name: &str| matches!(name, "step" | "global_step" | "iteration" | "current_steps");
    let step = pairs.iter().find(|(name, _)| is_step(name)).and_then(|(_, step)| step_number((*step)?));
    let kind = match (has("eval_"), has("train_runtime")) {
        (true, _) => Some(NoteKind::Validation),
        (_, true) => Some(NoteKind::Summary),
        _ => None,
    };
    if let Some(kind) = kind {
        let named = |(name, value): &(&str, Option<f64>)| {
            let value = value.filter(|value| value.is_finite())?;
            (*name != "step").then(|| Named { name: clip(name, limits.name_chars), value })
        };
        let values = pairs.iter().filter_map(named).take(limits.values).collect();
        let name = if kind == NoteKind::Validation { "evaluation" } else { "training" }.to_owned();
        return Reading::Note(Note { kind, name, step, time_us: None, values, text: None });
    }
    let mark = if step.is_some() { Mark::Named } else { mark };
    let mut draft = Draft::new(Point { step: step.unwrap_or(point.step), ..point });
    for (name, value) in pairs {
        if let (Some(value), false) = (value, is_step(name)) {
            draft.set(name, *value, limits);
        }
    }
    draft.step(mark)
}

/// State for the step numbers of dicts.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    bar: Option<Bar>,
    /// Latest bar with a length other than the training length.
    other: Option<Bar>,
    /// Step of the previous dict.
    last: Option<u64>,
    /// Epoch of the latest dict with a step from a bar.
    last_epoch: Option<f64>,
    /// Total training steps from the bar.
    total: Option<u64>,
    steps: Option<u64>,
    epochs: Option<f64>,
    recent: VecDeque<u64>,
    /// True if a training starts again after the last dict.
    starts_again: bool,
    /// Latest dict that no other program has repeated.
    printed: Option<Printed>,
    /// Epoch and learning rate of the previous dict.
    before: Option<(f64, f64)>,
    /// Number of dicts without a step, and number of them with the epoch and learning rate of the
    /// previous dict.
    dicts: u32,
    pairs: u32,
}

impl Progress {
    /// Records a bar. A bar with a different length belongs to another loop or to the next
    /// training.
    pub(super) fn bar(&mut self, bar: Bar) {
        let is_other = self.total.or(self.steps).is_some_and(|total| total != bar.total);
        // Bars of several nodes are a step apart, and their times agree.
        let is_back = !is_other && self.last.is_some_and(|last| bar.done < last);
        let times = self.bar.and_then(|before| before.elapsed_s).zip(bar.elapsed_s);
        self.starts_again |= is_back && (bar.done == 0 || times.is_some_and(|(before, now)| now * 2.0 < before));
        let slot = if is_other { &mut self.other } else { &mut self.bar };
        *slot = Some(bar);
    }

    pub(super) fn length(&mut self, length: Length) {
        match length {
            Length::Steps(steps) => (self.steps, self.total) = (Some(steps), None),
            Length::Epochs(epochs) => self.epochs = Some(epochs),
        }
    }

    /// Records that a training starts.
    pub(super) fn started(&mut self) {
        self.starts_again |= self.last.is_some();
    }

    /// True if a dict after a new start has the step of the last dict before it. `is_same_epoch` is
    /// true if its epoch is that of the last dict.
    pub(super) fn repeats_step(&mut self, is_same_epoch: bool) -> bool {
        let is_same = match self.bar {
            Some(bar) => self.last == Some(bar.done),
            None => is_same_epoch,
        };
        // Later dicts of the new start have later steps.
        self.starts_again &= is_same;
        self.starts_again
    }

    /// True if another program printed the figures of this dict for the same step: the callback of
    /// LLaMA-Factory beside the trainer.
    pub(super) fn is_printed_twice(&mut self, point: &Point, keys: u64, rank: Option<u32>, epoch: Option<f64>) -> bool {
        let printed = Printed::new(point, keys, rank, epoch);
        let is_same = self.printed.zip(printed).is_some_and(|(before, now)| before.is_same_step(&now));
        self.printed = printed.filter(|_| !is_same);
        is_same
    }

    /// True if a recent dict has the same hash.
    pub(super) fn is_repeated(&mut self, hash: u64) -> bool {
        let is_known = self.recent.contains(&hash);
        if !is_known {
            if self.recent.len() >= RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(hash);
        }
        is_known
    }

    /// Resets the state for a new training. A bar that is not redrawn belongs to the previous
    /// training.
    pub(super) fn restart(&mut self) {
        let is_back = self.bar.zip(self.last).is_some_and(|(bar, last)| bar.done < last);
        let is_new = std::mem::take(&mut self.starts_again) || is_back;
        if !is_new {
            self.bar = self.other.take();
        }
        (self.last, self.last_epoch, self.total) = (None, None, None);
    }

    /// Discards a bar that cannot belong to the training: its length differs, or it is full before
    /// the first dict and too fast.
    fn check_bar(&mut self, epoch: Option<f64>) {
        let Some(bar) = self.bar else { return };
        let is_full_epoch = epoch.is_none_or(|epoch| (epoch - epoch.round()).abs() <= 0.05 && epoch >= 0.5);
        let shortest = if is_full_epoch { MIN_STEP_S } else { SHORT_STEP_S };
        let is_full = bar.done >= bar.total && self.last.is_none();
        let is_fast = bar.step_s.is_some_and(|step_s| step_s < shortest);
        let is_other = self.total.or(self.steps).is_some_and(|total| total != bar.total);
        if is_other || (is_full && is_fast) {
            self.bar = None;
        }
    }

    /// True if dicts without steps occur in pairs, as printed by two ranks.
    fn is_paired(&mut self, point: &Point, epoch: Option<f64>) -> bool {
        let key = epoch.zip(point.learning_rate);
        self.dicts += 1;
        self.pairs += u32::from(key.is_some() && key == self.before);
        self.before = key;
        self.dicts >= MIN_DICTS && self.pairs * 2 >= self.dicts
    }

    /// Sets the step of a counted dict from the bar or the epoch. Returns false if neither is
    /// available.
    pub(super) fn number(
        &mut self,
        point: &mut Point,
        epoch: Option<f64>,
        rank: Option<u32>,
        report: &mut Report,
    ) -> bool {
        self.check_bar(epoch);
        // Ranks print local losses at the same bar position.
        let last = self.bar.map(|bar| bar.done).filter(|done| self.last == Some(*done));
        if let (Some(last), true) = (last, epoch.is_some() && epoch == self.last_epoch) {
            point.step = last;
            return true;
        }
        let bar = self.bar.filter(|bar| bar.done > 0 && self.last != Some(bar.done));
        if let Some(bar) = bar {
            point.total_steps = Some(bar.total);
            point.elapsed_s = point.elapsed_s.or(bar.elapsed_s);
            if let Some(step_s) = bar.step_s {
                point.set_step_time(step_s, StepTimeOrigin::ProgressBar);
            }
        }
        let total = self.bar.map(|bar| bar.total).or(self.steps);
        let by_epoch = || {
            let per_epoch = total? as f64 / self.epochs.filter(|&epochs| epochs > 0.0)?;
            step_number((epoch? * per_epoch).round())
                .filter(|&step| step > 0 && self.last.is_none_or(|last| step > last))
        };
        let step = bar.map(|bar| bar.done).or_else(by_epoch);
        if bar.is_none() && step.is_some() && epoch.is_some_and(is_rounded) {
            report.assume(ROUNDED);
        }
        // Tags of ranks show which dicts belong to one step.
        if bar.is_none() && rank.is_none() && self.is_paired(point, epoch) {
            report.assume(PAIRS);
        }
        if let Some(step) = step {
            (point.step, self.last) = (step, Some(step));
            point.total_steps = total;
        }
        if let Some(bar) = bar {
            (self.total, self.last_epoch) = (Some(bar.total), epoch);
        }
        step.is_some()
    }
}

/// True if an epoch has no more decimal places than the trainer's rounding. Integer epochs are
/// exact.
fn is_rounded(epoch: f64) -> bool {
    let text = epoch.to_string();
    text.split_once('.').is_some_and(|(_, places)| places.len() < FULL_PLACES)
}

/// Returns the rows of `log_history` in order, and the total steps.
pub(super) fn trainer_state(document: Value, limits: &Limits) -> Result<Vec<Reading>, LogError> {
    let Value::Object(mut document) = document else { return Err(LogError::Shape { found: "no object" }) };
    let Some(Value::Array(rows)) = document.remove("log_history") else {
        return Err(LogError::Shape { found: "an object without a list log_history" });
    };
    let total = document.get("max_steps").and_then(Value::as_u64).filter(|&total| total > 0);
    Ok(rows.into_iter().map(|row| history(&row, total, limits)).collect())
}

fn history(row: &Value, total: Option<u64>, limits: &Limits) -> Reading {
    let Value::Object(row) = row else { return Reading::Skipped("a row of log_history is no object") };
    let pairs = numbers(row);
    if !pairs.iter().any(|(name, step)| *name == "step" && step.and_then(step_number).is_some()) {
        return Reading::Skipped("a row of log_history has no step");
    }
    let point = Point { source: Source::TrainerState, total_steps: total, ..Point::default() };
    reading(&pairs, point, Mark::Named, limits)
}

fn numbers(row: &Map<String, Value>) -> Vec<(&str, Option<f64>)> {
    row.iter().map(|(name, value)| (name.as_str(), float(value))).collect()
}

fn step_number(step: f64) -> Option<u64> {
    (0.0..9_007_199_254_740_992.0).contains(&step).then_some(step as u64)
}
