//! MLPerf: `:::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key":
//! "train_loss", "value": 2.5, "metadata": {"step": 10}}`.
//!
//! `tracked_stats` and `train_loss` with a step become points. Without them, evaluations become
//! points. All other events become notes on the preceding step. Submissions count steps, samples or tokens. The unit is derived from two events,
//! their times, throughput and batch size, so the first events are buffered.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::Limits;
use super::json_lines::finite;
use super::metric::{Measure, Metric};
use super::point::{Named, Note, NoteKind, Point, Source};
use super::reading::{Draft, Reading, Tear};
use super::report::{Location, Report};
use super::steps::Mark;
use super::text::{clip, float};

/// Maximum buffered events before the unit is decided.
const MAX_WAITING: usize = 256;
/// Larger step numbers are token counts.
const TOKENS: f64 = 1e8;
/// Maximum stored evaluations.
const MAX_EVALUATIONS: usize = 10_000;
/// Reason for evaluations without a step.
const NO_SAMPLES: &str = "evaluations of MLPerf name an epoch, and the log does not state train_samples and global_batch_size, so their \
                          steps are not known";
/// Upper bound for plausible samples per second.
const MAX_SAMPLES_PER_S: f64 = 1e5;

/// Unit of a step number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Steps,
    Samples,
    Tokens,
    /// Epochs: the samples of an epoch give the step.
    Epochs,
}

/// An event with a step number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    count: f64,
    /// Unit, if implied by the key.
    unit: Option<Unit>,
    time_us: Option<i64>,
    values: Vec<(String, f64)>,
    is_evaluation: bool,
}

impl Event {
    /// Returns the event as a note on the step before it.
    fn into_note(self, limits: &Limits) -> Reading {
        let named = |(name, value): (String, f64)| Named { name: clip(&name, limits.name_chars), value };
        let mut values: Vec<Named> = self.values.into_iter().map(named).collect();
        values.retain(|value| value.value.is_finite());
        let name = values.first().map(|value| value.name.clone()).unwrap_or_default();
        Reading::Note(Note { kind: NoteKind::Event, name, step: None, time_us: self.time_us, values, text: None })
    }

    fn throughput(&self) -> Option<f64> {
        self.values.iter().find(|(name, value)| name == "throughput" && *value > 0.0).map(|(_, value)| *value)
    }
}

/// A buffered line with rank and position.
type Waiting = (Reading, Option<u32>, Location);

/// State for the unit decision.
#[derive(Debug, Clone, Default)]
pub(super) struct Counting {
    batch: Option<f64>,
    sequence: Option<f64>,
    /// Samples of an epoch.
    epoch_samples: Option<f64>,
    /// Evaluations, which are the steps of a log without other counts.
    evaluations: Vec<Waiting>,
    has_steps: bool,
    decided: Option<(Unit, Option<Unit>)>,
    waiting: VecDeque<Waiting>,
    last: Option<f64>,
}

pub(super) fn event(text: &str, limits: &Limits) -> Option<Reading> {
    const COUNTS: [(&str, Option<Unit>); 6] = [
        ("samples_count", Some(Unit::Samples)),
        ("tokens_count", Some(Unit::Tokens)),
        ("step", None),
        ("step_num", None),
        ("iteration", None),
        ("epoch_num", Some(Unit::Epochs)),
    ];
    let (_, json) = text.split_once(":::MLLOG")?;
    let event: Map<String, Value> = match serde_json::from_str(&finite(json.trim())) {
        Ok(Value::Object(event)) => event,
        Err(error) if error.is_eof() => return Some(Reading::Torn(Tear::Cut)),
        _ => return Some(Reading::Torn(Tear::Json)),
    };
    let Some(key) = event.get("key").and_then(Value::as_str) else {
        return Some(Reading::Skipped("an event without a key"));
    };
    let time_us = event.get("time_ms").and_then(Value::as_i64).and_then(|millis| millis.checked_mul(1000));
    let metadata = event.get("metadata");
    let count = COUNTS.iter().find_map(|(name, unit)| {
        let count = metadata?.get(*name)?.as_f64()?;
        (0.0..9_007_199_254_740_992.0).contains(&count).then_some((count, *unit))
    });
    let value = event.get("value").unwrap_or(&Value::Null);
    let is_stats = matches!(key, "tracked_stats" | "train_loss");
    let is_evaluation = key == "eval_accuracy" && count.is_some_and(|(_, unit)| unit.is_some());
    if let (Some((count, unit)), true) = (count, is_stats || is_evaluation) {
        let values = match value {
            Value::Object(fields) => fields
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), float(value)?)))
                .take(limits.values)
                .collect(),
            value => float(value).map(|value| (key.to_owned(), value)).into_iter().collect(),
        };
        return Some(Reading::Mlperf(Event { count, unit, time_us, values, is_evaluation }));
    }
    let mut values = Vec::new();
    let mut text = None;
    match value {
        Value::Null => {}
        Value::String(string) => text = Some(clip(string, limits.name_chars)),
        Value::Object(fields) => {
            let named = |(name, value): (&String, &Value)| {
                let value = float(value).filter(|value| value.is_finite())?;
                Some(Named { name: clip(name, limits.name_chars), value })
            };
            values = fields.iter().filter_map(named).take(limits.values).collect();
        }
        value => match float(value).filter(|value| value.is_finite()) {
            Some(value) => values.push(Named { name: clip(key, limits.name_chars), value }),
            None => text = Some(clip(&value.to_string(), limits.name_chars)),
        },
    }
    let name = clip(key, limits.name_chars);
    let step = count.filter(|(_, unit)| unit.is_none()).map(|(count, _)| count as u64);
    Some(Reading::Note(Note { kind: NoteKind::Event, name, step, time_us, values, text }))
}

impl Counting {
    /// Adds a line and returns, in order, the lines whose step is now known.
    pub(super) fn push(
        &mut self,
        reading: Reading,
        rank: Option<u32>,
        place: Location,
        limits: &Limits,
    ) -> Vec<Waiting> {
        let reading = match reading {
            Reading::Mlperf(event) if event.is_evaluation && self.has_steps => event.into_note(limits),
            Reading::Mlperf(event) if event.is_evaluation => {
                if self.evaluations.len() < MAX_EVALUATIONS {
                    self.evaluations.push((Reading::Mlperf(event), rank, place));
                }
                return Vec::new();
            }
            reading => reading,
        };
        let mut decided = Vec::new();
        if matches!(reading, Reading::Mlperf(_)) {
            self.has_steps = true;
            decided = std::mem::take(&mut self.evaluations);
            for (reading, ..) in &mut decided {
                if let Reading::Mlperf(event) = reading {
                    *reading = event.clone().into_note(limits);
                }
            }
        }
        decided.append(&mut self.step_or_note(reading, rank, place));
        decided
    }

    fn step_or_note(&mut self, reading: Reading, rank: Option<u32>, location: Location) -> Vec<Waiting> {
        if let Reading::Note(note) = &reading {
            let value = || note.values.first().map(|value| value.value).filter(|&value| value > 0.0);
            match note.name.as_str() {
                "global_batch_size" => self.batch = value().or(self.batch),
                "train_samples" => self.epoch_samples = value().or(self.epoch_samples),
                "max_sequence_length" | "max_seq_length" | "sequence_length" | "seq_length" => {
                    self.sequence = value().or(self.sequence);
                }
                _ => {}
            }
            if self.waiting.is_empty() {
                return vec![(reading, rank, location)];
            }
        }
        self.waiting.push_back((reading, rank, location));
        if self.decided.is_none() && self.waiting.len() < MAX_WAITING {
            self.decided = self.by_two();
        } else if self.decided.is_none() {
            self.decided = Some(self.by_counts());
        }
        if self.decided.is_some() { self.waiting.drain(..).collect() } else { Vec::new() }
    }

    /// Returns the remaining buffered lines at the end of the log. Evaluations are the steps of a log without others.
    pub(super) fn finish(&mut self) -> Vec<Waiting> {
        if let Some((Reading::Mlperf(first), ..)) = self.evaluations.first() {
            let unit = first.unit.unwrap_or(Unit::Epochs);
            self.decided = Some((unit, None));
            let is_known = self.batch.is_some() && (unit != Unit::Epochs || self.epoch_samples.is_some());
            let mut evaluations = std::mem::take(&mut self.evaluations);
            for (reading, ..) in evaluations.iter_mut().filter(|_| !is_known) {
                *reading = Reading::Skipped(NO_SAMPLES);
            }
            return evaluations;
        }
        self.decided = self.decided.or_else(|| Some(self.by_counts()));
        self.waiting.drain(..).collect()
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        self.waiting.iter().filter_map(|(reading, ..)| match reading {
            Reading::Mlperf(event) => Some(event),
            _ => None,
        })
    }

    /// Derives the units of step number and throughput from the first two distinct numbers.
    fn by_two(&self) -> Option<(Unit, Option<Unit>)> {
        let first = self.events().next()?;
        let second = self.events().find(|event| event.count > first.count)?;
        let (batch, sequence) = (self.batch.unwrap_or(0.0), self.sequence.unwrap_or(0.0));
        let grown = second.count - first.count;
        let seconds = second.time_us.zip(first.time_us).map_or(0.0, |(now, then)| (now - then) as f64 * 1e-6);
        let throughput = self.events().find_map(Event::throughput);
        let stated_unit = first.unit;
        if let Some(throughput) = throughput.filter(|_| seconds > 0.0) {
            let pace = grown / seconds / throughput;
            let is_near_unity = |factor: f64| factor > 0.0 && (0.6..1.6).contains(&(pace * factor));
            let same = if self.is_tokens(first) { Unit::Tokens } else { Unit::Samples };
            let cases = [
                (1.0, stated_unit.unwrap_or(same), stated_unit.unwrap_or(same)),
                (batch, Unit::Steps, Unit::Samples),
                (batch * sequence, Unit::Steps, Unit::Tokens),
                (sequence, Unit::Samples, Unit::Tokens),
                (if sequence > 0.0 { 1.0 / sequence } else { 0.0 }, Unit::Tokens, Unit::Samples),
            ];
            let fits =
                |case: &&(f64, Unit, Unit)| is_near_unity(case.0) && stated_unit.is_none_or(|unit| unit == case.1);
            if let Some((_, counted, rate)) = cases.iter().find(fits) {
                return Some((*counted, Some(*rate)));
            }
        }
        Some(self.by_counts())
    }

    fn is_tokens(&self, event: &Event) -> bool {
        let batch_tokens = self.batch.unwrap_or(0.0) * self.sequence.unwrap_or(0.0);
        event.count >= TOKENS
            || (batch_tokens > 1.0 && event.count >= batch_tokens && event.count % batch_tokens == 0.0)
    }

    /// Derives the units from numbers alone: multiples of the batch size are samples.
    fn by_counts(&self) -> (Unit, Option<Unit>) {
        let counts = || self.events().filter(|event| event.count > 0.0);
        let batch = self.batch.unwrap_or(0.0);
        let are_multiples = batch > 1.0 && counts().all(|event| event.count >= batch && event.count % batch == 0.0);
        let unit = match self.events().next() {
            Some(Event { unit: Some(Unit::Epochs), .. }) if are_multiples => Unit::Samples,
            Some(Event { unit: Some(unit), .. }) => *unit,
            Some(event)
                if event.count >= TOKENS || (self.sequence.is_some() && counts().all(|e| self.is_tokens(e))) =>
            {
                Unit::Tokens
            }
            _ if are_multiples => Unit::Samples,
            _ => Unit::Steps,
        };
        let throughput = self.events().find_map(Event::throughput);
        let rate = match throughput {
            Some(rate) if rate < MAX_SAMPLES_PER_S => Some(Unit::Samples),
            Some(_) if unit == Unit::Tokens => Some(Unit::Tokens),
            _ => None,
        };
        (unit, rate)
    }

    /// Returns the reading with its step, and true if the training restarted before it.
    pub(super) fn step(&mut self, event: Event, limits: &Limits, report: &mut Report) -> (Reading, bool) {
        let (unit, rate) = self.decided.unwrap_or((Unit::Steps, None));
        let mut point = Point { source: Source::Mlperf, time_us: event.time_us, ..Point::default() };
        let (count, batch) = (event.count, self.batch.filter(|&batch| batch >= 1.0));
        let divisor = match unit {
            Unit::Steps => Some(1.0),
            Unit::Samples => {
                point.consumed_samples = Some(count as u64);
                batch
            }
            Unit::Tokens => {
                point.consumed_tokens = Some(count as u64);
                batch.zip(self.sequence).map(|(batch, sequence)| batch * sequence)
            }
            Unit::Epochs => {
                batch.zip(self.epoch_samples).filter(|_| event.is_evaluation).map(|(batch, samples)| batch / samples)
            }
        };
        match (unit, divisor.is_some()) {
            (Unit::Epochs, true) => {
                report.assume("the log has evaluations only; steps are epochs x train_samples / global_batch_size");
            }
            (Unit::Samples, true) => {
                report.assume("step of MLPerf events counts samples; steps are samples / global_batch_size");
            }
            (Unit::Samples, false) => {
                report.assume(
                    "MLPerf events count samples, and the log does not state global_batch_size: the events are counted, and no step time \
                     follows from their times",
                );
            }
            (Unit::Tokens, true) => {
                report.assume(
                    "step of MLPerf events counts tokens; steps are tokens / (global_batch_size x sequence length)",
                );
            }
            (Unit::Tokens, false) => {
                report.assume(
                    "MLPerf events count tokens, and the log does not state global_batch_size and max_sequence_length: the events are \
                     counted, and no step time follows from their times",
                );
            }
            (Unit::Steps | Unit::Epochs, _) => {}
        }
        point.global_batch = batch.map(|batch| batch as u64);
        let fell = self.last.is_some_and(|last| count < last);
        let mark = match divisor {
            Some(divisor) => {
                point.step = (count / divisor).round() as u64;
                Mark::Named
            }
            None if self.last == Some(count) => Mark::Open,
            None => Mark::Counted,
        };
        self.last = Some(count);
        let mut draft = Draft::new(point);
        if unit == Unit::Epochs {
            draft.set("epoch", count, limits);
        }
        for (name, value) in event.values {
            let rate_metric = (name == "throughput").then_some(rate).flatten().map(|rate| match rate {
                Unit::Tokens => Metric::TokenRate,
                _ => Metric::SamplesPerSecond,
            });
            match rate_metric {
                Some(metric) => draft.set_as(Some(Measure { metric, per: 1.0 }), &name, value, limits),
                None => draft.set(&name, value, limits),
            }
        }
        (draft.step(mark), fell && mark == Mark::Counted)
    }
}
