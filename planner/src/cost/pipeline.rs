//! Costs of one replica's pipeline: what the simulator and the schedule builders read.

use crate::timeline::MicrobatchShape;
use crate::units::{Bytes, Nanos};

/// Costs of every microbatch on every stage of one pipeline, in columns: entry `stage * microbatches + microbatch`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineCosts {
    /// Pipeline ranks, p.
    pub ranks: usize,
    /// Stages, p x v; stage `s` stands on rank `s mod p`.
    pub stages: usize,
    /// Microbatches, m.
    pub microbatches: usize,
    /// Forward.
    pub forward: Vec<Nanos>,
    /// Gradient of the input.
    pub input_grad: Vec<Nanos>,
    /// Gradient of the weights.
    pub weight_grad: Vec<Nanos>,
    /// Sending activations from this stage to the next.
    pub send_forward: Vec<Nanos>,
    /// Sending gradients from this stage to the previous one.
    pub send_backward: Vec<Nanos>,
    /// Kept from the start of the forward to the end of the backward.
    pub activation: Vec<Bytes>,
    /// Held during the backward.
    pub transient: Vec<Bytes>,
    /// Communication inside the forward.
    pub exposed_forward: Vec<Nanos>,
    /// Communication inside the backward.
    pub exposed_backward: Vec<Nanos>,
    /// What is computed again inside the input gradient.
    pub recomputed: Vec<Nanos>,
    /// All communication of forward and backward, hidden or not.
    pub communication: Vec<Nanos>,
    /// Weights, gradients and optimizer state of each rank.
    pub static_memory: Vec<Bytes>,
    /// What the static memory of each rank consists of.
    pub state: Vec<StateMemory>,
    /// Exposed gradient reduction and parameter gathering of each rank.
    pub sync: Vec<Nanos>,
    /// Optimizer step of each rank.
    pub optimizer: Vec<Nanos>,
    /// What each microbatch holds.
    pub shapes: Vec<MicrobatchShape>,
}

impl PipelineCosts {
    /// Equal costs everywhere, in the unit of one nanosecond, without memory of weights: for schedules by themselves.
    /// Every microbatch of a stage keeps one byte, so that memory counts activations in flight.
    pub fn uniform(ranks: usize, chunks: usize, microbatches: usize, times: UniformTimes) -> Self {
        let (stages, cells) = (ranks * chunks, ranks * chunks * microbatches);
        let send = |from: usize, to: Option<usize>| match to {
            Some(to) if to % ranks != from % ranks => times.communication,
            _ => Nanos::ZERO,
        };
        let per_stage = |time: &dyn Fn(usize) -> Nanos| {
            (0..stages).flat_map(|stage| std::iter::repeat_n(time(stage), microbatches)).collect::<Vec<_>>()
        };
        Self {
            ranks,
            stages,
            microbatches,
            forward: vec![times.forward; cells],
            input_grad: vec![times.input_grad; cells],
            weight_grad: vec![times.weight_grad; cells],
            send_forward: per_stage(&|stage| send(stage, (stage + 1 < stages).then_some(stage + 1))),
            send_backward: per_stage(&|stage| send(stage, stage.checked_sub(1))),
            activation: vec![Bytes::new(1); cells],
            transient: vec![Bytes::ZERO; cells],
            exposed_forward: vec![Nanos::ZERO; cells],
            exposed_backward: vec![Nanos::ZERO; cells],
            recomputed: vec![Nanos::ZERO; cells],
            communication: vec![Nanos::ZERO; cells],
            static_memory: vec![Bytes::ZERO; ranks],
            state: vec![StateMemory::default(); ranks],
            sync: vec![Nanos::ZERO; ranks],
            optimizer: vec![Nanos::ZERO; ranks],
            shapes: vec![MicrobatchShape { samples: 1, tokens: 0, images: 0 }; microbatches],
        }
    }

    /// The same pipeline with its one microbatch `count` times.
    #[must_use]
    pub fn repeated(&self, count: usize) -> Self {
        debug_assert_eq!(self.microbatches, 1, "one microbatch is repeated");
        let of = |times: &[Nanos]| column(times, count);
        Self {
            ranks: self.ranks,
            stages: self.stages,
            microbatches: count,
            forward: of(&self.forward),
            input_grad: of(&self.input_grad),
            weight_grad: of(&self.weight_grad),
            send_forward: of(&self.send_forward),
            send_backward: of(&self.send_backward),
            activation: column(&self.activation, count),
            transient: column(&self.transient, count),
            exposed_forward: of(&self.exposed_forward),
            exposed_backward: of(&self.exposed_backward),
            recomputed: of(&self.recomputed),
            communication: of(&self.communication),
            static_memory: self.static_memory.clone(),
            state: self.state.clone(),
            sync: self.sync.clone(),
            optimizer: self.optimizer.clone(),
            shapes: column(&self.shapes, count),
        }
    }

    /// Column index of a stage and microbatch.
    pub const fn cell(&self, stage: usize, microbatch: usize) -> usize {
        stage * self.microbatches + microbatch
    }

    /// The rank of a stage.
    pub const fn rank_of(&self, stage: usize) -> usize {
        stage % self.ranks
    }

    /// Full backward of a cell.
    pub fn backward(&self, cell: usize) -> Nanos {
        self.input_grad[cell] + self.weight_grad[cell]
    }
}

/// Every value `count` times.
fn column<T: Copy>(column: &[T], count: usize) -> Vec<T> {
    column.iter().flat_map(|&value| std::iter::repeat_n(value, count)).collect()
}

/// Model state of one rank's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateMemory {
    /// Weights.
    pub weights: Bytes,
    /// Accumulated gradients.
    pub gradients: Bytes,
    /// Master weights and moments.
    pub optimizer: Bytes,
}

impl StateMemory {
    /// All of it.
    pub fn total(self) -> Bytes {
        self.weights + self.gradients + self.optimizer
    }
}

/// Times of a uniform pipeline, in any one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniformTimes {
    /// Forward of one microbatch on one stage.
    pub forward: Nanos,
    /// Gradient of the input.
    pub input_grad: Nanos,
    /// Gradient of the weights.
    pub weight_grad: Nanos,
    /// Send between ranks.
    pub communication: Nanos,
}
