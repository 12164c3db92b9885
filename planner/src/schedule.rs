//! Pipeline schedules: for every rank an ordered list of actions.
//!
//! Stage `s` of a model cut into `v` chunks over `p` ranks stands on rank `s mod p`. A schedule fixes the *order*
//! of each rank; times come from [`crate::simulate`].

mod gpipe;
mod interleaved;
mod one_f_one_b;
pub mod wait_free_cyclic;

pub use gpipe::gpipe;
pub use interleaved::{Grouping, interleaved};
pub use one_f_one_b::one_f_one_b;

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
    /// Stage, `chunk * p + rank`.
    pub stage: u32,
    /// Microbatch.
    pub microbatch: u32,
}

impl Action {
    /// A forward.
    pub const fn forward(stage: usize, microbatch: usize) -> Self {
        Self { kind: ActionKind::Forward, stage: stage as u32, microbatch: microbatch as u32 }
    }

    /// A full backward.
    pub const fn backward(stage: usize, microbatch: usize) -> Self {
        Self { kind: ActionKind::Backward, stage: stage as u32, microbatch: microbatch as u32 }
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
    /// Stages, p x v.
    pub stages: usize,
    /// Microbatches, m.
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
