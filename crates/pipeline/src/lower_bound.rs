//! Lower bounds on the iteration time for given microbatches and stages.

use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;
use planscope_cost::cost::pipeline::{Cell, NO_GAIN_PPM};

/// Returns the larger of two lower bounds on the iteration time of a replica (docs/models.md,
/// section 7).
///
/// *Rank*: a rank starts after the fastest microbatch has passed the previous stages. It then runs
/// all actions sequentially, followed by synchronisation. Since weight gradients may be delayed, an
/// alternative counts all forwards and input gradients, the fastest path back to stage 0, and the
/// synchronisation of that stage.
///
/// *Microbatch*: every microbatch passes all stages forward and backward, then rank 0 synchronises.
///
/// Ranks of a gang are bounded individually, because a joint action takes no longer than each
/// rank's work.
///
/// Overlap shortens the busy time of a rank, but not the path of a microbatch: the results of a
/// pair are available when the pair is done.
pub fn lower_bound(costs: &PipelineCosts) -> Nanos {
    let bounds = bounds(costs, &|rank| costs.sync[rank] + costs.optimizer[rank]);
    bounds.into_iter().max().unwrap_or(Nanos::ZERO)
}

/// Returns a lower bound on the end of the pipeline work per rank, excluding the step end.
pub fn work_bounds(costs: &PipelineCosts) -> Vec<Nanos> {
    bounds(costs, &|_| Nanos::ZERO)
}

/// Returns a lower bound on the iteration time of a replica whose ranks have `limit` bytes
/// (docs/models.md, section 7).
///
/// An activation occupies memory at least as long as its microbatch takes from the forward to the
/// end of the backward without waiting. The byte-seconds of a rank's activations must fit between
/// its earliest start and its latest end. If all activations of a rank are equal, memory holds a
/// whole number of them, and the bound is that of parallel machines: each of them starts and ends
/// with another activation.
///
/// Returns zero if some microbatch does not visit all stages in order.
pub fn memory_bound(costs: &PipelineCosts, limit: Bytes) -> Nanos {
    if !costs.flows.is_cyclic() {
        return Nanos::ZERO;
    }
    let step_end = |rank: usize| costs.sync[rank] + costs.optimizer[rank];
    let paths = PathTimes::new(costs, &step_end);
    let mut ranks: Vec<[Vec<Stay>; 2]> = vec![[Vec::new(), Vec::new()]; costs.ranks()];
    for Cell { index, stage, .. } in costs.cells() {
        let rank = costs.rank_for_stage(stage);
        let (head, bytes) = (paths.head[index].get(), costs.activation[index].get());
        let time = (paths.gradient[index] + costs.input_grad[index]).get() - head;
        // Up to the end of the input gradient, and up to the end of the weight gradient.
        ranks[rank][0].push(Stay { head, time, tail: paths.way_out[index].get(), bytes });
        let time = time + costs.weight_grad[index].get();
        ranks[rank][1].push(Stay { head, time, tail: step_end(rank).get(), bytes });
    }
    let bounds = ranks.iter().enumerate().flat_map(|(rank, stays)| {
        let capacity = limit.saturating_sub(costs.static_memory[rank]).get();
        stays.iter().map(move |stays| stay_bound(stays, capacity))
    });
    Nanos::new(bounds.max().unwrap_or(0))
}

/// Minimum stay of an activation in memory, in ns and bytes.
#[derive(Debug, Clone, Copy)]
struct Stay {
    /// Earliest start.
    head: u64,
    time: u64,
    /// Minimum time from the end of the stay to the iteration end.
    tail: u64,
    bytes: u64,
}

/// Returns the bound from the memory of a rank.
fn stay_bound(stays: &[Stay], capacity: u64) -> u64 {
    let Some(&Stay { bytes, .. }) = stays.first() else { return 0 };
    let total = |number: &dyn Fn(&Stay) -> u128| -> u128 { stays.iter().map(number).sum() };
    if stays.iter().all(|stay| stay.bytes == bytes) {
        let slots = capacity.checked_div(bytes).unwrap_or(u64::MAX);
        if slots == 0 || slots >= stays.len() as u64 {
            return 0;
        }
        let shortest = |number: &dyn Fn(&Stay) -> u64| -> u128 {
            let mut numbers: Vec<u64> = stays.iter().map(number).collect();
            numbers.sort_unstable();
            numbers.iter().take(slots as usize).map(|&number| u128::from(number)).sum()
        };
        let all = total(&|stay| u128::from(stay.time)) + shortest(&|stay| stay.head) + shortest(&|stay| stay.tail);
        return all.div_ceil(u128::from(slots)) as u64;
    }
    let least = |number: &dyn Fn(&Stay) -> u64| stays.iter().map(number).min().unwrap_or(0);
    let area = total(&|stay| u128::from(stay.time) * u128::from(stay.bytes));
    area.div_ceil(u128::from(capacity.max(1))) as u64 + least(&|stay| stay.head) + least(&|stay| stay.tail)
}

/// Computes the bounds for all ranks, adding `step_end` after the work.
fn bounds(costs: &PipelineCosts, step_end: &dyn Fn(usize) -> Nanos) -> Vec<Nanos> {
    let paths = PathTimes::new(costs, step_end);
    // At best, all actions overlap. Round down per action, as the simulation rounds down per pair.
    let gain = costs.overlapped_ppm.min(NO_GAIN_PPM);
    let overlapped_time =
        |time: Nanos| Nanos::new((u128::from(time.get()) * u128::from(gain) / u128::from(NO_GAIN_PPM)) as u64);
    let mut ranks = vec![RankWork::default(); costs.ranks()];
    let mut bounds = vec![Nanos::ZERO; costs.ranks()];
    for Cell { index, stage, .. } in costs.cells() {
        let rank_index = costs.rank_for_stage(stage);
        let rank = &mut ranks[rank_index];
        rank.unavoidable += overlapped_time(costs.forward[index]) + overlapped_time(costs.input_grad[index]);
        rank.weights += overlapped_time(costs.weight_grad[index]);
        rank.head = Some(rank.head.map_or(paths.head[index], |head| head.min(paths.head[index])));
        rank.way_out = Some(rank.way_out.map_or(paths.way_out[index], |out| out.min(paths.way_out[index])));
        let local_time = costs.input_grad[index] + costs.weight_grad[index] + step_end(rank_index);
        let way = paths.gradient[index] + local_time.max(costs.input_grad[index] + paths.way_out[index]);
        bounds[rank_index] = bounds[rank_index].max(way);
    }
    for (rank, (work, bound)) in ranks.iter().zip(&mut bounds).enumerate() {
        let (Some(head), Some(way_out)) = (work.head, work.way_out) else {
            *bound = (*bound).max(step_end(rank));
            continue;
        };
        *bound = (*bound).max(head + work.unavoidable + work.weights + step_end(rank));
        *bound = (*bound).max(head + work.unavoidable + way_out);
    }
    bounds
}

#[derive(Debug, Clone, Copy, Default)]
struct RankWork {
    unavoidable: Nanos,
    weights: Nanos,
    head: Option<Nanos>,
    way_out: Option<Nanos>,
}

/// Path lengths per cell for unlimited ranks: earliest forward start, earliest gradient arrival,
/// and minimum remaining time following the input gradient.
struct PathTimes {
    head: Vec<Nanos>,
    gradient: Vec<Nanos>,
    way_out: Vec<Nanos>,
}

impl PathTimes {
    /// Microbatches are in topological order, so a forward and a backward pass over the cells are
    /// sufficient.
    fn new(costs: &PipelineCosts, step_end: &dyn Fn(usize) -> Nanos) -> Self {
        let flows = &costs.flows;
        let zero = || vec![Nanos::ZERO; flows.cells()];
        let mut paths = Self { head: zero(), gradient: zero(), way_out: zero() };
        for microbatch in 0..flows.microbatches() {
            if flows.microbatch_gang(microbatch).is_some() {
                for cell in flows.microbatch_cells(microbatch) {
                    let rank = flows.rank_for_stage(
                        flows.microbatch_stages(microbatch).start + cell - flows.microbatch_cells(microbatch).start,
                    );
                    (paths.gradient[cell], paths.way_out[cell]) = (costs.forward[cell], step_end(rank));
                }
                continue;
            }
            let sent = |cell: usize| paths.head[cell] + costs.forward[cell] + costs.send_forward[cell];
            let inputs =
                flows.inputs(microbatch).iter().map(|&input| sent(flows.microbatch_cells(input as usize).end - 1));
            let mut at = inputs.max().unwrap_or(Nanos::ZERO);
            for cell in flows.microbatch_cells(microbatch) {
                paths.head[cell] = at;
                at += costs.forward[cell] + costs.send_forward[cell];
            }
            let leaves = |input: usize| {
                let last = flows.microbatch_cells(input).end - 1;
                costs.input_grad[last] + paths.way_out[last]
            };
            let sent = |cell: usize, out: Nanos| costs.send_backward[cell] + out;
            let inputs = flows.inputs(microbatch).iter().map(|&input| leaves(input as usize)).max();
            let cells = flows.microbatch_cells(microbatch);
            let mut out = match inputs {
                Some(out) => sent(cells.start, out),
                None => step_end(flows.rank_for_stage(flows.microbatch_stages(microbatch).start)),
            };
            for cell in cells.clone() {
                paths.way_out[cell] = out;
                if cell + 1 < cells.end {
                    // The gradient is sent after the input gradient; the weight gradient can be
                    // delayed.
                    out = sent(cell + 1, costs.input_grad[cell] + out);
                }
            }
        }
        for microbatch in (0..flows.microbatches()).rev() {
            if flows.microbatch_gang(microbatch).is_some() {
                continue;
            }
            let sent = |cell: usize| paths.gradient[cell] + costs.input_grad[cell] + costs.send_backward[cell];
            let outputs =
                flows.outputs(microbatch).iter().map(|&output| sent(flows.microbatch_cells(output as usize).start));
            let cells = flows.microbatch_cells(microbatch);
            let mut at = outputs.max().unwrap_or(Nanos::ZERO);
            for cell in cells.rev() {
                at = at.max(paths.head[cell] + costs.forward[cell]);
                paths.gradient[cell] = at;
                at += costs.input_grad[cell] + costs.send_backward[cell];
            }
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Grouping, gpipe, interleaved, one_f_one_b};
    use crate::simulate::{StepEnd, execute};
    use planscope_cost::cost::UniformTimes;

    fn times(forward: u64, input: u64, weight: u64, communication: u64) -> UniformTimes {
        UniformTimes {
            forward: Nanos::new(forward),
            input_grad: Nanos::new(input),
            weight_grad: Nanos::new(weight),
            communication: Nanos::new(communication),
        }
    }

    /// p = 4, F = I = 10. For m = 8 and W = 10, the last rank waits 30 and works 240. For m = 1 and
    /// W = 0, the single microbatch takes 4 x 20.
    #[test]
    fn uniform_bound_is_fill_plus_work_or_a_microbatch() {
        assert_eq!(lower_bound(&PipelineCosts::uniform(4, 1, 8, times(10, 10, 10, 0))), Nanos::new(30 + 240));
        assert_eq!(lower_bound(&PipelineCosts::uniform(4, 1, 1, times(10, 10, 0, 0))), Nanos::new(80));
    }

    /// No synchronisation: rank r of 4 waits 10 r and works 8 x 30, or receives the initial
    /// gradient.
    #[test]
    fn work_is_bounded_rank_by_rank() {
        let mut costs = PipelineCosts::uniform(4, 1, 8, times(10, 10, 10, 0));
        costs.sync.fill(Nanos::new(1000));
        let bounds: Vec<u64> = work_bounds(&costs).iter().map(|bound| bound.get()).collect();
        assert_eq!(bounds, [240, 250, 260, 270]);
        assert_eq!(lower_bound(&costs), Nanos::new(1270));
    }

    /// p = 4, F = I = 10, W = 0: a microbatch takes 80. With one activation per rank, 8 microbatches
    /// take 640. With two on rank 0, 4 x 80, of which both slots use the whole time. A limit of 8 or
    /// more has no effect.
    #[test]
    fn memory_serializes_microbatches() {
        let costs = PipelineCosts::uniform(4, 1, 8, times(10, 10, 0, 0));
        let bounds = [1, 2, 8].map(|limit| memory_bound(&costs, Bytes::new(limit)).get());
        assert_eq!(bounds, [640, 320, 0]);
    }

    /// Activations of 1 and 3 bytes on one rank with 4 bytes: 2 x 20 x (1 + 3) byte-seconds / 4.
    #[test]
    fn activations_of_different_sizes_share_memory() {
        let mut costs = PipelineCosts::uniform(1, 1, 4, times(10, 10, 0, 0));
        for (microbatch, bytes) in [1, 3, 1, 3].into_iter().enumerate() {
            costs.activation[microbatch] = Bytes::new(bytes);
        }
        assert_eq!(memory_bound(&costs, Bytes::new(4)), Nanos::new(40));
    }

    proptest! {
        #[test]
        fn no_schedule_beats_the_bound(
            ranks in 1_usize..6, chunks in 1_usize..4, microbatches in 1_usize..12, seed in any::<u32>(),
            communication in 0_u64..20, sync in 0_u64..60,
        ) {
            let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times(1, 1, 1, communication));
            let mut random = planscope_core::random::Random::new(seed, 0);
            for column in [&mut costs.forward, &mut costs.input_grad, &mut costs.weight_grad] {
                for time in column.iter_mut() {
                    *time = Nanos::new(random.below(40));
                }
            }
            for time in &mut costs.sync {
                *time = Nanos::new(random.below(sync + 1));
            }
            let schedule = if chunks == 1 && seed % 2 == 0 {
                gpipe(ranks, microbatches)
            } else if chunks == 1 {
                one_f_one_b(ranks, microbatches)
            } else {
                interleaved(ranks, chunks, microbatches, Grouping::Balanced)
            };
            let execution = execute(&schedule, &costs).unwrap();
            let end = StepEnd::from_executions(ranks, std::iter::once(&execution)).iteration_end(&costs);
            // The bound holds for the memory that the schedule uses.
            let peaks = (0..ranks).map(|rank| crate::simulate::peak_memory(rank, &schedule, &execution, &costs));
            let peak = peaks.max().unwrap();
            prop_assert!(memory_bound(&costs, peak) <= end, "{:?} > {:?}", memory_bound(&costs, peak), end);
            prop_assert!(lower_bound(&costs) <= end, "{:?} > {:?}", lower_bound(&costs), end);
        }
    }
}
