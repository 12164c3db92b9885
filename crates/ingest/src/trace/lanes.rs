//! Assigns slices to lanes. Nested slices share a lane; overlapping slices use additional lanes.

use std::cmp::Reverse;

use super::kind::Kind;
use super::table::{Lane, Slices};

/// Slices in file order.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsorted {
    pub(super) thread: Vec<u32>,
    pub(super) start: Vec<u64>,
    pub(super) duration: Vec<u64>,
    pub(super) name: Vec<u32>,
    pub(super) kind: Vec<Kind>,
}

/// A thread before lane assignment.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub(super) process: u32,
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) sort_index: Option<i64>,
}

/// Slices after lane assignment.
#[derive(Debug)]
pub(super) struct Laid {
    pub(super) lanes: Vec<Lane>,
    pub(super) slices: Slices,
    /// New index of each input slice.
    pub(super) new_index: Vec<u32>,
    /// First lane per thread.
    pub(super) first_lane: Vec<Option<u32>>,
    /// Slices on additional lanes.
    pub(super) overflowed: u64,
    /// Slices on the last lane of a thread that reached the lane limit.
    pub(super) crowded: u64,
}

/// Assigns slices to lanes. A slice remains on a lane if it is nested in the open slice or starts
/// after it. Otherwise it moves to the thread's next lane; lane number `most` receives all
/// remaining slices. Threads are ordered by sort index, then file order. `places` is the process
/// order.
pub(super) fn lay(unsorted: &Unsorted, threads: &[Thread], places: &[usize], max_lanes: usize) -> Laid {
    let count = unsorted.start.len();
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|&thread| {
        let Thread { process, sort_index, .. } = &threads[thread];
        (places[*process as usize], sort_index.unwrap_or_default(), thread)
    });
    let mut positions = vec![0_u32; threads.len()];
    for (position, &thread) in order.iter().enumerate() {
        positions[thread] = position as u32;
    }
    let mut sorted: Vec<u32> = (0..count as u32).collect();
    sorted.sort_by_key(|&slice| {
        let slice = slice as usize;
        (positions[unsorted.thread[slice] as usize], unsorted.start[slice], Reverse(unsorted.duration[slice]))
    });
    let mut lanes: Vec<Lane> = Vec::new();
    let mut first_lane = vec![None; threads.len()];
    let mut laid: Vec<(u32, u16)> = Vec::with_capacity(count);
    // End times of open slices on each lane of the current thread.
    let mut open: Vec<Vec<u64>> = Vec::new();
    let mut present = None;
    let (mut overflowed, mut crowded) = (0, 0);
    for &slice in &sorted {
        let slice = slice as usize;
        let thread = unsorted.thread[slice];
        if present != Some(thread) {
            present = Some(thread);
            open.clear();
            first_lane[thread as usize] = Some(lanes.len() as u32);
        }
        let start = unsorted.start[slice];
        let end = start.saturating_add(unsorted.duration[slice]);
        let fits = open.iter_mut().position(|ends| {
            while ends.last().is_some_and(|&last| last <= start) {
                ends.pop();
            }
            ends.last().is_none_or(|&last| end <= last)
        });
        let lane_index = match fits {
            Some(lane_index) => lane_index,
            None if open.len() < max_lanes.max(1) => {
                let Thread { process, id, name, .. } = &threads[thread as usize];
                let overflow = open.len() as u32;
                lanes.push(Lane { process: *process, thread: id.clone(), name: name.clone(), overflow });
                open.push(Vec::new());
                open.len() - 1
            }
            None => {
                crowded += 1;
                open.len() - 1
            }
        };
        overflowed += u64::from(lane_index > 0);
        let first = first_lane[thread as usize].unwrap_or_default();
        laid.push((first + lane_index as u32, u16::try_from(open[lane_index].len()).unwrap_or(u16::MAX)));
        open[lane_index].push(end);
    }
    let mut by_lane: Vec<u32> = (0..count as u32).collect();
    by_lane.sort_by_key(|&position| laid[position as usize].0);
    let mut new_index = vec![0; count];
    let mut slices = Slices::default();
    for (position, &old) in by_lane.iter().enumerate() {
        let slice = sorted[old as usize] as usize;
        let (lane, depth) = laid[old as usize];
        new_index[slice] = position as u32;
        slices.lane.push(lane);
        slices.start_ns.push(unsorted.start[slice]);
        slices.duration_ns.push(unsorted.duration[slice]);
        slices.name.push(unsorted.name[slice]);
        slices.kind.push(unsorted.kind[slice]);
        slices.depth.push(depth);
    }
    Laid { lanes, slices, new_index, first_lane, overflowed, crowded }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn single_thread(slices: &[(u64, u64)], max_lanes: usize) -> Laid {
        let mut unsorted = Unsorted::default();
        for &(start, duration) in slices {
            unsorted.thread.push(0);
            unsorted.start.push(start);
            unsorted.duration.push(duration);
            unsorted.name.push(0);
            unsorted.kind.push(Kind::Other);
        }
        let thread = Thread { process: 0, id: "1".to_owned(), name: None, sort_index: None };
        lay(&unsorted, &[thread], &[0], max_lanes)
    }

    /// 0-10 contains 2-5, which contains 3-4. 8-12 overlaps its end. 20-30 follows.
    #[test]
    fn nested_slices_stay_and_overlapping_slices_move() {
        let laid = single_thread(&[(8, 4), (2, 3), (0, 10), (3, 1), (20, 10)], 4);
        assert_eq!(laid.slices.start_ns, [0, 2, 3, 20, 8]);
        assert_eq!(laid.slices.lane, [0, 0, 0, 0, 1]);
        assert_eq!(laid.slices.depth, [0, 1, 2, 0, 0]);
        assert_eq!(laid.new_index, [4, 1, 0, 2, 3]);
        assert_eq!((laid.overflowed, laid.crowded, laid.lanes[1].overflow), (1, 0, 1));
    }

    proptest! {
        #[test]
        fn no_slice_is_lost_and_lanes_nest(slices in prop::collection::vec((0_u64..60, 0_u64..30), 0..60)) {
            let laid = single_thread(&slices, 100);
            let mut old: Vec<(u64, u64)> = slices.clone();
            let mut new: Vec<(u64, u64)> =
                laid.slices.start_ns.iter().copied().zip(laid.slices.duration_ns.iter().copied()).collect();
            old.sort_unstable();
            new.sort_unstable();
            prop_assert_eq!(old, new);
            prop_assert_eq!(laid.crowded, 0);
            for first in 0..laid.slices.len() {
                for second in first + 1..laid.slices.len() {
                    let [a, b] = [first, second].map(|slice| {
                        let start = laid.slices.start_ns[slice];
                        (start, start + laid.slices.duration_ns[slice])
                    });
                    let nests = a.1 <= b.0 || b.1 <= a.0 || (a.0 <= b.0 && b.1 <= a.1) || (b.0 <= a.0 && a.1 <= b.1);
                    prop_assert!(nests || laid.slices.lane[first] != laid.slices.lane[second], "{a:?} {b:?}");
                }
            }
        }
    }
}
