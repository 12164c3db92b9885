//! The search over layouts: every candidate is bounded, and simulated unless its bound already loses.

use crate::compare;
use crate::cost::partition::LayerRange;
use crate::cost::{LayerTable, MicrobatchLoad, Partition, PipelineCosts, Place, Pricing, StrategyMix};
use crate::host::side_by_side;
use crate::observer::{Cancelled, Observer, go_on};
use crate::outcome::{Layout, Loser, RejectionCount, Search};
use crate::scenario::{PlannerKind, Scenario};
use crate::schedule::Schedule;
use crate::simulate::{Execution, StepEnd, execute, peak_memory_over};
use crate::units::{Bytes, Nanos};
use crate::workload::PackedBatch;

mod nearest;

use super::layouts::{Candidate, candidates};
use super::misfit::{Hurdle, Misfit};
use super::{NoPlan, describe, replica};

/// Losers that are kept, best first.
const KEPT_LOSERS: usize = 40;

/// A layout with the layers of its stages.
#[derive(Debug, Clone)]
pub(super) struct Sized {
    pub layout: Layout,
    pub partition: Partition,
    /// Most instances of a part of each module; empty where microbatches go whole through all stages.
    pub sizes: Vec<u32>,
    /// Strategies of the layers of every stage; empty where all do as the settings say.
    pub mixes: Vec<StrategyMix>,
    /// Stages were cut for equal parameters rather than equal time.
    pub by_parameters: bool,
}

impl Sized {
    /// Microbatches go whole through all stages, layers do as the settings say.
    pub(super) const fn whole(layout: Layout, partition: Partition) -> Self {
        Self { layout, partition, sizes: Vec::new(), mixes: Vec::new(), by_parameters: false }
    }
}

/// The sizing batch, cut into microbatches of one size.
pub(super) struct Microbatches<'a> {
    pub scenario: &'a Scenario,
    pub pricing: &'a Pricing<'a>,
    pub batch: &'a PackedBatch,
    /// Sequences of each microbatch.
    pub sequences: Vec<Vec<u32>>,
    pub loads: Vec<MicrobatchLoad>,
}

/// How a planner fills a layout: which microbatches go to which replica, and in which order they run.
pub(super) trait Filling: Sync {
    /// Indices into `loads` for every replica.
    fn assign(&self, layout: Layout, loads: &[MicrobatchLoad], table: &LayerTable<'_>) -> Vec<Vec<usize>>;
    /// The layers of every stage.
    fn cut(&self, batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Misfit> {
        balanced(batch, table, layout)
    }
    /// What a replica, by number, would do with some of the microbatches of the sizing batch, and what that costs.
    fn replica(
        &self,
        batch: &Microbatches<'_>,
        table: &LayerTable<'_>,
        sized: &Sized,
        replica: (usize, &[usize]),
    ) -> Result<(PipelineCosts, Schedule), Misfit>;
    /// The order in which sequences are cut into microbatches.
    fn sequence_order(&self, batch: &PackedBatch) -> Vec<usize>;
    /// The share of whole microbatches' work that no plan of this planner undercuts.
    fn least_work(&self) -> f64 {
        1.0
    }
    /// Whether it chooses what its layers keep, whatever the settings say.
    fn chooses_strategies(&self) -> bool {
        false
    }
}

/// What a simulated candidate came to, per rank on average, in seconds.
#[derive(Debug, Clone, Copy)]
struct Score {
    time: Nanos,
    busy: f64,
    exposed: f64,
    peak: Bytes,
}

enum Verdict {
    Simulated(Score),
    Rejected(Misfit),
}

/// Longest iteration that is planned: 115 days, far below the range of nanoseconds.
pub(crate) const LONGEST_SECONDS: f64 = 1e7;
/// What is said of a longer one.
pub(crate) const ENDLESS: &str = "an iteration would take more than 115 days";

/// The running search of one planner.
pub(super) struct LayoutSearch<'a> {
    scenario: &'a Scenario,
    pricing: &'a Pricing<'a>,
    kind: PlannerKind,
    filling: &'a dyn Filling,
    limit: Bytes,
    /// Candidates with their lower bound, best bound first.
    open: Vec<(Nanos, Sized)>,
    simulated: Vec<(Score, Sized)>,
    rejected: Vec<(Layout, Misfit)>,
    /// By sequences of a microbatch.
    microbatches: Vec<(u32, Microbatches<'a>)>,
    total: u32,
    failed_later: u32,
}

impl<'a> LayoutSearch<'a> {
    /// Bounds every candidate and simulates what the bounds do not exclude.
    pub(super) fn run(
        scenario: &'a Scenario,
        pricing: &'a Pricing<'a>,
        kind: PlannerKind,
        filling: &'a dyn Filling,
        batch: &'a PackedBatch,
        observer: &mut dyn Observer,
    ) -> Result<Self, Cancelled> {
        let limit = scenario.memory_limit();
        let mut search = Self {
            scenario,
            pricing,
            kind,
            filling,
            limit,
            open: Vec::new(),
            simulated: Vec::new(),
            rejected: Vec::new(),
            microbatches: Vec::new(),
            total: 0,
            failed_later: 0,
        };
        let order: Vec<u32> = filling.sequence_order(batch).into_iter().map(|index| index as u32).collect();
        let mut viable: Vec<Layout> = Vec::new();
        for Candidate { layout, rule } in candidates(scenario, kind, order.len() as u32) {
            search.total += 1;
            match rule {
                Some(rule) => search.rejected.push((layout, Misfit::rule(&rule))),
                None => viable.push(layout),
            }
        }
        let mut sizes: Vec<u32> = viable.iter().map(|layout| layout.microbatch).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let sequences: Vec<Vec<u32>> = order.chunks(size as usize).map(<[u32]>::to_vec).collect();
            let loads = replica::loads(scenario, batch, &sequences);
            search.microbatches.push((size, Microbatches { scenario, pricing, batch, sequences, loads }));
        }
        search.bound_all(viable, observer)?;
        search.simulate_all(observer)?;
        Ok(search)
    }

    fn microbatches_of(&self, layout: Layout) -> Option<&Microbatches<'a>> {
        let entry = self.microbatches.iter().find(|(size, _)| *size == layout.microbatch);
        entry.map(|(_, microbatches)| microbatches)
    }

    fn bound_all(&mut self, mut viable: Vec<Layout>, observer: &dyn Observer) -> Result<(), Cancelled> {
        // Layouts of one TP and microbatch share the costs of their layers.
        viable.sort_by_key(|layout| (layout.tensor, layout.microbatch));
        let microbatches = std::mem::take(&mut self.microbatches);
        for group in viable.chunk_by(|a, b| (a.tensor, a.microbatch) == (b.tensor, b.microbatch)) {
            go_on(observer)?;
            let Some((_, batch)) = microbatches.iter().find(|(size, _)| *size == group[0].microbatch) else { continue };
            let table = self.pricing.table(group[0].tensor, &batch.loads);
            // Layers that keep everything do not wait for the host that those of the settings wait for.
            let chooses = self.filling.chooses_strategies() && self.scenario.training.activation_offload > 0.0;
            let tunable = chooses.then(|| self.pricing.tunable_table(group[0].tensor, &batch.loads));
            for &layout in group {
                match self.bound(batch, (&table, tunable.as_ref()), layout) {
                    Ok(bounded) => self.open.push(bounded),
                    Err(misfit) => self.rejected.push((layout, misfit)),
                }
            }
        }
        self.microbatches = microbatches;
        self.open.sort_by_key(|(bound, sized)| (*bound, sized.layout));
        self.open.reverse();
        Ok(())
    }

    fn bound(
        &self,
        batch: &Microbatches<'_>,
        (table, tunable): (&LayerTable<'_>, Option<&LayerTable<'_>>),
        layout: Layout,
    ) -> Result<(Nanos, Sized), Misfit> {
        let sized = self.filling.cut(batch, table, layout)?;
        let place = replica::place(layout, 0);
        let fixed = table.static_memory(&sized.partition, place);
        let heaviest = fixed.iter().copied().enumerate().max_by_key(|&(rank, bytes)| (bytes, std::cmp::Reverse(rank)));
        if let Some((rank, bytes)) = heaviest.filter(|heaviest| heaviest.1 > self.limit) {
            let reason = "weights, gradients and optimizer state exceed the memory".to_owned();
            return Err(Misfit { reason, hurdle: Hurdle::State(bytes, rank) });
        }
        let share = self.filling.least_work();
        let bound = match tunable {
            Some(tunable) => work_bound(table, &sized.partition, place, |ranges| share * least_work(tunable, ranges)),
            None => work_bound(table, &sized.partition, place, |ranges| share * table.stage_work(ranges)),
        };
        if bound.secs() > LONGEST_SECONDS {
            return Err(Misfit::rule(ENDLESS));
        }
        Ok((bound, sized))
    }

    /// Simulates open candidates, best bound first, until the best bound left is no better than the best time.
    ///
    /// As many at once as there are workers. What one of them excludes counts as never simulated, so that what is found does not depend
    /// on how many there are.
    fn simulate_all(&mut self, observer: &mut dyn Observer) -> Result<(), Cancelled> {
        while self.is_promising() {
            go_on(observer)?;
            let done = self.total - self.open.len() as u32;
            observer.progress(self.kind, "searching layouts", done, self.total);
            let workers = observer.workers();
            let next: Vec<&Sized> =
                self.open.iter().rev().take(workers.count().max(1)).map(|(_, sized)| sized).collect();
            for verdict in side_by_side(workers, next.len(), |place| self.simulate(next[place])) {
                if !self.is_promising() {
                    break;
                }
                let Some((bound, sized)) = self.open.pop() else { break };
                match verdict {
                    Verdict::Simulated(score) => {
                        debug_assert!(bound <= score.time, "{:?}: {bound:?} is no bound of {score:?}", sized.layout);
                        self.simulated.push((score, sized));
                    }
                    Verdict::Rejected(misfit) => self.rejected.push((sized.layout, misfit)),
                }
            }
        }
        Ok(())
    }

    /// Whether the best bound left is better than the best time.
    fn is_promising(&self) -> bool {
        let best = self.best().map(|(best, _)| best.time);
        self.open.last().is_some_and(|(bound, _)| best.is_none_or(|best| *bound < best))
    }

    fn simulate(&self, sized: &Sized) -> Verdict {
        let cluster = &self.scenario.cluster;
        let layout = sized.layout;
        let Some(batch) = self.microbatches_of(layout) else {
            return Verdict::Rejected(Misfit::rule("no microbatches of that size"));
        };
        let loads = batch.loads.as_slice();
        let table = self.pricing.table(layout.tensor, loads);
        let mut executions: Vec<Execution> = Vec::new();
        let mut score = Score { time: Nanos::ZERO, busy: 0.0, exposed: 0.0, peak: Bytes::ZERO };
        let mut last: Option<(&[usize], u32, compare::IterationTotals)> = None;
        // What each replica does once all are done: how much of it the first forward and the last backward hide is its own.
        let mut tails: Vec<PipelineCosts> = Vec::new();
        let assignment = self.filling.assign(layout, loads, &table);
        let ranks = f64::from(layout.pipeline * layout.data);
        for (replica, assigned) in assignment.iter().enumerate() {
            // A replica that does what the one before it does, at the same place of its node, takes as long.
            let devices = layout.tensor * self.scenario.training.context_parallel;
            let offset = (replica as u32).wrapping_mul(devices) % cluster.devices_per_node;
            if let Some((before, at, totals)) = &last
                && *at == offset
                && before.len() == assigned.len()
                && before.iter().zip(assigned).all(|(&before, &now)| loads[before] == loads[now])
            {
                score.busy += totals.busy.secs() / ranks;
                score.exposed += totals.exposed.secs() / ranks;
                continue;
            }
            let (costs, schedule) = match self.filling.replica(batch, &table, sized, (replica, assigned)) {
                Ok(built) => built,
                Err(misfit) => return Verdict::Rejected(misfit),
            };
            let Ok(execution) = execute(&schedule, &costs) else {
                return Verdict::Rejected(Misfit::deadlock());
            };
            let (rank, peak) = peak_memory_over(&schedule, &execution, &costs);
            score.peak = score.peak.max(peak);
            if peak > self.limit {
                return Verdict::Rejected(Misfit::activations(rank, peak));
            }
            let mut totals = compare::IterationTotals::default();
            totals.add_replica(&schedule, &costs);
            score.busy += totals.busy.secs() / ranks;
            score.exposed += totals.exposed.secs() / ranks;
            executions.push(execution);
            let PipelineCosts { sync, optimizer, .. } = costs;
            tails.push(PipelineCosts { sync, optimizer, ..PipelineCosts::default() });
            last = Some((assigned, offset, totals));
        }
        let end = StepEnd::of(layout.pipeline as usize, executions.iter());
        score.time = tails.iter().map(|costs| end.iteration_end(costs)).max().unwrap_or(Nanos::ZERO);
        if score.time.secs() > 2.0 * LONGEST_SECONDS {
            return Verdict::Rejected(Misfit::rule("an iteration would take more than 115 days"));
        }
        Verdict::Simulated(score)
    }

    fn best(&self) -> Option<&(Score, Sized)> {
        self.simulated.iter().min_by_key(|(score, sized)| (score.time, sized.layout))
    }

    /// The best layout left.
    pub(super) fn winner(&self) -> Option<Sized> {
        self.best().map(|(_, sized)| sized.clone())
    }

    /// Takes the best layout out, because it failed on a judged batch, and looks for the next.
    pub(super) fn reject_winner(&mut self, misfit: &Misfit, observer: &mut dyn Observer) -> Result<(), Cancelled> {
        if let Some(winner) = self.winner() {
            self.simulated.retain(|(_, sized)| sized.layout != winner.layout);
            let reason = format!("{} on another batch", misfit.reason);
            self.rejected.push((winner.layout, Misfit { reason, hurdle: misfit.hurdle }));
            self.failed_later += 1;
        }
        self.simulate_all(observer)
    }

    /// Layouts that were faster on the sizing batch and failed on a judged one.
    pub(super) fn failed_later(&self) -> u32 {
        self.failed_later
    }

    /// What was tried, and why the losers lost.
    pub(super) fn report(&self) -> Search {
        let best = self.best().map(|(score, sized)| (*score, sized.layout));
        let mut simulated: Vec<&(Score, Sized)> = self.simulated.iter().collect();
        simulated.sort_by_key(|(score, sized)| (score.time, sized.layout));
        let mut losers: Vec<Loser> = simulated
            .into_iter()
            .filter(|(_, sized)| best.is_some_and(|(_, winner)| winner != sized.layout))
            .map(|(score, sized)| Loser {
                layout: sized.layout,
                reason: best.map_or_else(String::new, |(best, _)| why_slower(score, &best)),
                iteration_s: Some(score.time.secs()),
                peak_memory_gib: Some(score.peak.gib()),
            })
            .collect();
        let mut memory: Vec<_> = self
            .rejected
            .iter()
            .filter_map(|(layout, misfit)| Some((layout, misfit, misfit.hurdle.memory()?)))
            .collect();
        memory.sort_by_key(|(layout, _, (_, bytes))| (*bytes, **layout));
        let room = KEPT_LOSERS.saturating_sub(memory.len().min(KEPT_LOSERS / 2));
        losers.truncate(room);
        let nearest = memory.into_iter().take(KEPT_LOSERS - losers.len());
        losers.extend(nearest.map(|(layout, misfit, (rank, bytes))| Loser {
            layout: *layout,
            reason: self.lack(rank, bytes, matches!(misfit.hurdle, Hurdle::Activations(..))),
            iteration_s: None,
            peak_memory_gib: Some(bytes.gib()),
        }));
        Search {
            candidates: self.total,
            simulated: self.simulated.len() as u32,
            pruned: self.open.len() as u32,
            rejected: self.rejected.len() as u32,
            losers,
            rejections: self.rejection_counts(),
            nearest: None,
        }
    }

    /// The memory that a rank lacks, in words.
    fn lack(&self, rank: usize, bytes: Bytes, is_complete: bool) -> String {
        let (needs, limit) = (bytes.gib(), self.limit.gib());
        if is_complete {
            format!("rank {rank} needs {needs:.1} GiB; {limit:.1} GiB available")
        } else {
            format!(
                "rank {rank} needs {needs:.1} GiB for weights, gradients and optimizer alone; {limit:.1} GiB available"
            )
        }
    }

    fn rejection_counts(&self) -> Vec<RejectionCount> {
        let mut counts: Vec<RejectionCount> = Vec::new();
        for (_, misfit) in &self.rejected {
            match counts.iter_mut().find(|count| count.reason == misfit.reason) {
                Some(count) => count.count += 1,
                None => counts.push(RejectionCount { reason: misfit.reason.clone(), count: 1 }),
            }
        }
        counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        counts
    }

    /// The answer when no layout is left: what stopped those that came furthest, and the full memory needs of those that
    /// memory stopped, least first.
    pub(super) fn no_plan(&self) -> NoPlan {
        let needs = self.needs();
        let furthest = self.rejected.iter().map(|(_, misfit)| misfit.hurdle.stage()).max();
        let mut furthest = self.rejected.iter().filter(|(_, misfit)| Some(misfit.hurdle.stage()) == furthest);
        let binding = match (needs.first(), furthest.next()) {
            (_, Some((_, misfit))) if misfit.hurdle == Hurdle::Run => misfit.reason.clone(),
            (Some(need), _) => {
                format!("{} ({})", self.lack(need.rank, need.bytes, need.is_complete()), describe(need.layout))
            }
            (None, Some(_)) => self.rejection_counts().swap_remove(0).reason,
            (None, None) => "no valid layout: the requested degrees do not divide the devices".to_owned(),
        };
        let mut search = self.report();
        search.losers = needs
            .iter()
            .take(KEPT_LOSERS)
            .map(|need| Loser {
                layout: need.layout,
                reason: self.lack(need.rank, need.bytes, need.is_complete()),
                iteration_s: None,
                peak_memory_gib: need.is_complete().then(|| need.bytes.gib()),
            })
            .collect();
        search.nearest = needs.into_iter().find(nearest::Need::is_complete).map(|need| Box::new(need.miss(self.limit)));
        NoPlan { binding, search }
    }
}

/// Whole microbatches through the stages of [`cut`].
pub(super) fn balanced(batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Misfit> {
    let partition = cut(batch.scenario, table, layout).ok_or_else(|| Misfit::rule("more stages than layers"))?;
    Ok(Sized::whole(layout, partition))
}

/// The stages of a layout: even for one module, as Megatron-LM cuts it, balanced by mean time for several.
pub(super) fn cut(scenario: &Scenario, table: &LayerTable<'_>, layout: Layout) -> Option<Partition> {
    let stages = layout.pipeline * layout.chunks;
    if scenario.model.modules.len() == 1 {
        Partition::even(&scenario.model, stages)
    } else {
        Partition::balanced(&scenario.model, &table.weights(stages), stages)
    }
}

/// The layers of a stage for all microbatches, each with the fastest strategy; in s.
fn least_work(tunable: &LayerTable<'_>, ranges: &[LayerRange]) -> f64 {
    let of = |range: &LayerRange, microbatch: usize| {
        let costs = tunable.strategy_layers(range.module, microbatch);
        let times = costs.iter().map(|cost| (cost.forward + cost.input_grad + cost.weight_grad).secs());
        f64::from(range.len()) * times.fold(f64::INFINITY, f64::min)
    };
    ranges.iter().flat_map(|range| (0..tunable.microbatches()).map(move |microbatch| of(range, microbatch))).sum()
}

/// No iteration is faster than its busiest rank would be if the replicas shared the work of its stages equally.
fn work_bound(
    table: &LayerTable<'_>,
    partition: &Partition,
    place: Place,
    stage_work: impl Fn(&[LayerRange]) -> f64,
) -> Nanos {
    let (sync, optimizer) = table.step_end(partition, place, None);
    let ranks = place.pipeline as usize;
    (0..ranks)
        .map(|rank| {
            let stages: Vec<_> = partition.stages_on(rank, ranks).collect();
            let cells = (stages.len() * table.microbatches()) as f64;
            let work: f64 = stages.into_iter().map(|ranges| stage_work(ranges)).sum();
            // The simulation rounds forward and both gradients of every cell to nanoseconds, half of one at most.
            let floor = ((work - cells * 1.5e-9) / f64::from(place.data) * (1.0 - 1e-12)).max(0.0);
            crate::units::Seconds::from_secs(floor).to_nanos() + sync[rank] + optimizer[rank]
        })
        .max()
        .unwrap_or(Nanos::ZERO)
}

/// The largest of three differences, in words.
fn why_slower(score: &Score, best: &Score) -> String {
    let more = score.time.secs() - best.time.secs();
    let compute = (score.busy - score.exposed) - (best.busy - best.exposed);
    let communication = score.exposed - best.exposed;
    let idle = (score.time.secs() - score.busy) - (best.time.secs() - best.busy);
    let (what, much) = [("computation", compute), ("communication", communication), ("idle time", idle)]
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or(("time", more));
    format!("+{more:.3} s: {much:.3} s more {what}")
}

#[cfg(test)]
mod tests;
