//! Classification of a parsed line.

use std::borrow::Cow;
use std::sync::Arc;

use super::Limits;
use super::hugging_face::Dict;
use super::labels::Labels;
use super::metric::{Measure, Metric, is_step_time, measure};
use super::mlperf::Event;
use super::pace::Job;
use super::point::{Memory, Note, Point, RankTime, Timer};
use super::progress_bar::Bar;
use super::quantity::{Dimension, duration_s, multiplier, quantity, unit};
use super::report::Report;
use super::steps::Mark;

/// Parsed line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    /// A step line.
    Step {
        point: Box<Point>,
        mark: Mark,
        left_out: LeftOut,
    },
    /// Values of the next step line, which print before it.
    BeforeStep(Box<Point>),
    /// Memory of a rank after a step.
    Memory {
        /// Step number in the line.
        step: Option<u64>,
        memory: Memory,
    },
    Timers(Vec<Timer>),
    /// Time of one rank for the preceding timer; `None` if it is not a number.
    RankTime(Option<RankTime>),
    /// Header line of a timer table.
    Table(Table),
    /// A note, separate from the step metrics.
    Note(Note),
    /// An incomplete step line.
    Torn(Tear),
    /// A JSON or CSV row.
    Row {
        reading: Box<Reading>,
        /// Priority of the step key.
        step_name: usize,
        labels: Labels,
        /// Note about an ambiguity resolved by the parser.
        note: Option<Cow<'static, str>>,
    },
    /// A line matched by a pattern table.
    Listed {
        reading: Box<Reading>,
        /// Name of the table entry.
        name: Arc<str>,
        /// FLOP formula of the trainer.
        flops: Option<Arc<str>>,
        /// Note about the steps.
        note: Option<&'static str>,
    },
    /// A Hugging Face trainer dict.
    Dict(Dict),
    /// An MLPerf event with a step.
    Mlperf(Event),
    Job(Job),
    /// A progress bar without metrics.
    Bar(Bar),
    /// Training length, printed by the Hugging Face trainer before the first step.
    Length(Length),
    /// An unusable line and the reason.
    Skipped(&'static str),
}

/// Reason why a step line is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tear {
    /// Another line starts inside it.
    Mixed,
    /// The line is truncated.
    Cut,
    /// A value is not a number.
    Value,
    /// Invalid JSON.
    Json,
}

impl Tear {
    /// All reasons.
    pub(super) const ALL: [Self; 4] = [Self::Mixed, Self::Cut, Self::Value, Self::Json];

    /// Returns the reason as text.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Mixed => "a second line begins inside the line: two ranks wrote at the same time",
            Self::Cut => "the end of the line is missing: it is cut, or the file is wrapped at a fixed width",
            Self::Value => "a value of the line is not a number",
            Self::Json => "the line is not readable as JSON",
        }
    }
}

/// Training length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Length {
    /// Total steps.
    Steps(u64),
    /// Total epochs.
    Epochs(f64),
}

/// Timer table that subsequent lines may belong to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Table {
    #[default]
    None,
    /// Minimum and maximum over the ranks.
    MinMax,
    /// Maximum over the ranks.
    Max,
    /// Time per rank.
    Ranks,
}

/// Numbers of values that a step line has and its point lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Dropped because of limits.
    pub(super) beyond_limit: u64,
    /// Values that are not numbers.
    pub(super) unreadable: u64,
}

/// A point under construction.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) point: Point,
    left_out: LeftOut,
}

impl Draft {
    pub(super) fn new(point: Point) -> Self {
        Self { point, left_out: LeftOut::default() }
    }

    /// Counts a value that is not a number.
    pub(super) fn leave_out(&mut self) {
        self.left_out.unreadable += 1;
    }

    /// Sets the field for a name.
    pub(super) fn set(&mut self, name: &str, value: f64, limits: &Limits) {
        self.left_out.beyond_limit += u64::from(!self.point.set(name, value, limits));
    }

    /// Sets a metric, or stores the value under its name.
    pub(super) fn set_as(&mut self, measure: Option<Measure>, name: &str, value: f64, limits: &Limits) {
        self.left_out.beyond_limit += u64::from(!self.point.set_as(measure, name, value, limits));
    }

    /// Sets the field for a name from text with an optional unit or multiplier. Returns false if
    /// the text is not a number.
    pub(super) fn set_text(&mut self, name: &str, text: &str, preferred: Option<Measure>, limits: &Limits) -> bool {
        let measure = preferred.or_else(|| measure(name));
        let Some(quantity) = quantity(text) else {
            // `0:00:04.1` and `1m 2s` contain their unit.
            let stated = measure.map(|measure| measure.metric);
            let metric = stated.or_else(|| is_step_time(name).then_some(Metric::StepTime));
            let metric = metric.filter(|metric| metric.dimension() == Some(Dimension::Time));
            let Some((metric, seconds)) = metric.zip(duration_s(text)) else { return false };
            self.set_as(Some(Measure { metric, per: 1.0 }), name, seconds, limits);
            return true;
        };
        let suffix = quantity.suffix;
        if suffix.is_empty() {
            self.set_as(measure, name, quantity.value, limits);
            return true;
        }
        let dimension = measure.and_then(|measure| measure.metric.dimension());
        let found = unit(suffix).filter(|(parsed, _)| Some(*parsed) == dimension);
        if let (Some(measure), Some((_, per))) = (measure, found) {
            let measure = Measure { per, ..measure };
            self.set_as(Some(measure), name, quantity.value, limits);
        } else if let Some(factor) = multiplier(suffix) {
            // 4.39G memory is 4.39 x 10^9 bytes if the name has no unit.
            self.set_as(measure, name, quantity.value * factor, limits);
            if measure.is_some_and(|measure| measure.metric == Metric::ConsumedTokens) {
                let decimals =
                    text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
                let unit = (0..decimals.min(18)).fold(factor, |unit, _| unit / 10.0);
                self.point.token_rounding = Some(unit.round().max(1.0) as u64);
            }
        } else {
            let name = format!("{name} ({suffix})");
            self.set(&name, quantity.value, limits);
        }
        true
    }

    /// Returns the point for files with one step per row. Missing values are counted in the report.
    pub(super) fn finish(self, report: &mut Report) -> Point {
        report.missing_values(&self.point, self.left_out);
        self.point
    }

    pub(super) fn step(self, mark: Mark) -> Reading {
        Reading::Step { point: Box::new(self.point), mark, left_out: self.left_out }
    }
}
