//! What ranks do in a stretch of time, summed.

use std::ops::Range;

use api::planner::timeline::{SpanKind, Timeline};

use super::TimeWindow;
use super::lod::visible;

/// A stretch of time on some ranks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Area {
    /// The time.
    pub(crate) window: TimeWindow,
    /// The ranks, ascending.
    pub(crate) ranks: Vec<usize>,
}

/// Time and number of the spans of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct KindSum {
    /// Time inside the area, in ns.
    pub(crate) ns: f64,
    /// Spans of which any part is inside.
    pub(crate) spans: usize,
}

/// What happens in an area; the times of all its ranks together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sums {
    /// Width of the area times its ranks, in ns.
    pub(crate) whole_ns: f64,
    /// Time in which a rank computes, in ns.
    pub(crate) busy_ns: f64,
    /// Time in which it neither computes nor sends, in ns.
    pub(crate) idle_ns: f64,
    /// Time in which it sends, in ns.
    pub(crate) sending_ns: f64,
    /// The part of that in which it computes nothing, in ns.
    pub(crate) exposed_ns: f64,
    /// By kind.
    pub(crate) kinds: [KindSum; SpanKind::ALL.len()],
}

impl Sums {
    /// Sums an area of a timeline.
    pub(crate) fn of(timeline: &Timeline, area: &Area) -> Self {
        let mut sums = Self::default();
        for &rank in area.ranks.iter().filter(|&&rank| rank < timeline.ranks as usize) {
            sums.whole_ns += area.window.width_ns();
            let compute = sums.lane(timeline, timeline.compute_lane(rank), area.window);
            let sending = sums.lane(timeline, timeline.communication_lane(rank), area.window);
            let both = overlap(timeline, timeline.compute_lane(rank), timeline.communication_lane(rank), area.window);
            sums.busy_ns += compute;
            sums.sending_ns += sending;
            sums.exposed_ns += sending - both;
            sums.idle_ns += area.window.width_ns() - compute - (sending - both);
        }
        sums
    }

    fn lane(&mut self, timeline: &Timeline, lane: Range<usize>, window: TimeWindow) -> f64 {
        let mut all = 0.0;
        for span in visible(timeline, lane, window) {
            let inside = inside(timeline, span, window);
            all += inside;
            if let Some(sum) = self.kinds.get_mut(usize::from(timeline.kind[span])) {
                sum.ns += inside;
                sum.spans += 1;
            }
        }
        all
    }

    /// Spans of all kinds.
    pub(crate) fn spans(&self) -> usize {
        self.kinds.iter().map(|kind| kind.spans).sum()
    }
}

fn ends(timeline: &Timeline, span: usize, window: TimeWindow) -> (f64, f64) {
    ((timeline.start_ns[span] as f64).max(window.start_ns), (timeline.end_ns(span) as f64).min(window.end_ns))
}

fn inside(timeline: &Timeline, span: usize, window: TimeWindow) -> f64 {
    let (start, end) = ends(timeline, span, window);
    (end - start).max(0.0)
}

/// Time in which both lanes have something, in ns.
fn overlap(timeline: &Timeline, one: Range<usize>, other: Range<usize>, window: TimeWindow) -> f64 {
    let (mut one, mut other) = (visible(timeline, one, window), visible(timeline, other, window));
    let mut both = 0.0;
    while let (false, false) = (one.is_empty(), other.is_empty()) {
        let (a, b) = (ends(timeline, one.start, window), ends(timeline, other.start, window));
        both += (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
        if a.1 <= b.1 {
            one.start += 1;
        } else {
            other.start += 1;
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn an_area_sums_what_is_inside_it() {
        // Rank 0 of 1F1B with 2 ranks and 3 microbatches begins F0 F1, 1,000 ns each, and sends 100 ns after each.
        let timeline = sample::one_f_one_b(2, 3);
        let area = Area { window: TimeWindow { start_ns: 500.0, end_ns: 1_500.0 }, ranks: vec![0] };
        let sums = Sums::of(&timeline, &area);
        assert!((sums.whole_ns - 1_000.0).abs() < 1e-9 && (sums.busy_ns - 1_000.0).abs() < 1e-9);
        assert!((sums.sending_ns - 100.0).abs() < 1e-9, "it sends F0 from 1,000 to 1,100");
        assert!(sums.exposed_ns.abs() < 1e-9 && sums.idle_ns.abs() < 1e-9, "while it computes F1");
        assert_eq!((sums.kinds[0].spans, sums.kinds[4].spans, sums.spans()), (2, 1, 3));
    }

    #[test]
    fn busy_idle_and_exposed_are_the_whole() {
        let timeline = sample::one_f_one_b(4, 6);
        let end = timeline.makespan_ns as f64;
        for (from, to) in [(0.0, 1.0), (0.13, 0.14), (0.4, 0.9)] {
            let window = TimeWindow { start_ns: from * end, end_ns: to * end };
            let sums = Sums::of(&timeline, &Area { window, ranks: vec![1, 2, 3] });
            assert!((sums.busy_ns + sums.idle_ns + sums.exposed_ns - sums.whole_ns).abs() < 1e-6);
            assert!(sums.exposed_ns <= sums.sending_ns + 1e-9 && sums.idle_ns >= -1e-6);
        }
    }

    #[test]
    fn ranks_that_are_not_there_count_nothing() {
        let timeline = sample::one_f_one_b(2, 3);
        let area = Area { window: TimeWindow { start_ns: 0.0, end_ns: 10.0 }, ranks: vec![7] };
        assert_eq!(Sums::of(&timeline, &area), Sums::default());
    }
}
