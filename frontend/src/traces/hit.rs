//! Hit test for spans, and navigation between spans in a row.

use api::trace::TraceView;

use crate::gantt::hit::nearest_span;

/// Returns the span index range of a row, sorted by time.
pub(super) fn row(view: &TraceView, lane: u32, row: u16) -> std::ops::Range<usize> {
    let Ok(position) = view.lanes.binary_search(&lane) else { return 0..0 };
    let spans = view.lane(position);
    let rows = &view.row[spans.clone()];
    let first = spans.start + rows.partition_point(|&other| other < row);
    let last = spans.start + rows.partition_point(|&other| other <= row);
    first..last
}

/// Returns the span that contains a time, or the nearest span within `reach_ns`.
pub(super) fn nearest(view: &TraceView, lane: u32, at_row: u16, ns: f64, reach_ns: f64) -> Option<usize> {
    let ends = |span: usize| {
        let start = view.start_ns[span] as f64;
        (start, start + view.extent_ns[span] as f64)
    };
    nearest_span(row(view, lane, at_row), ns, reach_ns, ends)
}

#[cfg(test)]
pub(super) fn sample() -> TraceView {
    TraceView {
        from_ns: 0,
        to_ns: 1000,
        lanes: vec![2, 5],
        lane_offsets: vec![0, 3, 4],
        row: vec![0, 0, 1, 0],
        start_ns: vec![0, 200, 210, 500],
        extent_ns: vec![100, 300, 10, 0],
        busy_ns: vec![100, 300, 10, 0],
        kind: vec![0, 1, 4, 8],
        count: vec![1, 1, 1, 1],
        name: vec![0, 0, 0, 0],
        names: vec!["x".to_owned()],
        ..TraceView::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_names_lane_row_and_time() {
        let view = sample();
        assert_eq!((row(&view, 2, 0), row(&view, 2, 1), row(&view, 2, 9), row(&view, 3, 0)), (0..2, 2..3, 3..3, 0..0));
        assert_eq!(nearest(&view, 2, 0, 50.0, 0.0), Some(0));
        assert_eq!(nearest(&view, 2, 0, 120.0, 30.0), Some(0));
        assert_eq!(nearest(&view, 2, 0, 150.0, 10.0), None);
        assert_eq!(nearest(&view, 2, 0, 499.0, 0.0), Some(1));
        assert_eq!(nearest(&view, 2, 1, 215.0, 0.0), Some(2));
        // A zero-length span is hit by a nearby pointer.
        assert_eq!(nearest(&view, 5, 0, 503.0, 5.0), Some(3));
        assert_eq!(nearest(&view, 7, 0, 503.0, 5.0), None);
    }
}
