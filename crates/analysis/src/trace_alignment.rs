//! Alignment between observed and planned pipeline actions.
//!
//! A trace names actions by stage, kind and microbatch. [`iterations`] splits the trace into
//! iterations, [`timeline`] converts an iteration to the simulator's column format, [`align`]
//! matches observed and planned actions, and [`busy`] computes the time breakdown per rank.

mod busy;
mod iterations;
mod pairs;
mod rows;

pub use busy::{RankBreakdown, breakdown};
pub use iterations::{Iteration, iterations};
pub use pairs::{ActionName, Aligned, KindTotal, Pair, align};
pub use rows::{Rows, timeline};

use planscope_core::timeline::SpanKind;

/// Upper limit for ranks, stages and microbatches in observed actions. The numbers come from
/// untrusted input.
pub const MAX_NUMBER: u32 = 65_536;

/// An observed action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredAction {
    /// Rank, below [`MAX_NUMBER`].
    pub rank: u32,
    /// Action kind.
    pub kind: SpanKind,
    /// Stage, below [`MAX_NUMBER`]; 0 if not applicable.
    pub stage: u32,
    /// Microbatch, below [`MAX_NUMBER`]; 0 if not applicable.
    pub microbatch: u32,
    /// Start on the common clock, in ns.
    pub start_ns: u64,
    /// Duration in ns.
    pub duration_ns: u64,
    /// Step number annotated in the trace.
    pub step: Option<u64>,
}

impl MeasuredAction {
    /// Returns the end on the common clock, in ns.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }

    /// Returns the unique key within an iteration.
    const fn key(&self) -> (SpanKind, u32, u32) {
        key(self.kind, self.rank, self.stage, self.microbatch)
    }
}

/// Returns the unique key within an iteration. Gradient synchronization and optimizer are
/// identified by rank, all other kinds by stage and microbatch.
const fn key(kind: SpanKind, rank: u32, stage: u32, microbatch: u32) -> (SpanKind, u32, u32) {
    match kind {
        SpanKind::GradientSync | SpanKind::Optimizer => (kind, rank, 0),
        _ => (kind, stage, microbatch),
    }
}
