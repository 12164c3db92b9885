//! Local search over the groups of a batch: sequences move or change places between groups, degrees change, groups
//! merge. Moves are proposed by the fitted cost and decided by the operator graph.

use super::arrangement::{Item, Ranks, listed, lockstep_seconds, set_times};
use super::prices::{Prices, Way};
use crate::planners::dhp::{AllowedDegrees, Load, Sequence};

/// Proposals per step that are priced with the operator graph.
const PRICED: usize = 6;
/// Steps of a batch.
const STEPS: usize = 80;
/// Proposed exchanges per group; larger groups are sampled evenly.
const EXCHANGES: usize = 4000;
/// Smallest relative gain of a step.
const MIN_GAIN: f64 = 1e-5;

/// What the search may change.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub on: Ranks,
    pub sequences: &'a [Sequence],
    pub tokens_per_rank: u64,
    pub degrees: &'a AllowedDegrees,
    /// Exchanges per degree.
    pub ways: &'a dyn Fn(u32) -> Vec<Way>,
    /// Fitted time of a load in a group, in seconds.
    pub fitted: &'a dyn Fn(Load, Way) -> f64,
}

/// New contents of an item. Empty contents remove it, an index after the last item adds one.
#[derive(Debug, Clone)]
struct Change {
    item: usize,
    sequences: Vec<u32>,
    degree: u32,
    microbatch: u32,
}

/// Changes and their estimated effect on the objective, in seconds.
struct Proposal {
    seconds: f64,
    changes: Vec<Change>,
}

/// Improves the items until no proposal does. Items have times from the operator graph, before and after.
pub(crate) fn improve(mut items: Vec<Item>, rules: &Rules<'_>, prices: &mut Prices<'_>) -> Vec<Item> {
    let mut current = objective(&items, rules.on);
    for _ in 0..STEPS {
        let mut proposals = if rules.on.lockstep { in_lockstep(&items, rules) } else { free(&items, rules) };
        proposals.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        proposals.truncate(2 * PRICED);
        let mut best: Option<(f64, Vec<Item>)> = None;
        for proposal in proposals {
            let Some(changed) = apply(&items, &proposal.changes, rules, prices) else { continue };
            let seconds = objective(&changed, rules.on);
            if seconds < current * (1.0 - MIN_GAIN) && best.as_ref().is_none_or(|best| seconds < best.0) {
                best = Some((seconds, changed));
            }
        }
        let Some((seconds, changed)) = best else { break };
        (current, items) = (seconds, changed);
    }
    items
}

fn objective(items: &[Item], on: Ranks) -> f64 {
    if on.lockstep { lockstep_seconds(items) } else { listed(items, on).seconds }
}

/// Applies changes and sets the times of the changed items.
fn apply(items: &[Item], changes: &[Change], rules: &Rules<'_>, prices: &mut Prices<'_>) -> Option<Vec<Item>> {
    let changed = changes.iter().filter(|change| !change.sequences.is_empty());
    let mut new: Vec<Item> = changed
        .clone()
        .map(|change| Item::new(change.sequences.clone(), rules.sequences, change.degree, change.microbatch))
        .collect();
    set_times(&mut new, prices, rules.ways)?;
    let mut all = items.to_vec();
    for (change, item) in changed.zip(new) {
        if change.item < all.len() {
            all[change.item] = item;
        } else {
            all.push(item);
        }
    }
    let removed: Vec<usize> =
        changes.iter().filter(|change| change.sequences.is_empty()).map(|change| change.item).collect();
    let mut index = 0;
    all.retain(|_| {
        index += 1;
        !removed.contains(&(index - 1))
    });
    Some(all)
}

/// Estimated time of an item with another load and degree: the fitted cost, scaled by the error of the item.
fn rescaled(item: &Item, load: Load, degree: u32, rules: &Rules<'_>) -> f64 {
    if load.tokens == 0 {
        return 0.0;
    }
    let fitted = (rules.fitted)(item.load, (item.exchange, item.degree));
    let ratio = if fitted > 0.0 { item.time.total() / fitted } else { 1.0 };
    (rules.fitted)(load, (item.exchange, degree)) * ratio
}

fn sequence_load(rules: &Rules<'_>, sequence: u32) -> Load {
    Load::from_sequence(rules.sequences[sequence as usize])
}

fn less(load: Load, other: Load) -> Load {
    Load { squares: (load.squares - other.squares).max(0.0), tokens: load.tokens - other.tokens }
}

fn fits(load: Load, degree: u32, rules: &Rules<'_>) -> bool {
    load.tokens <= u64::from(degree).saturating_mul(rules.tokens_per_rank)
}

fn without(item: &Item, sequence: u32) -> Vec<u32> {
    item.sequences.iter().copied().filter(|&other| other != sequence).collect()
}

fn change(items: &[Item], item: usize, sequences: Vec<u32>) -> Change {
    Change { item, sequences, degree: items[item].degree, microbatch: items[item].microbatch }
}

/// Receives the estimated times of two items and a constructor of the changes.
type Propose<'a> = dyn FnMut((f64, f64), &dyn Fn() -> Vec<Change>) + 'a;

/// Calls `propose` with new sequences and estimated times for each move of a sequence from `from` to `to`, and each
/// exchange.
fn moves(items: &[Item], (from, to): (usize, usize), rules: &Rules<'_>, propose: &mut Propose<'_>) {
    let (source, target) = (&items[from], &items[to]);
    let limit = source.time.total();
    // Groups of one microbatch in lockstep: the target must not become the longest.
    let beside = rules.on.lockstep && source.microbatch == target.microbatch;
    for &sequence in &source.sequences {
        let load = sequence_load(rules, sequence);
        let grown = target.load.and(load);
        if fits(grown, target.degree, rules) {
            let after = rescaled(target, grown, target.degree, rules);
            if !(beside && after >= limit) {
                let left = rescaled(source, less(source.load, load), source.degree, rules);
                propose((left, after), &|| {
                    let mut sequences = target.sequences.clone();
                    sequences.push(sequence);
                    vec![change(items, from, without(source, sequence)), change(items, to, sequences)]
                });
            }
        }
    }
    let pairs = source.sequences.len() * target.sequences.len();
    let step = pairs.div_ceil(EXCHANGES).max(1);
    for pair in (0..pairs).step_by(step) {
        let sequence = source.sequences[pair / target.sequences.len()];
        let other = target.sequences[pair % target.sequences.len()];
        let (load, back) = (sequence_load(rules, sequence), sequence_load(rules, other));
        if load.tokens <= back.tokens {
            continue;
        }
        let grown = less(target.load, back).and(load);
        if !fits(grown, target.degree, rules) {
            continue;
        }
        let after = rescaled(target, grown, target.degree, rules);
        if beside && after >= limit {
            continue;
        }
        let left = rescaled(source, less(source.load, load).and(back), source.degree, rules);
        propose((left, after), &|| {
            let (mut remaining, mut sequences) = (without(source, sequence), without(target, other));
            remaining.push(other);
            sequences.push(sequence);
            vec![change(items, from, remaining), change(items, to, sequences)]
        });
    }
}

/// The best proposals.
struct BestProposals(Vec<Proposal>);

impl BestProposals {
    fn add(&mut self, seconds: f64, changes: impl FnOnce() -> Vec<Change>) {
        if self.0.len() < PRICED {
            self.0.push(Proposal { seconds, changes: changes() });
        } else if let Some(worst) = self.0.iter_mut().max_by(|a, b| a.seconds.total_cmp(&b.seconds))
            && seconds < worst.seconds
        {
            *worst = Proposal { seconds, changes: changes() };
        }
    }
}

/// Items of a microbatch.
struct Microbatch {
    /// Item indices, longest first.
    items: Vec<usize>,
    idle: u32,
}

impl Microbatch {
    /// Time of the longest item other than these two, in seconds.
    fn longest(&self, items: &[Item], except: [usize; 2]) -> f64 {
        let other = self.items.iter().find(|item| !except.contains(item));
        other.map_or(0.0, |&item| items[item].time.total())
    }
}

/// Proposals that shorten the longest group of a microbatch.
fn in_lockstep(items: &[Item], rules: &Rules<'_>) -> Vec<Proposal> {
    let count = items.iter().map(|item| item.microbatch + 1).max().unwrap_or(0);
    let mut microbatches: Vec<Microbatch> =
        (0..count).map(|_| Microbatch { items: Vec::new(), idle: rules.on.count }).collect();
    for (index, item) in items.iter().enumerate() {
        let microbatch = &mut microbatches[item.microbatch as usize];
        microbatch.items.push(index);
        microbatch.idle = microbatch.idle.saturating_sub(item.degree);
    }
    let time = |item: usize| items[item].time.total();
    for microbatch in &mut microbatches {
        microbatch.items.sort_by(|&a, &b| time(b).total_cmp(&time(a)).then(a.cmp(&b)));
    }
    let mut kept = BestProposals(Vec::new());
    for (number, microbatch) in microbatches.iter().enumerate() {
        let Some(&from) = microbatch.items.first() else { continue };
        let before = time(from);
        for (other_number, other) in microbatches.iter().enumerate() {
            for &to in other.items.iter().filter(|&&to| to != from) {
                moves(items, (from, to), rules, &mut |(left, after), changes| {
                    let seconds = if number == other_number {
                        microbatch.longest(items, [from, to]).max(left).max(after) - before
                    } else {
                        let other_before = time(other.items[0]);
                        microbatch.longest(items, [from, to]).max(left) - before
                            + other.longest(items, [from, to]).max(after)
                            - other_before
                    };
                    if seconds < 0.0 {
                        kept.add(seconds, changes);
                    }
                });
            }
            new_groups(items, (number, from), (other_number, other), microbatch, rules, &mut kept);
        }
        more_ranks(items, from, microbatch, rules, &mut kept);
    }
    kept.0
}

/// A sequence of the longest group becomes a group on idle ranks.
fn new_groups(
    items: &[Item],
    (number, from): (usize, usize),
    (other_number, other): (usize, &Microbatch),
    microbatch: &Microbatch,
    rules: &Rules<'_>,
    kept: &mut BestProposals,
) {
    let source = &items[from];
    if source.sequences.len() < 2 {
        return;
    }
    let before = source.time.total();
    for &sequence in &source.sequences {
        let load = sequence_load(rules, sequence);
        let Some(degree) = rules.degrees.minimum(load.tokens, rules.tokens_per_rank) else { continue };
        if degree > other.idle {
            continue;
        }
        let alone = rescaled(source, load, degree, rules);
        let left = rescaled(source, less(source.load, load), source.degree, rules);
        let rest = microbatch.longest(items, [from, from]);
        let seconds = if number == other_number {
            rest.max(left).max(alone) - before
        } else {
            let other_before = other.items.first().map_or(0.0, |&item| items[item].time.total());
            rest.max(left) - before + (alone - other_before).max(0.0)
        };
        if seconds < 0.0 {
            kept.add(seconds, || {
                let new =
                    Change { item: items.len(), sequences: vec![sequence], degree, microbatch: other_number as u32 };
                vec![change(items, from, without(source, sequence)), new]
            });
        }
    }
}

/// The longest group takes idle ranks, or ranks of another group.
fn more_ranks(items: &[Item], from: usize, microbatch: &Microbatch, rules: &Rules<'_>, kept: &mut BestProposals) {
    let list = rules.degrees.list();
    let source = &items[from];
    let before = source.time.total();
    for &degree in list.iter().filter(|&&degree| degree > source.degree && degree <= rules.on.count).take(3) {
        let needed = degree - source.degree;
        let grown = Change { degree, ..change(items, from, source.sequences.clone()) };
        let left = rescaled(source, source.load, degree, rules);
        if needed <= microbatch.idle {
            let seconds = microbatch.longest(items, [from, from]).max(left) - before;
            if seconds < 0.0 {
                kept.add(seconds, || vec![grown.clone()]);
            }
            continue;
        }
        for &to in microbatch.items.iter().filter(|&&to| to != from) {
            let target = &items[to];
            let enough = |less: &&u32| **less < target.degree && target.degree - **less + microbatch.idle >= needed;
            let Some(&fewer) = list.iter().rev().find(enough) else { continue };
            if !fits(target.load, fewer, rules) {
                continue;
            }
            let after = rescaled(target, target.load, fewer, rules);
            let seconds = microbatch.longest(items, [from, to]).max(left).max(after) - before;
            if seconds < 0.0 {
                kept.add(seconds, || {
                    vec![grown.clone(), Change { degree: fewer, ..change(items, to, target.sequences.clone()) }]
                });
            }
        }
    }
}

/// Proposals that shorten the rank that ends last, if each group starts when its ranks are free.
fn free(items: &[Item], rules: &Rules<'_>) -> Vec<Proposal> {
    let list = listed(items, rules.on);
    let last = list.seconds;
    let ends: Vec<f64> = (0..items.len())
        .map(|item| list.ranks(item).into_iter().map(|rank| list.ready[rank as usize]).fold(0.0, f64::max))
        .collect();
    let is_last = |item: &usize| ends[*item] >= last * (1.0 - 1e-9);
    let critical: Vec<usize> = (0..items.len()).filter(is_last).collect();
    let mean = items.iter().map(|item| item.time.total() * f64::from(item.degree)).sum::<f64>()
        / f64::from(rules.on.count.max(1));
    let (mut moved, mut resized) = (BestProposals(Vec::new()), BestProposals(Vec::new()));
    for &from in &critical {
        let source = &items[from];
        let before = source.time.total();
        for to in (0..items.len()).filter(|to| !is_last(to)) {
            moves(items, (from, to), rules, &mut |(left, after), changes| {
                let seconds = (last - before + left).max(ends[to] - items[to].time.total() + after);
                if seconds < last {
                    moved.add(seconds, changes);
                }
            });
        }
        // Two groups of a rank become one, with the constant costs of one.
        for &other in critical.iter().filter(|&&other| other > from && items[other].degree == source.degree) {
            let load = source.load.and(items[other].load);
            if list.first[other] != list.first[from] || !fits(load, source.degree, rules) {
                continue;
            }
            let merged = rescaled(source, load, source.degree, rules);
            let seconds = last - before - items[other].time.total() + merged;
            if seconds < last {
                moved.add(seconds, || {
                    let both = [source.sequences.as_slice(), &items[other].sequences].concat();
                    vec![change(items, from, both), change(items, other, Vec::new())]
                });
            }
        }
        let degrees = rules.degrees.list();
        let at = degrees.partition_point(|&degree| degree < source.degree);
        let neighbours = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        for &degree in neighbours.filter_map(|at| degrees.get(at)).filter(|&&degree| degree <= rules.on.count) {
            if !fits(source.load, degree, rules) {
                continue;
            }
            let left = rescaled(source, source.load, degree, rules);
            let work = (left * f64::from(degree) - before * f64::from(source.degree)) / f64::from(rules.on.count);
            let seconds = (mean + work).max((last - before + left).min(last));
            resized.add(seconds, || vec![Change { degree, ..change(items, from, source.sequences.clone()) }]);
        }
    }
    moved.0.extend(resized.0);
    moved.0
}
