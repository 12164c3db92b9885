//! What a line was read as.

use super::Limits;
use super::point::{Memory, Note, Point, RankTime, Timer};
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
    /// Two ranks in one line, or a cut line.
    Torn,
    /// A line that cannot be used, and why.
    Skipped(&'static str),
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
