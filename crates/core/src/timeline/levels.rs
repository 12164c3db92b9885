//! Timeline levels of detail: a summary per lane and time interval, at equal interval widths.
//!
//! A chart with a million spans is about a thousand pixels wide. A [`Level`] contains span starts,
//! dominant ink and busy fraction per lane and interval. To draw a wide time range, use a level
//! with intervals up to one pixel wide instead of the spans. No span is lost: the starts sum to the
//! number of spans.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Timeline;

/// Number of inks in a level. Larger ink numbers are mapped to `INKS - 1`.
pub const INKS: usize = 32;

/// Maximum number of intervals in the finest level, for all lanes together. Limits the memory to 24
/// MiB, independent of the number of ranks.
const MAX_STRETCHES: usize = 4 << 20;

/// Summary per lane and time interval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Level {
    /// Interval width in ns; at least 1.
    pub width_ns: u64,
    /// Intervals per lane.
    pub stretches: u32,
    /// Span starts per interval, lane by lane.
    pub starts: Vec<u32>,
    /// Ink with the maximum time per interval.
    pub ink: Vec<u8>,
    /// Busy fraction per interval, unit 1/255; not 0 if the interval contains a span.
    pub busy: Vec<u8>,
}

impl Level {
    /// Creates a level with `stretches` intervals per lane. Span `i` has the ink `inks[i]`.
    pub fn new(timeline: &Timeline, inks: &[u8], stretches: u32) -> Self {
        let stretches = stretches.max(1);
        let width_ns = timeline.makespan_ns.div_ceil(u64::from(stretches)).max(1);
        let lanes = timeline.lane_offsets.len().saturating_sub(1);
        let cells = lanes * stretches as usize;
        let mut level = Self { width_ns, stretches, starts: vec![0; cells], ink: vec![0; cells], busy: vec![0; cells] };
        for lane in 0..lanes {
            let spans = timeline.lane_offsets[lane] as usize..timeline.lane_offsets[lane + 1] as usize;
            level.fill(timeline, inks, spans, lane * stretches as usize);
        }
        level
    }

    /// Creates all levels, finest first; widths increase by a factor of four. Empty if the timeline
    /// has fewer than `fewest` spans, because the spans can be read directly.
    pub fn all(timeline: &Timeline, inks: &[u8], fewest: usize) -> Vec<Self> {
        if timeline.len() < fewest {
            return Vec::new();
        }
        let lanes = timeline.lane_offsets.len().saturating_sub(1).max(1);
        let finest = (MAX_STRETCHES / lanes).clamp(512, 16_384).next_power_of_two() as u32;
        [finest, finest / 4, finest / 16].map(|stretches| Self::new(timeline, inks, stretches)).into()
    }

    /// Returns the column range for a lane.
    pub fn lane(&self, lane: usize) -> Range<usize> {
        let stretches = self.stretches as usize;
        lane * stretches..(lane + 1) * stretches
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.starts.len() / (self.stretches.max(1) as usize)
    }

    fn fill(&mut self, timeline: &Timeline, inks: &[u8], spans: Range<usize>, offset: usize) {
        let last = self.stretches as usize - 1;
        let mut open = Stretch::at(0);
        for span in spans {
            let ink = usize::from(inks[span]).min(INKS - 1);
            let (start, end) = (timeline.start_ns[span], timeline.end_ns(span));
            let first = ((start / self.width_ns) as usize).min(last);
            if first != open.number {
                self.close(&open, offset);
                open = Stretch::at(first);
            }
            self.starts[offset + first] += 1;
            let mut from = start;
            loop {
                let until = if open.number == last { end } else { end.min((open.number as u64 + 1) * self.width_ns) };
                // Spans with zero duration must be visible.
                open.time[ink] += (until - from).max(1);
                from = until;
                if from >= end {
                    break;
                }
                let next = open.number + 1;
                self.close(&open, offset);
                open = Stretch::at(next);
            }
        }
        self.close(&open, offset);
    }

    fn close(&mut self, stretch: &Stretch, offset: usize) {
        let (mut ink, mut max_time, mut active_ns) = (0, 0, 0);
        for (number, &time) in stretch.time.iter().enumerate() {
            active_ns += time;
            if time > max_time {
                (ink, max_time) = (number as u8, time);
            }
        }
        if active_ns > 0 {
            let cell = offset + stretch.number;
            self.ink[cell] = ink;
            self.busy[cell] = ((active_ns.min(self.width_ns) * 255).div_ceil(self.width_ns)) as u8;
        }
    }
}

/// The current interval.
struct Stretch {
    number: usize,
    time: [u64; INKS],
}

impl Stretch {
    const fn at(number: usize) -> Self {
        Self { number, time: [0; INKS] }
    }
}

/// Timeline overview: one level plus totals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overview {
    /// Number of pipeline ranks. Rank `r` has the lanes `2 r` and `2 r + 1`, as in a [`Timeline`].
    pub ranks: u32,
    /// End of the last span, in ns.
    pub makespan_ns: u64,
    /// Number of spans.
    pub spans: u64,
    /// Level with the span kinds as inks.
    pub level: Level,
}

impl Overview {
    /// Intervals per lane in an overview.
    pub const STRETCHES: u32 = 1024;

    /// Creates the overview.
    pub fn new(timeline: &Timeline) -> Self {
        Self {
            ranks: timeline.ranks,
            makespan_ns: timeline.makespan_ns,
            spans: timeline.len() as u64,
            level: Level::new(timeline, &timeline.kind, Self::STRETCHES),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane(spans: &[(u8, u64, u64)]) -> Timeline {
        Timeline {
            ranks: 1,
            makespan_ns: spans.last().map_or(0, |span| span.2),
            lane_offsets: vec![0, spans.len() as u32, spans.len() as u32],
            kind: spans.iter().map(|span| span.0).collect(),
            start_ns: spans.iter().map(|span| span.1).collect(),
            duration_ns: spans.iter().map(|span| span.2 - span.1).collect(),
            ..Timeline::default()
        }
    }

    #[test]
    fn intervals_contain_starts_dominant_ink_and_active_share() {
        // Ten intervals of 100 ns: 60 ns with ink 0 and 30 ns with ink 1 in interval 0; ink 2 from
        // the middle of interval 2 to the middle of interval 5.
        let timeline = lane(&[(0, 0, 60), (1, 60, 90), (2, 250, 550), (1, 950, 1_000)]);
        let level = Level::new(&timeline, &timeline.kind, 10);
        assert_eq!((level.width_ns, level.lanes()), (100, 2));
        assert_eq!(level.starts[level.lane(0)], [2, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(level.ink[level.lane(0)], [0, 0, 2, 2, 2, 2, 0, 0, 0, 1]);
        // 90 %, 0, 50 %, 100 %, 100 %, 50 %, 0, 0, 0, 50 % of 255, rounded up.
        assert_eq!(level.busy[level.lane(0)], [230, 0, 128, 255, 255, 128, 0, 0, 0, 128]);
        assert!(level.busy[level.lane(1)].iter().all(|&share| share == 0), "it sends nothing");
    }

    #[test]
    fn an_empty_timeline_and_spans_without_duration_have_levels_too() {
        let empty = Timeline { ranks: 1, lane_offsets: vec![0, 0, 0], ..Timeline::default() };
        assert_eq!(Level::new(&empty, &[], 4).starts, [0; 8]);
        let instant = lane(&[(3, 5, 5), (3, 5, 5), (0, 5, 1_000)]);
        let level = Level::new(&instant, &instant.kind, 4);
        assert_eq!(level.starts[level.lane(0)], [3, 0, 0, 0]);
        assert!(level.busy[0] > 0);
    }

    #[test]
    fn few_spans_have_no_levels_and_many_have_three() {
        let timeline = lane(&(0..100).map(|span| (0, span * 10, span * 10 + 5)).collect::<Vec<_>>());
        assert!(Level::all(&timeline, &timeline.kind, 101).is_empty());
        let levels = Level::all(&timeline, &timeline.kind, 100);
        let stretches: Vec<u32> = levels.iter().map(|level| level.stretches).collect();
        assert_eq!(stretches, [16_384, 4_096, 1_024]);
    }

    proptest! {
        #[test]
        fn starts_and_active_time_add_up(
            steps in prop::collection::vec((0_u8..8, 0_u64..50, 1_u64..400), 1..60),
            stretches in 1_u32..40,
        ) {
            let mut at = 0;
            let spans: Vec<(u8, u64, u64)> = steps
                .iter()
                .map(|&(kind, idle, time)| {
                    let start = at + idle;
                    at = start + time;
                    (kind, start, at)
                })
                .collect();
            let timeline = lane(&spans);
            let level = Level::new(&timeline, &timeline.kind, stretches);
            prop_assert_eq!(level.starts.iter().map(|&count| count as usize).sum::<usize>(), spans.len());
            let active_ns: u64 = timeline.duration_ns.iter().sum();
            let displayed: f64 = level.busy.iter().map(|&share| f64::from(share) / 255.0 * level.width_ns as f64).sum();
            // The rounding error per interval is below 1/255.
            let rounding = f64::from(stretches) * level.width_ns as f64 / 255.0;
            prop_assert!(displayed >= active_ns as f64 - 1e-6 && displayed <= active_ns as f64 + rounding + 1e-6);
        }
    }
}
