//! Level of detail: converts spans to draw cells that are at least a pixel wide.
//!
//! A span at least a pixel wide gets a separate cell. Narrower spans with the same start pixel are
//! combined in a cell, which stores the span count, the kind with the highest total time, and the
//! pixel's busy fraction. The sum of a lane's cell counts equals the number of spans that overlap
//! the window.

use std::ops::Range;

use api::planner::timeline::Timeline;
use api::planner::timeline::levels::{INKS, Level};

use super::TimeWindow;

/// Rectangle for a span, or for several spans in a pixel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    /// Left edge in px of the plot.
    pub(crate) x0: f64,
    /// Right edge in px of the plot.
    pub(crate) x1: f64,
    /// Index of the first span.
    pub(crate) first: usize,
    /// Span count.
    pub(crate) spans: u32,
    /// Ink with the highest total time: a kind, or a search or comparison ink.
    pub(crate) ink: u8,
    /// Busy fraction.
    pub(crate) occupancy: f64,
}

/// Spans of a lane that overlap the window.
pub(crate) fn visible(timeline: &Timeline, lane: Range<usize>, window: TimeWindow) -> Range<usize> {
    let first = bisect(lane.clone(), |span| (timeline.end_ns(span) as f64) <= window.start_ns);
    let last = bisect(first..lane.end, |span| (timeline.start_ns[span] as f64) < window.end_ns);
    first..last
}

/// First index for which the predicate is false. The predicate must be true for all earlier
/// indices.
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

/// Accumulator for sub-pixel spans.
struct Pixel {
    x: f64,
    first: usize,
    spans: u32,
    time: [f64; INKS],
}

impl Pixel {
    const fn at(x: f64, first: usize) -> Self {
        Self { x, first, spans: 0, time: [0.0; INKS] }
    }

    fn into_cell(self, ns_per_px: f64) -> Cell {
        let (ink, total_ns) = leading(&self.time);
        let occupancy = (total_ns / ns_per_px).min(1.0);
        Cell { x0: self.x, x1: self.x + 1.0, first: self.first, spans: self.spans, ink, occupancy }
    }
}

/// Ink with the highest time, and the total time.
fn leading(time: &[f64; INKS]) -> (u8, f64) {
    let (mut ink, mut max_time, mut all) = (0, 0.0, 0.0);
    for (number, &time) in time.iter().enumerate() {
        all += time;
        if time > max_time {
            (ink, max_time) = (number as u8, time);
        }
    }
    (ink, all)
}

/// Appends the cells of a lane to `cells`, a buffer that the caller reuses between paints. Span `i`
/// has the ink `inks[i]`.
pub(crate) fn cells(
    timeline: &Timeline,
    inks: &[u8],
    lane: Range<usize>,
    window: TimeWindow,
    width_px: f64,
    cells: &mut Vec<Cell>,
) {
    let px_per_ns = width_px / window.width_ns();
    let mut open: Option<Pixel> = None;
    for span in visible(timeline, lane, window) {
        let duration = timeline.duration_ns[span] as f64;
        let left = (timeline.start_ns[span] as f64 - window.start_ns) * px_per_ns;
        let right = left + duration * px_per_ns;
        let ink = known(inks[span]);
        if right - left >= 1.0 {
            cells.extend(open.take().map(|pixel| pixel.into_cell(1.0 / px_per_ns)));
            let (x0, x1) = (left.max(0.0), right.min(width_px));
            cells.push(Cell { x0, x1, first: span, spans: 1, ink, occupancy: 1.0 });
            continue;
        }
        let x = left.floor().max(0.0);
        if open.as_ref().is_none_or(|pixel| pixel.x < x) {
            cells.extend(open.take().map(|pixel| pixel.into_cell(1.0 / px_per_ns)));
        }
        let pixel = open.get_or_insert(Pixel::at(x, span));
        pixel.spans += 1;
        // Spans with zero duration also need a colour.
        pixel.time[usize::from(ink)] += duration.max(f64::EPSILON);
    }
    cells.extend(open.map(|pixel| pixel.into_cell(1.0 / px_per_ns)));
}

/// Maps unknown inks to the last ink, so that they are still drawn.
fn known(ink: u8) -> u8 {
    ink.min(INKS as u8 - 1)
}

/// Level buckets that overlap the window.
fn stretches(level: &Level, window: TimeWindow) -> Range<usize> {
    let width = level.width_ns as f64;
    let first = (window.start_ns / width).floor().max(0.0) as usize;
    let last = (window.end_ns / width).ceil().max(0.0) as usize;
    first.min(level.stretches as usize)..last.min(level.stretches as usize)
}

/// Appends the cells of a lane from a precomputed level. The level's buckets should not be wider
/// than a pixel.
pub(crate) fn level_cells(level: &Level, lane: usize, window: TimeWindow, width_px: f64, cells: &mut Vec<Cell>) {
    let px_per_ns = width_px / window.width_ns();
    let width = level.width_ns as f64;
    let offset = level.lane(lane).start;
    let mut open: Option<Pixel> = None;
    for stretch in stretches(level, window) {
        let (starts, active_ticks) = (level.starts[offset + stretch], level.busy[offset + stretch]);
        if starts == 0 && active_ticks == 0 {
            continue;
        }
        let x = ((stretch as f64 * width - window.start_ns) * px_per_ns).floor().max(0.0);
        if open.as_ref().is_none_or(|pixel| pixel.x < x) {
            cells.extend(open.take().map(|pixel| wide(pixel, px_per_ns, width)));
        }
        let pixel = open.get_or_insert(Pixel::at(x, 0));
        pixel.spans += starts;
        pixel.time[usize::from(known(level.ink[offset + stretch]))] += f64::from(active_ticks) / 255.0 * width;
    }
    cells.extend(open.map(|pixel| wide(pixel, px_per_ns, width)));
}

/// Cell for the accumulated buckets, at least as wide as a bucket and a pixel.
fn wide(pixel: Pixel, px_per_ns: f64, width_ns: f64) -> Cell {
    let px = (width_ns * px_per_ns).max(1.0);
    let cell = pixel.into_cell(px / px_per_ns);
    Cell { x1: cell.x0 + px.ceil(), ..cell }
}

/// Returns the coarsest level with buckets not wider than a pixel.
pub(crate) fn level_for(levels: &[Level], ns_per_px: f64) -> Option<&Level> {
    levels.iter().rev().find(|level| level.width_ns as f64 <= ns_per_px)
}

/// Several lanes combined: time by pixel and ink.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    time: Vec<[f32; INKS]>,
    starts: Vec<u32>,
    lanes: usize,
}

impl Fold {
    /// Clears the accumulated lanes.
    pub(crate) fn clear(&mut self, width_px: f64) {
        let pixels = width_px.ceil().max(1.0) as usize;
        self.time.clear();
        self.time.resize(pixels, [0.0; INKS]);
        self.starts.clear();
        self.starts.resize(pixels, 0);
        self.lanes = 0;
    }

    /// Adds the spans of a lane.
    pub(crate) fn add(
        &mut self,
        timeline: &Timeline,
        inks: &[u8],
        lane: Range<usize>,
        window: TimeWindow,
        width_px: f64,
    ) {
        self.lanes += 1;
        let px_per_ns = width_px / window.width_ns();
        for span in visible(timeline, lane, window) {
            let left = (timeline.start_ns[span] as f64 - window.start_ns) * px_per_ns;
            let right = left + timeline.duration_ns[span] as f64 * px_per_ns;
            self.lay(left, right, known(inks[span]), 1.0, 1);
        }
    }

    /// Adds a lane from a precomputed level.
    pub(crate) fn add_level(&mut self, level: &Level, lane: usize, window: TimeWindow, width_px: f64) {
        self.lanes += 1;
        let px_per_ns = width_px / window.width_ns();
        let width = level.width_ns as f64;
        let offset = level.lane(lane).start;
        for stretch in stretches(level, window) {
            let (starts, active_ticks) = (level.starts[offset + stretch], level.busy[offset + stretch]);
            if starts > 0 || active_ticks > 0 {
                let left = (stretch as f64 * width - window.start_ns) * px_per_ns;
                let share = f32::from(active_ticks) / 255.0;
                self.lay(left, left + width * px_per_ns, known(level.ink[offset + stretch]), share, starts);
            }
        }
    }

    fn lay(&mut self, left: f64, right: f64, ink: u8, share: f32, starts: u32) {
        let last = self.time.len() - 1;
        let first = (left.max(0.0) as usize).min(last);
        self.starts[first] += starts;
        let end = right.min(self.time.len() as f64);
        for pixel in first..=(end.max(0.0).ceil() as usize).saturating_sub(1).clamp(first, last) {
            let covered = (end.min(pixel as f64 + 1.0) - left.max(pixel as f64)).max(0.0) as f32;
            self.time[pixel][usize::from(ink)] += covered * share;
        }
    }

    /// Appends the combined cells. A pixel that half the lanes use has busy fraction 0.5.
    pub(crate) fn cells(&self, cells: &mut Vec<Cell>) {
        for (pixel, time) in self.time.iter().enumerate() {
            let (ink, total_time) = leading(&time.map(f64::from));
            let spans = self.starts[pixel];
            if total_time > 0.0 || spans > 0 {
                let (x0, occupancy) = (pixel as f64, (total_time / self.lanes.max(1) as f64).min(1.0));
                cells.push(Cell { x0, x1: x0 + 1.0, first: 0, spans, ink, occupancy });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn cells_in(timeline: &Timeline, start_ns: f64, end_ns: f64, width_px: f64) -> Vec<Cell> {
        let mut found = Vec::new();
        cells(timeline, &timeline.kind, 0..timeline.len(), TimeWindow { start_ns, end_ns }, width_px, &mut found);
        found
    }

    #[test]
    fn wide_spans_have_separate_cells_clipped_to_window() {
        let lane = sample::lane(&[(0, 0, 100), (1, 100, 300)]);
        let found = cells_in(&lane, 50.0, 250.0, 200.0);
        assert_eq!(
            found,
            [
                Cell { x0: 0.0, x1: 50.0, first: 0, spans: 1, ink: 0, occupancy: 1.0 },
                Cell { x0: 50.0, x1: 200.0, first: 1, spans: 1, ink: 1, occupancy: 1.0 },
            ]
        );
    }

    #[test]
    fn narrow_spans_share_a_pixel_with_dominant_kind_colour() {
        // 10 px over 1000 ns: a pixel is 100 ns. Three spans are in pixel 2, one in pixel 5.
        let lane = sample::lane(&[(0, 200, 210), (1, 220, 260), (0, 270, 290), (2, 540, 560)]);
        let found = cells_in(&lane, 0.0, 1_000.0, 10.0);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].x0, found[0].x1, found[0].first, found[0].spans, found[0].ink), (2.0, 3.0, 0, 3, 1));
        // 10 + 40 + 20 of 100 ns.
        assert!((found[0].occupancy - 0.7).abs() < 1e-9);
        assert_eq!((found[1].x0, found[1].first, found[1].spans, found[1].ink), (5.0, 3, 1, 2));
    }

    #[test]
    fn a_zero_length_span_is_still_seen() {
        let lane = sample::lane(&[(0, 500, 500)]);
        let found = cells_in(&lane, 0.0, 1_000.0, 10.0);
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
                    cells(&timeline, &timeline.kind, range, window, width, &mut found);
                    let drawn: u32 = found.iter().map(|cell| cell.spans).sum();
                    assert_eq!(drawn as usize, expected);
                    assert!(found.iter().all(|cell| cell.x1 > cell.x0 && cell.x0 <= width));
                }
            }
        }
    }

    #[test]
    fn cell_count_is_bounded_by_two_per_pixel() {
        let spans: Vec<_> = (0..100_000_u64).map(|span| ((span % 2) as u8, span * 10, span * 10 + 9)).collect();
        let found = cells_in(&sample::lane(&spans), 0.0, 1_000_000.0, 1_000.0);
        assert!(found.len() <= 2_000);
        assert_eq!(found.iter().map(|cell| cell.spans).sum::<u32>(), 100_000);
    }

    #[test]
    fn level_matches_span_drawing() {
        // Two lanes with a span of 9 ns per 10 ns. At low zoom a level produces the same pixels,
        // counts and fractions.
        let timeline = sample::one_f_one_b(4, 64);
        let end = timeline.makespan_ns as f64;
        let level = Level::new(&timeline, &timeline.kind, 8_192);
        let window = TimeWindow { start_ns: 0.0, end_ns: level.width_ns as f64 * 8_192.0 };
        assert!(window.end_ns >= end);
        for lane in 0..8 {
            let range = timeline.lane_offsets[lane] as usize..timeline.lane_offsets[lane + 1] as usize;
            let (mut exact, mut coarse) = (Vec::new(), Vec::new());
            cells(&timeline, &timeline.kind, range.clone(), window, 32.0, &mut exact);
            level_cells(&level, lane, window, 32.0, &mut coarse);
            let count = |cells: &[Cell]| cells.iter().map(|cell| cell.spans).sum::<u32>();
            assert_eq!((count(&coarse), count(&exact)), (range.len() as u32, range.len() as u32));
            let active_width =
                |cells: &[Cell]| cells.iter().map(|cell| cell.occupancy * (cell.x1 - cell.x0)).sum::<f64>();
            let expected: f64 = timeline.duration_ns[range].iter().map(|&ns| ns as f64).sum::<f64>() / end * 32.0;
            // A level can be up to a bucket longer than the timeline, and its fractions are rounded
            // up.
            assert!(
                (active_width(&coarse) - expected).abs() < 0.05 * expected.max(1.0),
                "{} {expected}",
                active_width(&coarse)
            );
        }
    }

    #[test]
    fn coarsest_sufficient_level_is_selected() {
        let timeline = sample::one_f_one_b(2, 8);
        let levels: Vec<Level> = [64, 16, 4].map(|stretches| Level::new(&timeline, &timeline.kind, stretches)).into();
        let width = |ns_per_px: f64| level_for(&levels, ns_per_px).map(|level| level.stretches);
        let coarse = levels[2].width_ns as f64;
        assert_eq!(width(coarse), Some(4));
        assert_eq!(width(coarse - 1.0), Some(16));
        assert_eq!(width(levels[0].width_ns as f64 - 1.0), None, "the spans themselves");
    }

    #[test]
    fn folded_lanes_share_a_pixel_by_their_time() {
        // Four pixels of 100 ns. One lane contains ink 0 from 0 to 200, the other ink 1 from 150 to
        // 300.
        let (first, other) = (sample::lane(&[(0, 0, 200)]), sample::lane(&[(1, 150, 300)]));
        let window = TimeWindow { start_ns: 0.0, end_ns: 400.0 };
        let mut fold = Fold::default();
        fold.clear(4.0);
        fold.add(&first, &first.kind, 0..1, window, 4.0);
        fold.add(&other, &other.kind, 0..1, window, 4.0);
        let mut found = Vec::new();
        fold.cells(&mut found);
        let seen: Vec<(f64, u8, u32)> = found.iter().map(|cell| (cell.x0, cell.ink, cell.spans)).collect();
        assert_eq!(seen, [(0.0, 0, 1), (1.0, 0, 1), (2.0, 1, 0)]);
        for (cell, expected) in found.iter().zip([0.5, 0.75, 0.5]) {
            assert!((cell.occupancy - expected).abs() < 1e-6);
        }
    }
}
