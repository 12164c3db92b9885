//! Hit testing: finds the span under the pointer.

use std::ops::Range;

use api::planner::timeline::Timeline;

use super::TimeWindow;
use super::lod::{self, bisect};
use super::rows::Lane;

/// Maximum distance between pointer and span, in px.
pub(crate) const REACH: f64 = 3.0;

/// Returns the span at a point of the plot, in a lane of a rank.
///
/// If no send is near a point in the communication strip, returns the span in the compute lane
/// above it.
pub(crate) fn span_at(
    timeline: &Timeline,
    window: TimeWindow,
    width_px: f64,
    x: f64,
    (rank, lane): (usize, Lane),
) -> Option<usize> {
    let ns = window.ns_at(x, width_px);
    let reach_ns = REACH * window.width_ns() / width_px.max(1.0);
    let compute = || nearest(timeline, timeline.compute_lane(rank), ns, reach_ns);
    match lane {
        Lane::Compute | Lane::Exposed => compute(),
        Lane::Communication => nearest(timeline, timeline.communication_lane(rank), ns, reach_ns).or_else(compute),
    }
}

/// Span of a lane that contains the time, or else the nearest span within `reach_ns`. On ties
/// returns the longer span.
pub(crate) fn nearest(timeline: &Timeline, lane: Range<usize>, ns: f64, reach_ns: f64) -> Option<usize> {
    nearest_span(lane, ns, reach_ns, |span| (timeline.start_ns[span] as f64, timeline.end_ns(span) as f64))
}

/// Same as [`nearest`] for any spans that are sorted by time. `ends` returns start and end of a
/// span in ns.
pub(crate) fn nearest_span(
    lane: Range<usize>,
    ns: f64,
    reach_ns: f64,
    ends: impl Fn(usize) -> (f64, f64),
) -> Option<usize> {
    let after = bisect(lane.clone(), |span| ends(span).0 <= ns);
    let before = after.checked_sub(1).filter(|span| lane.contains(span));
    let after = Some(after).filter(|span| lane.contains(span));
    let distance = |span: usize| {
        let (start, end) = ends(span);
        (start - ns).max(ns - end).max(0.0)
    };
    let length = |span: usize| ends(span).1 - ends(span).0;
    let nearest = match (before, after) {
        (Some(left), Some(right)) => {
            let closer = distance(right).total_cmp(&distance(left));
            if closer.then(length(left).total_cmp(&length(right))).is_lt() { right } else { left }
        }
        (first, other) => first.or(other)?,
    };
    (distance(nearest) <= reach_ns).then_some(nearest)
}

/// Number of spans in the pixel of a sub-pixel span; 1 for wider spans.
pub(crate) fn together(timeline: &Timeline, window: TimeWindow, width_px: f64, x: f64, span: usize) -> usize {
    let ns_per_px = window.width_ns() / width_px.max(1.0);
    if timeline.duration_ns[span] as f64 >= ns_per_px {
        return 1;
    }
    let rank = timeline.span_rank(span);
    let compute = timeline.compute_lane(rank);
    let lane = if compute.contains(&span) { compute } else { timeline.communication_lane(rank) };
    let start_ns = window.ns_at(x.floor(), width_px);
    lod::visible(timeline, lane, TimeWindow { start_ns, end_ns: start_ns + ns_per_px }).len().max(1)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn inside_a_span_is_that_span() {
        let lane = sample::lane(&[(0, 0, 100), (1, 100, 300), (0, 400, 500)]);
        for (ns, expected) in [(0.0, 0), (99.0, 0), (100.0, 1), (299.0, 1), (450.0, 2)] {
            assert_eq!(nearest(&lane, 0..3, ns, 0.0), Some(expected), "{ns} ns");
        }
    }

    #[test]
    fn nearest_span_within_reach_is_hit_and_ties_prefer_longer() {
        let lane = sample::lane(&[(0, 0, 100), (1, 200, 400)]);
        assert_eq!(nearest(&lane, 0..2, 120.0, 30.0), Some(0));
        assert_eq!(nearest(&lane, 0..2, 180.0, 30.0), Some(1));
        assert_eq!(nearest(&lane, 0..2, 150.0, 60.0), Some(1));
        assert_eq!(nearest(&lane, 0..2, 150.0, 30.0), None);
        assert_eq!(nearest(&lane, 0..0, 150.0, 1e9), None);
        assert_eq!(nearest(&lane, 0..2, 10_000.0, 1e9), Some(1));
    }

    #[test]
    fn a_point_names_lane_and_span() {
        let timeline = sample::one_f_one_b(2, 3);
        let window = TimeWindow::fit(timeline.makespan_ns);
        for span in 0..timeline.len() {
            let rank = timeline.span_rank(span);
            let lane = if timeline.compute_lane(rank).contains(&span) { Lane::Compute } else { Lane::Communication };
            let middle = timeline.start_ns[span] as f64 + timeline.duration_ns[span] as f64 / 2.0;
            let x = window.x_at(middle, 2_000.0);
            assert_eq!(span_at(&timeline, window, 2_000.0, x, (rank, lane)), Some(span));
        }
    }

    #[test]
    fn an_empty_strip_means_the_bar_above() {
        let lane = sample::lane(&[(0, 0, 1_000)]);
        let window = TimeWindow::fit(1_000);
        assert_eq!(span_at(&lane, window, 100.0, 50.0, (0, Lane::Communication)), Some(0));
    }

    #[test]
    fn spans_in_same_pixel_are_counted() {
        // 10 px over 1000 ns, with three spans in pixel 2.
        let lane = sample::lane(&[(0, 200, 210), (1, 220, 260), (0, 270, 290), (2, 540, 900)]);
        let window = TimeWindow { start_ns: 0.0, end_ns: 1_000.0 };
        assert_eq!(together(&lane, window, 10.0, 2.4, 1), 3);
        assert_eq!(together(&lane, window, 10.0, 7.0, 3), 1);
    }
}
