//! Ranks on one axis: what each rank does at each time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ranks::{Joined, RanksError};
use super::recorded::{Activity, DeviceSlice, Recorded};

/// Content of a segment. If several apply at a time, the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// A compute kernel.
    Compute,
    /// Communication after the last rank has arrived, or communication that is not matched.
    Transfer,
    /// A collective before the last rank has arrived.
    Wait,
    /// A copy or a fill of memory.
    Copy,
}

/// Time between two changes of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Segment {
    /// Content.
    pub kind: SegmentKind,
    /// Start on the common axis.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
}

/// A rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SegmentRow {
    /// Rank.
    pub rank: u32,
    /// False if the rank shares no collective with the first one, so that its row begins at zero.
    pub is_aligned: bool,
    /// Segments in order. Between them the device is idle.
    pub segments: Vec<Segment>,
}

/// Ranks on one axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RankAxis {
    /// Step on the axis; `None` for the complete traces.
    pub step: Option<u64>,
    /// Length of the axis.
    pub span_ns: u64,
    /// Rows by rank.
    pub rows: Vec<SegmentRow>,
}

/// An interval with a content, on the common axis with a sign.
type Interval = (SegmentKind, i128, i128);

/// Returns all ranks on one axis, with at most `most` segments per rank. Where more occur, the
/// content with the most time in an interval stands for it.
///
/// # Errors
/// As for [`super::ranks`].
pub fn segments(recorded: &[Recorded], step: Option<u64>, most: u32) -> Result<RankAxis, RanksError> {
    let joined = Joined::new(recorded)?;
    let mut transfer: BTreeMap<(usize, u64, u64), u64> = BTreeMap::new();
    for collective in &joined.matched {
        let shortest = collective.arrivals.iter().map(|arrival| arrival.duration_ns).min().unwrap_or_default();
        for arrival in &collective.arrivals {
            transfer.insert((arrival.rank, arrival.end_ns, arrival.duration_ns), shortest);
        }
    }
    let rows: Vec<(u32, bool, Vec<Interval>)> = joined
        .recorded
        .iter()
        .enumerate()
        .map(|(index, rank)| {
            let own: Vec<&DeviceSlice> =
                rank.slices.iter().filter(|slice| step.is_none() || slice.step == step).collect();
            let first = own.iter().map(|slice| slice.start_ns).min().unwrap_or_default();
            let offset = joined.clocks.offset_ns[index];
            let clock = offset.map_or(i128::from(first), i128::from);
            let transfer = |slice: &DeviceSlice| transfer.get(&(index, slice.end_ns(), slice.duration_ns)).copied();
            (
                rank.rank,
                offset.is_some(),
                own.into_iter().flat_map(|slice| parts(slice, transfer(slice), clock)).collect(),
            )
        })
        .collect();
    // Rows without a common clock begin where the others do.
    let aligned = rows.iter().filter(|(_, is_aligned, _)| *is_aligned);
    let origin = aligned.flat_map(|(.., parts)| parts.iter().map(|part| part.1)).min().unwrap_or_default();
    let end = |(_, is_aligned, parts): &(u32, bool, Vec<Interval>)| {
        let last = parts.iter().map(|part| part.2).max().unwrap_or_default();
        if *is_aligned { last - origin } else { last }
    };
    let span_ns = u64::try_from(rows.iter().map(end).max().unwrap_or_default()).unwrap_or_default();
    let rows = rows.into_iter().map(|(rank, is_aligned, parts)| {
        let origin = if is_aligned { origin } else { 0 };
        let placed = parts.into_iter().map(|(kind, start, end)| (kind, place(start - origin), place(end - origin)));
        let all = changes(placed.filter(|(_, start, end)| start < end).collect());
        let segments = if all.len() > most as usize { coarse(&all, span_ns, most) } else { all };
        SegmentRow { rank, is_aligned, segments }
    });
    Ok(RankAxis { step, span_ns, rows: rows.collect() })
}

fn place(time: i128) -> u64 {
    u64::try_from(time).unwrap_or_default()
}

/// Splits a slice into wait and transfer.
fn parts(slice: &DeviceSlice, transfer_ns: Option<u64>, clock: i128) -> Vec<Interval> {
    let (start, end) = (i128::from(slice.start_ns) - clock, i128::from(slice.end_ns()) - clock);
    match (slice.activity, transfer_ns) {
        (Activity::Compute, _) => vec![(SegmentKind::Compute, start, end)],
        (Activity::Copy, _) => vec![(SegmentKind::Copy, start, end)],
        (Activity::Communication, None) => vec![(SegmentKind::Transfer, start, end)],
        (Activity::Communication, Some(transfer_ns)) => {
            let arrived = end - i128::from(transfer_ns.min(slice.duration_ns));
            vec![(SegmentKind::Wait, start, arrived), (SegmentKind::Transfer, arrived, end)]
        }
    }
}

/// Converts intervals that overlap to segments that do not.
fn changes(intervals: Vec<(SegmentKind, u64, u64)>) -> Vec<Segment> {
    let mut events: Vec<(u64, SegmentKind, i32)> =
        intervals.into_iter().flat_map(|(kind, start, end)| [(start, kind, 1), (end, kind, -1)]).collect();
    events.sort_unstable();
    let mut active = [0_i32; 4];
    let mut segments: Vec<Segment> = Vec::new();
    for at in 0..events.len() {
        let (time, kind, change) = events[at];
        active[kind as usize] += change;
        let Some(&(next, ..)) = events.get(at + 1) else { break };
        let kinds = [SegmentKind::Compute, SegmentKind::Transfer, SegmentKind::Wait, SegmentKind::Copy];
        let Some(kind) = kinds.into_iter().find(|kind| active[*kind as usize] > 0).filter(|_| next > time) else {
            continue;
        };
        match segments.last_mut() {
            Some(last) if last.kind == kind && last.start_ns + last.duration_ns == time => {
                last.duration_ns += next - time;
            }
            _ => segments.push(Segment { kind, start_ns: time, duration_ns: next - time }),
        }
    }
    segments
}

/// Merges segments in intervals of equal length.
fn coarse(segments: &[Segment], span_ns: u64, most: u32) -> Vec<Segment> {
    let width = span_ns.div_ceil(u64::from(most.max(1))).max(1);
    let mut merged: Vec<Segment> = Vec::new();
    let mut at = 0;
    for start in (0..span_ns).step_by(usize::try_from(width).unwrap_or(usize::MAX)) {
        let end = (start + width).min(span_ns);
        let mut times = [0_u64; 4];
        while let Some(segment) = segments.get(at) {
            let segment_end = segment.start_ns + segment.duration_ns;
            times[segment.kind as usize] += segment_end.min(end).saturating_sub(segment.start_ns.max(start));
            if segment_end > end {
                break;
            }
            at += 1;
        }
        let idle = (end - start).saturating_sub(times.iter().sum());
        let kinds = [SegmentKind::Compute, SegmentKind::Transfer, SegmentKind::Wait, SegmentKind::Copy];
        let Some(kind) = kinds.into_iter().max_by_key(|kind| (times[*kind as usize], std::cmp::Reverse(*kind))) else {
            continue;
        };
        if times[kind as usize] < idle || times[kind as usize] == 0 {
            continue;
        }
        match merged.last_mut() {
            Some(last) if last.kind == kind && last.start_ns + last.duration_ns == start => {
                last.duration_ns += end - start;
            }
            _ => merged.push(Segment { kind, start_ns: start, duration_ns: end - start }),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_hides_the_rest() {
        use SegmentKind::{Compute, Copy, Wait};
        let found = changes(vec![(Wait, 0, 30), (Compute, 10, 20), (Compute, 15, 18), (Copy, 25, 50)]);
        let found: Vec<_> = found.iter().map(|part| (part.kind, part.start_ns, part.duration_ns)).collect();
        assert_eq!(found, [(Wait, 0, 10), (Compute, 10, 10), (Wait, 20, 10), (Copy, 30, 20)]);
    }

    #[test]
    fn many_segments_are_merged() {
        let segment = |at: u64| Segment { kind: SegmentKind::Compute, start_ns: at * 10, duration_ns: 8 };
        let all: Vec<Segment> = (0..100).map(segment).collect();
        let merged = coarse(&all, 1000, 10);
        assert_eq!(merged, [Segment { kind: SegmentKind::Compute, start_ns: 0, duration_ns: 1000 }]);
        let sparse: Vec<Segment> = all.iter().map(|part| Segment { duration_ns: 2, ..*part }).collect();
        assert!(coarse(&sparse, 1000, 10).is_empty());
    }
}
