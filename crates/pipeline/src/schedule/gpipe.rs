//! GPipe: all forwards, then all backwards (Huang et al., 2019).

use super::{Action, Schedule};

/// Creates a GPipe schedule: all forwards, then all backwards, both in ascending order. Each rank
/// stores all `m` activations.
pub fn gpipe(ranks: usize, microbatches: usize) -> Schedule {
    let order = |rank| {
        let forwards = (0..microbatches).map(move |microbatch| Action::forward(rank, microbatch));
        forwards.chain((0..microbatches).map(move |microbatch| Action::backward(rank, microbatch))).collect()
    };
    Schedule { stages: ranks, microbatches, orders: (0..ranks).map(order).collect() }
}
