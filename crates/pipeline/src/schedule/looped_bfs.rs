//! Looped breadth-first schedule: chunks run in sequence, each with all microbatches (Lamy-Poirier,
//! 2023, "Breadth-First Pipeline Parallelism").

use super::{Action, Schedule};

/// Creates a looped breadth-first schedule. Forwards are ordered by chunk, then by microbatch.
/// Backwards have the reverse order.
///
/// Bubble for equal times and m >= p: `(p - 1)(F + B)` with the times of a chunk, which is 1/v of
/// GPipe's for the same model. For m < p, each chunk except the first adds `(p - m)(F + B)`.
/// Memory: all `m v` activations of a rank.
pub fn looped_bfs(ranks: usize, chunks: usize, microbatches: usize) -> Schedule {
    let order = |rank: usize| {
        let forwards = (0..chunks).flat_map(move |chunk| {
            (0..microbatches).map(move |microbatch| Action::forward(chunk * ranks + rank, microbatch))
        });
        let backwards = (0..chunks).rev().flat_map(move |chunk| {
            (0..microbatches).rev().map(move |microbatch| Action::backward(chunk * ranks + rank, microbatch))
        });
        forwards.chain(backwards).collect()
    };
    Schedule { stages: ranks * chunks, microbatches, orders: (0..ranks).map(order).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other_and_come_back_in_reverse() {
        let schedule = looped_bfs(2, 2, 2);
        let row: Vec<String> = schedule.orders[1].iter().map(ToString::to_string).collect();
        assert_eq!(row.join(","), "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0");
    }
}
