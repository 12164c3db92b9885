//! Pool of communication groups, created once and looked up by their ranks (DHP Sec. 5).

use std::collections::BTreeSet;

use super::placement::Placement;

/// Communication groups created so far in a run.
#[derive(Debug, Clone, Default)]
pub struct GroupPool {
    created: BTreeSet<Vec<u32>>,
}

/// Pool hits and misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCount {
    /// Groups found in the pool.
    pub hits: u64,
    /// Groups created.
    pub misses: u64,
}

impl GroupPool {
    /// Looks up the groups for a microbatch and creates the missing ones. Groups with one rank do
    /// not communicate and are not counted.
    pub fn ask(&mut self, placement: &Placement) -> PoolCount {
        self.ask_all(placement.groups.iter().map(|placed| placed.ranks.as_slice()))
    }

    /// Looks up groups by their ranks and creates the missing ones. Groups with one rank are not counted.
    pub fn ask_all<'a>(&mut self, groups: impl Iterator<Item = &'a [u32]>) -> PoolCount {
        let mut count = PoolCount::default();
        for ranks in groups.filter(|ranks| ranks.len() > 1) {
            if self.created.contains(ranks) {
                count.hits += 1;
            } else {
                self.created.insert(ranks.to_vec());
                count.misses += 1;
            }
        }
        count
    }

    /// Returns the number of groups in the pool.
    pub fn len(&self) -> usize {
        self.created.len()
    }

    /// Returns true if the pool is empty.
    pub fn is_empty(&self) -> bool {
        self.created.is_empty()
    }
}

impl std::ops::AddAssign for PoolCount {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}
