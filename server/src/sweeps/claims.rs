//! Which points of a sweep are left, and which are planned by themselves.
//!
//! A point that ends the server leaves a mark, as do the points that were begun beside it. Those are planned last and one at a
//! time, so that only the one that ends servers comes to [`MOST_ATTEMPTS`].

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::OwnedSemaphorePermit;

/// Servers that may end while they plan a point before it is given up.
const MOST_ATTEMPTS: u32 = 3;
/// Most points that a lane begins at once.
pub(super) const MOST_AT_ONCE: usize = 32;

/// Points that nobody has taken.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Never begun, in their order.
    fresh: VecDeque<u32>,
    /// Begun by a server that ended.
    suspects: VecDeque<u32>,
    /// Begun too often, and how often.
    hopeless: Vec<(u32, u32)>,
}

/// Points that a lane has taken, with its right to plan them.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) points: Vec<u32>,
    /// Whether nothing else of any sweep is planned beside it.
    pub(super) is_alone: bool,
    pub(super) _lanes: OwnedSemaphorePermit,
}

impl Claim {
    /// What is left of it behind the first points.
    pub(super) fn without(mut self, planned: usize) -> Self {
        self.points.drain(..planned.min(self.points.len()));
        self
    }
}

impl Left {
    /// The points without a row, by how often they were begun.
    pub(super) fn new(points: impl Iterator<Item = u32>, attempts: &BTreeMap<u32, u32>) -> Self {
        let mut left = Self::default();
        for point in points {
            match attempts.get(&point) {
                None => left.fresh.push_back(point),
                Some(&begun) if begun >= MOST_ATTEMPTS => left.hopeless.push((point, begun)),
                Some(_) => left.suspects.push_back(point),
            }
        }
        left
    }

    /// Whether there are none, those that are given up among them.
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.suspects.is_empty() && self.hopeless.is_empty()
    }

    /// The next points that were never begun.
    pub(super) fn take(&mut self, most: usize) -> Vec<u32> {
        self.fresh.drain(..most.min(self.fresh.len())).collect()
    }

    /// The next point that was begun before.
    pub(super) fn take_suspect(&mut self) -> Option<u32> {
        self.suspects.pop_front()
    }

    /// The points that are given up, and how often they were begun.
    pub(super) fn take_hopeless(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.hopeless)
    }

    /// Points that were taken and not planned.
    pub(super) fn put_back(&mut self, claim: &Claim) {
        let queue = if claim.is_alone { &mut self.suspects } else { &mut self.fresh };
        for &point in claim.points.iter().rev() {
            queue.push_front(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn points_are_sorted_by_how_often_they_were_begun() {
        let attempts = BTreeMap::from([(1, 1), (3, 3), (4, 2), (9, 3)]);
        let mut left = Left::new(0..6, &attempts);
        assert_eq!(left.take_hopeless(), [(3, 3)]);
        assert_eq!(left.take(2), [0, 2]);
        let lane = || async { Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap() };
        let claim = Claim { points: vec![0, 2], is_alone: false, _lanes: lane().await };
        left.put_back(&claim.without(1));
        assert_eq!(left.take(32), [2, 5]);
        assert_eq!(left.take_suspect(), Some(1));
        left.put_back(&Claim { points: vec![1], is_alone: true, _lanes: lane().await });
        assert_eq!((left.take_suspect(), left.take_suspect(), left.take_suspect()), (Some(1), Some(4), None));
        assert!(left.is_empty());
    }
}
