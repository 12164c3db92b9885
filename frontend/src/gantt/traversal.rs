//! Keyboard navigation between spans.

use api::planner::timeline::Timeline;

use super::TimeWindow;
use super::hit::nearest;
use super::lod;

/// Navigation step from the selected span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    Previous,
    /// The span nearest in time on the rank above.
    Up,
    /// The span nearest in time on the rank below.
    Down,
    NextCritical,
    PreviousCritical,
}

/// Returns the span after one step, or `None` at the end.
pub(crate) fn step(timeline: &Timeline, from: usize, step: Step) -> Option<usize> {
    match step {
        Step::Next => lane_range(timeline, from).filter(|lane| from + 1 < lane.end).map(|_| from + 1),
        Step::Previous => lane_range(timeline, from).filter(|lane| from > lane.start).map(|_| from - 1),
        Step::Up => other_rank(timeline, from, |rank| rank.checked_sub(1)),
        Step::Down => other_rank(timeline, from, |rank| Some(rank + 1)),
        Step::NextCritical => {
            let start = timeline.start_ns[from];
            let path = &timeline.critical_path;
            match position(timeline, from) {
                Some(at) => path.get(at + 1),
                None => path.iter().find(|&&span| timeline.start_ns[span as usize] >= start),
            }
            .map(|&span| span as usize)
        }
        Step::PreviousCritical => {
            let start = timeline.start_ns[from];
            let path = &timeline.critical_path;
            match position(timeline, from) {
                Some(at) => at.checked_sub(1).and_then(|before| path.get(before)),
                None => path.iter().rev().find(|&&span| timeline.start_ns[span as usize] <= start),
            }
            .map(|&span| span as usize)
        }
    }
}

/// Start of the navigation without a selection: the first compute span in the window.
pub(crate) fn first_in(timeline: &Timeline, window: TimeWindow) -> Option<usize> {
    (0..timeline.ranks as usize)
        .filter_map(|rank| {
            let range = lod::visible(timeline, timeline.compute_lane(rank), window);
            (!range.is_empty()).then_some(range.start)
        })
        .min_by_key(|&span| timeline.start_ns[span])
}

/// Returns true if a span is on the critical path.
pub(crate) fn is_critical(timeline: &Timeline, span: usize) -> bool {
    position(timeline, span).is_some()
}

fn position(timeline: &Timeline, span: usize) -> Option<usize> {
    // The path is sorted by time, so only spans with the same start need a comparison.
    let start = timeline.start_ns[span];
    let path = &timeline.critical_path;
    let first = path.partition_point(|&other| timeline.start_ns[other as usize] < start);
    path[first..]
        .iter()
        .take_while(|&&other| timeline.start_ns[other as usize] == start)
        .position(|&other| other as usize == span)
        .map(|offset| first + offset)
}

fn lane_range(timeline: &Timeline, span: usize) -> Option<std::ops::Range<usize>> {
    let lane = timeline.lane_offsets.partition_point(|&offset| offset as usize <= span).checked_sub(1)?;
    Some(timeline.lane_offsets[lane] as usize..*timeline.lane_offsets.get(lane + 1)? as usize)
}

fn other_rank(timeline: &Timeline, from: usize, next: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    let middle = timeline.start_ns[from] as f64 + timeline.duration_ns[from] as f64 / 2.0;
    let rank = timeline.span_rank(from);
    let is_compute = timeline.compute_lane(rank).contains(&from);
    let mut rank = next(rank)?;
    // Skips ranks without spans in this lane, for example the last rank, which sends no
    // activations.
    while rank < timeline.ranks as usize {
        let lane = if is_compute { timeline.compute_lane(rank) } else { timeline.communication_lane(rank) };
        if let Some(span) = nearest(timeline, lane, middle, f64::INFINITY) {
            return Some(span);
        }
        rank = next(rank)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_lane_is_walked_to_its_ends() {
        let timeline = sample::one_f_one_b(2, 3);
        let lane = timeline.compute_lane(1);
        let mut at = lane.start;
        let mut seen = 1;
        while let Some(next) = step(&timeline, at, Step::Next) {
            assert_eq!(step(&timeline, next, Step::Previous), Some(at));
            at = next;
            seen += 1;
        }
        assert_eq!((at, seen), (lane.end - 1, 6));
        assert_eq!(step(&timeline, lane.start, Step::Previous), None);
    }

    #[test]
    fn up_and_down_go_to_the_nearest_in_time() {
        let timeline = sample::one_f_one_b(2, 3);
        // F1 of rank 0 (1000-2000) is above F0 of rank 1 (1100-2100).
        let below = step(&timeline, 1, Step::Down).expect("there is a rank below");
        assert_eq!((timeline.span_rank(below), timeline.kind[below], timeline.microbatch[below]), (1, 0, 0));
        let above = step(&timeline, below, Step::Up).expect("there is a rank above");
        assert_eq!(above, 1);
        assert_eq!(step(&timeline, 0, Step::Up), None);
        assert_eq!(step(&timeline, below, Step::Down), None);
    }

    #[test]
    fn the_critical_path_is_walked_in_order() {
        let timeline = sample::one_f_one_b(4, 6);
        let path: Vec<usize> = timeline.critical_path.iter().map(|&span| span as usize).collect();
        assert!(path.len() > 8);
        for pair in path.windows(2) {
            assert_eq!(step(&timeline, pair[0], Step::NextCritical), Some(pair[1]));
            assert_eq!(step(&timeline, pair[1], Step::PreviousCritical), Some(pair[0]));
        }
        assert_eq!(step(&timeline, path[path.len() - 1], Step::NextCritical), None);
        let off_path = (0..timeline.len()).find(|&span| !is_critical(&timeline, span)).expect("some span has slack");
        let next = step(&timeline, off_path, Step::NextCritical).expect("the path goes on");
        assert!(timeline.start_ns[next] >= timeline.start_ns[off_path] && is_critical(&timeline, next));
    }

    #[test]
    fn a_walk_begins_with_the_first_span_in_view() {
        let timeline = sample::one_f_one_b(2, 3);
        assert_eq!(first_in(&timeline, TimeWindow { start_ns: 0.0, end_ns: 500.0 }), Some(0));
        assert_eq!(first_in(&timeline, TimeWindow { start_ns: 1e9, end_ns: 2e9 }), None);
    }
}
