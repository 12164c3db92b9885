//! Detects inconsistencies across points: clocks that contradict printed step times, and
//! unrecognized names for metrics that no point has.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::log::point::{Point, Source, StepTimeOrigin};
use crate::log::report::Report;

/// Maximum ratio between clocks and step times. Evaluation and checkpoints take time between steps.
const AGREE: f64 = 2.0;
/// Minimum compared points before clocks count as evidence.
const MIN_COMPARED: u32 = 4;
/// Maximum names stored and listed.
const MAX_NAMES: usize = 50;
const MAX_LISTED: usize = 5;
/// Words in names for other data or other parts of a step.
const OTHER_DATA: [&str; 18] = [
    "val",
    "eval",
    "test",
    "valid",
    "data",
    "load",
    "remaining",
    "eta",
    "total",
    "wall",
    "stamp",
    "gen",
    "ratio",
    "scale",
    "runtime",
    "aux",
    "balanc",
    "elapsed",
];

/// Metric kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Loss,
    StepTime,
    TokenRate,
    Flops,
    Memory,
}

/// All kinds with title and words that indicate them.
const KINDS: [(Kind, &str, &[&str]); 5] = [
    (Kind::Loss, "loss", &["loss"]),
    (Kind::StepTime, "step time", &["time", "duration", "latency", "it/s", "s/it"]),
    (Kind::TokenRate, "rate of tokens", &["tok/s", "toks/s", "tokens/s", "tokens_per_s", "tok_per_s", "tokenspersec"]),
    (Kind::Flops, "TFLOP/s", &["flops", "flop/s"]),
    (Kind::Memory, "memory", &["mem_", "_mem", "memory", "mem-", "vram"]),
];

/// Note for points without step numbers, of which no times follow.
const UNNUMBERED: &str = "no step time is read or derived: the steps between two lines are not known; a log with its progress bar, or \
                          trainer_state.json, has them";

impl Kind {
    fn is_in(self, point: &Point) -> bool {
        match self {
            Self::Loss => point.loss.is_some(),
            Self::StepTime => point.step_time_origin == Some(StepTimeOrigin::Log),
            Self::TokenRate => point.tokens_per_s.or(point.tokens_per_s_per_device).is_some(),
            Self::Flops => point.tflops_per_device.or(point.mfu).is_some(),
            Self::Memory => !point.memory.is_empty(),
        }
    }
}

/// Evidence collected from points.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubts {
    points: u64,
    /// True if a point has a step time; true if the log contains step numbers.
    has_times: bool,
    is_numbered: bool,
    /// True if the log has Hugging Face dicts without step numbers.
    has_counted_dicts: bool,
    seen: [bool; KINDS.len()],
    /// Unrecognized names.
    names: BTreeSet<String>,
    compared: u32,
    contradicted: u32,
    /// Segment, samples and tokens of the last point with consumption counters.
    consumed: Option<(u32, Option<u64>, Option<u64>)>,
}

impl Doubts {
    /// Adds a completed point. `clock_s` is the range of the elapsed time per step, if available: clocks may have whole seconds.
    pub(super) fn point(&mut self, point: &Point, clock_s: Option<RangeInclusive<f64>>, report: &mut Report) {
        self.points += 1;
        self.has_times |= point.step_time_s.is_some();
        self.is_numbered |= !point.step_counted;
        self.has_counted_dicts |= point.step_counted && point.source == Source::HuggingFaceDict;
        for ((kind, ..), seen) in KINDS.iter().zip(&mut self.seen) {
            *seen |= kind.is_in(point);
        }
        for other in &point.others {
            if self.names.len() < MAX_NAMES && !self.names.contains(&other.name) {
                self.names.insert(other.name.clone());
            }
        }
        let now = (point.segment, point.consumed_samples, point.consumed_tokens);
        if let Some((segment, samples, tokens)) = self.consumed {
            let falls =
                |before: Option<u64>, now: Option<u64>| before.zip(now).is_some_and(|(before, now)| now < before);
            if segment == now.0 && (falls(samples, now.1) || falls(tokens, now.2)) {
                report.assume(
                    "the consumed samples or tokens fall while the steps rise: the log may hold the lines of several jobs one after another",
                );
            }
        }
        if now.1.is_some() || now.2.is_some() {
            self.consumed = Some(now);
        }
        let is_printed = matches!(point.step_time_origin, Some(StepTimeOrigin::Log | StepTimeOrigin::TokenRate));
        if let (Some(step_s), Some(clock_s), true) = (point.step_time_s, clock_s, is_printed) {
            self.compared += 1;
            self.contradicted += u32::from(*clock_s.end() * AGREE < step_s || *clock_s.start() > step_s * AGREE);
            if self.compared >= MIN_COMPARED && self.contradicted * 4 > self.compared * 3 {
                report.assume(
                    "the clocks contradict the step times: by the clocks a step takes less than half or more than twice as long; the \
                     printed time may count another number of steps, or long pauses lie between the steps",
                );
            }
        }
    }

    /// Reports metrics that may be missing. `is_unit_open` is true if a step time without a unit is
    /// reported already.
    pub(super) fn finish(&self, is_unit_open: bool, report: &mut Report) {
        let mut has_candidate = is_unit_open;
        for ((kind, title, terms), seen) in KINDS.iter().zip(self.seen) {
            let is_similar = |name: &&String| {
                let lower = name.to_ascii_lowercase();
                terms.iter().any(|word| lower.contains(word)) && !OTHER_DATA.iter().any(|word| lower.contains(word))
            };
            let similar: Vec<&str> =
                self.names.iter().filter(is_similar).take(MAX_LISTED).map(String::as_str).collect();
            if !seen && !similar.is_empty() {
                has_candidate |= *kind == Kind::StepTime;
                report.assume(&format!(
                    "no {title} is read; a figure that may be one is stored by its name only ({}): a table of patterns can say what it is",
                    similar.join(", ")
                ));
            }
        }
        if self.points > 1 && self.is_numbered && !self.has_times && !has_candidate {
            report.assume("no step time is read or derived: no known field has it, and the lines have no times of day in a known form");
        }
        if self.points > 1 && self.has_counted_dicts && !self.is_numbered && !self.has_times && !has_candidate {
            report.assume(UNNUMBERED);
        }
    }
}
