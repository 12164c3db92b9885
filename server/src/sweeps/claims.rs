//! Queue of unplanned points in a sweep, and exclusive planning of suspect points.
//!
//! If the server crashes, all points in the active batches have a recorded attempt. These points
//! are planned individually at the end, so that only the point that crashes the server reaches
//! [`MAX_ATTEMPTS`].

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::OwnedSemaphorePermit;

/// Attempt limit: a point fails when this number of servers has crashed during its planning.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum number of points per batch.
pub(super) const MAX_AT_ONCE: usize = 32;

/// Points not yet claimed.
#[derive(Debug, Default)]
pub(super) struct PointQueue {
    /// Points with zero attempts, in order.
    fresh: VecDeque<u32>,
    /// Points with an interrupted attempt.
    suspects: VecDeque<u32>,
    /// Points at the attempt limit, with the attempt count.
    is_infeasible: Vec<(u32, u32)>,
}

/// Points claimed by a lane, with the permit to plan them.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) points: Vec<u32>,
    /// True if the point is planned exclusively, while all sweeps wait.
    pub(super) is_exclusive: bool,
    pub(super) _lanes: OwnedSemaphorePermit,
}

impl Claim {
    /// Removes the first `planned` points from the claim.
    pub(super) fn without(mut self, planned: usize) -> Self {
        self.points.drain(..planned.min(self.points.len()));
        self
    }
}

impl PointQueue {
    /// Distributes the unplanned points to the queues by attempt count.
    pub(super) fn new(points: impl Iterator<Item = u32>, attempts: &BTreeMap<u32, u32>) -> Self {
        let mut left = Self::default();
        for point in points {
            match attempts.get(&point) {
                None => left.fresh.push_back(point),
                Some(&begun) if begun >= MAX_ATTEMPTS => left.is_infeasible.push((point, begun)),
                Some(_) => left.suspects.push_back(point),
            }
        }
        left
    }

    /// Returns true if all queues are empty, including failed points.
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.suspects.is_empty() && self.is_infeasible.is_empty()
    }

    /// Removes and returns points with zero attempts.
    pub(super) fn take(&mut self, limit: usize) -> Vec<u32> {
        self.fresh.drain(..limit.min(self.fresh.len())).collect()
    }

    /// Removes and returns a point with an interrupted attempt.
    pub(super) fn take_suspect(&mut self) -> Option<u32> {
        self.suspects.pop_front()
    }

    /// Removes and returns the points at the attempt limit, with the attempt count.
    pub(super) fn take_hopeless(&mut self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.is_infeasible)
    }

    /// Returns unplanned points to the queue.
    pub(super) fn put_back(&mut self, claim: &Claim) {
        let queue = if claim.is_exclusive { &mut self.suspects } else { &mut self.fresh };
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
        let mut left = PointQueue::new(0..6, &attempts);
        assert_eq!(left.take_hopeless(), [(3, 3)]);
        assert_eq!(left.take(2), [0, 2]);
        let lane = || async { Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap() };
        let claim = Claim { points: vec![0, 2], is_exclusive: false, _lanes: lane().await };
        left.put_back(&claim.without(1));
        assert_eq!(left.take(32), [2, 5]);
        assert_eq!(left.take_suspect(), Some(1));
        left.put_back(&Claim { points: vec![1], is_exclusive: true, _lanes: lane().await });
        assert_eq!((left.take_suspect(), left.take_suspect(), left.take_suspect()), (Some(1), Some(4), None));
        assert!(left.is_empty());
    }
}
