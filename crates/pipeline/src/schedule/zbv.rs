//! ZBV: zero bubble with the memory of 1F1B and two V-shaped chunks per rank (Qi et al., 2023,
//! "Zero Bubble Pipeline Parallelism").

use super::{Action, Schedule};

/// Returns the stages of a rank's two chunks: chunk 0 is stage r, chunk 1 is stage 2 p - 1 - r.
pub(super) const fn v_stages(rank: usize, ranks: usize) -> [usize; 2] {
    [rank, 2 * ranks - 1 - rank]
}

/// Creates a ZBV schedule: the order for `n = max(2 p - 1, m)` microbatches, without microbatches
/// that do not exist. Rank `r` runs
///
/// 1. warm-up: `2 (p - r) - 1` forwards of chunk 0, `r` pairs of forwards of both chunks, and `p -
///    r` times F, I and W of chunk 1;
/// 2. F of chunk 0 (if any remain), I and W of chunk 0, F, I and W of chunk 1, repeated until chunk
///    1 has caught up;
/// 3. `r` pairs of I, the `p - r` remaining I of chunk 0 with W, and the remaining W, starting with
///    chunk 1.
///
/// For F = I = W and m >= 2 p - 1, no rank is idle between the start and the end of its work: the
/// bubble is 0. Memory: p activations for a rank's two chunks on all ranks.
pub fn zbv(ranks: usize, microbatches: usize) -> Schedule {
    let orders = (0..ranks).map(|rank| {
        let mut row = Row { stages: v_stages(rank, ranks), ..Row::default() };
        row.fill(rank, ranks, microbatches.max(2 * ranks - 1));
        let mut order = row.order;
        order.retain(|action| (action.microbatch as usize) < microbatches);
        order
    });
    Schedule { stages: 2 * ranks, microbatches, orders: orders.collect() }
}

/// The order of a rank under construction. Both chunks process microbatches in sequence.
#[derive(Default)]
struct Row {
    stages: [usize; 2],
    forwards: [usize; 2],
    inputs: [usize; 2],
    weights: [usize; 2],
    order: Vec<Action>,
}

impl Row {
    fn fill(&mut self, rank: usize, ranks: usize, count: usize) {
        (0..2 * (ranks - rank) - 1).for_each(|_| self.forward(0));
        for _ in 0..rank {
            self.forward(1);
            self.forward(0);
        }
        for _ in rank..ranks {
            self.forward(1);
            self.backward(1);
        }
        while self.forwards[1] < self.forwards[0] || self.forwards[0] < count {
            if self.forwards[0] < count {
                self.forward(0);
            }
            self.backward(0);
            self.forward(1);
            self.backward(1);
        }
        for _ in 0..rank {
            self.input_grad(0);
            self.input_grad(1);
        }
        (rank..ranks).for_each(|_| self.backward(0));
        for chunk in [1, 0] {
            while self.weights[chunk] < self.inputs[chunk] {
                self.weight_grad(chunk);
            }
        }
    }

    fn forward(&mut self, chunk: usize) {
        self.order.push(Action::forward(self.stages[chunk], self.forwards[chunk]));
        self.forwards[chunk] += 1;
    }

    fn input_grad(&mut self, chunk: usize) {
        self.order.push(Action::input_grad(self.stages[chunk], self.inputs[chunk]));
        self.inputs[chunk] += 1;
    }

    fn weight_grad(&mut self, chunk: usize) {
        self.order.push(Action::weight_grad(self.stages[chunk], self.weights[chunk]));
        self.weights[chunk] += 1;
    }

    /// Adds I and the oldest pending W, which can belong to an older microbatch.
    fn backward(&mut self, chunk: usize) {
        self.input_grad(chunk);
        self.weight_grad(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// p = 2, m = 3 = 2 p - 1. Rank 0: 3 F0, then 2 x (F1 I1 W1), then chunk 0 catches up.
    #[test]
    fn small_example_matches_the_definition() {
        let rows: Vec<String> = zbv(2, 3)
            .orders
            .iter()
            .map(|order| order.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            .collect();
        assert_eq!(rows[0], "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,3F2,3I2,3W2,0I1,0W1,0I2,0W2");
        assert_eq!(rows[1], "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1I1,2I2,1I2,1W1,2W2,1W2");
    }
}
