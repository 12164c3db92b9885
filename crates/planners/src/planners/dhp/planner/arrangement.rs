//! Groups of a batch in the order in which ranks run them, with times from the operator graph.
//!
//! With ZeRO 3, all ranks gather weights together, so the groups of a microbatch run in lockstep. Otherwise a group
//! starts when its ranks are free, and microbatches have no common end.

use std::collections::BTreeSet;

use super::prices::{Prices, Time, Way};
use crate::planners::dhp::placement::group_ranks;
use crate::planners::dhp::{BatchPlan, Grouping, Load, Sequence};
use planscope_core::training::ContextExchange;

/// Ranks on which groups run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranks {
    pub count: u32,
    /// Ranks per node.
    pub node: u32,
    /// True if the groups of a microbatch start together.
    pub lockstep: bool,
}

/// A group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// Sequence indices in the batch.
    pub sequences: Vec<u32>,
    pub load: Load,
    pub degree: u32,
    pub exchange: ContextExchange,
    pub microbatch: u32,
    pub time: Time,
}

impl Item {
    pub(crate) fn new(sequences: Vec<u32>, all: &[Sequence], degree: u32, microbatch: u32) -> Self {
        let load = sequences.iter().map(|&index| Load::from_sequence(all[index as usize])).sum();
        Self { sequences, load, degree, exchange: ContextExchange::Ring, microbatch, time: Time::default() }
    }
}

/// Groups of a batch and their ranks.
#[derive(Debug, Clone)]
pub(crate) struct Arrangement {
    pub items: Vec<Item>,
    /// Ranks per item, ascending.
    pub ranks: Vec<Vec<u32>>,
    /// Seconds until the last rank is done.
    pub seconds: f64,
}

impl Arrangement {
    /// Converts a plan. The times are not known yet.
    ///
    /// Sequences that run one after the other become groups of their own. In lockstep, the first sequences of all
    /// groups of a microbatch start together, then the second, and so on: all ranks gather weights equally often.
    pub(crate) fn from_plan(plan: &BatchPlan, all: &[Sequence], on: Ranks) -> Self {
        let (mut items, mut ranks, mut next) = (Vec::new(), Vec::new(), 0);
        for microbatch in &plan.microbatches {
            let degrees: Vec<u32> = microbatch.groups.iter().map(|group| group.degree).collect();
            let mut places = group_ranks(&degrees, on.count, on.node);
            places.sort_by_key(|(group, _)| *group);
            let sequential = microbatch.grouping == Grouping::Sequential;
            let mut used = 1;
            for (group, place) in places {
                let group = &microbatch.groups[group];
                let lists: Vec<Vec<u32>> = if sequential {
                    group.sequences.iter().map(|&sequence| vec![sequence]).collect()
                } else {
                    vec![group.sequences.clone()]
                };
                for (step, sequences) in lists.into_iter().enumerate() {
                    let step = if on.lockstep { step as u32 } else { 0 };
                    used = used.max(step + 1);
                    items.push(Item::new(sequences, all, group.degree, next + step));
                    ranks.push(place.clone());
                }
            }
            next += used;
        }
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&item| items[item].microbatch);
        let items = order.iter().map(|&item| items[item].clone()).collect();
        let ranks = order.iter().map(|&item| std::mem::take(&mut ranks[item])).collect();
        Self { items, ranks, seconds: f64::INFINITY }
    }

    /// Places items: by microbatch in lockstep, otherwise on the ranks that are free first.
    pub(crate) fn place(mut items: Vec<Item>, on: Ranks) -> Self {
        if on.lockstep {
            items.sort_by_key(|item| item.microbatch);
            let mut ranks = Vec::with_capacity(items.len());
            for microbatch in items.chunk_by(|a, b| a.microbatch == b.microbatch) {
                let degrees: Vec<u32> = microbatch.iter().map(|item| item.degree).collect();
                let mut places = group_ranks(&degrees, on.count, on.node);
                places.sort_by_key(|(group, _)| *group);
                ranks.extend(places.into_iter().map(|(_, place)| place));
            }
            let seconds = lockstep_seconds(&items);
            // Microbatches without gaps in their numbers.
            let (mut number, mut last) = (0, items.first().map_or(0, |item| item.microbatch));
            for item in &mut items {
                number += u32::from(std::mem::replace(&mut last, item.microbatch) != item.microbatch);
                item.microbatch = number;
            }
            return Self { items, ranks, seconds };
        }
        let listed = listed(&items, on);
        let ranks = listed.order.iter().map(|&item| listed.ranks(item)).collect();
        let mut ordered: Vec<Item> = listed.order.iter().map(|&item| items[item].clone()).collect();
        // No rank waits for the end of a microbatch.
        for item in &mut ordered {
            item.microbatch = 0;
        }
        Self { items: ordered, ranks, seconds: listed.seconds }
    }

    /// Sets the times from the operator graph, with the faster of the exchanges that `ways` returns for a degree.
    pub(crate) fn set_times(
        &mut self,
        prices: &mut Prices<'_>,
        ways: &dyn Fn(u32) -> Vec<Way>,
        on: Ranks,
    ) -> Option<()> {
        set_times(&mut self.items, prices, ways)?;
        self.seconds = if on.lockstep { lockstep_seconds(&self.items) } else { self.free_seconds(on) };
        Some(())
    }

    /// Seconds with other times of the items.
    pub(crate) fn seconds_with(&self, on: Ranks, seconds: impl Fn(&Item) -> f64) -> f64 {
        let mut other = self.clone();
        for item in &mut other.items {
            item.time = Time { forward: seconds(item), backward: 0.0 };
        }
        if on.lockstep { lockstep_seconds(&other.items) } else { other.free_seconds(on) }
    }

    /// Seconds if each group starts when its ranks are free.
    fn free_seconds(&self, on: Ranks) -> f64 {
        let mut ready = vec![0.0_f64; on.count as usize];
        for (item, ranks) in self.items.iter().zip(&self.ranks) {
            let start = ranks.iter().map(|&rank| ready[rank as usize]).fold(0.0, f64::max);
            for &rank in ranks {
                ready[rank as usize] = start + item.time.total();
            }
        }
        ready.into_iter().fold(0.0, f64::max)
    }
}

/// Sets the times of items from the operator graph, with the fastest exchange.
pub(crate) fn set_times(items: &mut [Item], prices: &mut Prices<'_>, ways: &dyn Fn(u32) -> Vec<Way>) -> Option<()> {
    let mut wanted = Vec::new();
    let mut owners = Vec::new();
    for (index, item) in items.iter().enumerate() {
        for way in ways(item.degree) {
            wanted.push((item.sequences.clone(), way));
            owners.push(index);
        }
    }
    let times = prices.times(&wanted)?;
    let mut best: Vec<Option<Time>> = vec![None; items.len()];
    for ((&owner, time), (_, way)) in owners.iter().zip(times).zip(&wanted) {
        if best[owner].is_none_or(|known| time.total() < known.total()) {
            best[owner] = Some(time);
            (items[owner].time, items[owner].exchange) = (time, way.0);
        }
    }
    Some(())
}

/// Sum over the microbatches of the longest forward and the longest backward, in seconds.
pub(crate) fn lockstep_seconds(items: &[Item]) -> f64 {
    let count = items.iter().map(|item| item.microbatch + 1).max().unwrap_or(0);
    let mut longest = vec![Time::default(); count as usize];
    for item in items {
        let time = &mut longest[item.microbatch as usize];
        time.forward = time.forward.max(item.time.forward);
        time.backward = time.backward.max(item.time.backward);
    }
    longest.into_iter().map(Time::total).sum()
}

/// Items on the ranks that are free first.
pub(crate) struct Listed {
    /// Items in start order per rank.
    pub order: Vec<usize>,
    /// First rank per item.
    pub first: Vec<u32>,
    /// Degree per item.
    degrees: Vec<u32>,
    /// End of each rank in seconds.
    pub ready: Vec<f64>,
    pub seconds: f64,
}

impl Listed {
    pub(crate) fn ranks(&self, item: usize) -> Vec<u32> {
        (self.first[item]..self.first[item] + self.degrees[item]).collect()
    }
}

/// List scheduling: items with more ranks first, then longer ones, each on the consecutive ranks that are free
/// first. Groups that fit into a node do not cross nodes, larger groups start at a node. A last node with fewer ranks
/// is used like the others.
pub(crate) fn listed(items: &[Item], on: Ranks) -> Listed {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&a, &b| {
        let time = |item: usize| items[item].time.total();
        items[b].degree.cmp(&items[a].degree).then(time(b).total_cmp(&time(a))).then(a.cmp(&b))
    });
    let mut ready = vec![0.0_f64; on.count as usize];
    let mut first = vec![0; items.len()];
    for equal in order.chunk_by(|&a, &b| items[a].degree == items[b].degree) {
        let mut places = Places::new(items[equal[0]].degree, on, &ready);
        for &item in equal {
            // A group that fits into no partial last node starts at the first rank.
            let earliest = places.earliest();
            let (begin, place) = earliest.unwrap_or_else(|| (ready.iter().copied().fold(0.0, f64::max), 0));
            first[item] = place;
            for end in &mut ready[place as usize..(place + places.degree) as usize] {
                *end = begin + items[item].time.total();
            }
            places.update(place, &ready);
        }
    }
    let seconds = ready.iter().copied().fold(0.0, f64::max);
    Listed { order, first, degrees: items.iter().map(|item| item.degree).collect(), ready, seconds }
}

/// Consecutive ranks on which a group of a degree can start, by the time at which they are free.
struct Places {
    degree: u32,
    on: Ranks,
    /// Bits of the time by first rank. For non-negative floats, the bit patterns have the order of the values.
    free_at: Vec<u64>,
    by_time: BTreeSet<(u64, u32)>,
}

impl Places {
    fn new(degree: u32, on: Ranks, ready: &[f64]) -> Self {
        let mut places = Self { degree, on, free_at: vec![0; ready.len()], by_time: BTreeSet::new() };
        for start in 0..on.count {
            places.set(start, ready);
        }
        places
    }

    /// Returns the earliest time and the first rank.
    fn earliest(&self) -> Option<(f64, u32)> {
        self.by_time.first().map(|&(time, start)| (f64::from_bits(time), start))
    }

    /// Sets the times of all places that share a rank with the place at `start`.
    fn update(&mut self, start: u32, ready: &[f64]) {
        for other in start.saturating_sub(self.degree - 1)..(start + self.degree).min(self.on.count) {
            self.set(other, ready);
        }
    }

    fn set(&mut self, start: u32, ready: &[f64]) {
        let Ranks { count, node, .. } = self.on;
        let is_whole = start + self.degree <= count;
        let is_place = if self.degree <= node {
            start / node == (start + self.degree - 1) / node
        } else {
            start.is_multiple_of(node)
        };
        if !is_whole || !is_place {
            return;
        }
        let window = &ready[start as usize..(start + self.degree) as usize];
        let time = window.iter().copied().fold(0.0, f64::max).to_bits();
        self.by_time.remove(&(self.free_at[start as usize], start));
        self.by_time.insert((time, start));
        self.free_at[start as usize] = time;
    }
}
