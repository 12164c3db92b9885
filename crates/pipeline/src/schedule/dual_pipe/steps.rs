//! The eight steps per rank, common to DualPipe and DualPipeV.

use std::collections::VecDeque;

use planscope_core::action::{Action, ActionKind};

/// One of two flows through a rank: a direction in DualPipe, an arm of the V in DualPipeV.
#[derive(Debug, Clone, Copy)]
pub(in crate::schedule) struct Flow {
    /// The rank's stage in this flow.
    pub stage: usize,
    /// First microbatch.
    pub first_microbatch: usize,
}

/// Position of a rank between entry and turning point of flow 0.
#[derive(Debug, Clone, Copy)]
pub(in crate::schedule) struct Steps {
    /// Number of ranks between entry and turning point.
    pub places: usize,
    /// Position of this rank, starting at 0.
    pub position: usize,
    /// Microbatches per flow.
    pub microbatches: usize,
}

impl Steps {
    /// Returns the order of the rank. With n positions, position k (from 0), M microbatches per
    /// flow, and flow numbers as suffixes:
    /// 1. 2 (n - k - 1) times F0;
    /// 2. k + 1 times F0, F1;
    /// 3. n - k - 1 times I1, W1, F1;
    /// 4. M - 2 n + k + 1 times F0 with B1, F1 with B0; at the turning point, the initial pair runs
    ///    in sequence, because its forward has no pending input;
    /// 5. n - k - 1 times B1, then F1 with B0;
    /// 6. k + 1 times B1, B0, the second half of them without W;
    /// 7. n - k - 1 times the oldest W, then I0;
    /// 8. the remaining W.
    pub(in crate::schedule) fn order(self, flows: [Flow; 2]) -> Vec<Action> {
        let Self { places, position, microbatches } = self;
        let behind = places - position - 1;
        let mut row = Row::new(flows);
        (0..2 * behind).for_each(|_| row.forward(0));
        for _ in 0..=position {
            row.forward(0);
            row.forward(1);
        }
        for _ in 0..behind {
            row.input_grad(1);
            row.weight_grad();
            row.forward(1);
        }
        for turn in 0..=microbatches + position - 2 * places {
            if turn == 0 && behind == 0 {
                row.forward(0);
                row.backward(1);
            } else {
                row.pair(0, 1);
            }
            row.pair(1, 0);
        }
        for _ in 0..behind {
            row.backward(1);
            row.pair(1, 0);
        }
        for turn in 0..2 * (position + 1) {
            let flow = 1 - turn % 2;
            if turn <= position { row.backward(flow) } else { row.input_grad(flow) }
        }
        for _ in 0..behind {
            row.weight_grad();
            row.input_grad(0);
        }
        row.order.extend(row.waiting);
        row.order
    }
}

/// The order under construction. Both flows process microbatches in sequence.
#[derive(Debug)]
struct Row {
    flows: [Flow; 2],
    forwards: [usize; 2],
    backwards: [usize; 2],
    /// Deferred W, oldest first.
    waiting: VecDeque<Action>,
    order: Vec<Action>,
}

impl Row {
    const fn new(flows: [Flow; 2]) -> Self {
        Self { flows, forwards: [0; 2], backwards: [0; 2], waiting: VecDeque::new(), order: Vec::new() }
    }

    fn forward(&mut self, flow: usize) {
        let Flow { stage, first_microbatch } = self.flows[flow];
        self.order.push(Action::forward(stage, first_microbatch + self.forwards[flow]));
        self.forwards[flow] += 1;
    }

    fn next_backward(&mut self, kind: ActionKind, flow: usize) -> Action {
        let Flow { stage, first_microbatch } = self.flows[flow];
        self.backwards[flow] += 1;
        Action::new(kind, stage, first_microbatch + self.backwards[flow] - 1)
    }

    fn backward(&mut self, flow: usize) {
        let action = self.next_backward(ActionKind::Backward, flow);
        self.order.push(action);
    }

    fn input_grad(&mut self, flow: usize) {
        let action = self.next_backward(ActionKind::InputGrad, flow);
        self.order.push(action);
        self.waiting.push_back(Action { kind: ActionKind::WeightGrad, ..action });
    }

    fn weight_grad(&mut self) {
        self.order.extend(self.waiting.pop_front());
    }

    /// Adds a forward of one flow overlapped with a backward of the other.
    fn pair(&mut self, forward: usize, backward: usize) {
        self.forward(forward);
        if let Some(first) = self.order.last_mut() {
            *first = first.overlapped();
        }
        self.backward(backward);
    }
}
