//! The banker's rule (Dijkstra): never lend so much that not everybody can finish.

use crate::cost::PipelineCosts;
use crate::cost::pipeline::Cell;
use crate::units::Bytes;

/// What the microbatches in flight hold and still need on every rank. Microbatches that feed each other are one
/// *family*: none of its memory comes back before all of it has gone forward.
#[derive(Debug, Clone)]
pub(super) struct Banker {
    ranks: usize,
    /// Family of each microbatch.
    family: Vec<u32>,
    /// By family and rank: held now.
    held: Vec<u64>,
    /// By rank: held now by all families together.
    lent: Vec<u64>,
    /// By family and rank: forwards that have not run.
    needed: Vec<u64>,
    /// Families that have begun and not ended, with the cells whose backward has not run.
    in_flight: Vec<u32>,
    left: Vec<u32>,
}

impl Banker {
    pub(super) fn new(costs: &PipelineCosts) -> Self {
        let family = families(costs);
        let count = family.iter().max().map_or(0, |&last| last as usize + 1);
        let ranks = costs.ranks();
        let mut banker = Self {
            ranks,
            held: vec![0; count * ranks],
            lent: vec![0; ranks],
            needed: vec![0; count * ranks],
            in_flight: Vec::new(),
            left: vec![0; count],
            family,
        };
        for Cell { index, stage, microbatch } in costs.cells() {
            let family = banker.family[microbatch] as usize;
            banker.needed[family * ranks + costs.rank_of(stage)] += costs.activation[index].get();
            banker.left[family] += 1;
        }
        banker
    }

    /// The largest need of any rank for one family alone beside what is `fixed`: bytes, rank, and the family's last
    /// microbatch.
    pub(super) fn largest_need(&self, fixed: &[Bytes]) -> Option<(Bytes, usize, usize)> {
        let families = self.left.len();
        let needs = (0..families).flat_map(|family| (0..self.ranks).map(move |rank| (family, rank)));
        let largest = needs
            .map(|(family, rank)| (fixed[rank] + Bytes::new(self.needed[family * self.ranks + rank]), rank, family))
            .max_by_key(|&(bytes, rank, family)| (bytes, std::cmp::Reverse((rank, family))))?;
        let last = self.family.iter().rposition(|&family| family as usize == largest.2)?;
        Some((largest.0, largest.1, last))
    }

    /// Whether everybody can still finish after a forward of `microbatch` has taken `bytes` on `rank`.
    pub(super) fn may_lend(&self, caps: &[Bytes], microbatch: usize, rank: usize, bytes: u64) -> bool {
        let borrower = self.family[microbatch];
        if self.has_plenty(caps[rank].get(), borrower, rank, bytes) {
            return true;
        }
        let unlent = |on: usize| caps[on].get().saturating_sub(self.lent[on]);
        let Some(left) = unlent(rank).checked_sub(bytes) else { return false };
        let free = |on: usize| if on == rank { left } else { unlent(on) };
        let at = |family: u32, rank: usize| family as usize * self.ranks + rank;
        let more = |family: u32, on: usize| if family == borrower && on == rank { bytes } else { 0 };
        let needs = |family: u32, on: usize| self.needed[at(family, on)] - more(family, on);
        // Mostly nobody could finish first, which needs no list to find out.
        let is_first = |family: u32| (0..self.ranks).all(|on| needs(family, on) <= free(on));
        if !is_first(borrower) && !self.in_flight.iter().any(|&family| is_first(family)) {
            return false;
        }
        let mut free: Vec<u64> = (0..self.ranks).map(free).collect();
        let mut open: Vec<u32> = self.in_flight.clone();
        if !open.contains(&borrower) {
            open.push(borrower);
        }
        while !open.is_empty() {
            let can_finish = |&family: &u32| (0..self.ranks).all(|on| needs(family, on) <= free[on]);
            let Some(place) = open.iter().position(can_finish) else { return false };
            let family = open.swap_remove(place);
            for (on, free) in free.iter_mut().enumerate() {
                *free += self.held[at(family, on)] + more(family, on);
            }
        }
        true
    }

    /// Whether this rank could let everybody finish in any order afterwards. What was safe before is then safe still: the
    /// order in which everybody could finish is good for the other ranks, which nothing changes, and any is for this.
    fn has_plenty(&self, cap: u64, borrower: u32, rank: usize, bytes: u64) -> bool {
        let at = |family: u32| family as usize * self.ranks + rank;
        let Some(free) = cap.checked_sub(self.lent[rank] + bytes) else { return false };
        self.needed[at(borrower)] - bytes <= free
            && self.in_flight.iter().all(|&family| self.needed[at(family)] <= free)
    }

    pub(super) fn forward(&mut self, microbatch: usize, rank: usize, bytes: u64) {
        let family = self.family[microbatch];
        if !self.in_flight.contains(&family) {
            self.in_flight.push(family);
        }
        let place = family as usize * self.ranks + rank;
        self.needed[place] -= bytes;
        self.held[place] += bytes;
        self.lent[rank] += bytes;
    }

    pub(super) fn backward(&mut self, microbatch: usize, rank: usize, bytes: u64) {
        let family = self.family[microbatch];
        self.held[family as usize * self.ranks + rank] -= bytes;
        self.lent[rank] -= bytes;
        self.left[family as usize] -= 1;
        if self.left[family as usize] == 0 {
            self.in_flight.retain(|&other| other != family);
        }
    }
}

/// Numbers the sets of microbatches that feed each other, in order of their first.
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

/// The first of the set that a microbatch belongs to.
fn root(parent: &mut [usize], mut at: usize) -> usize {
    while parent[at] != at {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    at
}
