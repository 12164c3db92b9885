//! What the critical path consists of.

use crate::outcome::CriticalPathShares;
use crate::timeline::{SpanKind, Timeline};

/// Shares of the critical path by what happens on it. Waiting for another replica, which has no span here, counts
/// as communication.
pub fn shares(timeline: &Timeline) -> CriticalPathShares {
    let mut shares = CriticalPathShares::default();
    if timeline.makespan_ns == 0 {
        return shares;
    }
    let mut covered = 0;
    for &span in &timeline.critical_path {
        let duration = timeline.duration_ns[span as usize];
        covered += duration;
        match SpanKind::from_index(timeline.kind[span as usize]) {
            Some(SpanKind::SendForward | SpanKind::SendBackward | SpanKind::GradientSync) => {
                shares.communication += duration as f64;
            }
            Some(SpanKind::Optimizer) => shares.optimizer += duration as f64,
            _ => shares.compute += duration as f64,
        }
    }
    shares.communication += timeline.makespan_ns.saturating_sub(covered) as f64;
    let whole = timeline.makespan_ns as f64;
    shares.compute /= whole;
    shares.communication /= whole;
    shares.optimizer /= whole;
    shares
}
