//! Interleaved zero bubble, ZB1P: interleaved order with split backwards (Qi et al., 2023, "Zero
//! Bubble Pipeline Parallelism").

use std::collections::VecDeque;

use super::interleaved::{Grouping, group_sizes, order_table};
use super::{Action, Schedule};

/// Creates a ZB1P schedule. Forwards and input gradients have the chunk order of the interleaved
/// schedule, after a shorter warm-up with `(v - 1) g + p - 1 - r` forwards. Weight gradients have
/// the order of the input gradients with a lag of r, so that they fill idle time on later ranks.
/// The remaining weight gradients run at the end.
///
/// Bubble for equal times: `(p - 1)(F + I - W)` with the times of a chunk. This is a third of
/// 1F1B's if all three times are equal. Memory with one chunk: p activations, as in 1F1B. Group
/// sizes >= p never deadlock, for any remainder.
pub fn interleaved_zero_bubble(ranks: usize, chunks: usize, microbatches: usize, grouping: Grouping) -> Schedule {
    let sizes = group_sizes(ranks, microbatches, grouping);
    let group_size = grouping.max_group_size(ranks, &sizes);
    let table = order_table(chunks, &sizes);
    let total = table.len();
    let orders = (0..ranks).map(|rank| {
        let warm_up = ((chunks - 1) * group_size + ranks - 1 - rank).min(total);
        let forwards = table.iter().map(|&(chunk, microbatch)| (chunk * ranks + rank, microbatch));
        let backwards = table.iter().map(|&(chunk, microbatch)| ((chunks - 1 - chunk) * ranks + rank, microbatch));
        lagging(forwards, backwards, warm_up, rank)
    });
    Schedule { stages: ranks * chunks, microbatches, orders: orders.collect() }
}

/// Returns a rank's order with `warm_up` initial forwards and weight gradients that lag by `lag`
/// input gradients. The iterators contain (stage, microbatch) for forwards and backwards.
pub(super) fn lagging(
    mut forwards: impl ExactSizeIterator<Item = (usize, usize)>,
    backwards: impl Iterator<Item = (usize, usize)>,
    warm_up: usize,
    lag: usize,
) -> Vec<Action> {
    let mut order = Vec::with_capacity(3 * forwards.len());
    let mut waiting = VecDeque::new();
    let forward = |(stage, microbatch)| Action::forward(stage, microbatch);
    order.extend(forwards.by_ref().take(warm_up).map(forward));
    for (step, (stage, microbatch)) in backwards.enumerate() {
        order.extend(forwards.next().map(forward));
        order.push(Action::input_grad(stage, microbatch));
        waiting.push_back(Action::weight_grad(stage, microbatch));
        if step >= lag {
            order.extend(waiting.pop_front());
        }
    }
    order.extend(waiting);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// p = 2, v = 1, m = 3: rank 1 has a lag of 1.
    #[test]
    fn weight_gradients_lag_by_the_rank() {
        let schedule = interleaved_zero_bubble(2, 1, 3, Grouping::Fixed(2));
        let rows: Vec<String> = schedule
            .orders
            .iter()
            .map(|order| order.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            .collect();
        assert_eq!(rows[0], "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2");
        assert_eq!(rows[1], "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2");
    }
}
