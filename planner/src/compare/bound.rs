//! Lower bounds of an iteration: what no schedule of these microbatches on these stages can beat.

use crate::cost::PipelineCosts;
use crate::units::Nanos;

/// The larger of two bounds on the iteration time of one replica (docs/models.md, section 7).
///
/// *Rank*: a rank cannot start before the fastest microbatch has come through the stages in front of it, then has all
/// its actions to run one after the other, and its own synchronisation behind them. Or, since weight gradients
/// may be put off: all its forwards and input gradients, then the fastest way back to the first stage, and that
/// stage's synchronisation.
///
/// *Microbatch*: every microbatch goes forward and backward through all stages, then the first rank synchronises.
pub fn lower_bound(costs: &PipelineCosts) -> Nanos {
    if costs.microbatches == 0 || costs.stages == 0 {
        return Nanos::ZERO;
    }
    let m = costs.microbatches;
    let step_end = |rank: usize| costs.sync[rank] + costs.optimizer[rank];
    // Of each microbatch: the forward path into, and the backward path out of, the stage looked at.
    let mut arrival = vec![Nanos::ZERO; m];
    let mut way_out = vec![Nanos::ZERO; m];
    let mut bound = Nanos::ZERO;
    for stage in 0..costs.ranks.min(costs.stages) {
        let cells = || (stage..costs.stages).step_by(costs.ranks).flat_map(|stage| stage * m..(stage + 1) * m);
        let unavoidable: Nanos = cells().map(|cell| costs.forward[cell] + costs.input_grad[cell]).sum();
        let weights: Nanos = cells().map(|cell| costs.weight_grad[cell]).sum();
        let head = arrival.iter().copied().min().unwrap_or(Nanos::ZERO);
        let path_out = way_out.iter().copied().min().unwrap_or(Nanos::ZERO);
        bound = bound.max(head + unavoidable + weights + step_end(stage));
        bound = bound.max(head + unavoidable + path_out + step_end(0));
        for microbatch in 0..m {
            let cell = costs.cell(stage, microbatch);
            arrival[microbatch] += costs.forward[cell] + costs.send_forward[cell];
            let next = costs.cell(stage + 1, microbatch);
            let sent = if stage + 1 < costs.stages { costs.send_backward[next] } else { Nanos::ZERO };
            // A gradient is on its way out as soon as the input gradient is there, weights may come later.
            way_out[microbatch] += sent + costs.input_grad[cell];
        }
    }
    for microbatch in 0..m {
        let through: Nanos = (0..costs.stages)
            .map(|stage| {
                let cell = costs.cell(stage, microbatch);
                costs.forward[cell] + costs.send_forward[cell] + costs.input_grad[cell] + costs.send_backward[cell]
            })
            .sum();
        bound = bound.max(through + costs.weight_grad[costs.cell(0, microbatch)] + step_end(0));
    }
    bound
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost::UniformTimes;
    use crate::schedule::{Grouping, gpipe, interleaved, one_f_one_b};
    use crate::simulate::{StepEnd, execute};

    fn times(forward: u64, input: u64, weight: u64, communication: u64) -> UniformTimes {
        UniformTimes {
            forward: Nanos::new(forward),
            input_grad: Nanos::new(input),
            weight_grad: Nanos::new(weight),
            communication: Nanos::new(communication),
        }
    }

    /// p = 4, F = I = 10: with m = 8 and W = 10 the last rank waits 30 and works 240; with m = 1 and W = 0 the one
    /// microbatch goes through 4 x 20.
    #[test]
    fn the_uniform_bound_is_the_way_in_and_the_work_or_one_microbatch() {
        assert_eq!(lower_bound(&PipelineCosts::uniform(4, 1, 8, times(10, 10, 10, 0))), Nanos::new(30 + 240));
        assert_eq!(lower_bound(&PipelineCosts::uniform(4, 1, 1, times(10, 10, 0, 0))), Nanos::new(80));
    }

    proptest! {
        #[test]
        fn no_schedule_beats_the_bound(
            ranks in 1_usize..6, chunks in 1_usize..4, microbatches in 1_usize..12, seed in any::<u32>(),
            communication in 0_u64..20, sync in 0_u64..60,
        ) {
            let mut costs = PipelineCosts::uniform(ranks, chunks, microbatches, times(1, 1, 1, communication));
            let mut random = crate::random::Random::new(seed, 0);
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
            let end = StepEnd::of(ranks, std::iter::once(&execution)).iteration_end(&costs);
            prop_assert!(lower_bound(&costs) <= end, "{:?} > {:?}", lower_bound(&costs), end);
        }
    }
}
