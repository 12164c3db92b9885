//! Lower bounds on the iteration time of a layout.

use planscope_core::units::{Nanos, Seconds};
use planscope_cost::cost::partition::LayerRange;
use planscope_cost::cost::{LayerTable, Partition, ReplicaLayout};
use planscope_plan::outcome::Layout;

/// Time in which a rank waits for other ranks, in every schedule of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ramp {
    /// Unknown.
    None,
    /// The first forward waits for the previous stages of its microbatch.
    Forward,
    /// Moreover, the last action of a rank is a backward, which the backwards of the previous stages follow.
    ForwardAndBackward,
}

/// Lower bound on the iteration time: work of the busiest rank if the replicas split it equally, and the time in
/// which the rank waits for the previous stages.
pub(super) fn work_bound(
    table: &LayerTable<'_>,
    partition: &Partition,
    position: ReplicaLayout,
    ramp: Ramp,
    stage_work: impl Fn(&[LayerRange]) -> f64,
) -> Nanos {
    let (sync, optimizer) = table.step_end(partition, position, None);
    let ranks = position.pipeline as usize;
    let ramps = if ramp == Ramp::None { vec![(0.0, 0.0); ranks] } else { table.min_ramps(&partition.stages[..ranks]) };
    let to_nanos = |seconds: f64| Seconds::from_secs(seconds).to_nanos();
    (0..ranks)
        .map(|rank| {
            let stages: Vec<_> = partition.stages_on(rank, ranks).collect();
            let cells = (stages.len() * table.microbatches()) as f64;
            let work: f64 = stages.into_iter().map(|ranges| stage_work(ranges)).sum();
            // The simulation rounds forward, input gradient and weight gradient per cell to
            // nanoseconds. The error is up to 0.5 ns per value.
            let floor = ((work - cells * 1.5e-9) / f64::from(position.data) * (1.0 - 1e-12)).max(0.0);
            let (forward, backward) = ramps[rank];
            let to_last = to_nanos(floor + (forward - rank as f64 * 1.5e-9).max(0.0));
            let end = to_last + sync[rank] + optimizer[rank];
            if ramp == Ramp::ForwardAndBackward {
                // Stage 0 runs the last backward.
                end.max(to_last + to_nanos((backward - rank as f64 * 1.5e-9).max(0.0)) + sync[0] + optimizer[0])
            } else {
                end
            }
        })
        .max()
        .unwrap_or(Nanos::ZERO)
}

/// Lower bound on [`work_bound`] for any assignment of layers to stages: the mean work of the ranks. `whole` is the work
/// of all layers in seconds.
pub(super) fn mean_bound(whole: f64, microbatches: usize, layout: Layout) -> Nanos {
    let cells = f64::from(layout.pipeline * layout.chunks) * microbatches as f64;
    let mean = (whole - cells * 1.5e-9) / f64::from(layout.pipeline) / f64::from(layout.data);
    Seconds::from_secs((mean * (1.0 - 1e-9)).max(0.0)).to_nanos()
}
