//! Search space for rankings: a permutation of all groups for forwards, then for backwards. Both
//! respect dependencies (PipeWeaver Sec. 6.1).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::Starts;
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;
use planscope_cost::cost::pipeline::Cell;
use planscope_pipeline::schedule::dual_queue::{Interleaving, Priorities};

/// Rankings for a pipeline. A sequence contains `2 groups` entries: the groups in forward order,
/// then in backward order.
#[derive(Debug, Clone)]
pub struct Space {
    groups: usize,
    forward: Precedence,
    backward: Precedence,
    /// Producer groups per group.
    fed_by: Vec<Vec<u32>>,
}

/// Precedence constraints between groups, in both directions.
#[derive(Debug, Clone)]
struct Precedence {
    needs: Vec<Vec<u32>>,
    allows: Vec<Vec<u32>>,
}

impl Precedence {
    fn new(mut needs: Vec<Vec<u32>>) -> Self {
        let mut allows = vec![Vec::new(); needs.len()];
        for (group, needs) in needs.iter_mut().enumerate() {
            needs.sort_unstable();
            needs.dedup();
            for &before in needs.iter() {
                allows[before as usize].push(group as u32);
            }
        }
        Self { needs, allows }
    }
}

impl Space {
    /// Derives the dependencies between groups and the interchangeable groups.
    pub fn new(interleaving: &Interleaving<'_>) -> Self {
        let (costs, group_indices) = (interleaving.costs(), interleaving.microbatch_groups());
        let groups = interleaving.groups();
        let (mut before, mut behind) = (vec![Vec::new(); groups], vec![Vec::new(); groups]);
        for (microbatch, &group) in group_indices.iter().enumerate() {
            for &input in costs.flows.inputs(microbatch) {
                let feeding = group_indices[input as usize];
                if feeding != group {
                    before[group as usize].push(feeding);
                    behind[feeding as usize].push(group);
                }
            }
        }
        let fed_by = Precedence::new(before.clone()).needs;
        for (group, twin) in twins(costs, group_indices, groups).into_iter().enumerate() {
            before[group].extend(twin);
            behind[group].extend(twin);
        }
        Self { groups, forward: Precedence::new(before), backward: Precedence::new(behind), fed_by }
    }

    /// Returns the entry count in a complete sequence.
    pub const fn len(&self) -> usize {
        2 * self.groups
    }

    /// Returns whether there are no groups.
    pub const fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// Returns the groups that may follow a prefix, in ascending order.
    pub(crate) fn continuations(&self, prefix: &[u32]) -> Vec<u32> {
        let (placed, precedence) =
            if prefix.len() < self.groups { (prefix, &self.forward) } else { (&prefix[self.groups..], &self.backward) };
        let mut is_placed = vec![false; self.groups];
        for &group in placed {
            is_placed[group as usize] = true;
        }
        let free = |&group: &u32| {
            let needs = &precedence.needs[group as usize];
            !is_placed[group as usize] && needs.iter().all(|&before| is_placed[before as usize])
        };
        (0..self.groups as u32).filter(free).collect()
    }

    /// Completes a prefix by repeatedly appending the ready group that has the smallest key. `keys`
    /// contains forward keys, then backward keys.
    pub(crate) fn complete(&self, prefix: &[u32], keys: &[u64], sequence: &mut Vec<u32>) {
        sequence.clear();
        let (forward, backward) = prefix.split_at(prefix.len().min(self.groups));
        sort(forward, &keys[..self.groups], &self.forward, sequence);
        sort(backward, &keys[self.groups..], &self.backward, sequence);
    }

    /// Converts a complete sequence to priorities.
    pub fn priorities(&self, sequence: &[u32]) -> Priorities {
        let (forward, backward) = sequence.split_at(self.groups);
        Priorities::from_sequences(forward, backward)
    }

    /// Returns heuristic orders: as given, longest first, shortest first, and short groups at both
    /// ends, while the pipeline fills and drains. Each order occurs in two variants: encoders
    /// directly before the backbone, and several microbatches ahead.
    pub(crate) fn starts(&self, interleaving: &Interleaving<'_>, which: Starts) -> Vec<Vec<u32>> {
        let (costs, group_indices) = (interleaving.costs(), interleaving.microbatch_groups());
        let mut work = vec![Nanos::ZERO; self.groups];
        for Cell { index, microbatch, .. } in costs.cells() {
            work[group_indices[microbatch] as usize] += costs.forward[index] + costs.backward(index);
        }
        // A group shares the position of its family, i.e. all groups linked by dependencies.
        let family = self.families();
        let count = family.iter().max().map_or(0, |&last| last as usize + 1);
        let mut family_work = vec![Nanos::ZERO; count];
        for (group, &family) in family.iter().enumerate() {
            family_work[family as usize] += work[group];
        }
        let given: Vec<u32> = (0..count as u32).collect();
        let mut descending = given.clone();
        descending.sort_by_key(|&family| (Reverse(family_work[family as usize]), family));
        let shortest: Vec<u32> = descending.iter().rev().copied().collect();
        let (head, mut tail): (Vec<_>, Vec<_>) =
            shortest.iter().enumerate().partition(|(position, _)| position % 2 == 0);
        tail.reverse();
        let outside: Vec<u32> = head.into_iter().chain(tail).map(|(_, &family)| family).collect();
        let ranks = costs.ranks() as u64;
        let mut feeds = vec![false; self.groups];
        for &group in self.fed_by.iter().flatten() {
            feeds[group as usize] = true;
        }
        let mut starts = Vec::new();
        let orders = match which {
            Starts::All => vec![given, outside, descending, shortest],
            Starts::AsGiven => vec![given],
        };
        for order in orders {
            let mut positions = vec![0_u64; count];
            for (at, &family) in order.iter().enumerate() {
                positions[family as usize] = at as u64;
            }
            for ahead in [0, ranks / 2, ranks] {
                // Producers start earlier, so that results are ready in time.
                let key = |group: usize| {
                    let at = (positions[family[group] as usize] + ranks) * 2;
                    if feeds[group] { at - 2 * ahead } else { at + 1 }
                };
                let mut keys: Vec<u64> = (0..self.groups).map(key).collect();
                keys.extend((0..self.groups).map(|group| positions[family[group] as usize]));
                let mut sequence = Vec::new();
                self.complete(&[], &keys, &mut sequence);
                if !starts.contains(&sequence) {
                    starts.push(sequence);
                }
            }
        }
        starts
    }

    /// Assigns a number to each connected component of dependent groups.
    fn families(&self) -> Vec<u32> {
        let mut family: Vec<u32> = (0..self.groups as u32).collect();
        // Dependent groups are usually adjacent, so a few passes converge.
        loop {
            let mut changed = false;
            for group in 0..self.groups {
                for &other in &self.fed_by[group] {
                    let min_root = family[group].min(family[other as usize]);
                    if family[group] != min_root || family[other as usize] != min_root {
                        (family[group], family[other as usize]) = (min_root, min_root);
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        let mut numbers = BTreeMap::new();
        family
            .into_iter()
            .map(|root| {
                let next = numbers.len() as u32;
                *numbers.entry(root).or_insert(next)
            })
            .collect()
    }
}

/// Extends a prefix by repeatedly appending the ready group that has the smallest key.
fn sort(prefix: &[u32], keys: &[u64], precedence: &Precedence, sequence: &mut Vec<u32>) {
    let mut waiting: Vec<u32> = precedence.needs.iter().map(|needs| needs.len() as u32).collect();
    let mut placed = vec![false; keys.len()];
    for &group in prefix {
        placed[group as usize] = true;
    }
    let mut free: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    free.extend((0..keys.len()).filter(|&group| waiting[group] == 0).map(|group| Reverse((keys[group], group as u32))));
    let start = sequence.len();
    sequence.extend_from_slice(prefix);
    let mut released = start;
    loop {
        for &group in &sequence[released..] {
            for &next in &precedence.allows[group as usize] {
                waiting[next as usize] -= 1;
                if waiting[next as usize] == 0 {
                    free.push(Reverse((keys[next as usize], next)));
                }
            }
        }
        released = sequence.len();
        loop {
            let Some(Reverse((_, group))) = free.pop() else { return };
            if !std::mem::replace(&mut placed[group as usize], true) {
                sequence.push(group);
                break;
            }
        }
    }
}

/// Maps a group to the previous interchangeable group, if any: the families have equal costs.
fn twins(costs: &PipelineCosts, group_indices: &[u32], groups: usize) -> Vec<Option<u32>> {
    /// Cost signature of a family: cost per stage.
    type CostSignature = Vec<(usize, Nanos, Nanos, u64, u64)>;
    let mut family = vec![usize::MAX; groups];
    let mut members: Vec<Vec<u32>> = Vec::new();
    let mut faces: Vec<CostSignature> = Vec::new();
    // Microbatch indices are consecutive per family, producers first.
    for microbatch in 0..costs.microbatches() {
        let group = group_indices[microbatch] as usize;
        let fed_by =
            costs.flows.inputs(microbatch).first().map(|&input| family[group_indices[input as usize] as usize]);
        let family_index = match (family[group], fed_by) {
            (usize::MAX, None) => {
                members.push(Vec::new());
                faces.push(Vec::new());
                members.len() - 1
            }
            (usize::MAX, Some(known)) | (known, _) => known,
        };
        if family[group] == usize::MAX {
            family[group] = family_index;
            members[family_index].push(group as u32);
        }
        let stages = costs.flows.microbatch_stages(microbatch);
        faces[family_index].extend(stages.zip(costs.flows.microbatch_cells(microbatch)).map(|(stage, cell)| {
            let sends = costs.send_forward[cell].get() ^ costs.send_backward[cell].get().rotate_left(32);
            (stage, costs.forward[cell], costs.backward(cell), costs.activation[cell].get(), sends)
        }));
    }
    let mut last: BTreeMap<&CostSignature, usize> = BTreeMap::new();
    let mut twins = vec![None; groups];
    for (index, face) in faces.iter().enumerate() {
        if let Some(&twin) = last.get(face) {
            // If several encoders feed a microbatch, it can form several consecutive families; only
            // families of equal size are paired.
            if members[index].len() == members[twin].len() {
                for (&group, &before) in members[index].iter().zip(&members[twin]) {
                    twins[group as usize] = Some(before);
                }
            }
        }
        last.insert(face, index);
    }
    twins
}
