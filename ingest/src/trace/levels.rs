//! Levels of detail: slices that are too short to be told apart at some zoom become one span that knows how many
//! they are.
//!
//! Level 0 has every slice. A further level has a width: slices at least as long stay what they are, shorter ones of
//! the same lane and depth whose starts share a stretch of that width become one [`Span`]. Levels are kept where they
//! have at most half the spans of the level below, so that all of them together are less than two level 0. Nothing is
//! dropped: the counts of every level add up to the slices.

use super::kind::Kind;
use super::table::Trace;

/// Width of the finest level beyond the slices themselves, in nanoseconds.
const FINEST_NS: u64 = 1024;
/// How much wider the next level may be.
const GROWTH: u64 = 4;
/// A level with fewer spans than this needs none above it.
const FEW: usize = 4096;

/// What a row of a view shows: a slice, or several of one lane and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Index of the lane.
    pub lane: u32,
    /// How many slices of the lane it lies within.
    pub depth: u16,
    /// First start, in nanoseconds since the trace's origin.
    pub start_ns: u64,
    /// From the first start to the last end, in nanoseconds.
    pub extent_ns: u64,
    /// Sum of the durations, in nanoseconds.
    pub busy_ns: u64,
    /// How many slices it stands for.
    pub count: u32,
    /// Index of the name of the longest slice.
    pub name: u32,
    /// Duration of that slice, in nanoseconds.
    pub longest_ns: u64,
    /// Kind that most time is spent in.
    pub kind: Kind,
}

impl Span {
    /// When it ends, in nanoseconds since the trace's origin.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.extent_ns)
    }

    /// Where it stands among others: lane by lane, row by row, in time.
    pub const fn place(&self) -> (u32, u16, u64) {
        (self.lane, self.depth, self.start_ns)
    }
}

/// A level beyond the slices themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Slices at least this long are not in it, in nanoseconds.
    pub width_ns: u64,
    /// The shorter ones, merged, in the order of their places.
    pub merged: Vec<Span>,
}

/// The slices of a trace by level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// For each level from 0 the slices at least as long as its width and shorter than the next one's, with their index in the
    /// trace, in the order of their places.
    pub exact: Vec<Vec<(u32, Span)>>,
    /// Levels from 1.
    pub further: Vec<Level>,
}

impl Levels {
    /// The levels of a trace.
    pub fn of(trace: &Trace) -> Self {
        let mut slices: Vec<(u32, Span)> =
            (0..trace.slices.len()).map(|slice| (slice as u32, span_of(trace, slice))).collect();
        slices.sort_by_key(|(_, span)| span.place());
        let extent = trace.end_ns.saturating_sub(trace.origin_ns);
        let mut further: Vec<Level> = Vec::new();
        let mut below: Vec<Span> = slices.iter().map(|(_, span)| *span).collect();
        let mut width = FINEST_NS;
        while below.len() > FEW && width <= extent / 64 {
            let above = merge(&below, width);
            if above.len() * 2 <= below.len() {
                let merged = above.iter().filter(|span| span.longest_ns < width).copied().collect();
                further.push(Level { width_ns: width, merged });
                below = above;
            }
            width = width.saturating_mul(GROWTH);
        }
        let mut exact = vec![Vec::new(); further.len() + 1];
        for (slice, span) in slices {
            let level = further.partition_point(|level| level.width_ns <= span.extent_ns);
            exact[level].push((slice, span));
        }
        Self { exact, further }
    }

    /// Widths of the levels from 1, ascending.
    pub fn widths(&self) -> Vec<u64> {
        self.further.iter().map(|level| level.width_ns).collect()
    }
}

/// The coarsest level for a view in which a pixel is `pixel_ns` wide: 0, or one more than an index of `widths`.
pub fn level_for(widths: &[u64], pixel_ns: u64) -> usize {
    widths.partition_point(|&width| width <= pixel_ns)
}

/// Merges spans, given in the order of their places, whose slices are all shorter than `width_ns` and whose starts share a
/// stretch of that width. Longer ones stay.
pub fn merge(spans: &[Span], width_ns: u64) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::new();
    let mut open: Option<Open> = None;
    for &span in spans {
        if span.longest_ns >= width_ns {
            merged.extend(open.take().map(Open::close));
            merged.push(span);
            continue;
        }
        let key = (span.lane, span.depth, span.start_ns / width_ns.max(1));
        match &mut open {
            Some(group) if group.key == key && group.span.count.checked_add(span.count).is_some() => group.add(&span),
            _ => merged.extend(open.replace(Open::new(key, span)).map(Open::close)),
        }
    }
    merged.extend(open.map(Open::close));
    merged
}

/// A span that others may join.
struct Open {
    key: (u32, u16, u64),
    span: Span,
    by_kind: [u64; Kind::ALL.len()],
}

impl Open {
    fn new(key: (u32, u16, u64), span: Span) -> Self {
        let mut by_kind = [0; Kind::ALL.len()];
        by_kind[span.kind.index()] = span.busy_ns;
        Self { key, span, by_kind }
    }

    fn add(&mut self, other: &Span) {
        let span = &mut self.span;
        span.extent_ns = span.end_ns().max(other.end_ns()) - span.start_ns;
        span.busy_ns = span.busy_ns.saturating_add(other.busy_ns);
        span.count += other.count;
        if other.longest_ns > span.longest_ns {
            (span.name, span.longest_ns) = (other.name, other.longest_ns);
        }
        let own = &mut self.by_kind[other.kind.index()];
        *own = own.saturating_add(other.busy_ns);
    }

    fn close(mut self) -> Span {
        // The own kind wins ties, so that a span alone keeps its kind whatever its duration.
        let mut most = self.by_kind[self.span.kind.index()];
        for (kind, time) in Kind::ALL.into_iter().zip(self.by_kind) {
            if time > most {
                (self.span.kind, most) = (kind, time);
            }
        }
        self.span
    }
}

fn span_of(trace: &Trace, slice: usize) -> Span {
    let slices = &trace.slices;
    let duration = slices.duration_ns[slice];
    Span {
        lane: slices.lane[slice],
        depth: slices.depth[slice],
        start_ns: slices.start_ns[slice].saturating_sub(trace.origin_ns),
        extent_ns: duration,
        busy_ns: duration,
        count: 1,
        name: slices.name[slice],
        longest_ns: duration,
        kind: slices.kind[slice],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::{Limits, TimeUnit, read};

    /// Slices by lane, depth, start and duration, in the order of their places.
    fn spans(of: &[(u32, u16, u64, u64, Kind)]) -> Vec<Span> {
        let span = |&(lane, depth, start_ns, duration, kind): &(u32, u16, u64, u64, Kind)| Span {
            lane,
            depth,
            start_ns,
            extent_ns: duration,
            busy_ns: duration,
            count: 1,
            name: duration as u32,
            longest_ns: duration,
            kind,
        };
        let mut spans: Vec<Span> = of.iter().map(span).collect();
        spans.sort_by_key(Span::place);
        spans
    }

    /// Width 10: 0-2 and 5-9 share the first stretch, 12-13 the second, 3-33 is long, another depth is apart.
    #[test]
    fn short_neighbours_become_one() {
        let merged = merge(
            &spans(&[
                (0, 0, 0, 2, Kind::Cpu),
                (0, 0, 5, 4, Kind::Compute),
                (0, 0, 12, 1, Kind::Cpu),
                (0, 1, 3, 30, Kind::Cpu),
                (0, 1, 4, 1, Kind::Memset),
            ]),
            10,
        );
        let seen: Vec<_> = merged
            .iter()
            .map(|span| (span.depth, span.start_ns, span.extent_ns, span.busy_ns, span.count, span.name, span.kind))
            .collect();
        assert_eq!(
            seen,
            [
                (0, 0, 9, 6, 2, 4, Kind::Compute),
                (0, 12, 1, 1, 1, 1, Kind::Cpu),
                (1, 3, 30, 30, 1, 30, Kind::Cpu),
                (1, 4, 1, 1, 1, 1, Kind::Memset),
            ]
        );
    }

    #[test]
    fn a_pixel_takes_the_coarsest_level_that_it_can_show() {
        let widths = [1024, 16_384];
        for (pixel, level) in [(0, 0), (1023, 0), (1024, 1), (16_383, 1), (16_384, 2), (u64::MAX, 2)] {
            assert_eq!(level_for(&widths, pixel), level, "{pixel} ns");
        }
    }

    proptest! {
        /// At every width, from every width below: counts and time add up, nothing sticks out, long slices stay.
        #[test]
        fn nothing_is_dropped(
            slices in prop::collection::vec((0_u32..3, 0_u16..2, 0_u64..5_000, 0_u64..400, 0_usize..9), 1..200),
            first in 1_u64..100,
            growth in 1_u64..5,
        ) {
            let exact = spans(&slices.iter().map(|&(lane, depth, start, duration, kind)| (lane, depth, start, duration, Kind::ALL[kind])).collect::<Vec<_>>());
            let total: u64 = exact.iter().map(|span| span.busy_ns).sum();
            let mut below = exact.clone();
            let mut width = first;
            for _ in 0..4 {
                let above = merge(&below, width);
                prop_assert_eq!(above.iter().map(|span| span.count as usize).sum::<usize>(), exact.len());
                prop_assert_eq!(above.iter().map(|span| span.busy_ns).sum::<u64>(), total);
                prop_assert!(above.is_sorted_by_key(Span::place));
                for span in &above {
                    let within = exact.iter().filter(|slice| {
                        (slice.lane, slice.depth) == (span.lane, span.depth)
                            && slice.start_ns >= span.start_ns
                            && slice.end_ns() <= span.end_ns()
                    });
                    prop_assert!(within.count() >= span.count as usize);
                    prop_assert!(span.count == 1 || span.longest_ns < width);
                    prop_assert!(span.longest_ns <= span.extent_ns.max(span.busy_ns));
                }
                let long = |spans: &[Span]| spans.iter().filter(|span| span.longest_ns >= width).copied().collect::<Vec<_>>();
                prop_assert_eq!(long(&above), long(&exact));
                below = above;
                width *= growth;
            }
        }
    }

    /// A million slices of 1 µs every 2 µs: a few levels, each at most half of the one below, all of them complete.
    #[test]
    fn every_level_of_a_trace_is_whole() {
        let mut text = String::from("[");
        for event in 0..40_000_u32 {
            let (start, duration) = (event * 2, if event % 100 == 0 { 150 } else { 1 });
            let separator = if event == 0 { "" } else { "," };
            let pid = event % 3;
            text.push_str(separator);
            text.push_str(
                &serde_json::json!({"ph": "X", "ts": start, "dur": duration, "pid": pid, "tid": 0, "name": "k"})
                    .to_string(),
            );
        }
        text.push(']');
        let trace = read(text.as_bytes(), TimeUnit::default(), &Limits::default()).expect("a trace");
        let levels = Levels::of(&trace);
        assert!(!levels.further.is_empty());
        assert_eq!(levels.exact.iter().map(Vec::len).sum::<usize>(), trace.slices.len());
        let mut below = trace.slices.len();
        for (index, level) in levels.further.iter().enumerate() {
            let longer: usize = levels.exact[index + 1..].iter().map(Vec::len).sum();
            let shorter: usize = level.merged.iter().map(|span| span.count as usize).sum();
            assert_eq!(longer + shorter, trace.slices.len(), "level {}", index + 1);
            assert!((longer + level.merged.len()) * 2 <= below);
            below = longer + level.merged.len();
            assert!(levels.exact[index + 1].iter().all(|(_, span)| span.extent_ns >= level.width_ns));
            assert!(levels.exact[index].iter().all(|(_, span)| span.extent_ns < level.width_ns));
        }
    }
}
