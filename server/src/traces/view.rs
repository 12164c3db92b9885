//! Assembly of stored chunks into a view.

use std::collections::BTreeMap;

use api::trace::TraceView;
use ingest::trace::levels::{Span, merge};

/// Maximum number of spans in a view. Beyond this limit, pixels are merged.
const MAX_SPANS: usize = 200_000;

/// Visible window of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Start of the window in ns.
    pub(crate) from_ns: u64,
    /// Right edge, after the left edge.
    pub(crate) to_ns: u64,
    /// Number of pixels between the edges.
    pub(crate) pixels: u32,
    /// Lanes in ascending order.
    pub(crate) lanes: Vec<u32>,
}

impl Window {
    /// Returns the width of a pixel, rounded down. Slices that fill a pixel are therefore never
    /// merged.
    pub(crate) fn pixel_ns(&self) -> u64 {
        (self.to_ns - self.from_ns) / u64::from(self.pixels.max(1))
    }
}

/// Converts stored spans to a view. Returns the view and the name indices.
///
/// A slice is visible if it ends after the left edge and starts before the right edge. A slice of
/// zero duration at the left edge is also visible.
pub(crate) fn assemble(mut spans: Vec<Span>, window: &Window, level: u32, chunks: u32) -> (TraceView, Vec<u32>) {
    let reaches = |span: &Span| {
        span.start_ns < window.to_ns
            && (span.end_ns() > window.from_ns || (span.extent_ns == 0 && span.start_ns == window.from_ns))
    };
    spans.retain(|span| reaches(span) && window.lanes.binary_search(&span.lane).is_ok());
    spans.sort_by_key(Span::sort_key);
    let mut width = window.pixel_ns();
    let mut merged = merge(&spans, width);
    while merged.len() > MAX_SPANS && width < window.to_ns - window.from_ns {
        width = width.saturating_mul(2).max(2);
        merged = merge(&merged, width);
    }
    let mut view = TraceView {
        from_ns: window.from_ns,
        to_ns: window.to_ns,
        merged_ns: if merged.iter().any(|span| span.count > 1) { width } else { 0 },
        level,
        chunks,
        lanes: window.lanes.clone(),
        lane_offsets: vec![0],
        ..TraceView::default()
    };
    let mut names: BTreeMap<u32, u32> = merged.iter().map(|span| (span.name, 0)).collect();
    for (index, (_, name_index)) in names.iter_mut().enumerate() {
        *name_index = index as u32;
    }
    let mut rest = &merged[..];
    for lane in &window.lanes {
        let lane_end = rest.partition_point(|span| span.lane <= *lane);
        for span in &rest[..lane_end] {
            view.row.push(span.depth);
            view.start_ns.push(span.start_ns);
            view.extent_ns.push(span.extent_ns);
            view.busy_ns.push(span.active_ns);
            view.kind.push(span.kind.index() as u8);
            view.count.push(span.count);
            view.name.push(names.get(&span.name).copied().unwrap_or_default());
        }
        rest = &rest[lane_end..];
        view.lane_offsets.push(view.count.len() as u32);
    }
    (view, names.into_keys().collect())
}

#[cfg(test)]
mod tests {
    use ingest::trace::Kind;

    use super::*;

    fn span(lane: u32, start_ns: u64, extent_ns: u64) -> Span {
        Span {
            lane,
            depth: 0,
            start_ns,
            extent_ns,
            active_ns: extent_ns,
            count: 1,
            name: 40 + lane,
            max_duration_ns: extent_ns,
            kind: Kind::Cpu,
        }
    }

    #[test]
    fn view_contains_overlapping_spans() {
        let window = Window { from_ns: 100, to_ns: 200, pixels: 10, lanes: vec![1, 2, 5] };
        let spans = vec![
            span(5, 0, 1000),
            span(1, 90, 10),
            span(1, 100, 0),
            span(1, 105, 3),
            span(1, 150, 20),
            span(2, 200, 5),
            span(3, 120, 50),
        ];
        let (view, names) = assemble(spans, &window, 0, 1);
        assert_eq!(view.lane_offsets, [0, 2, 2, 3]);
        // 100-100 and 105-108 share a pixel of 10 ns.
        assert_eq!((view.start_ns, view.count, view.extent_ns), (vec![100, 150, 0], vec![2, 1, 1], vec![8, 20, 1000]));
        assert_eq!((names, view.name, view.merged_ns), (vec![41, 45], vec![0, 0, 1], 10));
    }

    #[test]
    fn a_view_has_a_bounded_size() {
        let spans: Vec<Span> = (0..300_000).map(|at| span(0, at * 10, 5)).collect();
        let window = Window { from_ns: 0, to_ns: 3_000_000, pixels: 1_000_000, lanes: vec![0] };
        let (view, _) = assemble(spans, &window, 0, 1);
        assert!(view.len() <= MAX_SPANS);
        assert_eq!(view.count.iter().sum::<u32>(), 300_000);
    }
}
