//! Turns at the processor and memory for planning: who computes next.
//!
//! Whoever computes takes a turn and the bytes that its plans take. Clients are served in rotation: of those who wait, the client
//! with the fewest computations at work comes first, then the one that was served longest ago. A computation whose memory is not
//! free is passed by others, a few times only.

mod claimant;
mod queue;

pub use claimant::Claimant;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use queue::Queue;
use tokio::sync::oneshot;

/// What a computation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Turns at the processor: 1, or 0 for what has a limit of its own.
    pub turns: usize,
    /// Bytes at its peak, by estimate.
    pub bytes: u64,
}

impl Demand {
    /// A turn and so many bytes.
    pub const fn turn(bytes: u64) -> Self {
        Self { turns: 1, bytes }
    }

    /// Bytes without a turn.
    pub const fn memory(bytes: u64) -> Self {
        Self { turns: 0, bytes }
    }
}

/// Turns and memory, shared by all that compute.
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

/// A turn and its bytes, given back when it is dropped.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    claimant: Claimant,
    demand: Demand,
}

impl Turn {
    /// Bytes that the computation may take.
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
    /// So many turns, and so many bytes for all of them.
    pub fn new(turns: usize, bytes: u64) -> Self {
        let total = Demand { turns: turns.max(1), bytes };
        Self { queue: Arc::new(Mutex::new(Queue::new(total))), total }
    }

    /// Bytes of all turns together.
    pub fn most_bytes(&self) -> u64 {
        self.total.bytes
    }

    /// Waits for a turn. More bytes than there are count as all there are. Dropping the future gives the place up.
    pub async fn take(&self, claimant: &Claimant, demand: Demand) -> Turn {
        let demand = Demand { bytes: demand.bytes.min(self.total.bytes), ..demand };
        let (ready, granted) = oneshot::channel();
        let number = self.queue().wait(claimant.clone(), demand, ready);
        let place = Place { turns: self, number };
        self.serve();
        let turn = granted.await;
        drop(place);
        match turn {
            Ok(turn) => turn,
            // The sender stays in the queue until it is served.
            Err(_) => std::future::pending().await,
        }
    }

    /// A turn where one is free and nobody waits.
    pub fn take_free(&self, claimant: &Claimant, demand: Demand) -> Option<Turn> {
        let demand = Demand { bytes: demand.bytes.min(self.total.bytes), ..demand };
        let is_taken = self.queue().take_free(claimant, demand);
        is_taken.then(|| Turn { turns: self.clone(), claimant: claimant.clone(), demand })
    }

    /// Hands out what is free.
    fn serve(&self) {
        let served = self.queue().serve();
        // Behind the lock: a turn that nobody takes any more is given back here.
        for (claimant, demand, ready) in served {
            let turn = Turn { turns: self.clone(), claimant, demand };
            drop(ready.send(turn));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // The queue is changed in single steps, so it is whole even after a panic elsewhere.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue.
struct Place<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.turns.queue().leave(self.number) {
            // It may have stood in the way of others.
            self.turns.serve();
        }
    }
}

#[cfg(test)]
mod tests;
