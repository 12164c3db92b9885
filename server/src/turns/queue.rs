//! Queue of pending computations.

use std::collections::HashMap;

use tokio::sync::oneshot;

use super::{Claimant, Demand, Turn};

/// Maximum number of times that a computation with insufficient free memory can be overtaken.
const MAX_PASSED: u32 = 8;
/// Number of clients in the grant history.
const REMEMBERED: usize = 1024;

/// A pending computation.
struct Waiting {
    number: u64,
    claimant: Claimant,
    demand: Demand,
    /// Number of times that it was overtaken.
    passed: u32,
    ready: oneshot::Sender<Turn>,
}

/// Free resources, active computations and pending computations.
pub(super) struct Queue {
    free: Demand,
    /// Active computations per client.
    working: HashMap<Claimant, usize>,
    /// Sequence number of the latest granted computation per client.
    served: HashMap<Claimant, u64>,
    waiting: Vec<Waiting>,
    number: u64,
}

/// A granted computation.
pub(super) type Served = (Claimant, Demand, oneshot::Sender<Turn>);

impl Queue {
    pub(super) fn new(free: Demand) -> Self {
        Self { free, working: HashMap::new(), served: HashMap::new(), waiting: Vec::new(), number: 0 }
    }

    /// Adds a computation and returns its sequence number.
    pub(super) fn wait(&mut self, claimant: Claimant, demand: Demand, ready: oneshot::Sender<Turn>) -> u64 {
        self.number += 1;
        self.waiting.push(Waiting { number: self.number, claimant, demand, passed: 0, ready });
        self.number
    }

    /// Removes a computation. Returns true if it was still in the queue.
    pub(super) fn leave(&mut self, number: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.number != number);
        self.waiting.len() < before
    }

    /// Takes free resources if the queue is empty.
    pub(super) fn take_free(&mut self, claimant: &Claimant, demand: Demand) -> bool {
        let takes = self.waiting.is_empty() && self.has(demand);
        if takes {
            self.take(claimant, demand);
        }
        takes
    }

    pub(super) fn give_back(&mut self, claimant: &Claimant, demand: Demand) {
        self.free.turns += demand.turns;
        self.free.bytes += demand.bytes;
        if let Some(count) = self.working.get_mut(claimant) {
            *count -= 1;
            if *count == 0 {
                self.working.remove(claimant);
            }
        }
    }

    /// Removes and returns all computations that can start now.
    pub(super) fn serve(&mut self) -> Vec<Served> {
        let mut served = Vec::new();
        while let Some(index) = self.next() {
            let Waiting { claimant, demand, ready, .. } = self.waiting.remove(index);
            self.take(&claimant, demand);
            served.push((claimant, demand, ready));
        }
        served
    }

    /// Returns the index of the computation with the highest priority that can start. Increments
    /// the overtake count of all computations that it overtakes.
    fn next(&mut self) -> Option<usize> {
        let mut order: Vec<usize> = (0..self.waiting.len()).collect();
        order.sort_by_key(|&index| self.waiting.get(index).map(|waiting| self.rank(waiting)));
        let mut passed = Vec::new();
        for index in order {
            let waiting = self.waiting.get(index)?;
            if waiting.demand.turns > self.free.turns {
                continue;
            }
            if waiting.demand.bytes <= self.free.bytes {
                for before in passed {
                    if let Some(before) = self.waiting.get_mut::<usize>(before) {
                        before.passed += 1;
                    }
                }
                return Some(index);
            }
            if waiting.passed >= MAX_PASSED {
                return None;
            }
            passed.push(index);
        }
        None
    }

    /// Sort key, ascending: computations at the overtake limit, then clients with fewer active
    /// computations, then clients with older grants.
    fn rank(&self, waiting: &Waiting) -> (bool, usize, u64, u64) {
        let working = self.working.get(&waiting.claimant).copied().unwrap_or(0);
        let served = self.served.get(&waiting.claimant).copied().unwrap_or(0);
        (waiting.passed < MAX_PASSED, working, served, waiting.number)
    }

    fn has(&self, demand: Demand) -> bool {
        demand.turns <= self.free.turns && demand.bytes <= self.free.bytes
    }

    fn take(&mut self, claimant: &Claimant, demand: Demand) {
        self.free.turns -= demand.turns;
        self.free.bytes -= demand.bytes;
        *self.working.entry(claimant.clone()).or_default() += 1;
        self.number += 1;
        if self.served.len() >= REMEMBERED {
            self.served.clear();
        }
        self.served.insert(claimant.clone(), self.number);
    }
}
