//! Level of detail: spans of a lane become draw cells, none of them narrower than a pixel.
//!
//! A span at least one pixel wide is a cell of its own. Narrower ones that start in the same pixel share a cell,
//! which knows how many they are, which kind has most time and how much of the pixel is busy. Nothing is dropped:
//! the counts of a lane's cells add up to the spans that reach into the window.

use std::ops::Range;

use api::planner::timeline::{SpanKind, Timeline};

use super::TimeWindow;

/// A rectangle to draw: one span, or several in one pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// Left edge, in px of the plot.
    pub(crate) x0: f64,
    /// Right edge, in px of the plot.
    pub(crate) x1: f64,
    /// The first span in it.
    pub(crate) first: usize,
    /// How many spans it stands for.
    pub(crate) spans: u32,
    /// Kind with most time in it.
    pub(crate) kind: u8,
    /// Busy share of its width.
    pub(crate) busy: f64,
}

/// Spans of a lane that reach into the window.
pub(crate) fn visible(timeline: &Timeline, lane: Range<usize>, window: TimeWindow) -> Range<usize> {
    let first = bisect(lane.clone(), |span| (timeline.end_ns(span) as f64) <= window.start_ns);
    let last = bisect(first..lane.end, |span| (timeline.start_ns[span] as f64) < window.end_ns);
    first..last
}

/// The first index of the range for which the predicate fails; it holds for all before it.
pub(crate) fn bisect(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// A pixel that collects spans narrower than itself.
struct Pixel {
    x: f64,
    first: usize,
    spans: u32,
    time: [f64; SpanKind::ALL.len()],
}

impl Pixel {
    fn into_cell(self, ns_per_px: f64) -> Cell {
        let (mut kind, mut most, mut busy) = (0, -1.0, 0.0);
        for (number, &time) in self.time.iter().enumerate() {
            busy += time;
            if time > most {
                (kind, most) = (number as u8, time);
            }
        }
        let busy = (busy / ns_per_px).min(1.0);
        Cell { x0: self.x, x1: self.x + 1.0, first: self.first, spans: self.spans, kind, busy }
    }
}

/// Appends the cells of a lane to `cells`, a buffer that its owner keeps between paints.
pub(crate) fn cells(timeline: &Timeline, lane: Range<usize>, window: TimeWindow, width_px: f64, cells: &mut Vec<Cell>) {
    let px_per_ns = width_px / window.width_ns();
    let mut open: Option<Pixel> = None;
    for span in visible(timeline, lane, window) {
        let duration = timeline.duration_ns[span] as f64;
        let left = (timeline.start_ns[span] as f64 - window.start_ns) * px_per_ns;
        let right = left + duration * px_per_ns;
        // An unknown kind is drawn as the last one rather than not at all.
        let kind = timeline.kind[span].min(SpanKind::ALL.len() as u8 - 1);
        if right - left >= 1.0 {
            cells.extend(open.take().map(|pixel| pixel.into_cell(1.0 / px_per_ns)));
            let (x0, x1) = (left.max(0.0), right.min(width_px));
            cells.push(Cell { x0, x1, first: span, spans: 1, kind, busy: 1.0 });
            continue;
        }
        let x = left.floor().max(0.0);
        if open.as_ref().is_none_or(|pixel| pixel.x < x) {
            cells.extend(open.take().map(|pixel| pixel.into_cell(1.0 / px_per_ns)));
        }
        let pixel = open.get_or_insert(Pixel { x, first: span, spans: 0, time: [0.0; SpanKind::ALL.len()] });
        pixel.spans += 1;
        pixel.time[usize::from(kind)] += duration;
    }
    cells.extend(open.map(|pixel| pixel.into_cell(1.0 / px_per_ns)));
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn of(timeline: &Timeline, start_ns: f64, end_ns: f64, width_px: f64) -> Vec<Cell> {
        let mut found = Vec::new();
        cells(timeline, 0..timeline.len(), TimeWindow { start_ns, end_ns }, width_px, &mut found);
        found
    }

    #[test]
    fn wide_spans_are_cells_of_their_own_and_cut_at_the_window() {
        let lane = sample::lane(&[(0, 0, 100), (1, 100, 300)]);
        let found = of(&lane, 50.0, 250.0, 200.0);
        assert_eq!(
            found,
            [
                Cell { x0: 0.0, x1: 50.0, first: 0, spans: 1, kind: 0, busy: 1.0 },
                Cell { x0: 50.0, x1: 200.0, first: 1, spans: 1, kind: 1, busy: 1.0 },
            ]
        );
    }

    #[test]
    fn narrow_spans_share_a_pixel_and_the_longest_kind_colours_it() {
        // 10 px over 1000 ns: a pixel is 100 ns. Three spans in pixel 2, one in pixel 5.
        let lane = sample::lane(&[(0, 200, 210), (1, 220, 260), (0, 270, 290), (2, 540, 560)]);
        let found = of(&lane, 0.0, 1_000.0, 10.0);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].x0, found[0].x1, found[0].first, found[0].spans, found[0].kind), (2.0, 3.0, 0, 3, 1));
        // 10 + 40 + 20 of 100 ns.
        assert!((found[0].busy - 0.7).abs() < 1e-9);
        assert_eq!((found[1].x0, found[1].first, found[1].spans, found[1].kind), (5.0, 3, 1, 2));
    }

    #[test]
    fn a_zero_length_span_is_still_seen() {
        let lane = sample::lane(&[(0, 500, 500)]);
        let found = of(&lane, 0.0, 1_000.0, 10.0);
        assert_eq!((found.len(), found[0].spans, found[0].x0), (1, 1, 5.0));
    }

    #[test]
    fn nothing_is_dropped_at_any_zoom() {
        let timeline = sample::one_f_one_b(4, 64);
        for width in [3.0, 50.0, 777.0, 4_000.0] {
            for (from, to) in [(0.0, 1.0), (0.1, 0.3), (0.5, 0.501), (0.99, 1.0)] {
                let end = timeline.makespan_ns as f64;
                let window = TimeWindow { start_ns: from * end, end_ns: to * end };
                for lane in 0..8 {
                    let range = timeline.lane_offsets[lane] as usize..timeline.lane_offsets[lane + 1] as usize;
                    let expected = range
                        .clone()
                        .filter(|&span| {
                            timeline.end_ns(span) as f64 > window.start_ns
                                && (timeline.start_ns[span] as f64) < window.end_ns
                        })
                        .count();
                    let mut found = Vec::new();
                    cells(&timeline, range, window, width, &mut found);
                    let drawn: u32 = found.iter().map(|cell| cell.spans).sum();
                    assert_eq!(drawn as usize, expected);
                    assert!(found.iter().all(|cell| cell.x1 > cell.x0 && cell.x0 <= width));
                }
            }
        }
    }

    #[test]
    fn cells_are_at_most_two_per_pixel() {
        let spans: Vec<_> = (0..100_000_u64).map(|span| ((span % 2) as u8, span * 10, span * 10 + 9)).collect();
        let found = of(&sample::lane(&spans), 0.0, 1_000_000.0, 1_000.0);
        assert!(found.len() <= 2_000);
        assert_eq!(found.iter().map(|cell| cell.spans).sum::<u32>(), 100_000);
    }
}
