//! Baselines for the same cost model: static degrees, and Megatron-LM's balanced context
//! parallelism.

use std::collections::VecDeque;

use super::atomic::{AtomicGroup, Item};
use super::batch::{BatchPlan, Group, GroupError, GroupProblem, Grouping, Microbatch, Split, prepare};
use super::cost::Load;
use super::degrees::{AllowedDegrees, DegreeRule};

/// Plans a single degree for all groups and microbatches, like Megatron-LM and DeepSpeed-Ulysses.
///
/// The degree must divide N. N / degree data-parallel replicas run in parallel, and sequences are
/// packed first fit in data loader order. For Ulysses, use [`super::Exchange::AllToAll`] and
/// degrees that divide the number of heads.
pub fn static_plan(problem: GroupProblem<'_>, degree: u32) -> Result<BatchPlan, GroupError> {
    fitting_items(problem, degree)?;
    Ok(one_degree_plan(problem, degree, packed(problem, degree)))
}

/// Returns the sequences in descending order of tokens, and the tokens that a group of `degree` ranks holds; an error if
/// the longest sequence exceeds them.
pub(super) fn fitting_items(problem: GroupProblem<'_>, degree: u32) -> Result<(Vec<Item>, u64), GroupError> {
    let (_, items) = prepare(problem)?;
    let capacity = u64::from(degree).saturating_mul(problem.tokens_per_rank);
    if let Some(oversized) = items.first().filter(|item| item.load.tokens > capacity) {
        return Err(GroupError::TooLong {
            sequence: oversized.index,
            tokens: oversized.load.tokens,
            capacity,
            degree,
            per_rank: problem.tokens_per_rank,
        });
    }
    Ok((items, capacity))
}

/// Plans microbatches whose groups all have `degree` ranks.
pub(super) fn one_degree_plan(
    problem: GroupProblem<'_>,
    degree: u32,
    microbatches: impl IntoIterator<Item = Vec<AtomicGroup>>,
) -> BatchPlan {
    let microbatches = microbatches.into_iter().map(|groups| {
        let groups = groups.into_iter().map(|group| Group {
            seconds: problem.cost.seconds(group.load, degree),
            tokens: group.load.tokens,
            minimum: group.minimum,
            degree,
            sequences: group.sequences,
        });
        microbatch(problem, groups.collect(), Grouping::Static)
    });
    batch_plan(problem, microbatches.collect(), Split::Static(degree))
}

/// Returns all allowed degrees that divide N, and the plan's seconds or the error.
pub fn static_degrees(problem: GroupProblem<'_>) -> Vec<(u32, Result<f64, GroupError>)> {
    let dividing = problem.degrees.list().iter().filter(|&&degree| problem.ranks.is_multiple_of(degree));
    dividing.map(|&degree| (degree, static_plan(problem, degree).map(|plan| plan.seconds))).collect()
}

/// Returns the degree of the fastest static plan; ties are resolved to the smaller degree. `None`
/// if no static degree fits the longest sequence.
pub fn best_static_degree(problem: GroupProblem<'_>) -> Option<u32> {
    let feasible = static_degrees(problem).into_iter().filter_map(|(degree, seconds)| Some((seconds.ok()?, degree)));
    feasible.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, degree)| degree)
}

/// Returns the degree and groups in the fastest static plan.
pub(crate) fn packings(problem: GroupProblem<'_>) -> Option<(u32, Vec<Vec<AtomicGroup>>)> {
    let degree = best_static_degree(problem)?;
    Some((degree, packed(problem, degree)))
}

/// Packed lengths to try, in 1/64 above the shortest possible length. The function uses the first
/// length that does not need more microbatches.
const SPARE: [u64; 6] = [0, 1, 2, 4, 8, 24];

/// Packs first fit into groups with `degree` ranks, N / degree groups per microbatch. All sequences
/// must fit.
///
/// If the packed length is the full memory capacity, the last microbatch can leave almost all
/// data-parallel replicas idle, which is not realistic. Therefore this function also tries the
/// shortest packed length that does not increase the number of microbatches, and returns the faster
/// packing.
fn packed(problem: GroupProblem<'_>, degree: u32) -> Vec<Vec<AtomicGroup>> {
    let capacity = u64::from(degree).saturating_mul(problem.tokens_per_rank);
    let side_by_side = (problem.ranks / degree).max(1) as usize;
    let full = first_fit(problem, degree, capacity);
    let max_groups = full.len().div_ceil(side_by_side) * side_by_side;
    let max_length = problem.sequences.iter().map(|sequence| sequence.tokens).max().unwrap_or(0);
    let total: u64 = problem.sequences.iter().map(|sequence| sequence.tokens).sum();
    let short = max_length.max(total.div_ceil(max_groups.max(1) as u64));
    let lengths = SPARE.map(|share| short + short / 64 * share).into_iter().take_while(|&length| length < capacity);
    let even = lengths.map(|length| first_fit(problem, degree, length)).find(|groups| groups.len() <= max_groups);
    let seconds = |groups: &[AtomicGroup]| {
        let slowest = |groups: &[AtomicGroup]| {
            groups.iter().map(|group| problem.cost.seconds(group.load, degree)).fold(0.0, f64::max)
        };
        groups.chunks(side_by_side).map(slowest).sum::<f64>()
    };
    let groups = even.filter(|even| seconds(even) < seconds(&full)).unwrap_or(full);
    groups.chunks(side_by_side).map(<[AtomicGroup]>::to_vec).collect()
}

/// Packs first fit into groups with `degree` ranks and `capacity` tokens, in data loader order.
fn first_fit(problem: GroupProblem<'_>, degree: u32, capacity: u64) -> Vec<AtomicGroup> {
    let mut free = FirstFit::new(problem.sequences.len());
    let mut groups: Vec<AtomicGroup> = Vec::new();
    for (index, &sequence) in problem.sequences.iter().enumerate() {
        let group = free.put(sequence.tokens, capacity);
        if group == groups.len() {
            groups.push(AtomicGroup { sequences: Vec::new(), load: Load::default(), minimum: degree });
        }
        groups[group].sequences.push(index as u32);
        groups[group].load = groups[group].load.and(Load::from_sequence(sequence));
    }
    for group in &mut groups {
        let minimum = problem.degrees.minimum(group.load.tokens, problem.tokens_per_rank);
        group.minimum = minimum.map_or(degree, |minimum| minimum.min(degree));
    }
    groups
}

/// Max tree of free space per bin. A search for the first bin with enough space is logarithmic.
struct FirstFit {
    leaves: usize,
    max_free: Vec<u64>,
    used: usize,
}

impl FirstFit {
    fn new(bins: usize) -> Self {
        let leaves = bins.next_power_of_two();
        Self { leaves, max_free: vec![0; 2 * leaves], used: 0 }
    }

    /// Adds `tokens` to the first bin with enough space, or to a new bin with capacity `capacity`.
    /// Returns the bin index.
    fn put(&mut self, tokens: u64, capacity: u64) -> usize {
        let mut node = 1;
        let bin = if self.max_free[node] >= tokens {
            while node < self.leaves {
                node = if self.max_free[2 * node] >= tokens { 2 * node } else { 2 * node + 1 };
            }
            self.max_free[node] -= tokens;
            node - self.leaves
        } else {
            node = self.leaves + self.used;
            self.used += 1;
            self.max_free[node] = capacity - tokens;
            self.used - 1
        };
        while node > 1 {
            node /= 2;
            self.max_free[node] = self.max_free[2 * node].max(self.max_free[2 * node + 1]);
        }
        bin
    }
}

/// Megatron-LM treats a microbatch as balanced up to this relative slack.
const SLACK: f64 = 0.05;

/// Plans like Megatron-LM's balanced hybrid context parallelism.
///
/// A sequence gets `cp = 2^ceil(log2(|s| / tokens per rank))` ranks. The planner processes queues
/// with equal work, in descending sequence length. A sequence opens a new set of free ranks, or
/// joins the set of the same size with the minimum load; the load is |s|² / cp. A set runs
/// sequences one after the other, and the constant cost applies to each. A microbatch is complete
/// when a smaller size is reached and the loads differ by at most 5 %. The last sequence in the
/// fullest set is removed if this reduces the imbalance. Sets double while ranks are free. From
/// `problem.degrees`, only the maximum is used.
pub fn megatron_balanced(problem: GroupProblem<'_>) -> Result<BatchPlan, GroupError> {
    let degrees = AllowedDegrees::new(DegreeRule::PowersOfTwo, Some(problem.degrees.max_degree()), problem.ranks);
    let problem = GroupProblem { degrees: &degrees, ..problem };
    let (_, items) = prepare(problem)?;
    let max_degree = degrees.max_degree();
    let size = |tokens: u64| tokens.div_ceil(problem.tokens_per_rank).next_power_of_two();
    let mut left: Vec<Sized> = items
        .iter()
        .map(|item| {
            let cp = size(item.load.tokens) as u32;
            let work = (item.load.tokens as f64) * (item.load.tokens as f64) / f64::from(cp);
            Sized { index: item.index, load: item.load, cp, work }
        })
        .collect();
    let mut microbatches = Vec::new();
    while !left.is_empty() {
        let (sets, rest) = balanced_sets(left, problem.ranks, max_degree);
        left = rest;
        let groups = sets.into_iter().map(|set| Group {
            tokens: set.sequences.iter().map(|sized| sized.load.tokens).sum(),
            minimum: set.minimum,
            degree: set.ranks,
            seconds: set.sequences.iter().map(|sized| problem.cost.seconds(sized.load, set.ranks)).sum(),
            sequences: set.sequences.iter().map(|sized| sized.index).collect(),
        });
        microbatches.push(microbatch(problem, groups.collect(), Grouping::Sequential));
    }
    Ok(batch_plan(problem, microbatches, Split::Balanced))
}

/// A sequence, its required ranks and load per rank.
#[derive(Debug, Clone, Copy)]
struct Sized {
    index: u32,
    load: Load,
    cp: u32,
    work: f64,
}

/// A set of ranks that runs sequences one after the other.
#[derive(Debug, Clone)]
struct RankSet {
    ranks: u32,
    minimum: u32,
    work: f64,
    sequences: Vec<Sized>,
}

/// Returns the sets for a microbatch, and the remaining sequences in descending length order.
fn balanced_sets(left: Vec<Sized>, ranks: u32, max_degree: u32) -> (Vec<RankSet>, Vec<Sized>) {
    let mut shares = shares(left);
    let mut sets: Vec<RankSet> = Vec::new();
    let mut free = ranks;
    let mut first_size = None;
    loop {
        let placeable = |share: &&mut VecDeque<Sized>| {
            share.front().is_some_and(|sized| sized.cp <= free || sets.iter().any(|set| set.ranks == sized.cp))
        };
        let Some(sized) = shares.iter_mut().find(placeable).and_then(VecDeque::pop_front) else { break };
        if sized.cp <= free {
            free -= sized.cp;
            sets.push(RankSet { ranks: sized.cp, minimum: sized.cp, work: sized.work, sequences: vec![sized] });
        } else {
            let same = sets.iter_mut().filter(|set| set.ranks == sized.cp);
            if let Some(set) = same.min_by(|a, b| a.work.total_cmp(&b.work)) {
                set.work += sized.work;
                set.sequences.push(sized);
            }
        }
        let first = *first_size.get_or_insert(sized.cp);
        let more = shares.iter().any(|share| !share.is_empty());
        if sized.cp < first && free == 0 && more && slack(&sets) <= SLACK {
            break;
        }
    }
    let mut rest: Vec<Sized> = shares.into_iter().flatten().collect();
    while free == 0 && slack(&sets) > SLACK {
        let spread = |sets: &[RankSet]| max_work(sets) - min_work(sets);
        let before = spread(&sets);
        let Some(fullest) = (0..sets.len()).max_by(|&a, &b| sets[a].work.total_cmp(&sets[b].work).then(b.cmp(&a)))
        else {
            break;
        };
        if sets[fullest].sequences.len() <= 1 {
            break;
        }
        let Some(last) = sets[fullest].sequences.pop() else { break };
        sets[fullest].work -= last.work;
        if spread(&sets) < before {
            rest.push(last);
        } else {
            sets[fullest].work += last.work;
            sets[fullest].sequences.push(last);
            break;
        }
    }
    // The smallest sets double while ranks are free; ties are resolved to the first.
    let growing = |set: &&mut RankSet, free: u32| set.ranks <= free && 2 * set.ranks <= max_degree;
    while let Some(smallest) = sets.iter_mut().filter(|set| growing(set, free)).min_by_key(|set| set.ranks) {
        free -= smallest.ranks;
        smallest.ranks *= 2;
    }
    rest.sort_by(|a, b| b.load.tokens.cmp(&a.load.tokens).then(a.index.cmp(&b.index)));
    (sets, rest)
}

/// Splits the sequences into queues of similar work. The number of queues is near the number of
/// distinct sizes.
fn shares(sequences: Vec<Sized>) -> Vec<VecDeque<Sized>> {
    let mut sizes: Vec<u32> = sequences.iter().map(|sized| sized.cp).collect();
    sizes.dedup();
    let target = sequences.iter().map(|sized| sized.work).sum::<f64>() / sizes.len().max(1) as f64;
    let mut shares: Vec<VecDeque<Sized>> = Vec::new();
    let (mut current, mut work) = (VecDeque::new(), 0.0);
    for sized in sequences {
        if !current.is_empty() && work + sized.work > target * 1.1 {
            shares.push(std::mem::take(&mut current));
            work = 0.0;
        }
        work += sized.work;
        current.push_back(sized);
    }
    shares.push(current);
    shares
}

fn max_work(sets: &[RankSet]) -> f64 {
    sets.iter().map(|set| set.work).fold(0.0, f64::max)
}

fn min_work(sets: &[RankSet]) -> f64 {
    sets.iter().map(|set| set.work).fold(f64::INFINITY, f64::min)
}

/// Returns the relative difference between maximum and minimum set load.
fn slack(sets: &[RankSet]) -> f64 {
    if sets.is_empty() { 0.0 } else { (max_work(sets) - min_work(sets)) / max_work(sets) }
}

/// Creates a microbatch from groups and their degrees.
pub(super) fn microbatch(problem: GroupProblem<'_>, mut groups: Vec<Group>, grouping: Grouping) -> Microbatch {
    let places = groups.iter().flat_map(|group| &group.sequences).copied();
    let bound = super::batch::sequences_bound(problem, places);
    groups.sort_by(|a, b| b.degree.cmp(&a.degree).then(b.tokens.cmp(&a.tokens)).then(a.sequences.cmp(&b.sequences)));
    let used: u32 = groups.iter().map(|group| group.degree).sum();
    let seconds = groups.iter().map(|group| group.seconds).fold(0.0, f64::max);
    Microbatch { groups, seconds, bound, idle_ranks: problem.ranks.saturating_sub(used), grouping }
}

/// Creates the plan from microbatches that run one after the other.
pub(super) fn batch_plan(problem: GroupProblem<'_>, microbatches: Vec<Microbatch>, split: Split) -> BatchPlan {
    let seconds = microbatches.iter().map(|microbatch| microbatch.seconds).sum();
    let bound = match split {
        Split::Balanced => super::batch::unpacked_bound(problem),
        _ => super::batch::lower_bound(problem),
    };
    BatchPlan { microbatches, seconds, bound, split, tested: vec![(split, seconds)] }
}
