//! A global batch to microbatches, and every microbatch to groups with degrees.

use super::allocation::{Allocation, allocate, makespan_bound};
use super::atomic::{AtomicGroup, Bins, Item, Setting, by_memory, by_time, descending};
use super::baseline;
use super::cost::{GroupCost, Load, Sequence};
use super::degrees::AllowedDegrees;

/// What is to be planned: one global batch on ranks that are replicas of the model (TP x PP devices each).
#[derive(Debug, Clone, Copy)]
pub struct GroupProblem<'a> {
    /// The global batch.
    pub sequences: &'a [Sequence],
    /// N: ranks there are.
    pub ranks: u32,
    /// Tokens that one rank has memory for, see [`super::RankMemory`].
    pub tokens_per_rank: u64,
    /// Degrees a group may have.
    pub degrees: &'a AllowedDegrees,
    /// What a group costs.
    pub cost: &'a GroupCost,
}

/// Why a batch cannot be planned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GroupError {
    /// There is nothing to plan.
    #[error("the batch has no sequences")]
    Empty,
    /// There is nothing to plan with.
    #[error("there are no ranks")]
    NoRanks,
    /// The model states leave no memory for tokens.
    #[error("a rank has memory for no tokens beside its model states")]
    NoMemory,
    /// Sequences have at least one token.
    #[error("sequence {sequence} has no tokens")]
    NoTokens {
        /// Its place in the batch.
        sequence: u32,
    },
    /// A sequence's mask factor is not one.
    #[error("sequence {sequence} has a mask factor of {eta}, which is not between 0 and 1")]
    Mask {
        /// Its place in the batch.
        sequence: u32,
        /// Its factor.
        eta: f64,
    },
    /// Coefficients are wrong.
    #[error("not a cost: {} must be finite, not negative, and rates above zero", fields.join(", "))]
    Cost {
        /// Names of the coefficients.
        fields: Vec<&'static str>,
    },
    /// A sequence is longer than any group can hold.
    #[error(
        "sequence {sequence} has {tokens} tokens, more than the {held} that the largest group, {degree} ranks of {per_rank} tokens, can hold"
    )]
    TooLong {
        /// Its place in the batch.
        sequence: u32,
        /// Its length.
        tokens: u64,
        /// What the largest group holds.
        held: u64,
        /// Ranks of the largest group.
        degree: u32,
        /// Tokens that one rank holds.
        per_rank: u64,
    },
}

/// How the sequences of a group found together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grouping {
    /// Best-fit decreasing by memory: the paper's atomic groups.
    Memory,
    /// Dealt by time over all ranks.
    Time,
    /// As static context parallelism packs them.
    Static,
    /// Not packed: the sequences of a group run one after the other (Megatron-LM's balanced context parallelism).
    OneByOne,
}

/// How a batch was cut into microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// Equal work in every microbatch, long and short sequences mixed.
    Mixed(u32),
    /// Equal work in every microbatch, sequences of similar length together.
    Sorted(u32),
    /// Sequences of similar length together, and so much work with the longest that it keeps nobody waiting.
    Patient(u32),
    /// As static context parallelism of this degree cuts it.
    Static(u32),
    /// As Megatron-LM's balanced context parallelism cuts it.
    Balanced,
}

/// One group of a microbatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Places of its sequences in the global batch.
    pub sequences: Vec<u32>,
    /// Their tokens.
    pub tokens: u64,
    /// d_min: the smallest allowed degree that holds them.
    pub minimum: u32,
    /// Its degree.
    pub degree: u32,
    /// Its time on as few nodes as it can stand on.
    pub seconds: f64,
}

/// The groups that run at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Microbatch {
    /// Largest degree first.
    pub groups: Vec<Group>,
    /// The time of the slowest group.
    pub seconds: f64,
    /// No grouping of these sequences is faster.
    pub bound: f64,
    /// Ranks without a group: no degree that they allow makes the slowest group faster.
    pub idle_ranks: u32,
    /// How the groups came about.
    pub grouping: Grouping,
}

/// A planned global batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchPlan {
    /// One after the other.
    pub microbatches: Vec<Microbatch>,
    /// Sum of their times.
    pub seconds: f64,
    /// No plan of this batch on these ranks is faster.
    pub bound: f64,
    /// How it was cut.
    pub split: Split,
    /// The ways to cut that were tried, with the seconds they lead to.
    pub tried: Vec<(Split, f64)>,
}

/// How far to go beyond the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Sequences grouped by memory, microbatches mixed, as few as fit: the published two stages.
    Published,
    /// Grouping by time and other ways to cut are tried too, and the fastest plan is taken.
    Portfolio,
    /// As the portfolio, and groups may run their sequences one after the other, as Megatron-LM's balanced context parallelism
    /// does: its plan is taken where it is faster, which needs ranks that are short of memory.
    Unpacked,
}

/// Plans a global batch.
///
/// Every microbatch fits: the minimum degrees of its groups sum to at most N. With [`Effort::Portfolio`] the plan is
/// never slower under the same cost than static context parallelism with one of the allowed degrees, nor than this
/// planner held to those that are powers of two.
pub fn plan(problem: GroupProblem<'_>, effort: Effort) -> Result<BatchPlan, GroupError> {
    let mut found = search(problem, effort)?;
    if effort != Effort::Published {
        let powers = problem.degrees.powers_of_two();
        let restricted = GroupProblem { degrees: &powers, ..problem };
        // Where a sequence fits no power of two there is nothing to learn from them.
        if powers != *problem.degrees
            && let Ok(other) = search(restricted, effort)
        {
            let widened = other.planned.into_iter().map(|planned| widen(problem, planned));
            if let Some(planned) = widened.collect::<Option<Vec<Planned>>>() {
                found.consider(other.split, planned);
            }
        }
    }
    if effort == Effort::Unpacked
        && let Ok(mut balanced) = baseline::megatron_balanced(problem)
    {
        let mut groups = balanced.microbatches.iter().flat_map(|microbatch| &microbatch.groups);
        let allowed = groups.all(|group| problem.degrees.list().contains(&group.degree));
        found.tried.push((Split::Balanced, balanced.seconds));
        if allowed && balanced.seconds < found.seconds {
            balanced.bound = unpacked_bound(problem);
            balanced.tried = found.tried;
            return Ok(balanced);
        }
    }
    let Found { seconds, split, planned, tried } = found;
    let microbatches = planned.into_iter().map(|planned| finish(problem, planned)).collect();
    let bound = if effort == Effort::Unpacked { unpacked_bound(problem) } else { lower_bound(problem) };
    Ok(BatchPlan { microbatches, seconds, bound, split, tried })
}

/// The best plan so far and what was tried.
struct Found {
    seconds: f64,
    split: Split,
    planned: Vec<Planned>,
    tried: Vec<(Split, f64)>,
}

impl Found {
    fn consider(&mut self, split: Split, planned: Vec<Planned>) {
        let seconds: f64 = planned.iter().map(|planned| planned.allocation.makespan).sum();
        self.tried.push((split, seconds));
        if seconds < self.seconds {
            *self = Self { seconds, split, planned, tried: std::mem::take(&mut self.tried) };
        }
    }

    /// Groups the microbatches of a split, unless their bounds say that it cannot be faster.
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

/// Tries ways to cut a batch under the problem's degrees.
fn search(problem: GroupProblem<'_>, effort: Effort) -> Result<Found, GroupError> {
    let (setting, items) = prepare(problem)?;
    let (count, mixed) = split_mixed(setting, &items, fewest_microbatches(setting, &items));
    let mut found =
        Found { seconds: f64::INFINITY, split: Split::Mixed(count), planned: Vec::new(), tried: Vec::new() };
    found.consider(Split::Mixed(count), group_all(setting, &mixed, effort));
    if effort == Effort::Published {
        return Ok(found);
    }
    // One more microbatch leaves memory free to balance in.
    if (count as usize) < items.len() {
        let (more, mixed) = split_mixed(setting, &items, count + 1);
        found.group_and_consider(setting, Split::Mixed(more), &mixed);
    }
    if count > 1 {
        let sorted = split_sorted(setting, &items, count, |_| 0.0);
        found.group_and_consider(setting, Split::Sorted(sorted.len() as u32), &sorted);
        let alone = |item: Item| {
            let one = [(item.load, item.minimum)].into_iter();
            (makespan_bound(setting.cost, one, setting.degrees, setting.ranks) - setting.cost.b1)
                * f64::from(setting.ranks)
        };
        let patient = split_sorted(setting, &items, count, alone);
        if patient != sorted {
            found.group_and_consider(setting, Split::Patient(patient.len() as u32), &patient);
        }
    }
    if let Some((degree, packed)) = baseline::packings(problem) {
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

/// The same groups with degrees of all that the problem allows.
fn widen(problem: GroupProblem<'_>, planned: Planned) -> Option<Planned> {
    let mut groups = planned.groups;
    for group in &mut groups {
        group.minimum = problem.degrees.minimum(group.load.tokens, problem.tokens_per_rank)?;
    }
    let allocation = allocate(problem.cost, &groups, problem.degrees, problem.ranks)?;
    Some(Planned { groups, allocation, grouping: planned.grouping })
}

/// Checks a problem and puts its sequences into the order of packing.
pub(super) fn prepare(problem: GroupProblem<'_>) -> Result<(Setting<'_>, Vec<Item>), GroupError> {
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
    for (place, sequence) in sequences.iter().enumerate() {
        if sequence.tokens == 0 {
            return Err(GroupError::NoTokens { sequence: place as u32 });
        }
        if !(0.0..=1.0).contains(&sequence.eta) {
            return Err(GroupError::Mask { sequence: place as u32, eta: sequence.eta });
        }
    }
    let setting = Setting { ranks, tokens_per_rank, degrees, cost };
    let too_long = |sequence: u32| GroupError::TooLong {
        sequence,
        tokens: sequences[sequence as usize].tokens,
        held: u64::from(degrees.largest().min(ranks)).saturating_mul(tokens_per_rank),
        degree: degrees.largest().min(ranks),
        per_rank: tokens_per_rank,
    };
    let items = descending(setting, sequences).map_err(too_long)?;
    // Degrees may have been listed for more ranks than there are.
    match items.iter().find(|item| item.minimum > ranks) {
        Some(item) => Err(too_long(item.index)),
        None => Ok((setting, items)),
    }
}

/// A microbatch whose groups have degrees.
struct Planned {
    groups: Vec<AtomicGroup>,
    allocation: Allocation,
    grouping: Grouping,
}

/// Groups every microbatch.
fn group_all(setting: Setting<'_>, microbatches: &[Vec<Item>], effort: Effort) -> Vec<Planned> {
    microbatches.iter().filter_map(|items| group(setting, items, effort)).collect()
}

/// Groups one microbatch whose minimum degrees are known to fit.
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

/// Microbatches that are needed at least.
fn fewest_microbatches(setting: Setting<'_>, items: &[Item]) -> u32 {
    fewest_by_memory(setting, items).max(fewest_by_ranks(setting, items))
}

/// Those that best-fit decreasing needs at least: the ranks of all its bins over the ranks there are.
pub(super) fn fewest_by_memory(setting: Setting<'_>, items: &[Item]) -> u32 {
    let mut bins = Bins::default();
    for &item in items {
        bins.put(item, setting.tokens_per_rank, u64::MAX);
    }
    bins.ranks.div_ceil(u64::from(setting.ranks)).max(1) as u32
}

/// Those that [`deal`] needs at least: of sequences that need more than a (k + 1)th of the ranks, k share a microbatch at most.
pub(super) fn fewest_by_ranks(setting: Setting<'_>, items: &[Item]) -> u32 {
    let needed = |sharing: u32| {
        // Longest first, which need the most ranks. Those of one rank share bins.
        let many = items.partition_point(|item| item.minimum > (setting.ranks / (sharing + 1)).max(1));
        (many as u32).div_ceil(sharing)
    };
    (1..setting.ranks).map(needed).max().unwrap_or(1)
}

/// Cuts into at least `count` microbatches of equal work with long and short sequences in each, into more where memory
/// asks for it; the number and the microbatches.
pub(super) fn split_mixed(setting: Setting<'_>, items: &[Item], count: u32) -> (u32, Vec<Vec<Item>>) {
    let mut count = count;
    loop {
        let microbatches = deal(setting, items, count);
        let fits = |microbatches: &Vec<Vec<Item>>| microbatches.iter().all(|items| by_memory(setting, items).is_some());
        if let Some(microbatches) = microbatches.filter(fits) {
            return (count, microbatches.into_iter().filter(|items| !items.is_empty()).collect());
        }
        if count as usize >= items.len() {
            // Each alone, which fits because each one's minimum degree does.
            return (items.len() as u32, items.iter().map(|&item| vec![item]).collect());
        }
        count += 1;
    }
}

/// Deals sequences, longest first, to the microbatch with the least work that has ranks and memory for it.
fn deal(setting: Setting<'_>, items: &[Item], count: u32) -> Option<Vec<Vec<Item>>> {
    struct Dealt {
        work: f64,
        tokens: u64,
        ranks: u32,
        items: Vec<Item>,
    }
    let empty = || Dealt { work: 0.0, tokens: 0, ranks: 0, items: Vec::new() };
    let mut microbatches: Vec<Dealt> = (0..count).map(|_| empty()).collect();
    let held = u64::from(setting.ranks).saturating_mul(setting.tokens_per_rank);
    for &item in items {
        // Sequences of one rank share bins; whether those fit is tried afterwards.
        let ranks = if item.minimum > 1 { item.minimum } else { 0 };
        let fits = |dealt: &&mut Dealt| dealt.tokens + item.load.tokens <= held && dealt.ranks + ranks <= setting.ranks;
        let least = microbatches.iter_mut().filter(fits).min_by(|a, b| a.work.total_cmp(&b.work))?;
        least.work += setting.cost.work(item.load);
        least.tokens += item.load.tokens;
        least.ranks += ranks;
        least.items.push(item);
    }
    Some(microbatches.into_iter().map(|dealt| dealt.items).collect())
}

/// Cuts into about `count` microbatches, the longest sequences in the first: a microbatch is done when it has its share of
/// the work and at least the work that `least` asks for its first sequence, or when its ranks are full.
fn split_sorted(setting: Setting<'_>, items: &[Item], count: u32, least: impl Fn(Item) -> f64) -> Vec<Vec<Item>> {
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
            enough = (total / f64::from(count)).max(least(item));
            done = 0.0;
        }
        done += setting.cost.work(item.load);
        current.push(item);
    }
    microbatches.push(current);
    microbatches
}

/// No plan of the batch is faster: all work over all ranks with the constant of as many microbatches as memory needs, and
/// the slowest sequence alone.
pub(super) fn lower_bound(problem: GroupProblem<'_>) -> f64 {
    bound_over(problem, |tokens, held| tokens.div_ceil(held) as f64)
}

/// The same where groups may run their sequences one after the other: memory then holds one of each group's at a time, and each
/// takes the constant on as many ranks as it needs, so all ranks take it as often as the tokens go into their memory.
pub(super) fn unpacked_bound(problem: GroupProblem<'_>) -> f64 {
    bound_over(problem, |tokens, held| (tokens as f64 / held as f64).max(1.0))
}

/// The bound where the constant is there `times` for all tokens and those that all ranks hold.
fn bound_over(problem: GroupProblem<'_>, times: impl Fn(u64, u64) -> f64) -> f64 {
    let one = bound_of(problem, 0..problem.sequences.len() as u32);
    let total: Load = problem.sequences.iter().map(|&sequence| Load::of(sequence)).sum();
    let held = u64::from(problem.ranks).saturating_mul(problem.tokens_per_rank).max(1);
    let shared = problem.cost.work(total) / f64::from(problem.ranks.max(1));
    one.max(shared + times(total.tokens, held) * problem.cost.b1)
}

/// The bound of the makespan of one microbatch of these sequences.
pub(super) fn bound_of(problem: GroupProblem<'_>, places: impl Iterator<Item = u32>) -> f64 {
    let loads = places.filter_map(|place| {
        let load = Load::of(problem.sequences[place as usize]);
        Some((load, problem.degrees.minimum(load.tokens, problem.tokens_per_rank)?))
    });
    makespan_bound(problem.cost, loads, problem.degrees, problem.ranks)
}

/// What is reported of a microbatch.
fn finish(problem: GroupProblem<'_>, planned: Planned) -> Microbatch {
    let Planned { groups, allocation, grouping } = planned;
    let bound = bound_of(problem, groups.iter().flat_map(|group| &group.sequences).copied());
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
    /// Degrees of all groups in the paper's notation: degree and how many groups have it, largest first, `<6>x2 <4>x1`.
    pub fn notation(&self) -> String {
        notation(self.microbatches.iter().flat_map(|microbatch| &microbatch.groups))
    }
}

impl Microbatch {
    /// Degrees of its groups in the paper's notation, as [`BatchPlan::notation`].
    pub fn notation(&self) -> String {
        notation(self.groups.iter())
    }
}

/// Counts degrees.
fn notation<'a>(groups: impl Iterator<Item = &'a Group>) -> String {
    let mut counts = std::collections::BTreeMap::<u32, u32>::new();
    for group in groups {
        *counts.entry(group.degree).or_default() += 1;
    }
    let terms: Vec<String> = counts.iter().rev().map(|(degree, count)| format!("<{degree}>x{count}")).collect();
    terms.join(" ")
}
