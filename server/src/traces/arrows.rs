//! Arrows (flow events) of a trace, assigned to the slices that they connect.

use std::collections::BTreeMap;
use std::ops::Range;

use ingest::trace::{Slices, Trace};
use serde::{Deserialize, Serialize};

/// Maximum number of stored arrows per slice. Arrows beyond this limit are only counted.
const MAX_ARROWS: usize = 64;
/// Maximum number of slices searched for the slice at a given time. If more sibling slices precede
/// it, the arrow is dropped.
const MAX_SIBLINGS: usize = 4096;

/// A stored arrow: lane, row and relative start in ns of the other slice, and true if the arrow is
/// incoming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Arrow(pub(crate) u32, pub(crate) u16, pub(crate) i64, pub(crate) bool);

/// Arrows of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Joined {
    /// At most [`MAX_ARROWS`] arrows.
    pub(crate) arrows: Vec<Arrow>,
    /// Number of arrows that are not stored.
    pub(crate) further: u32,
}

/// Returns the arrows per slice index, for all slices with arrows.
pub(crate) fn joined(trace: &Trace) -> BTreeMap<u32, Joined> {
    let ranges = ranges(trace);
    let mut joined: BTreeMap<u32, Joined> = BTreeMap::new();
    let mut add = |slice: usize, other: usize, incoming: bool| {
        let Slices { lane, start_ns, depth, .. } = &trace.slices;
        let slot = joined.entry(slice as u32).or_default();
        if slot.arrows.len() == MAX_ARROWS {
            slot.further = slot.further.saturating_add(1);
            return;
        }
        let since = i128::from(start_ns[other]) - i128::from(start_ns[slice]);
        // A range of about two centuries is sufficient.
        let since = since.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        slot.arrows.push(Arrow(lane[other], depth[other], since, incoming));
    };
    for flow in &trace.flows {
        let ends = [(flow.from_lane, flow.from_ns), (flow.to_lane, flow.to_ns)];
        let [from, to] = ends.map(|(lane, at_ns)| around(trace, &ranges, lane, at_ns));
        let (Some(from), Some(to)) = (from, to) else { continue };
        if from != to {
            add(from, to, false);
            add(to, from, true);
        }
    }
    joined
}

/// Returns the slice range per lane. Slices are sorted by lane and start.
fn ranges(trace: &Trace) -> Vec<Range<usize>> {
    let lanes = &trace.slices.lane;
    let first = |lane: usize| lanes.partition_point(|&slice_lane| (slice_lane as usize) < lane);
    (0..trace.lanes.len()).map(|lane| first(lane)..first(lane + 1)).collect()
}

/// Returns the innermost slice at a given time, on the lane or on the thread's overflow lanes. If
/// no slice is active, returns the following slice on the lane.
fn around(trace: &Trace, ranges: &[Range<usize>], lane: u32, at_ns: u64) -> Option<usize> {
    let Slices { start_ns, duration_ns, .. } = &trace.slices;
    let lane_range = ranges.get(lane as usize)?.clone();
    let overflow = trace.lanes.iter().skip(lane as usize + 1).take_while(|lane| lane.overflow > 0).count();
    let lanes = ranges.iter().skip(lane as usize).take(overflow + 1);
    let runs = |&slice: &usize| {
        let end = start_ns[slice].saturating_add(duration_ns[slice]);
        end > at_ns || start_ns[slice] == at_ns
    };
    let within = lanes.filter_map(|range| {
        let begun = range.start + start_ns[range.clone()].partition_point(|&start| start <= at_ns);
        // Slices with later starts are nested deeper.
        (range.start..begun).rev().take(MAX_SIBLINGS).find(runs)
    });
    within.max_by_key(|&slice| start_ns[slice]).or_else(|| {
        let next = lane_range.start + start_ns[lane_range.clone()].partition_point(|&start| start < at_ns);
        (next < lane_range.end).then_some(next)
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use ingest::trace::{Limits, TimeUnit, read};

    use super::*;

    fn trace(events: &str) -> Trace {
        let text = format!(r#"{{"traceEvents": [{events}]}}"#);
        read(text.as_bytes(), TimeUnit::Microseconds, &Limits::default()).unwrap()
    }

    #[test]
    fn arrows_join_the_innermost_slices() {
        // Thread 1: slice 0-100 contains 10-20 and 30-40. Thread 2: slice 50-60. Arrows: from 35 to
        // 50, and from 25, between the inner slices.
        let trace = trace(
            r#"{"ph": "X", "name": "outer", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
               {"ph": "X", "name": "one", "pid": 1, "tid": 1, "ts": 10, "dur": 10},
               {"ph": "X", "name": "two", "pid": 1, "tid": 1, "ts": 30, "dur": 10},
               {"ph": "X", "name": "kernel", "pid": 1, "tid": 2, "ts": 50, "dur": 10},
               {"ph": "s", "id": 7, "name": "a", "cat": "c", "pid": 1, "tid": 1, "ts": 35},
               {"ph": "f", "id": 7, "name": "a", "cat": "c", "pid": 1, "tid": 2, "ts": 50, "bp": "e"},
               {"ph": "s", "id": 8, "name": "a", "cat": "c", "pid": 1, "tid": 1, "ts": 25},
               {"ph": "f", "id": 8, "name": "a", "cat": "c", "pid": 1, "tid": 2, "ts": 45}"#,
        );
        let slice_index = |name: &str| {
            let name = trace.names.iter().position(|known| known == name).unwrap() as u32;
            trace.slices.name.iter().position(|&slice_name| slice_name == name).unwrap() as u32
        };
        let joined = joined(&trace);
        let kernel = slice_index("kernel");
        assert_eq!(joined.keys().copied().collect::<Vec<_>>(), {
            let mut with = vec![slice_index("outer"), slice_index("two"), kernel];
            with.sort_unstable();
            with
        });
        let (host, device) = (trace.slices.lane[slice_index("two") as usize], trace.slices.lane[kernel as usize]);
        // The starts are 0, 30 and 50 us. No slice is active at 45, so the following slice is used.
        assert_eq!(joined[&slice_index("two")].arrows, [Arrow(device, 0, 20_000, false)]);
        assert_eq!(joined[&slice_index("outer")].arrows, [Arrow(device, 0, 50_000, false)]);
        let mut back = joined[&kernel].arrows.clone();
        back.sort_by_key(|arrow| arrow.2);
        assert_eq!(back, [Arrow(host, 0, -50_000, true), Arrow(host, 1, -20_000, true)]);
    }

    #[test]
    fn a_slice_with_too_many_arrows_counts_them() {
        let mut events = String::from(r#"{"ph": "X", "name": "hub", "pid": 1, "tid": 1, "ts": 0, "dur": 9000}"#);
        for number in 0..70 {
            let at = number * 10;
            write!(
                events,
                r#", {{"ph": "X", "name": "k", "pid": 1, "tid": 2, "ts": {at}, "dur": 5}},
                   {{"ph": "s", "id": {number}, "name": "a", "cat": "c", "pid": 1, "tid": 1, "ts": {at}}},
                   {{"ph": "f", "id": {number}, "name": "a", "cat": "c", "pid": 1, "tid": 2, "ts": {at}, "bp": "e"}}"#
            )
            .expect("a String takes any text");
        }
        let trace = trace(&events);
        let hub = joined(&trace).into_values().max_by_key(|joined| joined.arrows.len()).unwrap();
        assert_eq!((hub.arrows.len(), hub.further), (64, 6));
    }
}
