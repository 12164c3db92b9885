//! Converts observed actions to timeline columns.

use super::MeasuredAction;
use planscope_core::timeline::{MemoryCurve, MicrobatchShape, NO_SPAN, SpanKind, Timeline};

/// Above this rank number, empty rows are removed. For example, a trace that contains only rank
/// 4,000 does not need 4,000 empty rows.
const MAX_EMPTY_ROWS: u32 = 1024;

/// An observed iteration as a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Timeline columns; the first start is 0.
    pub timeline: Timeline,
    /// Rank per row.
    pub ranks: Vec<u32>,
    /// Number of actions shortened because they overlap the previous action on the lane.
    pub clipped: u32,
}

/// Creates a timeline from observed actions. If no rank exceeds a limit, row r is rank r; otherwise
/// row r is the r-th rank with actions.
///
/// A lane contains no concurrent actions. Actions with the same start and end are overlapped
/// actions in the trace format: they share the time equally and get the overlapped mark. Any other
/// action that starts before the previous end is clipped to that end and counted in `clipped`.
pub fn timeline(actions: &[MeasuredAction]) -> Rows {
    let mut ranks: Vec<u32> = actions.iter().map(|action| action.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if let Some(&last) = ranks.last()
        && last < MAX_EMPTY_ROWS
    {
        ranks = (0..=last).collect();
    }
    let first = actions.iter().map(|action| action.start_ns).min().unwrap_or_default();
    let microbatches = actions.iter().map(|action| action.microbatch + 1).max().unwrap_or_default();
    let mut lanes: Vec<Vec<MeasuredAction>> = vec![Vec::new(); ranks.len() * 2];
    for action in actions {
        if let Ok(row) = ranks.binary_search(&action.rank) {
            lanes[2 * row + usize::from(!action.kind.is_compute_lane())].push(*action);
        }
    }
    let mut timeline = Timeline {
        ranks: ranks.len() as u32,
        lane_offsets: vec![0],
        memory: vec![MemoryCurve::default(); ranks.len()],
        microbatches: vec![MicrobatchShape::default(); microbatches as usize],
        ..Timeline::default()
    };
    let mut clipped = 0;
    for mut lane in lanes {
        lane.sort_by_key(|action| (action.start_ns, action.end_ns(), action.kind, action.stage, action.microbatch));
        let mut end = 0;
        for together in
            lane.chunk_by(|left, other| (left.start_ns, left.duration_ns) == (other.start_ns, other.duration_ns))
        {
            let share = together[0].duration_ns / together.len() as u64;
            for (index, action) in together.iter().enumerate() {
                let last = index + 1 == together.len();
                let action_start = action.start_ns - first + share * index as u64;
                let action_end = if last { action.end_ns() - first } else { action_start + share };
                let start = action_start.max(end);
                clipped += u32::from(start > action_start);
                end = action_end.max(start);
                if !last {
                    timeline.overlapped.push(timeline.kind.len() as u32);
                }
                push(&mut timeline, action, start, end - start);
            }
        }
        timeline.lane_offsets.push(timeline.kind.len() as u32);
    }
    timeline.makespan_ns = (0..timeline.len()).map(|span| timeline.end_ns(span)).max().unwrap_or_default();
    Rows { timeline, ranks, clipped }
}

fn push(timeline: &mut Timeline, action: &MeasuredAction, start_ns: u64, duration_ns: u64) {
    let with_microbatch = !matches!(action.kind, SpanKind::GradientSync | SpanKind::Optimizer);
    timeline.kind.push(action.kind as u8);
    timeline.stage.push(if with_microbatch { action.stage } else { 0 });
    timeline.microbatch.push(if with_microbatch { action.microbatch } else { 0 });
    timeline.start_ns.push(start_ns);
    timeline.duration_ns.push(duration_ns);
    // A trace does not contain start time causes.
    timeline.bound_by.push(NO_SPAN);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn action(rank: u32, kind: SpanKind, microbatch: u32, start_ns: u64, duration_ns: u64) -> MeasuredAction {
        MeasuredAction { rank, kind, stage: rank, microbatch, start_ns, duration_ns, step: None }
    }

    #[test]
    fn actions_stand_on_their_lanes() {
        use SpanKind::{Backward as B, Forward as F, SendForward as S};
        // F and B at 110-130 are overlapped, 10 ns each. The F at 128 starts 2 ns before the
        // previous end.
        let rows = timeline(&[
            action(2, F, 0, 100, 10),
            action(2, F, 1, 110, 20),
            action(2, B, 0, 110, 20),
            action(2, F, 2, 128, 10),
            action(2, S, 0, 105, 7),
        ]);
        let Timeline { ranks, makespan_ns, lane_offsets, kind, start_ns, duration_ns, overlapped, .. } = rows.timeline;
        assert_eq!((ranks, makespan_ns, rows.ranks, rows.clipped), (3, 38, vec![0, 1, 2], 1));
        assert_eq!(lane_offsets, [0, 0, 0, 0, 0, 4, 5]);
        assert_eq!(kind, [F as u8, F as u8, B as u8, F as u8, S as u8]);
        assert_eq!((start_ns, duration_ns), (vec![0, 10, 20, 30, 5], vec![10, 10, 10, 8, 7]));
        assert_eq!(overlapped, [1]);
    }

    #[test]
    fn far_ranks_close_up() {
        let rows = timeline(&[action(60_000, SpanKind::Forward, 0, 5, 1)]);
        assert_eq!((rows.timeline.ranks, rows.ranks), (1, vec![60_000]));
        assert_eq!(timeline(&[]).timeline.lane_offsets, [0]);
    }

    proptest! {
        /// For any input, lanes contain all actions, sorted and disjoint.
        #[test]
        fn lanes_never_overlap(measured in prop::collection::vec((0_u32..3, 0_u8..8, 0_u32..4, 0_u64..60, 0_u64..30), 1..60)) {
            let actions: Vec<MeasuredAction> = measured.iter().map(|&(rank, kind, microbatch, start, duration)| {
                action(rank, SpanKind::from_index(kind).expect("below eight"), microbatch, start, duration)
            }).collect();
            let Rows { timeline, .. } = timeline(&actions);
            prop_assert_eq!(timeline.len(), actions.len());
            for lane in timeline.lane_offsets.windows(2) {
                for span in lane[0] as usize + 1..lane[1] as usize {
                    prop_assert!(timeline.end_ns(span - 1) <= timeline.start_ns[span]);
                }
            }
        }
    }
}
