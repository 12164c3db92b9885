//! Levels of detail: slices too short for the zoom level are merged into spans with a count.
//!
//! Level 0 contains all slices. Each further level has a width. Slices with at least this duration
//! remain. Shorter slices on the same lane and depth whose starts fall into the same interval of
//! this width are merged into a [`Span`]. A level is stored only if it has at most half the spans
//! of the previous level, so all levels together are smaller than twice level 0. No slice is
//! dropped: the counts on each level sum to the slice count.

use super::kind::Kind;
use super::table::Trace;

/// Width of level 1 in nanoseconds.
const FINEST_NS: u64 = 1024;
/// Maximum width ratio between consecutive levels.
const GROWTH: u64 = 4;
/// A level with fewer spans has no level above it.
const FEW: usize = 4096;

/// A displayed item: one slice, or several merged slices on the same lane and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Lane index.
    pub lane: u32,
    /// Nesting depth on the lane.
    pub depth: u16,
    /// First start in nanoseconds since the trace origin.
    pub start_ns: u64,
    /// Time from first start to last end in nanoseconds.
    pub extent_ns: u64,
    /// Sum of slice durations in nanoseconds.
    pub active_ns: u64,
    /// Number of merged slices.
    pub count: u32,
    /// Name index of the longest slice.
    pub name: u32,
    /// Duration of that slice in nanoseconds.
    pub max_duration_ns: u64,
    /// Kind with the largest total duration.
    pub kind: Kind,
}

impl Span {
    /// Returns the end in nanoseconds since the trace origin.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.extent_ns)
    }

    /// Returns the sort key: lane, depth, start.
    pub const fn sort_key(&self) -> (u32, u16, u64) {
        (self.lane, self.depth, self.start_ns)
    }
}

/// A level above the individual slices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Level width in nanoseconds. Slices with at least this duration are not merged.
    pub width_ns: u64,
    /// Merged shorter slices, in sort key order.
    pub merged: Vec<Span>,
}

/// Trace slices by level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// For each level from 0, the slices with durations from its width up to the next width, with
    /// their index in the trace, in sort key order.
    pub exact: Vec<Vec<(u32, Span)>>,
    /// Levels from 1.
    pub further: Vec<Level>,
}

impl Levels {
    /// Builds the levels for a trace.
    pub fn from_trace(trace: &Trace) -> Self {
        let mut slices: Vec<(u32, Span)> =
            (0..trace.slices.len()).map(|slice| (slice as u32, slice_span(trace, slice))).collect();
        slices.sort_by_key(|(_, span)| span.sort_key());
        let extent = trace.end_ns.saturating_sub(trace.origin_ns);
        let mut further: Vec<Level> = Vec::new();
        let mut below: Vec<Span> = slices.iter().map(|(_, span)| *span).collect();
        let mut width = FINEST_NS;
        while below.len() > FEW && width <= extent / 64 {
            let above = merge(&below, width);
            if above.len() * 2 <= below.len() {
                let merged = above.iter().filter(|span| span.max_duration_ns < width).copied().collect();
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

    /// Returns the widths from level 1 in ascending order.
    pub fn widths(&self) -> Vec<u64> {
        self.further.iter().map(|level| level.width_ns).collect()
    }
}

/// Returns the coarsest level for a pixel width of `pixel_ns`: 0, or one more than an index in
/// `widths`.
pub fn level_for(widths: &[u64], pixel_ns: u64) -> usize {
    widths.partition_point(|&width| width <= pixel_ns)
}

/// Merges spans, sorted by key, whose slices are shorter than `width_ns` and start in the same
/// interval. Longer spans remain.
pub fn merge(spans: &[Span], width_ns: u64) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::new();
    let mut open: Option<Open> = None;
    for &span in spans {
        if span.max_duration_ns >= width_ns {
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

/// A span under construction.
struct Open {
    key: (u32, u16, u64),
    span: Span,
    by_kind: [u64; Kind::ALL.len()],
}

impl Open {
    fn new(key: (u32, u16, u64), span: Span) -> Self {
        let mut by_kind = [0; Kind::ALL.len()];
        by_kind[span.kind.index()] = span.active_ns;
        Self { key, span, by_kind }
    }

    fn add(&mut self, other: &Span) {
        let span = &mut self.span;
        span.extent_ns = span.end_ns().max(other.end_ns()) - span.start_ns;
        span.active_ns = span.active_ns.saturating_add(other.active_ns);
        span.count += other.count;
        if other.max_duration_ns > span.max_duration_ns {
            (span.name, span.max_duration_ns) = (other.name, other.max_duration_ns);
        }
        let kind_time = &mut self.by_kind[other.kind.index()];
        *kind_time = kind_time.saturating_add(other.active_ns);
    }

    fn close(mut self) -> Span {
        // The current kind wins ties, so a single-slice span retains its kind for any duration.
        let mut max = self.by_kind[self.span.kind.index()];
        for (kind, time) in Kind::ALL.into_iter().zip(self.by_kind) {
            if time > max {
                (self.span.kind, max) = (kind, time);
            }
        }
        self.span
    }
}

fn slice_span(trace: &Trace, slice: usize) -> Span {
    let slices = &trace.slices;
    let duration = slices.duration_ns[slice];
    Span {
        lane: slices.lane[slice],
        depth: slices.depth[slice],
        start_ns: slices.start_ns[slice].saturating_sub(trace.origin_ns),
        extent_ns: duration,
        active_ns: duration,
        count: 1,
        name: slices.name[slice],
        max_duration_ns: duration,
        kind: slices.kind[slice],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace::{Limits, TimeUnit, read};

    /// Builds spans from lane, depth, start and duration, in sort key order.
    fn spans(slices: &[(u32, u16, u64, u64, Kind)]) -> Vec<Span> {
        let span = |&(lane, depth, start_ns, duration, kind): &(u32, u16, u64, u64, Kind)| Span {
            lane,
            depth,
            start_ns,
            extent_ns: duration,
            active_ns: duration,
            count: 1,
            name: duration as u32,
            max_duration_ns: duration,
            kind,
        };
        let mut spans: Vec<Span> = slices.iter().map(span).collect();
        spans.sort_by_key(Span::sort_key);
        spans
    }

    /// Width 10: 0-2 and 5-9 share the first interval, 12-13 is in the second, 3-33 is long, and
    /// another depth is separate.
    #[test]
    fn short_neighbours_are_merged() {
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
            .map(|span| (span.depth, span.start_ns, span.extent_ns, span.active_ns, span.count, span.name, span.kind))
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
        /// For all pairs of widths: counts and times add up, spans stay in bounds, long slices
        /// remain.
        #[test]
        fn nothing_is_dropped(
            slices in prop::collection::vec((0_u32..3, 0_u16..2, 0_u64..5_000, 0_u64..400, 0_usize..9), 1..200),
            first in 1_u64..100,
            growth in 1_u64..5,
        ) {
            let exact = spans(&slices.iter().map(|&(lane, depth, start, duration, kind)| (lane, depth, start, duration, Kind::ALL[kind])).collect::<Vec<_>>());
            let total: u64 = exact.iter().map(|span| span.active_ns).sum();
            let mut below = exact.clone();
            let mut width = first;
            for _ in 0..4 {
                let above = merge(&below, width);
                prop_assert_eq!(above.iter().map(|span| span.count as usize).sum::<usize>(), exact.len());
                prop_assert_eq!(above.iter().map(|span| span.active_ns).sum::<u64>(), total);
                prop_assert!(above.is_sorted_by_key(Span::sort_key));
                for span in &above {
                    let within = exact.iter().filter(|slice| {
                        (slice.lane, slice.depth) == (span.lane, span.depth)
                            && slice.start_ns >= span.start_ns
                            && slice.end_ns() <= span.end_ns()
                    });
                    prop_assert!(within.count() >= span.count as usize);
                    prop_assert!(span.count == 1 || span.max_duration_ns < width);
                    prop_assert!(span.max_duration_ns <= span.extent_ns.max(span.active_ns));
                }
                let long = |spans: &[Span]| spans.iter().filter(|span| span.max_duration_ns >= width).copied().collect::<Vec<_>>();
                prop_assert_eq!(long(&above), long(&exact));
                below = above;
                width *= growth;
            }
        }
    }

    /// A million 1 µs slices every 2 µs: several levels, each at most half the previous one, all
    /// complete.
    #[test]
    fn every_level_is_complete() {
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
        let levels = Levels::from_trace(&trace);
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
