//! Time breakdown per rank.

use planscope_core::timeline::covered::Covered;
use planscope_core::timeline::{SpanKind, Timeline};

/// Time breakdown for a rank, in ns. Compute, exposed communication and idle time sum to the span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankBreakdown {
    /// Row in the timeline.
    pub rank: u32,
    /// Time between minimum start and maximum end.
    pub span_ns: u64,
    /// Compute time.
    pub compute_ns: u64,
    /// Communication time: sends, receives, gradient synchronization.
    pub communication_ns: u64,
    /// Communication time that does not overlap with compute.
    pub exposed_ns: u64,
    /// Time without compute and communication.
    pub idle_ns: u64,
}

/// Returns the time breakdown for all ranks with at least one span.
pub fn breakdown(timeline: &Timeline) -> Vec<RankBreakdown> {
    (0..timeline.ranks as usize).filter_map(|rank| rank_breakdown(timeline, rank)).collect()
}

fn rank_breakdown(timeline: &Timeline, rank: usize) -> Option<RankBreakdown> {
    let (mut compute, mut communication) = (Vec::new(), Vec::new());
    for span in timeline.compute_lane(rank).chain(timeline.communication_lane(rank)) {
        let communicates = SpanKind::from_index(timeline.kind[span])
            .is_some_and(|kind| !kind.is_compute_lane() || kind == SpanKind::GradientSync);
        let spans = if communicates { &mut communication } else { &mut compute };
        spans.push((timeline.start_ns[span], timeline.end_ns(span)));
    }
    let (compute, communication) = (Covered::by(compute), Covered::by(communication));
    let either = compute.or(&communication);
    let (first, last) = either.ends()?;
    let (active_ns, compute_ns) = (either.length_ns(), compute.length_ns());
    Some(RankBreakdown {
        rank: rank as u32,
        span_ns: last - first,
        compute_ns,
        communication_ns: communication.length_ns(),
        exposed_ns: active_ns - compute_ns,
        idle_ns: last - first - active_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace_alignment::{MeasuredAction, timeline};

    /// F 0-10, send 5-15, B 20-30, synchronization 30-34. Total 34: compute 20, communication 14
    /// with 9 exposed, idle 5.
    #[test]
    fn time_adds_up() {
        let action = |kind, start_ns, duration_ns| MeasuredAction {
            rank: 1,
            kind,
            stage: 0,
            microbatch: 0,
            start_ns,
            duration_ns,
            step: None,
        };
        let rows = timeline(&[
            action(SpanKind::Forward, 0, 10),
            action(SpanKind::SendForward, 5, 10),
            action(SpanKind::Backward, 20, 10),
            action(SpanKind::GradientSync, 30, 4),
        ]);
        let expected =
            RankBreakdown { rank: 1, span_ns: 34, compute_ns: 20, communication_ns: 14, exposed_ns: 9, idle_ns: 5 };
        assert_eq!(breakdown(&rows.timeline), [expected]);
    }
}
