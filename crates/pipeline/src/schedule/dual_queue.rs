//! Dual-queue interleaving: computes an order per rank from forward and backward priorities
//! (PipeWeaver Sec. 6.2).
//!
//! Each rank has a forward queue and a backward queue, with known input arrival times. The
//! algorithm repeatedly selects the rank with the earliest possible start. If both queues of this
//! rank contain arrived actions, forwards and backwards alternate, as in 1F1B. Otherwise the rank
//! runs the earliest action. Arrived actions in a queue are sorted by priority. In a group,
//! forwards at deeper stages have precedence, so that started microbatches finish.
//!
//! *Memory.* A forward that would exceed the rank's memory cap is delayed. This rule can deadlock:
//! ranks can fill up with microbatches that cannot finish. [`interleave`] detects this and restarts
//! with the [banker's rule](banker): a forward runs only if all microbatches in flight can still
//! finish one after the other. Then some microbatch always has forwards that fit and backwards that
//! release memory. Therefore the algorithm terminates if each single microbatch fits.

mod banker;
mod queue;
mod walk;

use planscope_core::action::Schedule;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

use banker::Banker;
use walk::Walk;

/// Group priorities; smaller values take precedence. All cells in a group have the same priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priorities {
    /// Forward priority per group.
    pub forward: Vec<u32>,
    /// Backward priority per group.
    pub backward: Vec<u32>,
}

impl Priorities {
    /// Creates priorities equal to group indices, for forwards and backwards.
    pub fn natural(groups: usize) -> Self {
        let order: Vec<u32> = (0..groups as u32).collect();
        Self { forward: order.clone(), backward: order }
    }

    /// Creates priorities from group sequences.
    pub fn from_sequences(forward: &[u32], backward: &[u32]) -> Self {
        let places = |sequence: &[u32]| {
            let mut places = vec![0; sequence.len()];
            for (position, &group) in sequence.iter().enumerate() {
                places[group as usize] = position as u32;
            }
            places
        };
        Self { forward: places(forward), backward: places(backward) }
    }
}

/// Input for interleaving: a pipeline, its groups and the memory per rank.
#[derive(Debug, Clone)]
pub struct Interleaving<'a> {
    costs: &'a PipelineCosts,
    /// Group per (sub-)microbatch.
    groups: &'a [u32],
    /// Activation memory per rank: the limit minus static memory and peak temporary memory.
    caps: Vec<Bytes>,
    banker: Banker,
}

/// A single microbatch does not fit on a rank, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} needs {:.1} GiB for microbatch {microbatch} alone, with all that feeds it", needs.gib())]
pub struct TooLarge {
    /// Rank with the maximum shortage.
    pub rank: usize,
    /// Microbatch with the maximum need on this rank.
    pub microbatch: usize,
    /// Required memory for model state, this microbatch and recomputation.
    pub needs: Bytes,
}

/// A computed order and its iteration time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interleaved {
    /// The schedule.
    pub schedule: Schedule,
    /// Iteration time of this replica, including synchronization and optimizer.
    pub end: Nanos,
}

impl<'a> Interleaving<'a> {
    /// Prepares a pipeline with a memory limit of `limit` bytes per rank.
    ///
    /// # Errors
    /// Returns the rank and the microbatch with the maximum need if a single microbatch does not
    /// fit.
    pub fn new(costs: &'a PipelineCosts, groups: &'a [u32], limit: Bytes) -> Result<Self, TooLarge> {
        let mut transient = vec![Bytes::ZERO; costs.ranks()];
        for cell in costs.cells() {
            let rank = &mut transient[costs.rank_for_stage(cell.stage)];
            *rank = (*rank).max(costs.transient[cell.index]);
        }
        let fixed: Vec<Bytes> = (0..costs.ranks()).map(|rank| costs.static_memory[rank] + transient[rank]).collect();
        let banker = Banker::new(costs);
        if let Some((needs, rank, microbatch)) = banker.max_need(&fixed).filter(|(needs, ..)| *needs > limit) {
            return Err(TooLarge { rank, microbatch, needs });
        }
        let caps = fixed.into_iter().map(|fixed| limit.saturating_sub(fixed)).collect();
        Ok(Self { costs, groups, caps, banker })
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// Returns the pipeline costs.
    pub const fn costs(&self) -> &'a PipelineCosts {
        self.costs
    }

    /// Returns the group per (sub-)microbatch.
    pub const fn microbatch_groups(&self) -> &'a [u32] {
        self.groups
    }
}

/// Interleaves the same pipeline repeatedly and reuses its buffers.
#[derive(Debug)]
pub struct Interleaver<'a> {
    interleaving: &'a Interleaving<'a>,
    walk: Walk<'a>,
}

impl<'a> Interleaver<'a> {
    /// Creates an interleaver with new buffers.
    pub fn new(interleaving: &'a Interleaving<'a>) -> Self {
        Self { interleaving, walk: Walk::new(interleaving) }
    }

    /// Returns the iteration time with these priorities.
    pub fn end(&mut self, priorities: &Priorities) -> Nanos {
        if !self.walk.run(priorities, None) {
            let finished = self.walk.run(priorities, Some(self.interleaving.banker.clone()));
            assert!(finished, "under the rule of the banker every walk ends");
        }
        self.walk.end()
    }

    /// Returns the schedule from the last run.
    pub fn schedule(&self) -> Schedule {
        self.walk.schedule()
    }

    /// Interleaves with these priorities.
    pub fn interleave(&mut self, priorities: &Priorities) -> Interleaved {
        let end = self.end(priorities);
        Interleaved { schedule: self.schedule(), end }
    }
}

/// Interleaves once. Use [`Interleaver`] for repeated runs.
pub fn interleave(interleaving: &Interleaving<'_>, priorities: &Priorities) -> Interleaved {
    Interleaver::new(interleaving).interleave(priorities)
}

#[cfg(test)]
mod tests;
