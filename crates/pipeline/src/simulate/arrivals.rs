//! Input arrival times: dependency rules, common to all simulations.

use planscope_core::action::{Action, ActionKind};
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;

const NOT_YET: Nanos = Nanos::new(u64::MAX);

/// Times for an action and the resulting send.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub start: Nanos,
    pub end: Nanos,
    /// Send start. Without a send, the time when the result is available.
    pub send_start: Nanos,
    /// Time when the rank's send stream is free.
    pub stream_free: Nanos,
}

/// Outputs per cell (microbatch, stage).
#[derive(Debug, Clone)]
pub(super) struct Arrivals<'a> {
    pub costs: &'a PipelineCosts,
    /// Arrival time of the forward output at the following stage.
    forward_arrival: Vec<Nanos>,
    /// End of the forward pass, required by the backward pass in the same cell.
    forward_end: Vec<Nanos>,
    /// Arrival time of the input gradient at the previous stage.
    gradient_arrival: Vec<Nanos>,
    input_grad_end: Vec<Nanos>,
}

impl<'a> Arrivals<'a> {
    /// Creates the initial state.
    pub(super) fn none(costs: &'a PipelineCosts) -> Self {
        let column = || vec![NOT_YET; costs.flows.cells()];
        Self {
            costs,
            forward_arrival: column(),
            forward_end: column(),
            gradient_arrival: column(),
            input_grad_end: column(),
        }
    }

    fn cell(&self, action: Action) -> usize {
        self.costs.cell(action.stage as usize, action.microbatch as usize)
    }

    /// Returns the time when all inputs are available; `None` if an input is missing.
    pub(super) fn input_time(&self, action: Action) -> Option<Nanos> {
        let (flows, microbatch) = (&self.costs.flows, action.microbatch as usize);
        let (cell, cells) = (self.cell(action), flows.microbatch_cells(microbatch));
        let time = match action.kind {
            // Rank groups do not transfer activations between ranks. [`super::rendezvous`]
            // synchronizes the start.
            ActionKind::Forward if flows.microbatch_gang(microbatch).is_some() => Nanos::ZERO,
            ActionKind::Backward | ActionKind::InputGrad if flows.microbatch_gang(microbatch).is_some() => {
                self.forward_end[cell]
            }
            ActionKind::Forward if cell > cells.start => self.forward_arrival[cell - 1],
            ActionKind::Forward => {
                let arrival = |&input: &u32| self.forward_arrival[flows.microbatch_cells(input as usize).end - 1];
                flows.inputs(microbatch).iter().map(arrival).max().unwrap_or(Nanos::ZERO)
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                let local_end = self.forward_end[cell];
                let gradient = if cell + 1 < cells.end {
                    self.gradient_arrival[cell + 1]
                } else {
                    let arrival = |&output: &u32| self.gradient_arrival[flows.microbatch_cells(output as usize).start];
                    flows.outputs(microbatch).iter().map(arrival).max().unwrap_or(Nanos::ZERO)
                };
                local_end.max(gradient)
            }
            ActionKind::WeightGrad => self.input_grad_end[cell],
        };
        (time != NOT_YET).then_some(time)
    }

    /// Returns the earliest input time for the first action in `order`. If the action is overlapped
    /// with its successor, the inputs for both are required.
    pub(super) fn head_time(&self, order: &[Action]) -> Option<Nanos> {
        let action = order.first()?;
        let input = self.input_time(*action)?;
        match order.get(1) {
            Some(second) if action.with_next => Some(input.max(self.input_time(*second)?)),
            _ => Some(input),
        }
    }

    fn duration(&self, action: Action) -> Nanos {
        let cell = self.cell(action);
        match action.kind {
            ActionKind::Forward => self.costs.forward[cell],
            ActionKind::Backward => self.costs.backward(cell),
            ActionKind::InputGrad => self.costs.input_grad[cell],
            ActionKind::WeightGrad => self.costs.weight_grad[cell],
        }
    }

    /// Runs an action with inputs available at `input`, on a rank free at `free` and a send stream
    /// free at `stream`.
    pub(super) fn run(&mut self, action: Action, input: Nanos, free: Nanos, stream: Nanos) -> Times {
        let start = free.max(input);
        let end = start + self.duration(action);
        self.finish(action, start, end, end, stream)
    }

    /// Runs two overlapped actions. The drawn durations divide the common duration in proportion.
    /// Outputs become available at the common end.
    pub(super) fn run_overlapped(
        &mut self,
        first: Action,
        second: Action,
        input: Nanos,
        free: Nanos,
        stream: Nanos,
    ) -> [Times; 2] {
        let start = free.max(input);
        let (forward, backward) = (self.duration(first), self.duration(second));
        let both = self.costs.overlapped(forward, backward);
        let share = u128::from(both.get()) * u128::from(forward.get());
        let middle = start + Nanos::new((share / u128::from((forward + backward).get().max(1))) as u64);
        let end = start + both;
        let first = self.finish(first, start, middle, end, stream);
        let second = self.finish(second, middle, end, end, first.stream_free);
        [first, second]
    }

    /// Records the outputs, available at `ready`.
    fn finish(&mut self, action: Action, start: Nanos, end: Nanos, ready: Nanos, stream: Nanos) -> Times {
        let cell = self.cell(action);
        let send = match action.kind {
            ActionKind::Forward => self.costs.send_forward[cell],
            ActionKind::Backward | ActionKind::InputGrad => self.costs.send_backward[cell],
            ActionKind::WeightGrad => Nanos::ZERO,
        };
        let sends = send > Nanos::ZERO;
        let send_start = if sends { ready.max(stream) } else { ready };
        let arrival = send_start + send;
        match action.kind {
            ActionKind::Forward => {
                self.forward_end[cell] = ready;
                self.forward_arrival[cell] = arrival;
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                self.gradient_arrival[cell] = arrival;
                self.input_grad_end[cell] = ready;
            }
            ActionKind::WeightGrad => {}
        }
        Times { start, end, send_start, stream_free: if sends { arrival } else { stream } }
    }

    /// Removes the outputs.
    pub(super) fn forget(&mut self, action: Action) {
        let cell = self.cell(action);
        match action.kind {
            ActionKind::Forward => {
                self.forward_end[cell] = NOT_YET;
                self.forward_arrival[cell] = NOT_YET;
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                self.gradient_arrival[cell] = NOT_YET;
                self.input_grad_end[cell] = NOT_YET;
            }
            ActionKind::WeightGrad => {}
        }
    }

    /// Calls `each` with all ranks whose next action can depend on this action.
    pub(super) fn fed_ranks(&self, action: Action, mut each: impl FnMut(usize)) {
        let (flows, stage, microbatch) = (&self.costs.flows, action.stage as usize, action.microbatch as usize);
        if flows.microbatch_gang(microbatch).is_some() {
            return;
        }
        let stages = flows.microbatch_stages(microbatch);
        match action.kind {
            ActionKind::Forward if stage + 1 < stages.end => each(flows.rank_for_stage(stage + 1)),
            ActionKind::Forward => {
                let firsts =
                    flows.outputs(microbatch).iter().map(|&output| flows.microbatch_stages(output as usize).start);
                firsts.for_each(|first| each(flows.rank_for_stage(first)));
            }
            ActionKind::Backward | ActionKind::InputGrad if stage > stages.start => {
                each(flows.rank_for_stage(stage - 1));
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                let lasts =
                    flows.inputs(microbatch).iter().map(|&input| flows.microbatch_stages(input as usize).end - 1);
                lasts.for_each(|last| each(flows.rank_for_stage(last)));
            }
            ActionKind::WeightGrad => {}
        }
    }
}
