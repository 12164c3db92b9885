//! Scheduling of CPU turns and memory for planning.
//!
//! A computation uses a turn and the memory for the plans. Scheduling between clients is fair: the
//! client with the fewest active computations has priority, then the client with the oldest grant.
//! If a computation needs more memory than is free, later computations can overtake it a limited
//! number of times.

mod claimant;
mod queue;

pub use claimant::Claimant;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use queue::Queue;
use tokio::sync::oneshot;

/// Resources for a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// CPU turns: 1, or 0 for computations with a separate limit.
    pub turns: usize,
    /// Estimated peak memory in bytes.
    pub bytes: u64,
}

impl Demand {
    /// Creates a demand: one turn and the given memory.
    pub const fn turn(bytes: u64) -> Self {
        Self { turns: 1, bytes }
    }

    /// Creates a demand: memory only.
    pub const fn memory(bytes: u64) -> Self {
        Self { turns: 0, bytes }
    }
}

/// Shared pool of turns and memory.
#[derive(Clone)]
pub struct Turns {
    queue: Arc<Mutex<Queue>>,
    total: Demand,
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").field("total", &self.total).finish_non_exhaustive()
    }
}

/// A granted turn with its memory, released on drop.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    claimant: Claimant,
    demand: Demand,
}

impl Turn {
    /// Memory limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.demand.bytes
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.queue().give_back(&self.claimant, self.demand);
        self.turns.serve();
    }
}

impl Turns {
    /// Creates a pool with the given number of turns and total memory in bytes.
    pub fn new(turns: usize, bytes: u64) -> Self {
        let total = Demand { turns: turns.max(1), bytes };
        Self { queue: Arc::new(Mutex::new(Queue::new(total))), total }
    }

    /// Total memory in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.total.bytes
    }

    /// Acquires a turn. A demand beyond the total memory is reduced to the total. Dropping the
    /// future cancels the request.
    pub async fn take(&self, claimant: &Claimant, demand: Demand) -> Turn {
        let demand = Demand { bytes: demand.bytes.min(self.total.bytes), ..demand };
        let (ready, granted) = oneshot::channel();
        let number = self.queue().wait(claimant.clone(), demand, ready);
        let entry = QueueEntry { turns: self, number };
        self.serve();
        let turn = granted.await;
        drop(entry);
        match turn {
            Ok(turn) => turn,
            // The sender remains in the queue while the request is pending.
            Err(_) => std::future::pending().await,
        }
    }

    /// Returns a turn if one is free and the queue is empty.
    pub fn take_free(&self, claimant: &Claimant, demand: Demand) -> Option<Turn> {
        let demand = Demand { bytes: demand.bytes.min(self.total.bytes), ..demand };
        let is_taken = self.queue().take_free(claimant, demand);
        is_taken.then(|| Turn { turns: self.clone(), claimant: claimant.clone(), demand })
    }

    /// Grants free turns to pending computations.
    fn serve(&self) {
        let served = self.queue().serve();
        // Must run outside the lock: if the receiver is gone, the turn is dropped and released
        // here.
        for (claimant, demand, ready) in served {
            let turn = Turn { turns: self.clone(), claimant, demand };
            drop(ready.send(turn));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic cannot leave the queue inconsistent: each update is a single step.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Entry in the queue, removed on drop.
struct QueueEntry<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        if self.turns.queue().leave(self.number) {
            // The removed entry may have blocked later entries.
            self.turns.serve();
        }
    }
}

#[cfg(test)]
mod tests;
