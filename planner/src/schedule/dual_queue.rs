//! Dual-queue interleaving: forwards and backwards of given priorities become one order per rank (PipeWeaver,
//! section 6.2).
//!
//! Every rank has two queues, of forwards and of backwards whose inputs have a known time of arrival. Again and again
//! the rank that can start something first is taken. Where both its queues have something that is there already,
//! forward and backward alternate, as in 1F1B; otherwise it takes what can start first. Within a queue, what can
//! start at that moment goes by priority; the parts of one group deepest stage first, so that what is begun gets
//! finished.
//!
//! *Memory.* A forward that would lift its rank above the cap waits. That alone can deadlock: ranks can fill up with
//! microbatches none of which can be finished. [`interleave`] notices and starts again under the rule of the
//! [banker](banker): a forward runs only if afterwards the microbatches in flight can still be finished one by one.
//! Under it there is always one among them whose forwards all fit and whose backwards free what they hold, so the walk
//! comes to its end whenever each microbatch fits by itself.

mod banker;
mod queue;
mod walk;

use crate::cost::PipelineCosts;
use crate::schedule::Schedule;
use crate::units::{Bytes, Nanos};

use banker::Banker;
use walk::Walk;

/// In which order groups of segments are preferred; smaller first. All cells of a group share its priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priorities {
    /// Of each group, for its forwards.
    pub forward: Vec<u32>,
    /// Of each group, for its backwards.
    pub backward: Vec<u32>,
}

impl Priorities {
    /// Groups in the order of their numbers, forwards and backwards alike.
    pub fn natural(groups: usize) -> Self {
        let order: Vec<u32> = (0..groups as u32).collect();
        Self { forward: order.clone(), backward: order }
    }

    /// From sequences of groups, first to last.
    pub fn of_sequences(forward: &[u32], backward: &[u32]) -> Self {
        let places = |sequence: &[u32]| {
            let mut places = vec![0; sequence.len()];
            for (place, &group) in sequence.iter().enumerate() {
                places[group as usize] = place as u32;
            }
            places
        };
        Self { forward: places(forward), backward: places(backward) }
    }
}

/// What is interleaved: a pipeline, its groups, and the memory of its ranks.
#[derive(Debug, Clone)]
pub struct Interleaving<'a> {
    costs: &'a PipelineCosts,
    /// The group of each microbatch or sub-microbatch.
    groups: &'a [u32],
    /// What each rank may hold above its static memory, room for its largest recomputation kept free.
    caps: Vec<Bytes>,
    banker: Banker,
}

/// A microbatch that does not fit a rank even alone: no order helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} needs {:.1} GiB for microbatch {microbatch} alone, with all that feeds it", needs.gib())]
pub struct TooLarge {
    /// The rank that lacks the most.
    pub rank: usize,
    /// The microbatch with the largest need there.
    pub microbatch: usize,
    /// Memory that the rank needs for its state, this microbatch and its largest recomputation.
    pub needs: Bytes,
}

/// An order of all ranks, and when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interleaved {
    /// The schedule.
    pub schedule: Schedule,
    /// End of the iteration if this replica were alone: synchronisation and optimizer included.
    pub end: Nanos,
}

impl<'a> Interleaving<'a> {
    /// Prepares a pipeline whose ranks may hold `limit` bytes each.
    ///
    /// # Errors
    /// Names the rank and microbatch with the largest need where one does not fit even alone.
    pub fn new(costs: &'a PipelineCosts, groups: &'a [u32], limit: Bytes) -> Result<Self, TooLarge> {
        let mut transient = vec![Bytes::ZERO; costs.ranks()];
        for cell in costs.cells() {
            let rank = &mut transient[costs.rank_of(cell.stage)];
            *rank = (*rank).max(costs.transient[cell.index]);
        }
        let fixed: Vec<Bytes> = (0..costs.ranks()).map(|rank| costs.static_memory[rank] + transient[rank]).collect();
        let banker = Banker::new(costs);
        if let Some((needs, rank, microbatch)) = banker.largest_need(&fixed).filter(|(needs, ..)| *needs > limit) {
            return Err(TooLarge { rank, microbatch, needs });
        }
        let caps = fixed.into_iter().map(|fixed| limit.saturating_sub(fixed)).collect();
        Ok(Self { costs, groups, caps, banker })
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.groups.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// The costs that are interleaved.
    pub const fn costs(&self) -> &'a PipelineCosts {
        self.costs
    }

    /// The group of each microbatch or sub-microbatch.
    pub const fn group_of(&self) -> &'a [u32] {
        self.groups
    }
}

/// Walks again and again through one pipeline, keeping its buffers.
#[derive(Debug)]
pub struct Interleaver<'a> {
    interleaving: &'a Interleaving<'a>,
    walk: Walk<'a>,
}

impl<'a> Interleaver<'a> {
    /// With buffers of its own.
    pub fn new(interleaving: &'a Interleaving<'a>) -> Self {
        Self { interleaving, walk: Walk::new(interleaving) }
    }

    /// End of the iteration under these priorities.
    pub fn end(&mut self, priorities: &Priorities) -> Nanos {
        if !self.walk.run(priorities, None) {
            let finished = self.walk.run(priorities, Some(self.interleaving.banker.clone()));
            assert!(finished, "under the rule of the banker every walk ends");
        }
        self.walk.end()
    }

    /// The orders of the last walk.
    pub fn schedule(&self) -> Schedule {
        self.walk.schedule()
    }

    /// Interleaves under these priorities.
    pub fn interleave(&mut self, priorities: &Priorities) -> Interleaved {
        let end = self.end(priorities);
        Interleaved { schedule: self.schedule(), end }
    }
}

/// Interleaves once; see [`Interleaver`] for many times.
pub fn interleave(interleaving: &Interleaving<'_>, priorities: &Priorities) -> Interleaved {
    Interleaver::new(interleaving).interleave(priorities)
}

#[cfg(test)]
mod tests;
