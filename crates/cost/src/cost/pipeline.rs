//! Pipeline costs of a replica, used by the simulator and schedule builders.

use planscope_core::stage_graph::Flows;
use planscope_core::timeline::MicrobatchShape;
use planscope_core::units::{Bytes, Nanos};

/// Overlap factor (ppm) for forward-backward pairs that gain nothing from overlap.
pub const NO_GAIN_PPM: u64 = 1_000_000;

/// Costs per cell (stage, microbatch) in columns. [`Flows`] defines the cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineCosts {
    /// Routes of the microbatches through the stages.
    pub flows: Flows,
    /// Forward time per cell.
    pub forward: Vec<Nanos>,
    /// Input gradient time per cell.
    pub input_grad: Vec<Nanos>,
    /// Weight gradient time per cell.
    pub weight_grad: Vec<Nanos>,
    /// Time to send activations to the next stage, per cell.
    pub send_forward: Vec<Nanos>,
    /// Time to send gradients to the previous stage, per cell.
    pub send_backward: Vec<Nanos>,
    /// Activation memory per cell, from the start of the forward to the end of the backward.
    pub activation: Vec<Bytes>,
    /// Activations in host memory per cell, for the same time.
    pub offloaded: Vec<Bytes>,
    /// Temporary memory per cell during the backward.
    pub transient: Vec<Bytes>,
    /// Exposed communication in the forward, per cell.
    pub exposed_forward: Vec<Nanos>,
    /// Exposed communication in the backward, per cell.
    pub exposed_backward: Vec<Nanos>,
    /// Recomputation time per cell, included in `input_grad`.
    pub recomputed: Vec<Nanos>,
    /// Total communication per cell, hidden or exposed.
    pub communication: Vec<Nanos>,
    /// Weights, gradients and optimizer state per rank.
    pub static_memory: Vec<Bytes>,
    /// Components of the static memory per rank.
    pub state: Vec<StateMemory>,
    /// Exposed gradient reduction and parameter gathering per rank.
    pub sync: Vec<Nanos>,
    /// Optimizer time per rank.
    pub optimizer: Vec<Nanos>,
    /// Contents per microbatch.
    pub shapes: Vec<MicrobatchShape>,
    /// Overlapped time / sequential time for a forward-backward pair, in ppm.
    pub overlapped_ppm: u64,
}

impl PipelineCosts {
    /// Creates a pipeline with equal costs in all cells, with one nanosecond as the time unit and
    /// without model state memory. It serves to analyze schedules alone. The stages have cyclic
    /// placement. Each cell stores one byte, so memory equals the number of activations in flight.
    pub fn uniform(ranks: usize, chunks: usize, microbatches: usize, times: UniformTimes) -> Self {
        Self::uniform_over(Flows::cyclic(ranks, ranks * chunks, microbatches), times)
    }

    /// Creates equal costs in all cells of `flows`.
    pub fn uniform_over(flows: Flows, times: UniformTimes) -> Self {
        let (cells, ranks, microbatches) = (flows.cells(), flows.ranks(), flows.microbatches());
        let mut costs = Self {
            forward: vec![times.forward; cells],
            input_grad: vec![times.input_grad; cells],
            weight_grad: vec![times.weight_grad; cells],
            send_forward: Vec::new(),
            send_backward: Vec::new(),
            activation: vec![Bytes::new(1); cells],
            offloaded: vec![Bytes::ZERO; cells],
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

    /// Sets the send time between different ranks to `time`, and within a rank to zero.
    pub fn send_everywhere(&mut self, time: Nanos) {
        let flows = &self.flows;
        (self.send_forward, self.send_backward) = (Vec::new(), Vec::new());
        for microbatch in 0..flows.microbatches() {
            let stages = flows.microbatch_stages(microbatch);
            for stage in stages.clone() {
                let rank = flows.rank_for_stage(stage);
                let next = if stage + 1 < stages.end {
                    flows.rank_for_stage(stage + 1) != rank
                } else {
                    let enters =
                        |other: &u32| flows.rank_for_stage(flows.microbatch_stages(*other as usize).start) != rank;
                    flows.outputs(microbatch).iter().any(enters)
                };
                let previous = if stage > stages.start {
                    flows.rank_for_stage(stage - 1) != rank
                } else {
                    let leaves =
                        |other: &u32| flows.rank_for_stage(flows.microbatch_stages(*other as usize).end - 1) != rank;
                    flows.inputs(microbatch).iter().any(leaves)
                };
                self.send_forward.push(if next { time } else { Nanos::ZERO });
                self.send_backward.push(if previous { time } else { Nanos::ZERO });
            }
        }
    }

    /// Repeats the single microbatch of the pipeline `count` times.
    #[must_use]
    pub fn repeated(&self, count: usize) -> Self {
        debug_assert_eq!(self.microbatches(), 1, "one microbatch is repeated");
        let repeat_times = |times: &[Nanos]| times.repeat(count);
        let placed = (0..self.stages()).map(|stage| self.rank_for_stage(stage) as u32).collect();
        Self {
            flows: Flows::chain(self.ranks(), placed, count),
            forward: repeat_times(&self.forward),
            input_grad: repeat_times(&self.input_grad),
            weight_grad: repeat_times(&self.weight_grad),
            send_forward: repeat_times(&self.send_forward),
            send_backward: repeat_times(&self.send_backward),
            activation: self.activation.repeat(count),
            offloaded: self.offloaded.repeat(count),
            transient: self.transient.repeat(count),
            exposed_forward: repeat_times(&self.exposed_forward),
            exposed_backward: repeat_times(&self.exposed_backward),
            recomputed: repeat_times(&self.recomputed),
            communication: repeat_times(&self.communication),
            static_memory: self.static_memory.clone(),
            state: self.state.clone(),
            sync: self.sync.clone(),
            optimizer: self.optimizer.clone(),
            shapes: self.shapes.repeat(count),
            overlapped_ppm: self.overlapped_ppm,
        }
    }

    /// Copies the costs of cell `at` in `from` to `cell`. The pattern names all columns, so that
    /// the compiler reports new ones.
    pub fn copy_cell(&mut self, cell: usize, from: &Self, at: usize) {
        let Self {
            forward,
            input_grad,
            weight_grad,
            send_forward,
            send_backward,
            activation,
            offloaded,
            transient,
            exposed_forward,
            exposed_backward,
            recomputed,
            communication,
            // Not per cell.
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
        offloaded[cell] = from.offloaded[at];
        transient[cell] = from.transient[at];
        exposed_forward[cell] = from.exposed_forward[at];
        exposed_backward[cell] = from.exposed_backward[at];
        recomputed[cell] = from.recomputed[at];
        communication[cell] = from.communication[at];
    }

    /// Number of pipeline ranks, p.
    pub const fn ranks(&self) -> usize {
        self.flows.ranks()
    }

    /// Number of stages in all modules.
    pub fn stages(&self) -> usize {
        self.flows.stages()
    }

    /// Number of microbatches, including sub-microbatches.
    pub fn microbatches(&self) -> usize {
        self.flows.microbatches()
    }

    /// Returns the column index for a stage and a microbatch that visits it.
    pub fn cell(&self, stage: usize, microbatch: usize) -> usize {
        self.flows.cell(stage, microbatch)
    }

    /// Returns the rank of a stage.
    pub fn rank_for_stage(&self, stage: usize) -> usize {
        self.flows.rank_for_stage(stage)
    }

    /// Returns the time for a full backward.
    pub fn backward(&self, cell: usize) -> Nanos {
        self.input_grad[cell] + self.weight_grad[cell]
    }

    /// Returns the time for an overlapped forward-backward pair, at least the longer of the two
    /// times.
    pub fn overlapped(&self, forward: Nanos, backward: Nanos) -> Nanos {
        let both = u128::from((forward + backward).get()) * u128::from(self.overlapped_ppm);
        Nanos::new((both / u128::from(NO_GAIN_PPM)) as u64).max(forward).max(backward)
    }

    /// Iterates over all cells.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        (0..self.microbatches()).flat_map(|microbatch| {
            let stages = self.flows.microbatch_stages(microbatch);
            stages.zip(self.flows.microbatch_cells(microbatch)).map(move |(stage, index)| Cell {
                index,
                stage,
                microbatch,
            })
        })
    }
}

/// A microbatch on a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Column index.
    pub index: usize,
    /// Stage index.
    pub stage: usize,
    /// Microbatch index.
    pub microbatch: usize,
}

/// Model state memory per device of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateMemory {
    /// Weight memory.
    pub weights: Bytes,
    /// Memory for accumulated gradients.
    pub gradients: Bytes,
    /// Memory for master weights and moments.
    pub optimizer: Bytes,
    /// Master weights and moments in host memory. Not part of the total.
    pub host: Bytes,
}

impl StateMemory {
    /// Returns the total memory of the device.
    pub fn total(self) -> Bytes {
        self.weights + self.gradients + self.optimizer
    }
}

/// Times of a uniform pipeline, in an arbitrary unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UniformTimes {
    /// Forward time per stage and microbatch.
    pub forward: Nanos,
    /// Input gradient time.
    pub input_grad: Nanos,
    /// Weight gradient time.
    pub weight_grad: Nanos,
    /// Send time between ranks.
    pub communication: Nanos,
}
