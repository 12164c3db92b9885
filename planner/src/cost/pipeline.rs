//! Costs of one replica's pipeline: what the simulator and the schedule builders read.

use crate::flow::Flows;
use crate::timeline::MicrobatchShape;
use crate::units::{Bytes, Nanos};

/// A forward and a backward that run overlapped take as long as one after the other, in millionths.
pub const NO_GAIN_PPM: u64 = 1_000_000;

/// Costs of every cell of one pipeline, in columns; [`Flows`] say which cells there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineCosts {
    /// The ways of the microbatches through the stages.
    pub flows: Flows,
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
    /// Time of an overlapped forward and backward over the sum of both, in millionths.
    pub overlapped_ppm: u64,
}

impl PipelineCosts {
    /// Equal costs everywhere, in the unit of one nanosecond, without memory of weights: for schedules by themselves.
    /// Stages are placed cyclically; every microbatch of a stage keeps one byte, so that memory counts activations
    /// in flight.
    pub fn uniform(ranks: usize, chunks: usize, microbatches: usize, times: UniformTimes) -> Self {
        Self::uniform_over(Flows::cyclic(ranks, ranks * chunks, microbatches), times)
    }

    /// Equal costs on every cell of any flows.
    pub fn uniform_over(flows: Flows, times: UniformTimes) -> Self {
        let (cells, ranks, microbatches) = (flows.cells(), flows.ranks(), flows.microbatches());
        let mut costs = Self {
            forward: vec![times.forward; cells],
            input_grad: vec![times.input_grad; cells],
            weight_grad: vec![times.weight_grad; cells],
            send_forward: Vec::new(),
            send_backward: Vec::new(),
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
            shapes: vec![MicrobatchShape { samples: 1, ..MicrobatchShape::default() }; microbatches],
            overlapped_ppm: NO_GAIN_PPM,
            flows,
        };
        costs.send_everywhere(times.communication);
        costs
    }

    /// Every send between two ranks takes `time`, none within a rank.
    pub fn send_everywhere(&mut self, time: Nanos) {
        let flows = &self.flows;
        (self.send_forward, self.send_backward) = (Vec::new(), Vec::new());
        for microbatch in 0..flows.microbatches() {
            let stages = flows.stages_of(microbatch);
            for stage in stages.clone() {
                let own = flows.rank_of(stage);
                let next = if stage + 1 < stages.end {
                    flows.rank_of(stage + 1) != own
                } else {
                    let enters = |other: &u32| flows.rank_of(flows.stages_of(*other as usize).start) != own;
                    flows.outputs(microbatch).iter().any(enters)
                };
                let previous = if stage > stages.start {
                    flows.rank_of(stage - 1) != own
                } else {
                    let leaves = |other: &u32| flows.rank_of(flows.stages_of(*other as usize).end - 1) != own;
                    flows.inputs(microbatch).iter().any(leaves)
                };
                self.send_forward.push(if next { time } else { Nanos::ZERO });
                self.send_backward.push(if previous { time } else { Nanos::ZERO });
            }
        }
    }

    /// The same pipeline with its one microbatch `count` times.
    #[must_use]
    pub fn repeated(&self, count: usize) -> Self {
        debug_assert_eq!(self.microbatches(), 1, "one microbatch is repeated");
        let of = |times: &[Nanos]| times.repeat(count);
        let placed = (0..self.stages()).map(|stage| self.rank_of(stage) as u32).collect();
        Self {
            flows: Flows::chain(self.ranks(), placed, count),
            forward: of(&self.forward),
            input_grad: of(&self.input_grad),
            weight_grad: of(&self.weight_grad),
            send_forward: of(&self.send_forward),
            send_backward: of(&self.send_backward),
            activation: self.activation.repeat(count),
            transient: self.transient.repeat(count),
            exposed_forward: of(&self.exposed_forward),
            exposed_backward: of(&self.exposed_backward),
            recomputed: of(&self.recomputed),
            communication: of(&self.communication),
            static_memory: self.static_memory.clone(),
            state: self.state.clone(),
            sync: self.sync.clone(),
            optimizer: self.optimizer.clone(),
            shapes: self.shapes.repeat(count),
            overlapped_ppm: self.overlapped_ppm,
        }
    }

    /// Gives a cell what a cell of another pipeline costs. Every column is named, so that a new one cannot be forgotten.
    pub fn copy_cell(&mut self, cell: usize, from: &Self, at: usize) {
        let Self {
            forward,
            input_grad,
            weight_grad,
            send_forward,
            send_backward,
            activation,
            transient,
            exposed_forward,
            exposed_backward,
            recomputed,
            communication,
            // Of the whole pipeline, its ranks or its microbatches.
            flows: _,
            static_memory: _,
            state: _,
            sync: _,
            optimizer: _,
            shapes: _,
            overlapped_ppm: _,
        } = self;
        forward[cell] = from.forward[at];
        input_grad[cell] = from.input_grad[at];
        weight_grad[cell] = from.weight_grad[at];
        send_forward[cell] = from.send_forward[at];
        send_backward[cell] = from.send_backward[at];
        activation[cell] = from.activation[at];
        transient[cell] = from.transient[at];
        exposed_forward[cell] = from.exposed_forward[at];
        exposed_backward[cell] = from.exposed_backward[at];
        recomputed[cell] = from.recomputed[at];
        communication[cell] = from.communication[at];
    }

    /// Pipeline ranks, p.
    pub const fn ranks(&self) -> usize {
        self.flows.ranks()
    }

    /// Stages of all modules.
    pub fn stages(&self) -> usize {
        self.flows.stages()
    }

    /// Microbatches, sub-microbatches counted each.
    pub fn microbatches(&self) -> usize {
        self.flows.microbatches()
    }

    /// Column index of a stage and a microbatch that visits it.
    pub fn cell(&self, stage: usize, microbatch: usize) -> usize {
        self.flows.cell(stage, microbatch)
    }

    /// The rank of a stage.
    pub fn rank_of(&self, stage: usize) -> usize {
        self.flows.rank_of(stage)
    }

    /// Full backward of a cell.
    pub fn backward(&self, cell: usize) -> Nanos {
        self.input_grad[cell] + self.weight_grad[cell]
    }

    /// A forward and a backward that run overlapped, given how long both take one after the other; never shorter
    /// than the longer of them.
    pub fn overlapped(&self, forward: Nanos, backward: Nanos) -> Nanos {
        let both = u128::from((forward + backward).get()) * u128::from(self.overlapped_ppm);
        Nanos::new((both / u128::from(NO_GAIN_PPM)) as u64).max(forward).max(backward)
    }

    /// Every cell with its stage and microbatch.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.microbatches()).flat_map(|microbatch| {
            let stages = self.flows.stages_of(microbatch);
            stages.zip(self.flows.cells_of(microbatch)).map(move |(stage, index)| Cell { index, stage, microbatch })
        })
    }
}

/// A microbatch on a stage that it visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Column index.
    pub index: usize,
    /// Stage.
    pub stage: usize,
    /// Microbatch.
    pub microbatch: usize,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
