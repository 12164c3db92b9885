//! Layout search. Candidates get a lower bound and are simulated unless the bound exceeds the
//! lowest time.

use planscope_core::action::Schedule;
use planscope_core::host::side_by_side;
use planscope_core::units::{Bytes, Nanos};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::partition::LayerRange;
use planscope_cost::cost::{LayerTable, MicrobatchLoad, Partition, PipelineCosts, Pricing, StrategyMix};
use planscope_pipeline::simulate::{Execution, StepEnd, execute, peak_host_memory, peak_memory_over};
use planscope_plan::compare;
use planscope_plan::observer::{Cancelled, Observer, go_on};
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::{PlannerKind, Scenario};

mod bound;
mod composition;
mod nearest;
mod report;
mod stages;
mod variants;

pub(crate) use bound::Ramp;
use bound::{mean_bound, work_bound};
pub(crate) use composition::Composition;
pub(crate) use stages::balanced;

use crate::planners::equal_replicas::{REMEMBERED, link_class};
use crate::planners::infeasible::{BindingConstraint, Infeasibility};
use crate::planners::layouts::{Candidate, candidates};
use crate::planners::{Batches, PlanningContext, replica};

/// Returns all layers.
fn whole_model(scenario: &Scenario) -> Vec<LayerRange> {
    let modules = scenario.model.modules.iter().enumerate();
    modules.map(|(module, shape)| LayerRange::new(module, 0, shape.layers)).collect()
}

/// A layout and its stages.
#[derive(Debug, Clone)]
pub(crate) struct Sized {
    pub layout: Layout,
    pub partition: Partition,
    /// Maximum instances per part, by module. Empty if microbatches are undivided.
    pub sizes: Vec<u32>,
    /// Layer strategies per stage. Empty if all layers follow the settings.
    pub mixes: Vec<StrategyMix>,
    /// True if stages are balanced by parameters rather than time.
    pub by_parameters: bool,
    /// How sequences form microbatches.
    pub composition: Composition,
}

impl Sized {
    /// Builds a layout of undivided microbatches, using the layer strategies from the settings.
    pub(crate) const fn undivided(layout: Layout, partition: Partition) -> Self {
        let composition = Composition::Consecutive;
        Self { layout, partition, sizes: Vec::new(), mixes: Vec::new(), by_parameters: false, composition }
    }
}

/// The sizing batch, split into microbatches.
pub(crate) struct Microbatches<'a> {
    pub scenario: &'a Scenario,
    pub pricing: &'a Pricing<'a>,
    pub batch: &'a PackedBatch,
    /// Sequences per microbatch.
    pub sequences: Vec<Vec<u32>>,
    pub loads: Vec<MicrobatchLoad>,
}

/// Assignment of microbatches to replicas, and their order, by a planner.
pub(crate) trait LayoutPlanner: Sync {
    /// Returns indices into `loads` per replica.
    fn assign(
        &self,
        scenario: &Scenario,
        layout: Layout,
        loads: &[MicrobatchLoad],
        table: &LayerTable<'_>,
    ) -> Vec<Vec<usize>>;
    /// Assigns layers to stages.
    fn cut(&self, batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Infeasibility> {
        balanced(batch, table, layout)
    }
    /// Returns costs and schedule of a replica (number, microbatch indices) on the sizing batch.
    fn replica(
        &self,
        batch: &Microbatches<'_>,
        table: &LayerTable<'_>,
        sized: &Sized,
        replica: (usize, &[usize]),
    ) -> Result<(PipelineCosts, Schedule), Infeasibility>;
    /// Order of sequences before they are split into microbatches.
    fn sequence_order(&self, scenario: &Scenario, batch: &PackedBatch) -> Vec<usize>;
    /// Lower bound on the planner's work, relative to undivided microbatches.
    fn min_relative_work(&self) -> f64 {
        1.0
    }
    /// Dependencies that every schedule of the planner waits for.
    fn ramp(&self) -> Ramp {
        Ramp::None
    }
    /// Returns other ways to divide the microbatches of a fast layout.
    fn variants(&self, _: &Microbatches<'_>, _: &Sized) -> Vec<Sized> {
        Vec::new()
    }
    /// True if the planner chooses layer strategies independent of the settings. The table of [`Self::cut`] then has
    /// the costs of all strategies.
    fn chooses_strategies(&self) -> bool {
        false
    }
}

/// Result for a simulated candidate. Times in `active` and `exposed` are means per rank, in seconds.
#[derive(Debug, Clone, Copy)]
struct Score {
    time: Nanos,
    active: f64,
    exposed: f64,
    peak: Bytes,
}

enum SimulationResult {
    Simulated(Score),
    Rejected(Infeasibility),
    /// A replica reaches the ceiling. Contains its peak memory.
    Slow(Bytes),
}

/// Maximum iteration time in seconds: 115 days, well inside the range of nanoseconds.
pub(crate) const MAX_SECONDS: f64 = 1e7;
/// Rejection text for longer iterations.
pub(crate) const ENDLESS: &str = "an iteration would take more than 115 days";

/// Layout search of a planner.
pub(crate) struct LayoutSearch<'a> {
    scenario: &'a Scenario,
    pricing: &'a Pricing<'a>,
    kind: PlannerKind,
    planner: &'a dyn LayoutPlanner,
    limit: Bytes,
    /// Slower layouts are not simulated.
    ceiling: Nanos,
    /// Candidates and lower bounds, sorted in descending order.
    open: Vec<(Nanos, Sized)>,
    simulated: Vec<(Score, Sized)>,
    rejected: Vec<(Layout, Infeasibility)>,
    /// Microbatches by mean sequence count and composition.
    microbatches: Vec<((u32, Composition), Microbatches<'a>)>,
    total: u32,
    /// Layouts whose mean work per rank reaches the ceiling.
    pruned: u32,
    failed_later: u32,
    /// Layouts whose simulation reached the ceiling.
    /// Their peak memory up to then.
    slow: Vec<Bytes>,
}

impl<'a> LayoutSearch<'a> {
    /// Computes bounds for all candidates and simulates those that the bounds do not exclude. Layouts that are
    /// slower than the ceiling of the context are not simulated to the end.
    pub(crate) fn run(
        context: PlanningContext<'a>,
        layout_planner: &'a dyn LayoutPlanner,
        observer: &mut dyn Observer,
    ) -> Result<Self, Cancelled> {
        let PlanningContext {
            scenario, pricing, planner: kind, batches: Batches { sizing: batch, .. }, ceiling, ..
        } = context;
        let limit = scenario.memory_limit();
        let mut search = Self {
            scenario,
            pricing,
            kind,
            planner: layout_planner,
            limit,
            ceiling,
            open: Vec::new(),
            simulated: Vec::new(),
            rejected: Vec::new(),
            microbatches: Vec::new(),
            total: 0,
            pruned: 0,
            failed_later: 0,
            slow: Vec::new(),
        };
        let mut viable: Vec<Layout> = Vec::new();
        for Candidate { layout, rule } in candidates(scenario, kind, batch.sequences.len() as u32) {
            search.total += 1;
            match rule {
                Some(rule) => search.rejected.push((layout, Infeasibility::rule(&rule))),
                None => viable.push(layout),
            }
        }
        let mut sizes: Vec<u32> = viable.iter().map(|layout| layout.microbatch).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            search.compose(Composition::Consecutive, size, batch);
        }
        search.bound_all(viable, observer)?;
        search.simulate_all(observer)?;
        search.simulate_variants(batch, observer)?;
        Ok(search)
    }

    /// Splits the sizing batch into microbatches of `size` sequences in the mean, unless they are known.
    fn compose(&mut self, composition: Composition, size: u32, batch: &'a PackedBatch) {
        let (scenario, pricing, key) = (self.scenario, self.pricing, (size, composition));
        if self.microbatches.iter().any(|(known, _)| *known == key) {
            return;
        }
        let order = self.planner.sequence_order(scenario, batch);
        let sequences = composition.microbatches(scenario, pricing, size, batch, &order);
        let loads = replica::loads(scenario, batch, &sequences);
        self.microbatches.push((key, Microbatches { scenario, pricing, batch, sequences, loads }));
    }

    fn microbatches_for(&self, layout: Layout, composition: Composition) -> Option<&Microbatches<'a>> {
        let entry = self.microbatches.iter().find(|(key, _)| *key == (layout.microbatch, composition));
        entry.map(|(_, microbatches)| microbatches)
    }

    /// Returns the costs of layers, with those of all strategies if the planner chooses them.
    fn table<'b>(&self, tensor: u32, loads: &'b [MicrobatchLoad]) -> LayerTable<'b>
    where
        'a: 'b,
    {
        if self.planner.chooses_strategies() {
            self.pricing.tunable_table(tensor, loads)
        } else {
            self.pricing.table(tensor, loads)
        }
    }

    fn bound_all(&mut self, mut viable: Vec<Layout>, observer: &dyn Observer) -> Result<(), Cancelled> {
        // Layouts share layer costs if TP and microbatch size are equal.
        viable.sort_by_key(|layout| (layout.tensor, layout.microbatch));
        let microbatches = std::mem::take(&mut self.microbatches);
        for group in viable.chunk_by(|a, b| (a.tensor, a.microbatch) == (b.tensor, b.microbatch)) {
            go_on(observer)?;
            let key = (group[0].microbatch, Composition::Consecutive);
            let Some((_, batch)) = microbatches.iter().find(|(known, _)| *known == key) else { continue };
            let table = self.table(group[0].tensor, &batch.loads);
            let whole = self.whole_work(&table);
            for &layout in group {
                let mean = mean_bound(whole, table.microbatches(), layout);
                if mean >= self.ceiling {
                    self.pruned += 1;
                    continue;
                }
                match self.bound(batch, &table, layout) {
                    Ok(bounded) => {
                        debug_assert!(mean <= bounded.0, "{layout:?}: {mean:?} exceeds {:?}", bounded.0);
                        self.open.push(bounded);
                    }
                    Err(infeasibility) => self.rejected.push((layout, infeasibility)),
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
        table: &LayerTable<'_>,
        layout: Layout,
    ) -> Result<(Nanos, Sized), Infeasibility> {
        let sized = self.planner.cut(batch, table, layout)?;
        let position = replica::replica_position(layout, 0);
        let fixed = table.static_memory(&sized.partition, position);
        let heaviest = fixed.iter().copied().enumerate().max_by_key(|&(rank, bytes)| (bytes, std::cmp::Reverse(rank)));
        if let Some((rank, bytes)) = heaviest.filter(|heaviest| heaviest.1 > self.limit) {
            let reason = "weights, gradients and optimizer state exceed the memory".to_owned();
            return Err(Infeasibility { reason, constraint: BindingConstraint::State(bytes, rank) });
        }
        let strategy_share = if sized.sizes.is_empty() { 1.0 } else { self.planner.min_relative_work() };
        let stage_work = |ranges: &[LayerRange]| self.stage_work(table, strategy_share, ranges);
        let ramp = self.planner.ramp();
        let bound = work_bound(table, &sized.partition, position, ramp, stage_work);
        if bound.secs() > MAX_SECONDS {
            return Err(Infeasibility::rule(ENDLESS));
        }
        Ok((bound, sized))
    }

    /// Returns a lower bound on the work of layers for all microbatches, in seconds. `strategy_share` is a lower bound
    /// on the work with strategies of the planner, relative to undivided microbatches.
    fn stage_work(&self, table: &LayerTable<'_>, strategy_share: f64, ranges: &[LayerRange]) -> f64 {
        let chooses = self.planner.chooses_strategies();
        // Layers that store all activations do not wait for the host, so the settings give no bound for them.
        let follows_settings = !chooses || self.scenario.training.activation_offload == 0.0;
        let share = self.planner.min_relative_work();
        let by_settings = if follows_settings { share * table.stage_work(ranges) } else { 0.0 };
        if chooses { by_settings.max(strategy_share * table.min_strategy_work(ranges)) } else { by_settings }
    }

    /// Returns a lower bound on the work of all layers, for any assignment to stages, in seconds.
    fn whole_work(&self, table: &LayerTable<'_>) -> f64 {
        let training = &self.scenario.training;
        // Every stage recomputes some layers. A recomputed layer can take less time than one that waits for the host.
        if training.recompute_layers.is_some() && training.activation_offload > 0.0 {
            return 0.0;
        }
        self.stage_work(table, self.planner.min_relative_work(), &whole_model(self.scenario))
    }

    /// Simulates open candidates in ascending bound order, until no bound is below the lowest time.
    ///
    /// The worker threads simulate several candidates in parallel. Candidates excluded by a
    /// parallel result count as not simulated, so the result does not depend on the number of
    /// workers.
    fn simulate_all(&mut self, observer: &mut dyn Observer) -> Result<(), Cancelled> {
        while self.is_promising() {
            go_on(observer)?;
            let done = self.total - self.open.len() as u32;
            observer.progress(self.kind, "searching layouts", done, self.total);
            let workers = observer.workers();
            let next: Vec<&Sized> =
                self.open.iter().rev().take(workers.count().max(1)).map(|(_, sized)| sized).collect();
            for result in side_by_side(workers, next.len(), |index| self.simulate(next[index])) {
                if !self.is_promising() {
                    break;
                }
                let Some((bound, sized)) = self.open.pop() else { break };
                match result {
                    SimulationResult::Simulated(score) => {
                        debug_assert!(bound <= score.time, "{:?}: {bound:?} is no bound of {score:?}", sized.layout);
                        self.simulated.push((score, sized));
                    }
                    SimulationResult::Rejected(infeasibility) => self.rejected.push((sized.layout, infeasibility)),
                    SimulationResult::Slow(peak) => self.slow.push(peak),
                }
            }
        }
        Ok(())
    }

    /// Returns true if the lowest open bound is below the lowest time.
    fn is_promising(&self) -> bool {
        let best = self.best().map_or(self.ceiling, |(best, _)| best.time.min(self.ceiling));
        self.open.last().is_some_and(|(bound, _)| *bound < best)
    }

    fn simulate(&self, sized: &Sized) -> SimulationResult {
        let cluster = &self.scenario.cluster;
        let layout = sized.layout;
        let Some(batch) = self.microbatches_for(layout, sized.composition) else {
            return SimulationResult::Rejected(Infeasibility::rule("no microbatches of that size"));
        };
        let loads = batch.loads.as_slice();
        let table = self.table(layout.tensor, loads);
        let mut executions: Vec<Execution> = Vec::new();
        let mut score = Score { time: Nanos::ZERO, active: 0.0, exposed: 0.0, peak: Bytes::ZERO };
        let mut known: Vec<(&[usize], u32, compare::IterationTotals)> = Vec::new();
        // Step ends per replica. They differ in the gradient reduction hidden by the initial
        // forward and the final backward.
        let mut tails: Vec<PipelineCosts> = Vec::new();
        let assignment = self.planner.assign(self.scenario, layout, loads, &table);
        let ranks = f64::from(layout.pipeline * layout.data);
        for (replica, assigned) in assignment.iter().enumerate() {
            let class = link_class(self.scenario, layout, replica);
            let is_equal = |(before, at, _): &&(&[usize], u32, compare::IterationTotals)| {
                *at == class
                    && before.len() == assigned.len()
                    && before.iter().zip(assigned).all(|(&before, &now)| loads[before] == loads[now])
            };
            if let Some((.., totals)) = known.iter().rev().take(REMEMBERED).find(is_equal) {
                score.active += totals.active_time.secs() / ranks;
                score.exposed += totals.exposed.secs() / ranks;
                continue;
            }
            let (costs, schedule) = match self.planner.replica(batch, &table, sized, (replica, assigned)) {
                Ok(built) => built,
                Err(infeasibility) => return SimulationResult::Rejected(infeasibility),
            };
            let Ok(execution) = execute(&schedule, &costs) else {
                return SimulationResult::Rejected(Infeasibility::deadlock());
            };
            let host = peak_host_memory(&schedule, &costs).1.gib() * f64::from(cluster.devices_per_node);
            if let Some(reason) = cluster.host_excess(host) {
                return SimulationResult::Rejected(Infeasibility::rule(&reason));
            }
            let (rank, peak) = peak_memory_over(&schedule, &execution, &costs);
            score.peak = score.peak.max(peak);
            if peak > self.limit {
                return SimulationResult::Rejected(Infeasibility::activations(rank, peak));
            }
            if execution.makespan() >= self.ceiling {
                return SimulationResult::Slow(score.peak);
            }
            let mut totals = compare::IterationTotals::default();
            totals.add_replica(&schedule, &costs, 1);
            score.active += totals.active_time.secs() / ranks;
            score.exposed += totals.exposed.secs() / ranks;
            executions.push(execution);
            let PipelineCosts { sync, optimizer, .. } = costs;
            tails.push(PipelineCosts { sync, optimizer, ..PipelineCosts::default() });
            known.push((assigned, class, totals));
        }
        let end = StepEnd::from_executions(layout.pipeline as usize, executions.iter());
        score.time = tails.iter().map(|costs| end.iteration_end(costs)).max().unwrap_or(Nanos::ZERO);
        if score.time.secs() > 2.0 * MAX_SECONDS {
            return SimulationResult::Rejected(Infeasibility::rule("an iteration would take more than 115 days"));
        }
        SimulationResult::Simulated(score)
    }

    fn best(&self) -> Option<&(Score, Sized)> {
        self.simulated.iter().min_by_key(|(score, sized)| (score.time, sized.layout))
    }

    /// Returns the lowest time on the sizing batch.
    pub(crate) fn best_time(&self) -> Option<Nanos> {
        self.best().map(|(score, _)| score.time)
    }

    /// Returns the smallest peak memory of the simulated layouts, of slow ones, and of those rejected for memory.
    pub(crate) fn min_peak(&self) -> Option<Bytes> {
        let simulated = self.simulated.iter().map(|(score, _)| score.peak);
        let rejected = self.rejected.iter().filter_map(|(_, infeasibility)| Some(infeasibility.constraint.memory()?.1));
        simulated.chain(rejected).chain(self.slow.iter().copied()).min()
    }

    /// Returns the fastest remaining layout.
    pub(crate) fn winner(&self) -> Option<Sized> {
        self.best().map(|(_, sized)| sized.clone())
    }

    /// Removes the fastest layout after it failed on a later batch, and continues the search.
    pub(crate) fn reject_winner(
        &mut self,
        infeasibility: &Infeasibility,
        observer: &mut dyn Observer,
    ) -> Result<(), Cancelled> {
        if let Some(winner) = self.winner() {
            let key = |sized: &Sized| (sized.layout, sized.composition, sized.sizes.clone());
            self.simulated.retain(|(_, sized)| key(sized) != key(&winner));
            let reason = format!("{} on another batch", infeasibility.reason);
            self.rejected.push((winner.layout, Infeasibility { reason, constraint: infeasibility.constraint }));
            self.failed_later += 1;
        }
        self.simulate_all(observer)
    }

    /// Layouts that were faster on the sizing batch but failed on a later batch.
    pub(crate) fn failed_later(&self) -> u32 {
        self.failed_later
    }
}

#[cfg(test)]
mod tests;
