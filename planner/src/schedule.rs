//! Pipeline schedules: for every rank an ordered list of actions.
//!
//! Stage `s` of a model cut into `v` chunks over `p` ranks stands on rank `s mod p`, unless the schedule's
//! [`crate::flow::Flows`] say otherwise. A schedule fixes the *order* of each rank; times come from
//! [`crate::simulate`].

mod closed_form;
pub mod critical_swaps;
pub mod csv;
mod dual_pipe;
mod dual_pipe_v;
pub mod dual_queue;
mod error;
mod gpipe;
mod interleaved;
mod interleaved_zero_bubble;
mod kind;
mod looped_bfs;
mod multi_module;
mod one_f_one_b;
mod stable_pattern;
mod v_half;
mod v_min;
pub mod wait_free_cyclic;
mod zbv;
mod zero_bubble;

pub use closed_form::{ClosedForm, StageTimes};
pub use dual_pipe::dual_pipe;
pub use dual_pipe_v::dual_pipe_v;
pub use error::ScheduleError;
pub use gpipe::gpipe;
pub use interleaved::{Grouping, interleaved};
pub use interleaved_zero_bubble::interleaved_zero_bubble;
pub use kind::{ChunksRule, ScheduleKind, Shape};
pub use looped_bfs::looped_bfs;
pub use multi_module::{Turn, multi_module};
pub use one_f_one_b::one_f_one_b;
pub use v_half::v_half;
pub use v_min::v_min;
pub use zbv::zbv;
pub(crate) use zero_bubble::automatic;
pub use zero_bubble::{zb_h1, zb_h2};

use serde::{Deserialize, Serialize};

/// What an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionKind {
    /// Forward, F.
    Forward,
    /// Full backward, B.
    Backward,
    /// Gradient of the input, I.
    InputGrad,
    /// Gradient of the weights, W.
    WeightGrad,
}

impl ActionKind {
    /// The letter of the torch action grammar.
    pub const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::InputGrad => 'I',
            Self::WeightGrad => 'W',
        }
    }
}

/// One microbatch on one stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action {
    /// What it does.
    pub kind: ActionKind,
    /// Stage, `chunk * p + rank` unless the schedule says otherwise.
    pub stage: u32,
    /// Microbatch, or sub-microbatch of one module.
    pub microbatch: u32,
    /// Runs overlapped with the action behind it in the rank's order: a forward with a backward, as in DualPipe.
    pub with_next: bool,
}

impl Action {
    /// An action by itself.
    pub const fn new(kind: ActionKind, stage: usize, microbatch: usize) -> Self {
        Self { kind, stage: stage as u32, microbatch: microbatch as u32, with_next: false }
    }

    /// A forward.
    pub const fn forward(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::Forward, stage, microbatch)
    }

    /// A full backward.
    pub const fn backward(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::Backward, stage, microbatch)
    }

    /// A gradient of the input.
    pub const fn input_grad(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::InputGrad, stage, microbatch)
    }

    /// A gradient of the weights.
    pub const fn weight_grad(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::WeightGrad, stage, microbatch)
    }

    /// The same, overlapped with the action behind it.
    #[must_use]
    pub const fn overlapped(self) -> Self {
        Self { with_next: true, ..self }
    }
}

impl std::fmt::Display for Action {
    /// The torch action grammar: stage, letter, microbatch.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.stage, self.kind.letter(), self.microbatch)
    }
}

/// For every rank an ordered list of actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Stages, p x v where every microbatch visits all.
    pub stages: usize,
    /// Microbatches, m; sub-microbatches counted each.
    pub microbatches: usize,
    /// Actions of each rank in order.
    pub orders: Vec<Vec<Action>>,
}

impl Schedule {
    /// Pipeline ranks, p.
    pub fn ranks(&self) -> usize {
        self.orders.len()
    }

    /// All actions of all ranks.
    pub fn len(&self) -> usize {
        self.orders.iter().map(Vec::len).sum()
    }

    /// Whether no rank has anything to do.
    pub fn is_empty(&self) -> bool {
        self.orders.iter().all(Vec::is_empty)
    }
}
