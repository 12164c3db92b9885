//! What has arrived where: the rules that every simulation of a schedule shares.

use crate::cost::PipelineCosts;
use crate::schedule::{Action, ActionKind};
use crate::units::Nanos;

const NOT_YET: Nanos = Nanos::new(u64::MAX);

/// When an action runs, and when what it sends has arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub start: Nanos,
    pub end: Nanos,
    /// Start of the send behind it; equal to its end where there is none.
    pub send_start: Nanos,
    /// When the rank's stream is free again.
    pub stream_free: Nanos,
}

/// Outputs of a pipeline by cell.
#[derive(Debug, Clone)]
pub(super) struct Arrivals<'a> {
    pub costs: &'a PipelineCosts,
    /// When the forward's output is at the next stage.
    forward_arrival: Vec<Nanos>,
    /// When the forward itself ended, which its own backward needs.
    forward_end: Vec<Nanos>,
    /// When the input gradient is at the previous stage.
    gradient_arrival: Vec<Nanos>,
    input_grad_end: Vec<Nanos>,
}

impl<'a> Arrivals<'a> {
    /// Nothing has run.
    pub(super) fn none(costs: &'a PipelineCosts) -> Self {
        let column = || vec![NOT_YET; costs.stages * costs.microbatches];
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

    /// When the inputs of an action are there; `None` while they are not.
    pub(super) fn input_time(&self, action: Action) -> Option<Nanos> {
        let (stage, microbatch) = (action.stage as usize, action.microbatch as usize);
        let time = match action.kind {
            ActionKind::Forward if stage == 0 => Nanos::ZERO,
            ActionKind::Forward => self.forward_arrival[self.costs.cell(stage - 1, microbatch)],
            ActionKind::Backward | ActionKind::InputGrad => {
                let own = self.forward_end[self.cell(action)];
                if stage + 1 == self.costs.stages {
                    own
                } else {
                    own.max(self.gradient_arrival[self.costs.cell(stage + 1, microbatch)])
                }
            }
            ActionKind::WeightGrad => self.input_grad_end[self.cell(action)],
        };
        (time != NOT_YET).then_some(time)
    }

    /// Runs an action whose inputs are there at `input` on a rank and a stream that are free at `free` and `stream`.
    pub(super) fn run(&mut self, action: Action, input: Nanos, free: Nanos, stream: Nanos) -> Times {
        let cell = self.cell(action);
        let (duration, send) = match action.kind {
            ActionKind::Forward => (self.costs.forward[cell], self.costs.send_forward[cell]),
            ActionKind::Backward => (self.costs.backward(cell), self.costs.send_backward[cell]),
            ActionKind::InputGrad => (self.costs.input_grad[cell], self.costs.send_backward[cell]),
            ActionKind::WeightGrad => (self.costs.weight_grad[cell], Nanos::ZERO),
        };
        let start = free.max(input);
        let end = start + duration;
        let sends = send > Nanos::ZERO;
        let send_start = if sends { end.max(stream) } else { end };
        let arrival = send_start + send;
        match action.kind {
            ActionKind::Forward => {
                self.forward_end[cell] = end;
                self.forward_arrival[cell] = arrival;
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                self.gradient_arrival[cell] = arrival;
                self.input_grad_end[cell] = end;
            }
            ActionKind::WeightGrad => {}
        }
        Times { start, end, send_start, stream_free: if sends { arrival } else { stream } }
    }

    /// As if an action had not run.
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

    /// The rank whose next action may have been waiting for this one.
    pub(super) fn fed_rank(&self, action: Action) -> Option<usize> {
        let stage = action.stage as usize;
        match action.kind {
            ActionKind::Forward => (stage + 1 < self.costs.stages).then(|| self.costs.rank_of(stage + 1)),
            ActionKind::Backward | ActionKind::InputGrad => stage.checked_sub(1).map(|to| self.costs.rank_of(to)),
            ActionKind::WeightGrad => None,
        }
    }
}
