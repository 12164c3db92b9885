//! A queue of a rank: pending cells by arrival time, arrived cells by priority (Q_fw and Q_bw in
//! PipeWeaver Sec. 6.2).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use planscope_core::units::Nanos;

/// (Priority, cell). Smaller values take precedence.
pub(super) type Entry = (u64, u32);

#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    coming: BinaryHeap<Reverse<(Nanos, Entry)>>,
    /// Arrived entries in descending order. The entry with the highest precedence is at the end.
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

    /// Moves cells that arrive until `time` to the arrived cells.
    pub(super) fn receive(&mut self, time: Nanos) {
        while let Some(&Reverse((arrival, entry))) = self.coming.peek() {
            if arrival > time {
                break;
            }
            self.coming.pop();
            let index = self.there.partition_point(|&other| other > entry);
            self.there.insert(index, entry);
        }
    }

    /// Returns whether an arrived cell satisfies `may_run`.
    pub(super) fn has(&self, mut may_run: impl FnMut(u32) -> bool) -> bool {
        self.there.iter().rev().any(|&(_, cell)| may_run(cell))
    }

    /// Returns the earliest arrival time of a pending cell that satisfies `may_run`.
    pub(super) fn next_arrival(&self, mut may_run: impl FnMut(u32) -> bool) -> Option<Nanos> {
        let &Reverse((arrival, (_, first))) = self.coming.peek()?;
        if may_run(first) {
            return Some(arrival);
        }
        let able = self.coming.iter().filter(|Reverse((_, (_, cell)))| may_run(*cell));
        able.map(|Reverse((arrival, _))| *arrival).min()
    }

    /// Removes the arrived cell with the highest precedence that satisfies `may_run`.
    pub(super) fn take(&mut self, mut may_run: impl FnMut(u32) -> bool) -> Option<u32> {
        let index = self.there.iter().rposition(|&(_, cell)| may_run(cell))?;
        Some(self.there.remove(index).1)
    }
}
