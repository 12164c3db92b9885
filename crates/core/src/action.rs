//! Actions of a pipeline schedule, and the order of the actions on every rank.
//!
//! Generators and searches are in `planscope_pipeline::schedule`.

use serde::{Deserialize, Serialize};

/// Action type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ActionKind {
    /// Forward, F.
    Forward,
    /// Full backward, B.
    Backward,
    /// Input gradient, I.
    InputGrad,
    /// Weight gradient, W.
    WeightGrad,
}

impl ActionKind {
    /// Returns the letter in the torch action grammar.
    pub const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::InputGrad => 'I',
            Self::WeightGrad => 'W',
        }
    }
}

/// An action of a microbatch on a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action {
    /// Action type.
    pub kind: ActionKind,
    /// Stage index, by default `chunk * p + rank`.
    pub stage: u32,
    /// Microbatch index, or sub-microbatch index in a module.
    pub microbatch: u32,
    /// True if the action overlaps the next action in the rank's order, a forward with a backward
    /// as in DualPipe.
    pub with_next: bool,
}

impl Action {
    /// Creates an action that is not overlapped.
    pub const fn new(kind: ActionKind, stage: usize, microbatch: usize) -> Self {
        Self { kind, stage: stage as u32, microbatch: microbatch as u32, with_next: false }
    }

    /// Creates a forward.
    pub const fn forward(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::Forward, stage, microbatch)
    }

    /// Creates a full backward.
    pub const fn backward(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::Backward, stage, microbatch)
    }

    /// Creates an input gradient.
    pub const fn input_grad(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::InputGrad, stage, microbatch)
    }

    /// Creates a weight gradient.
    pub const fn weight_grad(stage: usize, microbatch: usize) -> Self {
        Self::new(ActionKind::WeightGrad, stage, microbatch)
    }

    /// Sets `with_next`.
    #[must_use]
    pub const fn overlapped(self) -> Self {
        Self { with_next: true, ..self }
    }
}

impl std::fmt::Display for Action {
    /// Formats the action in the torch action grammar: stage, letter, microbatch.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}{}", self.stage, self.kind.letter(), self.microbatch)
    }
}

/// An ordered list of actions per rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Number of stages; p x v if all microbatches visit all stages.
    pub stages: usize,
    /// Number of microbatches, m, including sub-microbatches.
    pub microbatches: usize,
    /// Ordered actions per rank.
    pub orders: Vec<Vec<Action>>,
}

impl Schedule {
    /// Number of pipeline ranks, p.
    pub fn ranks(&self) -> usize {
        self.orders.len()
    }

    /// Number of actions on all ranks.
    pub fn len(&self) -> usize {
        self.orders.iter().map(Vec::len).sum()
    }

    /// Returns the schedule of a pipeline that is flushed after every `flush` microbatches: on each rank, the orders of at
    /// most `flush` microbatches follow each other. `order` returns the schedule of a number of microbatches.
    ///
    /// # Errors
    /// That of `order`.
    pub fn flushed<E>(
        microbatches: usize,
        flush: usize,
        mut order: impl FnMut(usize) -> Result<Self, E>,
    ) -> Result<Self, E> {
        let flush = flush.max(1);
        let first = order(flush.min(microbatches))?;
        (flush..microbatches)
            .step_by(flush)
            .try_fold(first, |all, start| Ok(all.then(order(flush.min(microbatches - start))?)))
    }

    /// Returns the schedule followed by `next`, which has the same stages. The microbatches of `next` come after those of
    /// this schedule.
    fn then(mut self, next: Self) -> Self {
        let first = self.microbatches as u32;
        for (order, more) in self.orders.iter_mut().zip(next.orders) {
            let numbered = |action: Action| Action { microbatch: first + action.microbatch, ..action };
            order.extend(more.into_iter().map(numbered));
        }
        self.microbatches += next.microbatches;
        self
    }

    /// Returns whether no rank has an action.
    pub fn is_empty(&self) -> bool {
        self.orders.iter().all(Vec::is_empty)
    }
}
