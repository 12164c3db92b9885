//! Observed actions of a pipeline beside those of a plan.
//!
//! A trace names actions by stage, kind and microbatch. [`iterations`] tells the iterations apart, [`timeline`] makes of one
//! the same columns that the simulator writes, [`align`] finds for every observed action the planned one, and [`busy`] says
//! where the time of every rank went.

mod busy;
mod iterations;
mod pairs;
mod rows;

pub use busy::{RankBusy, busy};
pub use iterations::{Iteration, iterations};
pub use pairs::{ActionName, Aligned, KindTotal, Pair, align};
pub use rows::{Rows, timeline};

use crate::timeline::SpanKind;

/// Most stages, microbatches and ranks that observed actions may name; numbers come from untrusted names.
pub const MOST_NUMBER: u32 = 65_536;

/// An action as it was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedAction {
    /// Rank that it ran on, below [`MOST_NUMBER`].
    pub rank: u32,
    /// What it does.
    pub kind: SpanKind,
    /// Stage, below [`MOST_NUMBER`]; 0 for kinds without one.
    pub stage: u32,
    /// Microbatch, below [`MOST_NUMBER`]; 0 for kinds without one.
    pub microbatch: u32,
    /// Start on the common clock, in ns.
    pub start_ns: u64,
    /// Duration, in ns.
    pub duration_ns: u64,
    /// Step that the program announced around it.
    pub step: Option<u64>,
}

impl ObservedAction {
    /// End on the common clock, in ns.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    /// What tells it from every other action of an iteration.
    const fn key(&self) -> (SpanKind, u32, u32) {
        key(self.kind, self.rank, self.stage, self.microbatch)
    }
}

/// What tells an action from every other of an iteration: kinds without a microbatch are told apart by their rank.
const fn key(kind: SpanKind, rank: u32, stage: u32, microbatch: u32) -> (SpanKind, u32, u32) {
    match kind {
        SpanKind::GradientSync | SpanKind::Optimizer => (kind, rank, 0),
        _ => (kind, stage, microbatch),
    }
}
