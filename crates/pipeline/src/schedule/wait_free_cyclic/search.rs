//! Search for entry order and policy: a portfolio, then moves of single microbatches.

use super::ground::Ground;
use super::list::{ForwardOrder, Found, Policy, Trail, list_schedule};
use crate::lower_bound::lower_bound;
use crate::schedule::{Grouping, interleaved, one_f_one_b};
use crate::simulate::{StepEnd, execute, peak_memory};
use planscope_core::action::Schedule;
use planscope_core::random::Random;
use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// The search stops at 2 ‰ above the lower bound. Smaller differences are irrelevant to users.
const NEAR_ENOUGH_PER_MILLE: u64 = 1002;
/// For results within 1 % of the lower bound, other entry orders are tried with a single policy.
const CLOSE_PER_MILLE: u64 = 1010;

/// Entry order of microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Data loader order.
    Given,
    /// Longest first.
    DescendingTime,
    /// Shortest first.
    ShortestFirst,
    /// Short microbatches while the pipeline fills and drains, long ones in the middle.
    ShortOutside,
    /// Found by moving microbatches.
    Swapped,
}

/// Origin of the rank orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A wait-free list schedule.
    WaitFree(Policy),
    /// The fixed order of 1F1B, or of the interleaved schedule if ranks have several chunks.
    Fixed,
}

/// Search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResult {
    /// The schedule.
    pub schedule: Schedule,
    /// Simulated iteration time of this replica, including synchronization and optimizer.
    pub end: Nanos,
    /// Entry order.
    pub entry: Entry,
    /// Origin of the rank orders.
    pub order: Order,
    /// Number of simulated schedules.
    pub evaluated: u32,
}

/// Search effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A small portfolio, to rank layouts.
    Quick,
    /// The full portfolio and `swaps` moves.
    Thorough {
        /// Number of tried moves.
        swaps: u32,
    },
}

/// A microbatch never fits on a rank, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rank {rank} needs {needs:?} for its largest microbatch alone")]
pub struct TooLarge {
    /// Rank with the maximum need.
    pub rank: usize,
    /// Required memory for a single microbatch on this rank.
    pub needs: Bytes,
}

/// Searches for a good schedule within `limit` bytes per rank. Stops at a makespan of `enough`,
/// because a shorter schedule is useless if another replica is slower.
///
/// Deterministic for given costs and a given state of `random`.
///
/// # Errors
/// Returns the rank with the maximum need if a single microbatch does not fit. With several chunks
/// per rank, the search can also fail if each single microbatch fits; the error contains the same
/// rank.
pub fn search(
    costs: &PipelineCosts,
    limit: Bytes,
    effort: Effort,
    enough: Nanos,
    random: &mut Random,
) -> Result<SearchResult, TooLarge> {
    let (cap, ground) = (caps(costs, limit)?, Ground::new(costs));
    let bound = lower_bound(costs).max(ground.end_bound());
    let above = |per_mille: u64| Nanos::new(bound.get() / 1000 * per_mille).max(enough);
    let (near_enough, close) = (above(NEAR_ENOUGH_PER_MILLE), above(CLOSE_PER_MILLE));
    let mut search = Search { costs, ground, limit, cap, near_enough, close, best: None, evaluated: 0 };
    search.try_portfolio(effort);
    if let Effort::Thorough { swaps } = effort {
        search.swap(swaps, random);
    }
    let evaluated = search.evaluated;
    match search.best {
        Some((result, _)) => Ok(SearchResult { evaluated, ..result }),
        None => Err(max_need(costs)),
    }
}

/// Minimum memory of a rank: (static plus peak temporary memory, maximum activation memory of a
/// microbatch in all chunks).
fn min_need(costs: &PipelineCosts, rank: usize) -> (Bytes, Bytes) {
    let rank_sum = |column: &[Bytes], microbatch: usize| -> Bytes {
        (rank..costs.stages()).step_by(costs.ranks()).map(|stage| column[costs.cell(stage, microbatch)]).sum()
    };
    let activation = (0..costs.microbatches()).map(|microbatch| rank_sum(&costs.activation, microbatch)).max();
    let cells = (rank..costs.stages())
        .step_by(costs.ranks())
        .flat_map(|stage| (0..costs.microbatches()).map(move |microbatch| costs.cell(stage, microbatch)));
    let transient = cells.map(|cell| costs.transient[cell]).max().unwrap_or(Bytes::ZERO);
    (costs.static_memory[rank] + transient, activation.unwrap_or(Bytes::ZERO))
}

fn max_need(costs: &PipelineCosts) -> TooLarge {
    let needs = |rank: usize| {
        let (fixed, activation) = min_need(costs, rank);
        fixed + activation
    };
    let rank = (0..costs.ranks()).max_by_key(|&rank| (needs(rank), std::cmp::Reverse(rank))).unwrap_or(0);
    TooLarge { rank, needs: needs(rank) }
}

/// Activation memory per rank: the limit minus static memory and peak temporary memory.
fn caps(costs: &PipelineCosts, limit: Bytes) -> Result<Vec<Bytes>, TooLarge> {
    let too_large = max_need(costs);
    if too_large.needs > limit {
        return Err(too_large);
    }
    Ok((0..costs.ranks()).map(|rank| limit.saturating_sub(min_need(costs, rank).0)).collect())
}

/// Returns the policies, in ascending depth per forward order. For equal iteration times, the
/// policy with less memory is selected.
fn policies(costs: &PipelineCosts, effort: Effort) -> Vec<Policy> {
    let chunked = costs.stages() > costs.ranks();
    let orders: &[ForwardOrder] =
        if chunked { &[ForwardOrder::Grouped, ForwardOrder::DeepestFirst] } else { &[ForwardOrder::DeepestFirst] };
    let (orders, depths): (_, &[Option<u32>]) = match effort {
        Effort::Quick => (&orders[..1], &[Some(0), Some(2)]),
        Effort::Thorough { .. } => (orders, &[Some(0), Some(1), Some(2), Some(costs.ranks() as u32), None]),
    };
    let with_depths = |&forward_order: &ForwardOrder| {
        depths.iter().map(move |&extra_in_flight| Policy { forward_order, extra_in_flight })
    };
    orders.iter().flat_map(with_depths).collect()
}

fn entry_order(costs: &PipelineCosts, entry: Entry) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.microbatches()).collect();
    let time = |microbatch: &usize| -> Nanos {
        let cells = (0..costs.stages()).map(|stage| costs.cell(stage, *microbatch));
        cells.map(|cell| costs.forward[cell] + costs.backward(cell)).sum()
    };
    match entry {
        Entry::Given | Entry::Swapped => {}
        Entry::DescendingTime => order.sort_by_key(|microbatch| std::cmp::Reverse(time(microbatch))),
        Entry::ShortestFirst => order.sort_by_key(time),
        Entry::ShortOutside => {
            order.sort_by_key(time);
            let (head, mut tail): (Vec<_>, Vec<_>) =
                order.iter().enumerate().partition(|(position, _)| position % 2 == 0);
            tail.reverse();
            order = head.into_iter().chain(tail).map(|(_, &microbatch)| microbatch).collect();
        }
    }
    order
}

struct Search<'a> {
    costs: &'a PipelineCosts,
    ground: Ground,
    limit: Bytes,
    cap: Vec<Bytes>,
    /// Iteration time at which the search stops.
    near_enough: Nanos,
    /// Iteration time below which the search is restricted.
    close: Nanos,
    /// Current best choice and entry order.
    best: Option<(SearchResult, Vec<usize>)>,
    evaluated: u32,
}

impl Search<'_> {
    fn is_near_enough(&self) -> bool {
        self.best.as_ref().is_some_and(|(best, _)| best.end <= self.near_enough)
    }

    /// Evaluates the fixed order with data loader order, which is an upper bound for the result.
    /// Then evaluates all policies with [`Entry::ShortOutside`], which is nearly always optimal.
    /// For other entry orders, uses only the current policy if the result is already close.
    fn try_portfolio(&mut self, effort: Effort) {
        let all = policies(self.costs, effort);
        let short_outside = entry_order(self.costs, Entry::ShortOutside);
        if effort != Effort::Quick {
            let given = entry_order(self.costs, Entry::Given);
            self.try_fixed(&given, Entry::Given);
        }
        if !self.is_near_enough() {
            self.try_fixed(&short_outside, Entry::ShortOutside);
        }
        self.try_policies(&short_outside, Entry::ShortOutside, &all);
        if effort == Effort::Quick {
            return;
        }
        for entry in [Entry::Given, Entry::DescendingTime, Entry::ShortestFirst] {
            if self.is_near_enough() {
                return;
            }
            let is_close = self.best.as_ref().is_some_and(|(best, _)| best.end <= self.close);
            let policies = match &self.best {
                Some((SearchResult { order: Order::WaitFree(policy), .. }, _)) if is_close => vec![*policy],
                Some(_) if is_close => Vec::new(),
                _ => all.clone(),
            };
            let order = entry_order(self.costs, entry);
            if entry != Entry::Given {
                self.try_fixed(&order, entry);
            }
            self.try_policies(&order, entry, &policies);
        }
    }

    fn try_policies(&mut self, order: &[usize], entry: Entry, policies: &[Policy]) {
        let mut unlimited: Option<Policy> = None;
        for &policy in policies {
            if self.is_near_enough() {
                return;
            }
            // If a limit is not binding, higher limits do not change the result.
            if !unlimited.is_some_and(|bound| policy.is_as_deep_as(bound)) && !self.try_policy(order, entry, policy) {
                unlimited = Some(policy);
            }
        }
    }

    /// Returns whether the limit of activations in flight was binding.
    fn try_policy(&mut self, order: &[usize], entry: Entry, policy: Policy) -> bool {
        let before = self.best.as_ref().map_or(Nanos::new(u64::MAX), |(best, _)| best.end);
        let found = list_schedule(&self.ground, &self.cap, order, policy, before);
        let is_limited = found.is_limited;
        self.judge_found(found, order, entry, policy);
        is_limited
    }

    /// Stores a found schedule, which always improves the current result. The caps already include
    /// temporary memory.
    fn judge_found(&mut self, found: Found, order: &[usize], entry: Entry, policy: Policy) -> bool {
        self.evaluated += 1;
        let Some((schedule, end)) = found.ordered else { return false };
        let result = SearchResult { schedule, end, entry, order: Order::WaitFree(policy), evaluated: 0 };
        self.best = Some((result, order.to_vec()));
        true
    }

    /// Simulates the fixed order and stores it if it improves the current result.
    fn try_fixed(&mut self, order: &[usize], entry: Entry) {
        let (ranks, microbatches) = (self.costs.ranks(), self.costs.microbatches());
        let chunks = self.costs.stages() / ranks;
        let fixed = if chunks == 1 {
            one_f_one_b(ranks, microbatches)
        } else {
            interleaved(ranks, chunks, microbatches, Grouping::Balanced)
        };
        let schedule = renumbered(fixed, order);
        let Ok(execution) = execute(&schedule, self.costs) else { return };
        self.evaluated += 1;
        let end = StepEnd::from_executions(ranks, std::iter::once(&execution)).iteration_end(self.costs);
        if self.best.as_ref().is_some_and(|(best, _)| best.end <= end) {
            return;
        }
        let fits = (0..ranks).all(|rank| peak_memory(rank, &schedule, &execution, self.costs) <= self.limit);
        if fits {
            let result = SearchResult { schedule, end, entry, order: Order::Fixed, evaluated: 0 };
            self.best = Some((result, order.to_vec()));
        }
    }

    fn swap(&mut self, swaps: u32, random: &mut Random) {
        let microbatches = self.costs.microbatches();
        if microbatches < 3 {
            return;
        }
        // Trail of the current best order.
        let mut trail: Option<Trail> = None;
        for _ in 0..swaps {
            if self.is_near_enough() {
                return;
            }
            let Some((best, best_order)) = &self.best else { return };
            let (how, before) = (best.order, best.end);
            let from = random.below(microbatches as u64) as usize;
            let to = random.below(microbatches as u64) as usize;
            if from == to {
                continue;
            }
            let mut order = best_order.clone();
            let moved = order.remove(from);
            order.insert(to, moved);
            match how {
                Order::Fixed => self.try_fixed(&order, Entry::Swapped),
                Order::WaitFree(policy) => {
                    let (ground, cap) = (&self.ground, &self.cap);
                    let known = trail.get_or_insert_with(|| Trail::record(ground, cap, best_order, policy));
                    let found = known.list_schedule(ground, cap, &order, from.min(to), before);
                    if self.judge_found(found, &order, Entry::Swapped, policy) {
                        trail = None;
                    }
                }
            }
        }
    }
}

/// Replaces microbatch `i` by microbatch `order[i]`.
fn renumbered(mut schedule: Schedule, order: &[usize]) -> Schedule {
    for action in schedule.orders.iter_mut().flatten() {
        action.microbatch = order[action.microbatch as usize] as u32;
    }
    schedule
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use planscope_cost::cost::UniformTimes;

    fn uneven(ranks: usize, chunks: usize, times: &[u64]) -> PipelineCosts {
        let unit = UniformTimes {
            forward: Nanos::new(1),
            input_grad: Nanos::new(1),
            weight_grad: Nanos::new(1),
            communication: Nanos::ZERO,
        };
        let mut costs = PipelineCosts::uniform(ranks, chunks, times.len(), unit);
        for stage in 0..costs.stages() {
            for (microbatch, &time) in times.iter().enumerate() {
                let cell = costs.cell(stage, microbatch);
                costs.forward[cell] = Nanos::new(time);
                costs.input_grad[cell] = Nanos::new(time);
                costs.weight_grad[cell] = Nanos::new(time);
                costs.activation[cell] = Bytes::new(time);
            }
        }
        costs
    }

    fn thorough(costs: &PipelineCosts, limit: Bytes) -> Option<SearchResult> {
        found(costs, limit).ok()
    }

    fn found(costs: &PipelineCosts, limit: Bytes) -> Result<SearchResult, TooLarge> {
        search(costs, limit, Effort::Thorough { swaps: 40 }, Nanos::ZERO, &mut Random::new(3, 0))
    }

    /// Long-tailed microbatches on four ranks cause idle time in 1F1B, which reordering removes to
    /// a large degree.
    #[test]
    fn uneven_microbatches_are_much_faster_than_1f1b() {
        let times = [9, 1, 2, 30, 3, 1, 12, 2, 5, 1, 22, 2, 7, 1, 3, 16];
        let costs = uneven(4, 1, &times);
        let fixed = execute(&one_f_one_b(4, 16), &costs).unwrap().makespan();
        let dynamic = thorough(&costs, Bytes::new(1000)).unwrap().end;
        let work: u64 = times.iter().map(|time| 3 * time).sum();
        assert!(dynamic.get() as f64 <= 0.9 * fixed.get() as f64, "{dynamic:?} of {fixed:?}");
        assert!(dynamic.get() >= work);
    }

    /// The same replica, but another replica is slower: the search accepts the first order that is
    /// fast enough.
    #[test]
    fn search_stops_at_a_sufficient_makespan() {
        let times = [9, 1, 2, 30, 3, 1, 12, 2, 5, 1, 22, 2, 7, 1, 3, 16];
        let costs = uneven(4, 1, &times);
        let fixed = execute(&one_f_one_b(4, 16), &costs).unwrap().makespan();
        let limit = Bytes::new(1000);
        let effort = Effort::Thorough { swaps: 40 };
        let lax = search(&costs, limit, effort, fixed, &mut Random::new(3, 0)).unwrap();
        assert_eq!((lax.end, lax.evaluated), (fixed, 1));
        let best = thorough(&costs, limit).unwrap();
        let between = Nanos::new(u64::midpoint(best.end.get(), fixed.get()));
        let found = search(&costs, limit, effort, between, &mut Random::new(3, 0)).unwrap();
        assert!(found.end <= between && found.evaluated < best.evaluated);
    }

    #[test]
    fn tight_memory_caps_are_met_and_impossible_caps_rejected() {
        let costs = uneven(4, 1, &[5, 5, 5, 5, 5, 5]);
        let result = thorough(&costs, Bytes::new(10)).expect("two activations fit");
        let execution = execute(&result.schedule, &costs).unwrap();
        assert!((0..4).all(|rank| peak_memory(rank, &result.schedule, &execution, &costs) <= Bytes::new(10)));
        assert_eq!(found(&costs, Bytes::new(4)), Err(TooLarge { rank: 0, needs: Bytes::new(5) }));
    }

    /// With full recomputation, temporary memory is proportional to microbatch size. Here,
    /// microbatch 3 stores five bytes and needs seven temporary bytes, twelve in total. With a
    /// limit of 17, another activation of five bytes fits.
    #[test]
    fn temporary_memory_is_reserved_for_any_microbatch() {
        let mut costs = uneven(4, 1, &[5, 5, 5, 5, 5, 5]);
        for stage in 0..4 {
            let cell = costs.cell(stage, 3);
            costs.transient[cell] = Bytes::new(7);
        }
        assert_eq!(found(&costs, Bytes::new(11)), Err(TooLarge { rank: 0, needs: Bytes::new(12) }));
        let result = found(&costs, Bytes::new(17)).expect("two activations and the room fit");
        let execution = execute(&result.schedule, &costs).unwrap();
        assert!((0..4).all(|rank| peak_memory(rank, &result.schedule, &execution, &costs) <= Bytes::new(17)));
    }

    proptest! {
        #[test]
        fn result_is_never_slower_than_fixed_order_and_matches_simulation(
            times in prop::collection::vec(1_u64..50, 4..14), chunks in 1_usize..3,
            moved in any::<(prop::sample::Index, prop::sample::Index)>(),
            tight in any::<bool>(), grouped in any::<bool>(), depth in prop::option::of(0_u32..3),
        ) {
            let costs = uneven(4, chunks, &times);
            let fixed = if chunks == 1 { one_f_one_b(4, times.len()) } else { interleaved(4, chunks, times.len(), Grouping::Balanced) };
            let fixed = execute(&fixed, &costs).unwrap().makespan();
            let plenty = thorough(&costs, Bytes::new(1_000_000)).unwrap();
            prop_assert!(plenty.end <= fixed);
            // A walk is abandoned only if it exceeds the given time.
            let order: Vec<usize> = (0..times.len()).collect();
            let caps = vec![Bytes::new(if tight { 4 * times.iter().max().unwrap() } else { 1_000_000 }); 4];
            let forward_order = if grouped { ForwardOrder::Grouped } else { ForwardOrder::DeepestFirst };
            let policy = Policy { forward_order, extra_in_flight: depth };
            let ground = Ground::new(&costs);
            let deep = |policy, before| list_schedule(&ground, &caps, &order, policy, before);
            let walk = |before| deep(policy, before).ordered;
            let complete = walk(Nanos::new(u64::MAX));
            prop_assert!(complete.is_some() || chunks > 1, "one chunk cannot deadlock");
            // A walk resumed from a trail equals a walk from the start.
            let trail = Trail::record(&ground, &caps, &order, policy);
            let (from, to) = (moved.0.index(times.len()), moved.1.index(times.len()));
            let mut other = order.clone();
            let microbatch = other.remove(from);
            other.insert(to, microbatch);
            for before in [Nanos::new(u64::MAX), complete.as_ref().map_or(Nanos::ZERO, |(_, end)| *end)] {
                let fresh = list_schedule(&ground, &caps, &other, policy, before).ordered;
                prop_assert_eq!(trail.list_schedule(&ground, &caps, &other, from.min(to), before).ordered, fresh);
            }
            // If a limit is not binding, higher limits do not change the result, including
            // abandoned walks.
            for before in [Nanos::new(u64::MAX), ground.end_bound() + Nanos::new(times.len() as u64)] {
                let found = deep(policy, before);
                let deeper = [depth.map(|extra| extra + 1), None].map(|extra| Policy { extra_in_flight: extra, ..policy });
                for deeper in deeper.into_iter().filter(|_| !found.is_limited) {
                    prop_assert_eq!(&deep(deeper, before), &found);
                }
            }
            if let Some((schedule, end)) = complete {
                prop_assert!(lower_bound(&costs) <= end && ground.end_bound() <= end);
                prop_assert_eq!(walk(end), None);
                prop_assert_eq!(walk(end + Nanos::new(1)), Some((schedule, end)));
            }
            if let Some(tight) = thorough(&costs, Bytes::new(4 * times.iter().max().unwrap())) {
                prop_assert!(execute(&tight.schedule, &costs).unwrap().makespan() == tight.end);
            }
        }
    }
}
