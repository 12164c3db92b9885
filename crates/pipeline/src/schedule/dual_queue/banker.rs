//! The banker's algorithm (Dijkstra): allocate memory only if all microbatches can still finish.

use planscope_core::units::Bytes;
use planscope_cost::cost::PipelineCosts;
use planscope_cost::cost::pipeline::Cell;

/// Allocated and required memory per rank for the microbatches in flight. Connected microbatches
/// form a *family*: its memory is released only after all its forwards have run.
#[derive(Debug, Clone)]
pub(super) struct Banker {
    ranks: usize,
    /// Family per microbatch.
    family: Vec<u32>,
    /// Allocated bytes by family and rank.
    allocated: Vec<u64>,
    /// Total allocated bytes per rank.
    lent: Vec<u64>,
    /// Bytes required by remaining forwards, by family and rank.
    needed: Vec<u64>,
    /// Families in flight, in an order in which they can finish one after the other.
    in_flight: Vec<u32>,
    /// Number of remaining backward cells per family.
    left: Vec<u32>,
}

impl Banker {
    pub(super) fn new(costs: &PipelineCosts) -> Self {
        let family = families(costs);
        let count = family.iter().max().map_or(0, |&last| last as usize + 1);
        let ranks = costs.ranks();
        let mut banker = Self {
            ranks,
            allocated: vec![0; count * ranks],
            lent: vec![0; ranks],
            needed: vec![0; count * ranks],
            in_flight: Vec::new(),
            left: vec![0; count],
            family,
        };
        for Cell { index, stage, microbatch } in costs.cells() {
            let family = banker.family[microbatch] as usize;
            banker.needed[family * ranks + costs.rank_for_stage(stage)] += costs.activation[index].get();
            banker.left[family] += 1;
        }
        banker
    }

    /// Returns the maximum need of a single family on a rank in addition to `fixed`: bytes, rank,
    /// and the family's last microbatch.
    pub(super) fn max_need(&self, fixed: &[Bytes]) -> Option<(Bytes, usize, usize)> {
        let families = self.left.len();
        let needs = (0..families).flat_map(|family| (0..self.ranks).map(move |rank| (family, rank)));
        let peak = needs
            .map(|(family, rank)| (fixed[rank] + Bytes::new(self.needed[family * self.ranks + rank]), rank, family))
            .max_by_key(|&(bytes, rank, family)| (bytes, std::cmp::Reverse((rank, family))))?;
        let last = self.family.iter().rposition(|&family| family as usize == peak.2)?;
        Some((peak.0, peak.1, last))
    }

    /// Returns whether all families can still finish after a forward of `microbatch` has allocated
    /// `bytes` on `rank`.
    pub(super) fn may_allocate(&self, caps: &[Bytes], microbatch: usize, rank: usize, bytes: u64) -> bool {
        let loan = Loan { borrower: self.family[microbatch], rank, bytes };
        let Some(left) = self.unlent(caps, rank).checked_sub(bytes) else { return false };
        self.keeps_order(loan, left) || self.finishing_order(caps, loan).is_some()
    }

    fn unlent(&self, caps: &[Bytes], rank: usize) -> u64 {
        caps[rank].get().saturating_sub(self.lent[rank])
    }

    /// Returns whether the families in flight can finish in their current order if `left` bytes
    /// remain on the loan's rank. Other ranks do not change. A new family is appended: it fits
    /// after all others have released their memory.
    fn keeps_order(&self, loan: Loan, left: u64) -> bool {
        let mut free = left;
        self.in_flight.iter().all(|&family| {
            let at = family as usize * self.ranks + loan.rank;
            let borrowed = loan.bytes_for(family, loan.rank);
            let can_finish = self.needed[at] - borrowed <= free;
            free += self.allocated[at] + borrowed;
            can_finish
        })
    }

    /// Returns an order in which all families can finish after the loan, if any.
    fn finishing_order(&self, caps: &[Bytes], loan: Loan) -> Option<Vec<u32>> {
        let at = |family: u32, on: usize| family as usize * self.ranks + on;
        let left = |on: usize| self.unlent(caps, on) - if on == loan.rank { loan.bytes } else { 0 };
        let needs = |family: u32, on: usize| self.needed[at(family, on)] - loan.bytes_for(family, on);
        // Fast path: usually, if there is no order, no family can start it.
        let is_first = |family: u32| (0..self.ranks).all(|on| needs(family, on) <= left(on));
        if !is_first(loan.borrower) && !self.in_flight.iter().any(|&family| is_first(family)) {
            return None;
        }
        let mut free: Vec<u64> = (0..self.ranks).map(left).collect();
        let mut open = self.in_flight.clone();
        if !open.contains(&loan.borrower) {
            open.push(loan.borrower);
        }
        let mut order = Vec::with_capacity(open.len());
        while !open.is_empty() {
            let can_finish = |&family: &u32| (0..self.ranks).all(|on| needs(family, on) <= free[on]);
            let index = open.iter().position(can_finish)?;
            let family = open.remove(index);
            for (on, free) in free.iter_mut().enumerate() {
                *free += self.allocated[at(family, on)] + loan.bytes_for(family, on);
            }
            order.push(family);
        }
        Some(order)
    }

    /// Allocates memory permitted by [`Self::may_allocate`].
    pub(super) fn forward(&mut self, caps: &[Bytes], microbatch: usize, rank: usize, bytes: u64) {
        let loan = Loan { borrower: self.family[microbatch], rank, bytes };
        if !self.keeps_order(loan, self.unlent(caps, rank) - bytes) {
            self.in_flight =
                self.finishing_order(caps, loan).expect("nothing is lent after which somebody cannot finish");
        } else if !self.in_flight.contains(&loan.borrower) {
            self.in_flight.push(loan.borrower);
        }
        let index = loan.borrower as usize * self.ranks + rank;
        self.needed[index] -= bytes;
        self.allocated[index] += bytes;
        self.lent[rank] += bytes;
    }

    pub(super) fn backward(&mut self, microbatch: usize, rank: usize, bytes: u64) {
        let family = self.family[microbatch];
        self.allocated[family as usize * self.ranks + rank] -= bytes;
        self.lent[rank] -= bytes;
        self.left[family as usize] -= 1;
        if self.left[family as usize] == 0 {
            // Released memory never invalidates the order of the remaining families.
            self.in_flight.retain(|&other| other != family);
        }
    }
}

/// Memory allocation for a forward.
#[derive(Clone, Copy)]
struct Loan {
    /// Family that runs the forward.
    borrower: u32,
    rank: usize,
    bytes: u64,
}

impl Loan {
    /// Returns the bytes that a family allocates on a rank with this loan.
    const fn bytes_for(self, family: u32, rank: usize) -> u64 {
        if family == self.borrower && rank == self.rank { self.bytes } else { 0 }
    }
}

/// Numbers the sets of connected microbatches, ordered by minimum index.
fn families(costs: &PipelineCosts) -> Vec<u32> {
    let count = costs.microbatches();
    let mut parent: Vec<usize> = (0..count).collect();
    for microbatch in 0..count {
        for &input in costs.flows.inputs(microbatch) {
            let (a, b) = (root(&mut parent, microbatch), root(&mut parent, input as usize));
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut numbers = vec![u32::MAX; count];
    let mut next = 0;
    (0..count)
        .map(|microbatch| {
            let root = root(&mut parent, microbatch);
            if numbers[root] == u32::MAX {
                numbers[root] = next;
                next += 1;
            }
            numbers[root]
        })
        .collect()
}

/// Returns the minimum index in the set (union-find root).
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::multimodal;
    use super::*;
    use planscope_core::random::Random;

    proptest! {
        /// Random forwards, and backwards of families with no remaining forwards. A loan permitted
        /// by the stored order is also permitted by a new search. After each loan, all families can
        /// finish.
        #[test]
        fn the_remembered_order_allows_nothing_that_none_would(
            ranks in 1_usize..4, microbatches in 1_usize..7, segments in 1_usize..3, spare in 0_u64..60, seed in any::<u32>(),
        ) {
            let (costs, _) = multimodal(ranks, microbatches, segments, seed);
            let mut banker = Banker::new(&costs);
            let (min_memory, ..) = banker.max_need(&vec![Bytes::ZERO; ranks]).unwrap();
            let caps = vec![min_memory + Bytes::new(spare); ranks];
            let mut random = Random::new(seed, 1);
            let mut forwards: Vec<Cell> = costs.cells().collect();
            let mut allocated_cells: Vec<Cell> = Vec::new();
            for _ in 0..8 * forwards.len() {
                let family = |cell: &Cell| banker.family[cell.microbatch];
                let may_end = allocated_cells.iter().rposition(|cell| forwards.iter().all(|other| family(other) != family(cell)));
                if let Some(finished) = may_end.filter(|_| random.below(3) == 0) {
                    let cell = allocated_cells.remove(finished);
                    banker.backward(cell.microbatch, costs.rank_for_stage(cell.stage), costs.activation[cell.index].get());
                } else if !forwards.is_empty() {
                    let index = random.below(forwards.len() as u64) as usize;
                    let cell = forwards[index];
                    let (rank, bytes) = (costs.rank_for_stage(cell.stage), costs.activation[cell.index].get());
                    if !banker.may_allocate(&caps, cell.microbatch, rank, bytes) {
                        continue;
                    }
                    let loan = Loan { borrower: banker.family[cell.microbatch], rank, bytes };
                    prop_assert!(banker.finishing_order(&caps, loan).is_some());
                    banker.forward(&caps, cell.microbatch, rank, bytes);
                    allocated_cells.push(forwards.swap_remove(index));
                }
                for rank in 0..ranks {
                    let nothing = Loan { borrower: u32::MAX, rank, bytes: 0 };
                    prop_assert!(banker.keeps_order(nothing, banker.unlent(&caps, rank)));
                }
            }
        }
    }
}
