//! The eight steps of a rank that DualPipe and DualPipeV share.

use std::collections::VecDeque;

use crate::schedule::{Action, ActionKind};

/// One of the two flows through a rank: in DualPipe a direction, in DualPipeV an arm of the V.
#[derive(Debug, Clone, Copy)]
pub(in crate::schedule) struct Flow {
    /// The rank's stage of it.
    pub stage: usize,
    /// The microbatch that goes first.
    pub first_microbatch: usize,
}

/// A rank's place between where its first flow enters and where it turns.
#[derive(Debug, Clone, Copy)]
pub(in crate::schedule) struct Steps {
    /// Ranks on that way.
    pub places: usize,
    /// This rank's, from 0.
    pub place: usize,
    /// Microbatches of each flow.
    pub microbatches: usize,
}

impl Steps {
    /// The order of the rank. With n places, this being the k-th from 0, M microbatches a flow, and indices for flows:
    /// 1. 2 (n - k - 1) times F0;
    /// 2. k + 1 times F0, F1;
    /// 3. n - k - 1 times I1, W1, F1;
    /// 4. M - 2 n + k + 1 times F0 with B1, F1 with B0; where the flow turns the very first pair runs one after the
    ///    other, its forward having nothing to wait for;
    /// 5. n - k - 1 times B1, then F1 with B0;
    /// 6. k + 1 times B1, B0, the second half of them without their W;
    /// 7. n - k - 1 times the oldest W, then I0;
    /// 8. the W left.
    pub(in crate::schedule) fn order(self, flows: [Flow; 2]) -> Vec<Action> {
        let Self { places, place, microbatches } = self;
        let behind = places - place - 1;
        let mut row = Row::new(flows);
        (0..2 * behind).for_each(|_| row.forward(0));
        for _ in 0..=place {
            row.forward(0);
            row.forward(1);
        }
        for _ in 0..behind {
            row.input_grad(1);
            row.weight_grad();
            row.forward(1);
        }
        for turn in 0..=microbatches + place - 2 * places {
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
        for turn in 0..2 * (place + 1) {
            let flow = 1 - turn % 2;
            if turn <= place { row.backward(flow) } else { row.input_grad(flow) }
        }
        for _ in 0..behind {
            row.weight_grad();
            row.input_grad(0);
        }
        row.order.extend(row.waiting);
        row.order
    }
}

/// The order as it grows. Both flows take their microbatches in turn.
#[derive(Debug)]
struct Row {
    flows: [Flow; 2],
    forwards: [usize; 2],
    backwards: [usize; 2],
    /// W put off, the oldest first.
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

    /// A forward of one flow overlapped with a backward of the other.
    fn pair(&mut self, forward: usize, backward: usize) {
        self.forward(forward);
        if let Some(first) = self.order.last_mut() {
            *first = first.overlapped();
        }
        self.backward(backward);
    }
}
