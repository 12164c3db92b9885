//! 1F1B: forwards and backwards alternate after a warm-up (PipeDream-flush; Narayanan et al.,
//! 2021).

use super::{Action, Schedule};

/// Creates a 1F1B schedule. Rank `r` runs `w = min(p - r - 1, m)` forwards, then pairs of forward
/// and backward, then the remaining backwards. It stores up to `w + 1` activations. For equal times
/// F and B and no communication, the makespan is `(m + p - 1)(F + B)`.
pub fn one_f_one_b(ranks: usize, microbatches: usize) -> Schedule {
    let orders = (0..ranks).map(|rank| {
        let warm_up = (ranks - rank - 1).min(microbatches);
        let mut order = Vec::with_capacity(2 * microbatches);
        order.extend((0..warm_up).map(|microbatch| Action::forward(rank, microbatch)));
        for steady in 0..microbatches - warm_up {
            order.push(Action::forward(rank, warm_up + steady));
            order.push(Action::backward(rank, steady));
        }
        order.extend((microbatches - warm_up..microbatches).map(|microbatch| Action::backward(rank, microbatch)));
        order
    });
    Schedule { stages: ranks, microbatches, orders: orders.collect() }
}
