//! One of a rank's two queues: what has not arrived yet by time, what has by preference.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Nanos;

/// Preference (smaller first), then cell.
pub(super) type Entry = (u64, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    coming: BinaryHeap<Reverse<(Nanos, Entry)>>,
    /// The most preferred last.
    there: Vec<Entry>,
}

impl Queue {
    pub(super) fn clear(&mut self) {
        self.coming.clear();
        self.there.clear();
    }

    pub(super) fn push(&mut self, arrival: Nanos, entry: Entry) {
        self.coming.push(Reverse((arrival, entry)));
    }

    /// Takes in what has arrived by a time.
    pub(super) fn receive(&mut self, time: Nanos) {
        while let Some(&Reverse((arrival, entry))) = self.coming.peek() {
            if arrival > time {
                break;
            }
            self.coming.pop();
            let place = self.there.partition_point(|&other| other > entry);
            self.there.insert(place, entry);
        }
    }

    /// Whether something has arrived that may run.
    pub(super) fn has(&self, mut may_run: impl FnMut(u32) -> bool) -> bool {
        self.there.iter().rev().any(|&(_, cell)| may_run(cell))
    }

    /// When the first arrives that has not yet and may run.
    pub(super) fn next_arrival(&self, mut may_run: impl FnMut(u32) -> bool) -> Option<Nanos> {
        let &Reverse((arrival, (_, first))) = self.coming.peek()?;
        if may_run(first) {
            return Some(arrival);
        }
        let able = self.coming.iter().filter(|Reverse((_, (_, cell)))| may_run(*cell));
        able.map(|Reverse((arrival, _))| *arrival).min()
    }

    /// Takes out the most preferred that has arrived and may run.
    pub(super) fn take(&mut self, mut may_run: impl FnMut(u32) -> bool) -> Option<u32> {
        let place = self.there.iter().rposition(|&(_, cell)| may_run(cell))?;
        Some(self.there.remove(place).1)
    }
}
