//! What the critical path consists of.

use crate::cost::PipelineCosts;
use crate::outcome::CriticalPathShares;
use crate::timeline::{SpanKind, Timeline};

/// Shares of the critical path by what happens on it. Communication inside an action counts as communication, and
/// so does waiting for another replica, which has no span here.
pub fn shares(timeline: &Timeline, costs: &PipelineCosts) -> CriticalPathShares {
    let mut shares = CriticalPathShares::default();
    if timeline.makespan_ns == 0 {
        return shares;
    }
    let mut covered = 0;
    for &span in &timeline.critical_path {
        let span = span as usize;
        let duration = timeline.duration_ns[span];
        covered += duration;
        // Only actions stand at a cell; what follows them names no microbatch.
        let cell = || costs.cell(timeline.stage[span] as usize, timeline.microbatch[span] as usize);
        let inside = match SpanKind::from_index(timeline.kind[span]) {
            Some(SpanKind::SendForward | SpanKind::SendBackward | SpanKind::GradientSync) => duration,
            Some(SpanKind::Optimizer) => {
                shares.optimizer += duration as f64;
                continue;
            }
            Some(SpanKind::Forward) => costs.exposed_forward[cell()].get(),
            Some(SpanKind::Backward | SpanKind::InputGrad) => costs.exposed_backward[cell()].get(),
            Some(SpanKind::WeightGrad) | None => 0,
        };
        shares.communication += inside as f64;
        shares.compute += duration.saturating_sub(inside) as f64;
    }
    shares.communication += timeline.makespan_ns.saturating_sub(covered) as f64;
    let whole = timeline.makespan_ns as f64;
    shares.compute /= whole;
    shares.communication /= whole;
    shares.optimizer /= whole;
    shares
}
