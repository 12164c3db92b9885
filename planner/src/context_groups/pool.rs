//! The pool of communication groups: made once, found again by their ranks (DHP, section 5).

use std::collections::BTreeSet;

use super::placement::Placement;

/// Communication groups that were made so far in a run.
#[derive(Debug, Clone, Default)]
pub struct GroupPool {
    /// Their ranks.
    made: BTreeSet<Vec<u32>>,
}

/// What a run asked of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCount {
    /// Groups that were there.
    pub hits: u64,
    /// Groups that had to be made.
    pub misses: u64,
}

impl GroupPool {
    /// Asks for the groups of one microbatch; groups of one rank communicate with nobody and are not counted.
    pub fn ask(&mut self, placement: &Placement) -> PoolCount {
        let mut count = PoolCount::default();
        for placed in placement.groups.iter().filter(|placed| placed.ranks.len() > 1) {
            if self.made.contains(&placed.ranks) {
                count.hits += 1;
            } else {
                self.made.insert(placed.ranks.clone());
                count.misses += 1;
            }
        }
        count
    }

    /// Groups that exist by now.
    pub fn len(&self) -> usize {
        self.made.len()
    }

    /// Whether no group was made yet.
    pub fn is_empty(&self) -> bool {
        self.made.is_empty()
    }
}

impl std::ops::AddAssign for PoolCount {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.misses += other.misses;
    }
}
