//! One of a rank's two queues: what has not arrived yet by time, what has by preference.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Nanos;

/// Preference (smaller first), then cell.
pub(super) type Entry = (u64, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    coming: BinaryHeap<Reverse<(Nanos, Entry)>>,
    there: BinaryHeap<Reverse<Entry>>,
    /// What is passed over while choosing.
    passed: Vec<Reverse<Entry>>,
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
            self.there.push(Reverse(entry));
        }
    }

    /// Whether something has arrived that may run.
    pub(super) fn has(&self, mut may_run: impl FnMut(u32) -> bool) -> bool {
        // Mostly the most preferred may.
        let first = self.there.peek().is_some_and(|&Reverse((_, cell))| may_run(cell));
        first || self.there.iter().any(|&Reverse((_, cell))| may_run(cell))
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
        let mut taken = None;
        while let Some(Reverse((preference, cell))) = self.there.pop() {
            if may_run(cell) {
                taken = Some(cell);
                break;
            }
            self.passed.push(Reverse((preference, cell)));
        }
        self.there.extend(self.passed.drain(..));
        taken
    }
}
