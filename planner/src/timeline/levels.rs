//! Levels of detail of a timeline: what every lane does in stretches of equal width.
//!
//! A chart of a million spans is a thousand pixels wide. A [`Level`] says of every lane and stretch how many spans start in it,
//! which ink has most time, and how much of it is busy; whoever draws wide windows reads a level whose stretches are no wider
//! than a pixel instead of the spans. Nothing is dropped: the starts of a level add up to the spans.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Timeline;

/// Inks that a level tells apart; larger numbers count as the last.
pub const INKS: usize = 32;

/// Stretches of the finest level over all lanes: bounds its memory to 24 MiB, however many ranks there are.
const MOST_STRETCHES: usize = 4 << 20;

/// What every lane does in stretches of equal width.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Level {
    /// Width of a stretch, in ns; at least 1.
    pub width_ns: u64,
    /// Stretches of a lane.
    pub stretches: u32,
    /// Spans that start in each stretch, lane after lane.
    pub starts: Vec<u32>,
    /// Ink with most time in each stretch.
    pub ink: Vec<u8>,
    /// Busy share of each stretch, in parts of 255, never 0 where anything is.
    pub busy: Vec<u8>,
}

impl Level {
    /// The level of a timeline with so many stretches in each lane, where span `i` has the ink `inks[i]`.
    pub fn of(timeline: &Timeline, inks: &[u8], stretches: u32) -> Self {
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

    /// The levels of a timeline, finest first, each four times coarser than the one before; none where there are so few spans that
    /// they are as quickly read themselves.
    pub fn all(timeline: &Timeline, inks: &[u8], fewest: usize) -> Vec<Self> {
        if timeline.len() < fewest {
            return Vec::new();
        }
        let lanes = timeline.lane_offsets.len().saturating_sub(1).max(1);
        let finest = (MOST_STRETCHES / lanes).clamp(512, 16_384).next_power_of_two() as u32;
        [finest, finest / 4, finest / 16].map(|stretches| Self::of(timeline, inks, stretches)).into()
    }

    /// Cells of a lane in the columns.
    pub fn lane(&self, lane: usize) -> Range<usize> {
        let stretches = self.stretches as usize;
        lane * stretches..(lane + 1) * stretches
    }

    /// Lanes.
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
                // A span without a duration is seen all the same.
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
        let (mut ink, mut most, mut busy) = (0, 0, 0);
        for (number, &time) in stretch.time.iter().enumerate() {
            busy += time;
            if time > most {
                (ink, most) = (number as u8, time);
            }
        }
        if busy > 0 {
            let cell = offset + stretch.number;
            self.ink[cell] = ink;
            self.busy[cell] = ((busy.min(self.width_ns) * 255).div_ceil(self.width_ns)) as u8;
        }
    }
}

/// The stretch that is being filled.
struct Stretch {
    number: usize,
    time: [u64; INKS],
}

impl Stretch {
    const fn at(number: usize) -> Self {
        Self { number, time: [0; INKS] }
    }
}

/// A timeline as it is first seen: one level and how much there is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Overview {
    /// Pipeline ranks; rank `r` owns the lanes `2 r` and `2 r + 1`, as in a [`Timeline`].
    pub ranks: u32,
    /// End of the last span, in ns.
    pub makespan_ns: u64,
    /// Spans in all.
    pub spans: u64,
    /// The level, with the kinds of spans as inks.
    pub level: Level,
}

impl Overview {
    /// Stretches of a lane in an overview.
    pub const STRETCHES: u32 = 1024;

    /// The overview of a timeline.
    pub fn of(timeline: &Timeline) -> Self {
        Self {
            ranks: timeline.ranks,
            makespan_ns: timeline.makespan_ns,
            spans: timeline.len() as u64,
            level: Level::of(timeline, &timeline.kind, Self::STRETCHES),
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
    fn a_stretch_knows_its_starts_its_longest_ink_and_its_busy_share() {
        // Ten stretches of 100 ns: 60 ns of ink 0 and 30 of ink 1 in the first; ink 2 from the third to the middle of the sixth.
        let timeline = lane(&[(0, 0, 60), (1, 60, 90), (2, 250, 550), (1, 950, 1_000)]);
        let level = Level::of(&timeline, &timeline.kind, 10);
        assert_eq!((level.width_ns, level.lanes()), (100, 2));
        assert_eq!(level.starts[level.lane(0)], [2, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(level.ink[level.lane(0)], [0, 0, 2, 2, 2, 2, 0, 0, 0, 1]);
        // 90 %, 0, 50 %, 100 %, 100 %, 50 %, 0, 0, 0, 50 % of 255, rounded up.
        assert_eq!(level.busy[level.lane(0)], [230, 0, 128, 255, 255, 128, 0, 0, 0, 128]);
        assert!(level.busy[level.lane(1)].iter().all(|&busy| busy == 0), "it sends nothing");
    }

    #[test]
    fn an_empty_timeline_and_spans_without_duration_have_levels_too() {
        let empty = Timeline { ranks: 1, lane_offsets: vec![0, 0, 0], ..Timeline::default() };
        assert_eq!(Level::of(&empty, &[], 4).starts, [0; 8]);
        let instant = lane(&[(3, 5, 5), (3, 5, 5), (0, 5, 1_000)]);
        let level = Level::of(&instant, &instant.kind, 4);
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
        fn starts_and_busy_time_add_up(
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
            let level = Level::of(&timeline, &timeline.kind, stretches);
            prop_assert_eq!(level.starts.iter().map(|&count| count as usize).sum::<usize>(), spans.len());
            let busy: u64 = timeline.duration_ns.iter().sum();
            let shown: f64 = level.busy.iter().map(|&busy| f64::from(busy) / 255.0 * level.width_ns as f64).sum();
            // Every stretch is rounded up by less than a part of 255.
            let rounding = f64::from(stretches) * level.width_ns as f64 / 255.0;
            prop_assert!(shown >= busy as f64 - 1e-6 && shown <= busy as f64 + rounding + 1e-6);
        }
    }
}
