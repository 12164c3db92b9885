//! Splits a global batch into microbatches, and a microbatch into groups with degrees: the workflow
//! in DHP Sec. 5.

mod chunked;

use std::collections::BTreeSet;

use super::allocation::{Allocation, allocate, makespan_bound};
use super::atomic::{AtomicGroup, Bins, Item, Setting, by_memory, by_time, descending};
use super::baseline;
use super::cost::{GroupCost, Load, Sequence};
use super::degrees::AllowedDegrees;
use planscope_core::host::{Cancellation, NeverCancelled};

pub(crate) use chunked::chunked_plans;

/// Planning problem: a global batch on ranks that are model replicas (TP x PP devices each).
#[derive(Debug, Clone, Copy)]
pub struct GroupProblem<'a> {
    /// Sequences in the global batch.
    pub sequences: &'a [Sequence],
    /// Total number of ranks, N.
    pub ranks: u32,
    /// Token capacity per rank, see [`super::RankMemory`].
    pub tokens_per_rank: u64,
    /// Allowed group degrees.
    pub degrees: &'a AllowedDegrees,
    /// Cost model for groups.
    pub cost: &'a GroupCost,
}

/// Error for a batch that cannot be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GroupError {
    /// The global batch is empty.
    #[error("the batch has no sequences")]
    Empty,
    /// There are no ranks.
    #[error("there are no ranks")]
    NoRanks,
    /// The model states use all memory.
    #[error("a rank has memory for no tokens beside its model states")]
    NoMemory,
    /// A sequence has zero tokens.
    #[error("sequence {sequence} has no tokens")]
    NoTokens {
        /// Sequence index.
        sequence: u32,
    },
    /// A mask factor is outside 0 to 1.
    #[error("sequence {sequence} has a mask factor of {eta}, which is not between 0 and 1")]
    Mask {
        /// Sequence index.
        sequence: u32,
        /// Mask factor.
        eta: f64,
    },
    /// Cost coefficients are invalid.
    #[error("not a cost: {} must be finite, not negative, and rates above zero", fields.join(", "))]
    Cost {
        /// Names of the invalid coefficients.
        fields: Vec<&'static str>,
    },
    /// A sequence exceeds the capacity of all allowed groups.
    #[error(
        "sequence {sequence} has {tokens} tokens, more than the {capacity} that the largest group, {degree} ranks of {per_rank} tokens, can hold"
    )]
    TooLong {
        /// Sequence index.
        sequence: u32,
        /// Sequence length in tokens.
        tokens: u64,
        /// Maximum capacity in tokens.
        capacity: u64,
        /// Maximum allowed degree.
        degree: u32,
        /// Token capacity per rank.
        per_rank: u64,
    },
}

/// Method that formed the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// Best-fit decreasing by memory: the atomic groups in DHP Sec. 4.3.
    Memory,
    /// By time over all ranks.
    Time,
    /// Packing for static context parallelism.
    Static,
    /// Unpacked: sequences in a group run one after the other (Megatron-LM's balanced context
    /// parallelism).
    Sequential,
}

/// Method that split the batch, plus the number of microbatches or the degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// Equal work per microbatch, mixed sequence lengths.
    Mixed(u32),
    /// Equal work per microbatch, similar sequence lengths.
    Sorted(u32),
    /// Similar sequence lengths, and enough work per microbatch to keep all ranks busy during the
    /// longest sequence.
    Patient(u32),
    /// Static context parallelism with this degree.
    Static(u32),
    /// Megatron-LM's balanced context parallelism.
    Balanced,
}

/// A group in a microbatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Sequence indices in the global batch.
    pub sequences: Vec<u32>,
    /// Total tokens.
    pub tokens: u64,
    /// d_min: the smallest allowed degree with enough memory.
    pub minimum: u32,
    /// Allocated degree.
    pub degree: u32,
    /// Seconds on the minimum number of nodes.
    pub seconds: f64,
}

/// Groups that run in parallel.
#[derive(Debug, Clone, PartialEq)]
pub struct Microbatch {
    /// Groups in descending degree order.
    pub groups: Vec<Group>,
    /// Time of the slowest group, in seconds.
    pub seconds: f64,
    /// Lower bound in seconds for all groupings of these sequences.
    pub bound: f64,
    /// Ranks without a group. These ranks do not make the slowest group faster at any allowed
    /// degree.
    pub idle_ranks: u32,
    /// Method that formed the groups.
    pub grouping: Grouping,
}

/// Plan for a global batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchPlan {
    /// Microbatches, executed sequentially.
    pub microbatches: Vec<Microbatch>,
    /// Sum of the microbatch times, in seconds.
    pub seconds: f64,
    /// Lower bound in seconds over all plans for this batch on these ranks.
    pub bound: f64,
    /// Method that split the batch.
    pub split: Split,
    /// All tried split methods and the resulting seconds.
    pub tested: Vec<(Split, f64)>,
}

/// Search effort beyond the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// The two stages in DHP Sec. 4.3, with the minimum number of mixed microbatches.
    Published,
    /// Also tries grouping by time and other split methods, and returns the fastest plan.
    Portfolio,
    /// Same as `Portfolio`, and also tries unpacked groups, as in Megatron-LM's balanced context
    /// parallelism. That plan is faster only if memory is scarce.
    Unpacked,
}

/// Plans a global batch.
///
/// All microbatches fit into memory: the minimum degrees of the groups sum to at most N.
/// [`Effort::Portfolio`] is never slower, under the same cost model, than static context
/// parallelism at an allowed degree, nor than this planner restricted to power-of-two degrees.
pub fn plan(problem: GroupProblem<'_>, effort: Effort) -> Result<BatchPlan, GroupError> {
    plan_within(problem, effort, &NeverCancelled)
}

/// Same as [`plan`], with a cancellation check. The first split is always tried, the others until the
/// cancellation.
pub fn plan_within(
    problem: GroupProblem<'_>,
    effort: Effort,
    cancellation: &dyn Cancellation,
) -> Result<BatchPlan, GroupError> {
    let mut found = search_all(problem, effort, cancellation)?;
    if effort == Effort::Unpacked
        && !cancellation.is_over()
        && let Ok(mut balanced) = baseline::megatron_balanced(problem)
    {
        let mut groups = balanced.microbatches.iter().flat_map(|microbatch| &microbatch.groups);
        let allowed = groups.all(|group| problem.degrees.list().contains(&group.degree));
        found.tested.push((Split::Balanced, balanced.seconds));
        if allowed && balanced.seconds < found.seconds {
            balanced.bound = unpacked_bound(problem);
            balanced.tested = found.tested;
            return Ok(balanced);
        }
    }
    let Found { seconds, split, planned, tested, .. } = found;
    let microbatches = planned.into_iter().map(|planned| finish(problem, planned)).collect();
    let bound = if effort == Effort::Unpacked { unpacked_bound(problem) } else { lower_bound(problem) };
    Ok(BatchPlan { microbatches, seconds, bound, split, tested })
}

/// Returns the plans of [`Effort::Portfolio`] whose time is at most `ratio` times the smallest, fastest
/// first, so that the caller can apply a more accurate model.
pub(crate) fn close_plans(problem: GroupProblem<'_>, ratio: f64) -> Result<Vec<BatchPlan>, GroupError> {
    let found = search_all(problem, Effort::Portfolio, &NeverCancelled)?;
    let mut close = vec![(found.seconds, found.split, found.planned)];
    close.extend(found.slower.into_iter().filter(|(seconds, ..)| *seconds <= found.seconds * ratio));
    close.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bound = lower_bound(problem);
    let finished = close.into_iter().map(|(seconds, split, planned)| BatchPlan {
        microbatches: planned.into_iter().map(|planned| finish(problem, planned)).collect(),
        seconds,
        bound,
        split,
        tested: vec![(split, seconds)],
    });
    Ok(finished.collect())
}

/// Searches the allowed degrees. Beyond the published effort, also searches powers of two, and reallocates
/// their groups.
fn search_all(problem: GroupProblem<'_>, effort: Effort, cancellation: &dyn Cancellation) -> Result<Found, GroupError> {
    let mut found = search(problem, effort, cancellation)?;
    if effort != Effort::Published && !cancellation.is_over() {
        let powers = problem.degrees.powers_of_two();
        let restricted = GroupProblem { degrees: &powers, ..problem };
        // If a sequence exceeds all power-of-two degrees, the restricted search returns an error
        // and is skipped.
        if powers != *problem.degrees
            && let Ok(other) = search(restricted, effort, cancellation)
        {
            let widened = other.planned.into_iter().map(|planned| widen(problem, planned));
            if let Some(planned) = widened.collect::<Option<Vec<Planned>>>() {
                found.consider(other.split, planned);
            }
        }
    }
    Ok(found)
}

/// Fastest plan so far and all tried split methods.
struct Found {
    seconds: f64,
    split: Split,
    planned: Vec<Planned>,
    tested: Vec<(Split, f64)>,
    /// Plans that are not the fastest.
    slower: Vec<(f64, Split, Vec<Planned>)>,
}

impl Found {
    fn consider(&mut self, split: Split, planned: Vec<Planned>) {
        let seconds: f64 = planned.iter().map(|planned| planned.allocation.makespan).sum();
        self.tested.push((split, seconds));
        if seconds < self.seconds {
            let before = std::mem::replace(&mut self.planned, planned);
            if !before.is_empty() {
                self.slower.push((self.seconds, self.split, before));
            }
            (self.seconds, self.split) = (seconds, split);
        } else {
            self.slower.push((seconds, split, planned));
        }
    }

    /// Groups the microbatches from a split, unless the lower bound exceeds the current minimum
    /// time.
    fn group_and_consider(&mut self, setting: Setting<'_>, split: Split, microbatches: &[Vec<Item>]) {
        let bound = |items: &Vec<Item>| {
            let loads = items.iter().map(|item| (item.load, item.minimum));
            makespan_bound(setting.cost, loads, setting.degrees, setting.ranks)
        };
        if microbatches.iter().map(bound).sum::<f64>() < self.seconds {
            self.consider(split, group_all(setting, microbatches, Effort::Portfolio));
        }
    }
}

/// Tries the split methods for the allowed degrees, at least the first.
fn search(problem: GroupProblem<'_>, effort: Effort, cancellation: &dyn Cancellation) -> Result<Found, GroupError> {
    let (setting, items) = prepare(problem)?;
    let (count, mixed) = split_mixed(setting, &items, fewest_microbatches(setting, &items));
    let mut found = Found {
        seconds: f64::INFINITY,
        split: Split::Mixed(count),
        planned: Vec::new(),
        tested: Vec::new(),
        slower: Vec::new(),
    };
    // Grouping by time takes most of the work, so it is omitted if the time is already over.
    let first_effort = if cancellation.is_over() { Effort::Published } else { effort };
    found.consider(Split::Mixed(count), group_all(setting, &mixed, first_effort));
    if effort == Effort::Published || cancellation.is_over() {
        return Ok(found);
    }
    // One extra microbatch leaves free memory for balancing.
    if (count as usize) < items.len() {
        let (more, mixed) = split_mixed(setting, &items, count + 1);
        found.group_and_consider(setting, Split::Mixed(more), &mixed);
    }
    if count > 1 && !cancellation.is_over() {
        let sorted = split_sorted(setting, &items, count, |_| 0.0);
        found.group_and_consider(setting, Split::Sorted(sorted.len() as u32), &sorted);
        let isolated_work = |item: Item| {
            let single = [(item.load, item.minimum)].into_iter();
            (makespan_bound(setting.cost, single, setting.degrees, setting.ranks) - setting.cost.b1)
                * f64::from(setting.ranks)
        };
        let patient = split_sorted(setting, &items, count, isolated_work);
        if patient != sorted {
            found.group_and_consider(setting, Split::Patient(patient.len() as u32), &patient);
        }
    }
    if !cancellation.is_over()
        && let Some((degree, packed)) = baseline::packings(problem)
    {
        let allocated = packed.into_iter().map(|groups| {
            let allocation = allocate(setting.cost, &groups, setting.degrees, setting.ranks)?;
            Some(Planned { groups, allocation, grouping: Grouping::Static })
        });
        if let Some(planned) = allocated.collect::<Option<Vec<Planned>>>() {
            found.consider(Split::Static(degree), planned);
        }
    }
    Ok(found)
}

/// Reallocates the degrees of the same groups from all allowed degrees.
fn widen(problem: GroupProblem<'_>, planned: Planned) -> Option<Planned> {
    let mut groups = planned.groups;
    for group in &mut groups {
        group.minimum = problem.degrees.minimum(group.load.tokens, problem.tokens_per_rank)?;
    }
    let allocation = allocate(problem.cost, &groups, problem.degrees, problem.ranks)?;
    Some(Planned { groups, allocation, grouping: planned.grouping })
}

/// Validates a problem and sorts the sequences in packing order.
pub(crate) fn prepare(problem: GroupProblem<'_>) -> Result<(Setting<'_>, Vec<Item>), GroupError> {
    let GroupProblem { sequences, ranks, tokens_per_rank, degrees, cost } = problem;
    let fields = cost.wrong_fields();
    if !fields.is_empty() {
        return Err(GroupError::Cost { fields });
    }
    if ranks == 0 {
        return Err(GroupError::NoRanks);
    }
    if tokens_per_rank == 0 {
        return Err(GroupError::NoMemory);
    }
    if sequences.is_empty() {
        return Err(GroupError::Empty);
    }
    for (index, sequence) in sequences.iter().enumerate() {
        if sequence.tokens == 0 {
            return Err(GroupError::NoTokens { sequence: index as u32 });
        }
        if !(0.0..=1.0).contains(&sequence.eta) {
            return Err(GroupError::Mask { sequence: index as u32, eta: sequence.eta });
        }
    }
    let setting = Setting { ranks, tokens_per_rank, degrees, cost };
    let too_long = |sequence: u32| GroupError::TooLong {
        sequence,
        tokens: sequences[sequence as usize].tokens,
        capacity: u64::from(degrees.max_degree().min(ranks)).saturating_mul(tokens_per_rank),
        degree: degrees.max_degree().min(ranks),
        per_rank: tokens_per_rank,
    };
    let items = descending(setting, sequences).map_err(too_long)?;
    // `degrees` can contain degrees above `ranks`.
    match items.iter().find(|item| item.minimum > ranks) {
        Some(item) => Err(too_long(item.index)),
        None => Ok((setting, items)),
    }
}

/// A microbatch with allocated degrees.
struct Planned {
    groups: Vec<AtomicGroup>,
    allocation: Allocation,
    grouping: Grouping,
}

fn group_all(setting: Setting<'_>, microbatches: &[Vec<Item>], effort: Effort) -> Vec<Planned> {
    microbatches.iter().filter_map(|items| group(setting, items, effort)).collect()
}

/// Groups a microbatch. The minimum degrees must fit on the ranks.
fn group(setting: Setting<'_>, items: &[Item], effort: Effort) -> Option<Planned> {
    let loads = items.iter().map(|item| (item.load, item.minimum));
    let bound = makespan_bound(setting.cost, loads, setting.degrees, setting.ranks);
    let groups = by_memory(setting, items)?;
    let allocation = allocate(setting.cost, &groups, setting.degrees, setting.ranks)?;
    let planned = Planned { groups, allocation, grouping: Grouping::Memory };
    if effort == Effort::Published || planned.allocation.makespan <= bound {
        return Some(planned);
    }
    match by_time(setting, items, bound, planned.allocation.makespan) {
        Some((groups, allocation)) if allocation.makespan < planned.allocation.makespan => {
            Some(Planned { groups, allocation, grouping: Grouping::Time })
        }
        _ => Some(planned),
    }
}

/// Returns a lower limit for the number of microbatches.
fn fewest_microbatches(setting: Setting<'_>, items: &[Item]) -> u32 {
    fewest_by_memory(setting, items).max(fewest_by_ranks(setting, items))
}

/// Returns the number of microbatches by memory: total ranks for all best-fit decreasing bins,
/// divided by the available ranks.
pub(crate) fn fewest_by_memory(setting: Setting<'_>, items: &[Item]) -> u32 {
    let mut bins = Bins::default();
    for &item in items {
        bins.put(item, setting.tokens_per_rank, u64::MAX);
    }
    bins.ranks.div_ceil(u64::from(setting.ranks)).max(1) as u32
}

/// Returns the minimum number of microbatches for [`deal`]: at most k sequences that need more than
/// 1 / (k + 1) of the ranks fit into a microbatch.
pub(crate) fn fewest_by_ranks(setting: Setting<'_>, items: &[Item]) -> u32 {
    let needed = |sharing: u32| {
        // Sequences are in descending length order, so the sequences that need more ranks are
        // first. Sequences that need one rank share bins.
        let many = items.partition_point(|item| item.minimum > (setting.ranks / (sharing + 1)).max(1));
        (many as u32).div_ceil(sharing)
    };
    (1..setting.ranks).map(needed).max().unwrap_or(1)
}

/// Splits into `count` or more microbatches with equal work and mixed lengths. The number increases
/// until the microbatches fit into memory. Returns the number and the microbatches.
pub(crate) fn split_mixed(setting: Setting<'_>, items: &[Item], count: u32) -> (u32, Vec<Vec<Item>>) {
    let mut count = count;
    loop {
        let microbatches = deal(setting, items, count);
        let fits = |microbatches: &Vec<Vec<Item>>| microbatches.iter().all(|items| by_memory(setting, items).is_some());
        if let Some(microbatches) = microbatches.filter(fits) {
            return (count, microbatches.into_iter().filter(|items| !items.is_empty()).collect());
        }
        if count as usize >= items.len() {
            // A single sequence per microbatch always fits, because the minimum degree fits.
            return (items.len() as u32, items.iter().map(|&item| vec![item]).collect());
        }
        count += 1;
    }
}

/// Assigns sequences in descending length order, each to the microbatch with the minimum work among
/// those with enough ranks and memory; ties are resolved to the first.
fn deal(setting: Setting<'_>, items: &[Item], count: u32) -> Option<Vec<Vec<Item>>> {
    #[derive(Default)]
    struct Dealt {
        work: f64,
        tokens: u64,
        ranks: u32,
        items: Vec<Item>,
    }
    let mut microbatches: Vec<Dealt> = std::iter::repeat_with(Dealt::default).take(count as usize).collect();
    // For non-negative floats, the bit patterns have the same order as the values.
    let mut by_work: BTreeSet<(u64, usize)> = (0..microbatches.len()).map(|index| (0, index)).collect();
    let capacity = u64::from(setting.ranks).saturating_mul(setting.tokens_per_rank);
    for &item in items {
        // Sequences that need one rank share bins. The caller checks that the bins fit.
        let ranks = if item.minimum > 1 { item.minimum } else { 0 };
        let fits = |dealt: &Dealt| dealt.tokens + item.load.tokens <= capacity && dealt.ranks + ranks <= setting.ranks;
        let lightest = *by_work.iter().find(|&&(_, index)| fits(&microbatches[index]))?;
        let dealt = &mut microbatches[lightest.1];
        dealt.work += setting.cost.work(item.load);
        dealt.tokens += item.load.tokens;
        dealt.ranks += ranks;
        dealt.items.push(item);
        by_work.remove(&lightest);
        by_work.insert((dealt.work.to_bits(), lightest.1));
    }
    Some(microbatches.into_iter().map(|dealt| dealt.items).collect())
}

/// Splits into about `count` microbatches in descending sequence length. A microbatch is complete
/// if the work reaches total work / `count` and `least` of the first sequence, or if the ranks are
/// full.
fn split_sorted(setting: Setting<'_>, items: &[Item], count: u32, min_work: impl Fn(Item) -> f64) -> Vec<Vec<Item>> {
    let total: f64 = items.iter().map(|item| setting.cost.work(item.load)).sum();
    let mut microbatches = Vec::new();
    let (mut bins, mut current, mut done, mut enough) = (Bins::default(), Vec::new(), 0.0, 0.0);
    for &item in items {
        let full = done >= enough || !bins.put(item, setting.tokens_per_rank, u64::from(setting.ranks));
        if full {
            if !current.is_empty() {
                microbatches.push(std::mem::take(&mut current));
            }
            bins = Bins::default();
            bins.put(item, setting.tokens_per_rank, u64::from(setting.ranks));
            enough = (total / f64::from(count)).max(min_work(item));
            done = 0.0;
        }
        done += setting.cost.work(item.load);
        current.push(item);
    }
    microbatches.push(current);
    microbatches
}

/// Returns a lower bound in seconds for a packed plan: the total work divided by all ranks, plus a
/// constant per microbatch that memory requires; or the slowest sequence as a separate group.
pub(crate) fn lower_bound(problem: GroupProblem<'_>) -> f64 {
    bound_over(problem, |tokens, capacity| tokens.div_ceil(capacity) as f64)
}

/// Returns the lower bound for plans that can run the sequences in a group one after the other.
/// Memory then stores only one sequence per group at a time. Each sequence adds the constant on
/// d_min or more ranks, so the mean per rank is at least the constant times tokens / capacity.
pub(crate) fn unpacked_bound(problem: GroupProblem<'_>) -> f64 {
    bound_over(problem, |tokens, capacity| (tokens as f64 / capacity as f64).max(1.0))
}

/// Returns the bound for `times` constants, a function of the total tokens and the capacity of all
/// ranks.
fn bound_over(problem: GroupProblem<'_>, times: impl Fn(u64, u64) -> f64) -> f64 {
    let single_bound = sequences_bound(problem, 0..problem.sequences.len() as u32);
    let total: Load = problem.sequences.iter().map(|&sequence| Load::from_sequence(sequence)).sum();
    let capacity = u64::from(problem.ranks).saturating_mul(problem.tokens_per_rank).max(1);
    let shared = problem.cost.work(total) / f64::from(problem.ranks.max(1));
    single_bound.max(shared + times(total.tokens, capacity) * problem.cost.b1)
}

/// Returns the lower bound for the makespan of a microbatch with these sequences.
pub(crate) fn sequences_bound(problem: GroupProblem<'_>, places: impl Iterator<Item = u32>) -> f64 {
    let loads = places.filter_map(|index| {
        let load = Load::from_sequence(problem.sequences[index as usize]);
        Some((load, problem.degrees.minimum(load.tokens, problem.tokens_per_rank)?))
    });
    makespan_bound(problem.cost, loads, problem.degrees, problem.ranks)
}

/// Converts a planned microbatch to the public result.
fn finish(problem: GroupProblem<'_>, planned: Planned) -> Microbatch {
    let Planned { groups, allocation, grouping } = planned;
    let bound = sequences_bound(problem, groups.iter().flat_map(|group| &group.sequences).copied());
    let mut groups: Vec<Group> = groups
        .into_iter()
        .zip(&allocation.degrees)
        .map(|(group, &degree)| Group {
            tokens: group.load.tokens,
            minimum: group.minimum,
            degree,
            seconds: problem.cost.seconds(group.load, degree),
            sequences: group.sequences,
        })
        .collect();
    groups.sort_by(|a, b| b.degree.cmp(&a.degree).then(b.tokens.cmp(&a.tokens)).then(a.sequences.cmp(&b.sequences)));
    let used: u32 = allocation.degrees.iter().sum();
    Microbatch { groups, seconds: allocation.makespan, bound, idle_ranks: problem.ranks - used, grouping }
}

impl BatchPlan {
    /// Returns the group degrees in the paper's notation, in descending order: degree and number of
    /// groups, `<6>x2 <4>x1`.
    pub fn notation(&self) -> String {
        notation(self.microbatches.iter().flat_map(|microbatch| &microbatch.groups))
    }
}

impl Microbatch {
    /// Returns the group degrees in the paper's notation, see [`BatchPlan::notation`].
    pub fn notation(&self) -> String {
        notation(self.groups.iter())
    }
}

fn notation<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    let mut counts = std::collections::BTreeMap::<u32, u32>::new();
    for group in groups {
        *counts.entry(group.degree).or_default() += 1;
    }
    let terms: Vec<String> = counts.iter().rev().map(|(degree, count)| format!("<{degree}>x{count}")).collect();
    terms.join(" ")
}
