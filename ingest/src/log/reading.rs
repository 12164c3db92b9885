//! What a line was read as.

use std::borrow::Cow;
use std::sync::Arc;

use super::Limits;
use super::hugging_face::Dict;
use super::metric::{Measure, measure};
use super::mlperf::Event;
use super::pace::Job;
use super::point::{Memory, Note, Point, RankTime, Timer};
use super::progress_bar::Bar;
use super::quantity::{multiplier, quantity, unit};
use super::report::Report;
use super::steps::Mark;

/// What a line was read as.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reading {
    /// It speaks of a step.
    Step {
        /// What it says.
        point: Box<Point>,
        /// Which step.
        mark: Mark,
        /// Values for which there is no room.
        left_out: u64,
    },
    /// Memory of a rank after a step.
    Memory {
        /// The step that the line names.
        step: Option<u64>,
        /// The memory.
        memory: Memory,
    },
    /// Timers.
    Timers(Vec<Timer>),
    /// One rank's time of the timer before; none where it is not a number.
    RankTime(Option<RankTime>),
    /// The line above a table of timers.
    Table(Table),
    /// Something beside the steps.
    Note(Note),
    /// A line of a step that is not whole.
    Torn(Tear),
    /// A row of JSON or CSV.
    Row {
        /// Its content.
        reading: Box<Reading>,
        /// The place of the name of its step in the order of preference.
        step_name: usize,
        /// The run that it names.
        run: Option<String>,
        /// The rank that it names.
        process: Option<u32>,
        /// A choice that was made in reading it.
        note: Option<Cow<'static, str>>,
    },
    /// A line that a table describes.
    Listed {
        /// What it holds.
        reading: Box<Reading>,
        /// The name of the entry.
        name: Arc<str>,
        /// How the trainer counts operations.
        flops: Option<Arc<str>>,
    },
    /// A dict of the Hugging Face trainer.
    Dict(Dict),
    /// An event of MLPerf that names a step.
    Mlperf(Event),
    /// The size of the job.
    Job(Job),
    /// A progress bar without figures.
    Bar(Bar),
    /// What the Hugging Face trainer prints of its length before it starts.
    Length(Length),
    /// A line that cannot be used, and why.
    Skipped(&'static str),
}

/// Why a line of a step is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tear {
    /// A second line begins inside it.
    Mixed,
    /// Its end is missing.
    Cut,
    /// A value is not a number.
    Value,
    /// It is not readable as JSON.
    Json,
}

impl Tear {
    /// The reason in words.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Mixed => "a second line begins inside the line: two ranks wrote at the same time",
            Self::Cut => "the end of the line is missing",
            Self::Value => "a value of the line is not a number",
            Self::Json => "the line is not readable as JSON",
        }
    }
}

/// The length of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Length {
    /// Steps of the whole training.
    Steps(u64),
    /// Epochs of the whole training.
    Epochs(f64),
}

/// Which table of timers the next lines may belong to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Table {
    /// None.
    #[default]
    None,
    /// Least and most over the ranks.
    MinMax,
    /// Most over the ranks.
    Max,
    /// Every rank.
    Ranks,
}

/// A point that is being filled.
#[derive(Debug)]
pub(super) struct Draft {
    /// The point.
    pub(super) point: Point,
    /// Values for which there is no room.
    left_out: u64,
}

impl Draft {
    pub(super) fn new(point: Point) -> Self {
        Self { point, left_out: 0 }
    }

    /// Sets what a name means.
    pub(super) fn set(&mut self, name: &str, value: f64, limits: &Limits) {
        self.left_out += u64::from(!self.point.set(name, value, limits));
    }

    /// Sets a metric, or stores the value by its name.
    pub(super) fn set_as(&mut self, measure: Option<Measure>, name: &str, value: f64, limits: &Limits) {
        self.left_out += u64::from(!self.point.set_as(measure, name, value, limits));
    }

    /// Sets what a name means from text that may end with a unit or a multiplier; false where the text is not a number.
    pub(super) fn set_text(&mut self, name: &str, text: &str, own: Option<Measure>, limits: &Limits) -> bool {
        let Some(quantity) = quantity(text) else { return false };
        let measure = own.or_else(|| measure(name));
        let suffix = quantity.suffix;
        if suffix.is_empty() {
            self.set_as(measure, name, quantity.value, limits);
            return true;
        }
        let dimension = measure.and_then(|measure| measure.metric.dimension());
        let found = unit(suffix).filter(|(own, _)| Some(*own) == dimension);
        if let (Some(measure), Some((_, per))) = (measure, found) {
            let measure = Measure { per, ..measure };
            self.set_as(Some(measure), name, quantity.value, limits);
        } else if let Some(factor) = multiplier(suffix) {
            // 4.39G of memory is 4.39 x 10^9 bytes where the name has no unit.
            self.set_as(measure, name, quantity.value * factor, limits);
        } else {
            let name = format!("{name} ({suffix})");
            self.set(&name, quantity.value, limits);
        }
        true
    }

    /// The point of a file whose rows are steps; the report says what is missing in it.
    pub(super) fn finish(self, report: &mut Report) -> Point {
        report.missing_values(&self.point, self.left_out);
        self.point
    }

    /// The reading.
    pub(super) fn step(self, mark: Mark) -> Reading {
        Reading::Step { point: Box::new(self.point), mark, left_out: self.left_out }
    }
}
