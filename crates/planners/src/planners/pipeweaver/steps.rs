//! PipeWeaver's steps for a replica and batch.

use super::swaps::swapped;
use super::tuning::Options;
use super::{Effort, Tally};
use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search::Sized;
use crate::planners::pipeweaver::ranking;
use crate::planners::pipeweaver::ranking::{Budget, Ending, Goal, Ranked, Strategy};
use crate::planners::replica;
use crate::planners::replica::{Cut, groups};
use planscope_core::action::Schedule;
use planscope_core::stage_graph::Flows;
use planscope_core::units::Nanos;
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::partition::LayerRange;
use planscope_cost::cost::{
    LayerStrategy, LayerTable, MicrobatchLoad, Partition, PipelineCosts, Pricing, ReplicaLayout, StrategyMix,
    UniformTimes,
};
use planscope_pipeline::lower_bound::lower_bound;
use planscope_pipeline::schedule::dual_queue::{Interleaving, Priorities, interleave};
use planscope_pipeline::simulate::{StepEnd, execute};
use planscope_plan::plan::{Part, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::{PlannerKind, Scenario};

/// Enabled techniques of PipeWeaver. Each step includes the previous ones (PipeWeaver Table 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Modality-aware partition, fixed order.
    Partition,
    /// Dual-queue interleaving.
    Interleaving,
    /// Ranking of segment groups.
    Ranking,
    /// Layer tuning.
    Tuning,
}

impl Step {
    pub(crate) const fn from_planner(kind: PlannerKind) -> Self {
        match kind {
            PlannerKind::PipeWeaverPartition => Self::Partition,
            PlannerKind::PipeWeaverInterleaving => Self::Interleaving,
            PlannerKind::PipeWeaverRanking => Self::Ranking,
            _ => Self::Tuning,
        }
    }

    pub(crate) const fn algorithm(self) -> &'static str {
        match self {
            Self::Partition => {
                "layout by search on a representative batch; each module in its own segments, microbatches split \
                 by module; the order of every batch assumes equal stage times"
            }
            Self::Interleaving => {
                "layout by search on a representative batch; each module in its own segments, microbatches split \
                 by module; for every batch: dual-queue interleaving in data-loader order"
            }
            Self::Ranking => {
                "layout by search on a representative batch; each module in its own segments, microbatches split \
                 by module; for every batch: Monte-Carlo tree search over the ranking of segment groups, each \
                 interleaved by the dual queue; then swaps on the critical path"
            }
            Self::Tuning => {
                "layout by search on a representative batch; each module in its own segments, microbatches split \
                 by module; for every batch: Monte-Carlo tree search over the ranking of segment groups, each \
                 interleaved by the dual queue; then memory strategies of all layers by branch and bound, and swaps \
                 on the critical path"
            }
        }
    }
}

/// Ordered plan for a replica and batch.
pub(crate) struct Ordered {
    pub plan: ReplicaPlan,
    pub costs: PipelineCosts,
    /// Iteration end if the replica runs alone.
    pub end: Nanos,
    /// Ranking of the order, if searched.
    pub ranked: Option<Ranked>,
    /// Search statistics, also if the data-loader order is not improved.
    pub searched: Option<Searched>,
    /// Iteration end ahead of and following critical-path swaps, if any were tried.
    pub swapped: Option<(Nanos, Nanos)>,
}

/// Statistics for a ranking search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Searched {
    rollouts: u32,
    ending: Ending,
}

impl Searched {
    const fn from_ranked(ranked: &Ranked) -> Self {
        Self { rollouts: ranked.rollouts, ending: ranked.ending }
    }

    const fn description(self) -> &'static str {
        match self.ending {
            Ending::Optimal => "lower bound reached",
            Ending::NearBound => "within 0.1 % of the lower bound",
            Ending::Exhausted => "all orders tried",
            Ending::Rollouts => "search budget used",
            Ending::Time => "time limit reached",
        }
    }
}

/// Splits, orders and tunes the microbatches of a replica.
pub(crate) fn order(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    sized: &Sized,
    (number, batch): (usize, &PackedBatch),
    microbatches: Vec<Vec<u32>>,
    step: Step,
    effort: Effort<'_>,
) -> Result<Ordered, Infeasibility> {
    let contents: Vec<MicrobatchContents> = microbatches.iter().map(|sequences| batch.contents(sequences)).collect();
    let parts = replica::parts(&scenario.model, scenario.workload.packing, &contents, &sized.sizes);
    // A plan without parts means undivided microbatches, which have no path through stages of
    // single modules.
    if parts.is_empty() {
        return Err(Infeasibility::rule(NOTHING_TO_DO));
    }
    let cut = Cut::new(&scenario.model, scenario.workload.packing, &contents, &parts);
    let input = StepInput::new(scenario, pricing, (sized, number), (&cut, &parts), (step, effort));
    let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
    let plan = ReplicaPlan::new(microbatches, ReplicaKind::Parts(parts), schedule);
    match step {
        Step::Tuning => input.tuned(plan, &cut.loads),
        _ => input.ordered(plan, step),
    }
}

/// Input of the planning steps for a replica and batch.
struct StepInput<'a> {
    scenario: &'a Scenario,
    /// Costs of the parts.
    table: LayerTable<'a>,
    placed: (&'a Partition, ReplicaLayout),
    /// Paths of the parts through their modules' stages.
    flows: Flows,
    effort: Effort<'a>,
}

impl<'a> StepInput<'a> {
    fn new(
        scenario: &'a Scenario,
        pricing: &'a Pricing<'_>,
        (sized, number): (&'a Sized, usize),
        (cut, parts): (&'a Cut, &[Part]),
        (step, effort): (Step, Effort<'a>),
    ) -> Self {
        let Sized { layout, partition, .. } = sized;
        let table = match step {
            Step::Tuning => pricing.tunable_table(layout.tensor, &cut.loads),
            _ => pricing.table(layout.tensor, &cut.loads),
        };
        let microbatches = parts.last().map_or(0, |part| part.microbatch as usize + 1);
        let table = table.of_replica(microbatches);
        let flows = cut.flows(partition, parts, layout.pipeline as usize, scenario.model.modules.len());
        Self { scenario, table, placed: (partition, replica::replica_position(*layout, number)), flows, effort }
    }

    fn costs(&self, plan: &ReplicaPlan) -> PipelineCosts {
        let all: Vec<usize> = (0..plan.parts().len()).collect();
        let (partition, position) = self.placed;
        self.table.pipeline_over(partition, position, self.flows.clone(), &all, &plan.mixes)
    }

    fn interleaving<'b>(&self, costs: &'b PipelineCosts, groups: &'b [u32]) -> Result<Interleaving<'b>, Infeasibility> {
        Interleaving::new(costs, groups, self.scenario.memory_limit())
            .map_err(|too_large| Infeasibility::activations(too_large.rank, too_large.needs))
    }

    fn search(&self, interleaving: &Interleaving<'_>) -> Ranked {
        let Effort { starts, rollouts, stream, workers, cancellation, .. } = self.effort;
        let budget = Budget { starts, rollouts, seed: self.scenario.seed, stream: STREAM + stream };
        ranking::search(interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, workers, cancellation)
    }

    /// Improves the order by swaps on the critical path.
    fn swapped(&self, mut ordered: Ordered) -> Ordered {
        let limit = self.scenario.memory_limit();
        let Effort { rollouts, cancellation, .. } = self.effort;
        if cancellation.is_over() {
            return ordered;
        }
        if let Some(found) = swapped(&ordered.plan.schedule, &ordered.costs, limit, rollouts) {
            ordered.swapped = Some((ordered.end, found.end));
            (ordered.plan.schedule, ordered.end) = (found.schedule, found.end);
        }
        ordered
    }

    /// Repeats layer tuning after swaps, because a swap can free memory for other layers. Continues
    /// while the end improves.
    fn retuned(
        &self,
        mut tuned: Ordered,
        choose: impl Fn(&Schedule) -> Result<Vec<StrategyMix>, Infeasibility>,
    ) -> Result<Ordered, Infeasibility> {
        for _ in 0..RETUNINGS {
            if tuned.swapped.is_none_or(|(before, after)| after.get() / 1000 * WORTH_RETUNING > before.get()) {
                break;
            }
            // If no choice exists for the order, it remains valid, and the layers keep their
            // current strategies.
            let Ok(mixes) = choose(&tuned.plan.schedule) else { break };
            let plan = ReplicaPlan { mixes, ..tuned.plan.clone() };
            let costs = self.costs(&plan);
            let again = self.swapped(Self::finished(plan, costs, None)?);
            if again.end >= tuned.end {
                break;
            }
            let swapped = tuned.swapped.map(|(before, _)| (before, again.end));
            tuned = Ordered { ranked: tuned.ranked, searched: tuned.searched, swapped, ..again };
        }
        Ok(tuned)
    }

    fn finished(plan: ReplicaPlan, costs: PipelineCosts, ranked: Option<Ranked>) -> Result<Ordered, Infeasibility> {
        let execution = execute(&plan.schedule, &costs).map_err(|_| Infeasibility::deadlock())?;
        let end = StepEnd::from_executions(costs.ranks(), std::iter::once(&execution)).iteration_end(&costs);
        let searched = ranked.as_ref().map(Searched::from_ranked);
        Ok(Ordered { plan, costs, end, ranked, searched, swapped: None })
    }

    /// Computes an order using the layer strategies from the settings.
    fn ordered(&self, mut plan: ReplicaPlan, step: Step) -> Result<Ordered, Infeasibility> {
        let costs = self.costs(&plan);
        let groups = groups(plan.parts());
        let interleaving = self.interleaving(&costs, &groups)?;
        let natural = Priorities::natural(interleaving.groups());
        let mut ranked = None;
        plan.schedule = match step {
            Step::Partition => {
                let equal = equal_times(&costs);
                interleave(&self.interleaving(&equal, &groups)?, &natural).schedule
            }
            Step::Interleaving => interleave(&interleaving, &natural).schedule,
            Step::Ranking | Step::Tuning => {
                if self.effort.enough > Nanos::ZERO {
                    let schedule = interleave(&interleaving, &natural).schedule;
                    let unsearched = Self::finished(ReplicaPlan { schedule, ..plan.clone() }, costs.clone(), None)?;
                    if unsearched.end <= self.effort.enough {
                        return Ok(unsearched);
                    }
                }
                let found = self.search(&interleaving);
                let schedule = interleave(&interleaving, &found.priorities).schedule;
                ranked = Some(found);
                schedule
            }
        };
        let is_ranked = ranked.is_some();
        let ordered = Self::finished(plan, costs, ranked)?;
        Ok(if is_ranked { self.swapped(ordered) } else { ordered })
    }

    /// Orders the layers with minimal memory under an artificially increased memory use
    /// ("pressure"). A tighter order is slower, but frees memory to avoid recomputation. The
    /// pressure with the earliest tuned end is selected. The ranking search uses this pressure and
    /// the tuned layer times, and the resulting order is tuned again.
    fn tuned(&self, mut plan: ReplicaPlan, loads: &[MicrobatchLoad]) -> Result<Ordered, Infeasibility> {
        let limit = self.scenario.memory_limit();
        let groups = groups(plan.parts());
        let untuned = self.costs(&plan);
        let options = Options::new(&self.table, self.placed, (loads, &untuned));
        plan.mixes = options.leanest();
        let lean = self.costs(&plan);
        let mut best: Option<Ordered> = None;
        let mut keep_if_better = |ordered: Ordered| {
            if best.as_ref().is_none_or(|best| ordered.end < best.end) {
                best = Some(ordered);
            }
        };
        // Select the pressure: a tight order is slower, a loose order has less free memory to avoid
        // recomputation.
        let mut tightest: Option<(Nanos, PipelineCosts, PipelineCosts)> = None;
        for pressure in PRESSURES {
            let pressed = options.pressed(&lean, pressure);
            let Ok(interleaving) = self.interleaving(&pressed, &groups) else { continue };
            let natural = Priorities::natural(interleaving.groups());
            let schedule = interleave(&interleaving, &natural).schedule;
            if schedule == plan.schedule {
                // The same order gives the same layer choice.
                continue;
            }
            plan.schedule = schedule;
            plan.mixes = options.choose(&plan.schedule, &lean, limit)?;
            let timed = self.costs(&plan);
            let ordered = Self::finished(plan.clone(), timed.clone(), None)?;
            if tightest.as_ref().is_none_or(|(end, ..)| ordered.end < *end) {
                tightest = Some((ordered.end, pressed, timed));
            }
            keep_if_better(ordered);
        }
        let (end, pressed, timed) = tightest.ok_or_else(Infeasibility::deadlock)?;
        if end <= self.effort.enough {
            return best.ok_or_else(Infeasibility::deadlock);
        }
        let roomy = PipelineCosts { activation: pressed.activation, transient: pressed.transient, ..timed };
        let interleaving = self.interleaving(&roomy, &groups)?;
        let found = self.search(&interleaving);
        let searched = Some(Searched::from_ranked(&found));
        plan.schedule = interleave(&interleaving, &found.priorities).schedule;
        plan.mixes = options.choose(&plan.schedule, &lean, limit)?;
        let timed = self.costs(&plan);
        keep_if_better(Self::finished(plan.clone(), timed, Some(found))?);
        let best = Ordered { searched, ..best.ok_or_else(Infeasibility::deadlock)? };
        let tuned = self.retuned(self.swapped(best), |schedule| options.choose(schedule, &lean, limit))?;
        // If the settings already recompute little, their own order can be the fastest.
        if lower_bound(&untuned) >= tuned.end {
            return Ok(tuned);
        }
        match self.ordered(ReplicaPlan { mixes: Vec::new(), ..plan }, Step::Ranking) {
            Ok(ordered) if ordered.end < tuned.end => Ok(ordered),
            _ => Ok(tuned),
        }
    }
}

/// Pressures, as fractions of the memory difference between the leanest and the fastest layers.
const PRESSURES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Maximum tuning rounds after swaps, while the end improves.
const RETUNINGS: u32 = 3;

/// Minimum ratio of the previous end to the end after swaps, in thousandths, for a further tuning
/// round.
const WORTH_RETUNING: u64 = 1001;

/// Error for a replica without instances, for example if the model is only an image generator and
/// the samples have no images.
pub(crate) const NOTHING_TO_DO: &str = "the microbatches of a replica contain no work for any module";

/// Random stream for the search on batch 0. Batches and swaps use smaller stream numbers.
pub(crate) const STREAM: u64 = 1 << 20;

/// Returns the same pipeline at uniform times: one unit per forward, two per backward, free sends.
fn equal_times(costs: &PipelineCosts) -> PipelineCosts {
    let unit = Nanos::new(1000);
    let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::ZERO };
    PipelineCosts {
        activation: costs.activation.clone(),
        transient: costs.transient.clone(),
        static_memory: costs.static_memory.clone(),
        ..PipelineCosts::uniform_over(costs.flows.clone(), times)
    }
}

impl Tally {
    pub(crate) fn from_ordered(ordered: &Ordered) -> Self {
        let mut tally = Self { parts: ordered.plan.parts().len() as u64, ..Self::default() };
        for mix in &ordered.plan.mixes {
            for (sum, &layers) in tally.tuned_layers.iter_mut().zip(&mix.0) {
                *sum += u64::from(layers);
            }
        }
        if let Some(Searched { rollouts, ending }) = ordered.searched {
            tally.rollouts = u64::from(rollouts);
            tally.searches = 1;
            tally.near_bound = u32::from(matches!(ending, Ending::Optimal | Ending::NearBound));
            tally.exhausted = u32::from(ending == Ending::Exhausted);
        }
        tally
    }

    pub(crate) fn add(&mut self, other: Self) {
        let Self { rollouts, parts, near_bound, exhausted, searches, tuned_layers } = other;
        self.rollouts += rollouts;
        self.parts += parts;
        self.near_bound += near_bound;
        self.exhausted += exhausted;
        self.searches += searches;
        for (sum, layers) in self.tuned_layers.iter_mut().zip(tuned_layers) {
            *sum += layers;
        }
    }
}

impl Ordered {
    /// Describes the search of an iteration.
    pub(crate) fn describe(&self) -> String {
        let parts = self.plan.parts().len();
        let microbatches = self.plan.microbatches.len();
        let cut = format!("{microbatches} microbatches split into {parts} sub-microbatches");
        let swaps = self.swapped.filter(|(before, after)| after < before).map(|(before, after)| {
            let gain = faster(before, after);
            format!("; {gain:.1} % faster after swaps on the critical path")
        });
        let swaps = swaps.unwrap_or_default();
        let Some(searched) = self.searched else { return cut + &swaps };
        let gain = match &self.ranked {
            Some(ranked) => {
                let first = ranked.progress.first().map_or(ranked.end, |step| step.end);
                format!("{:.1} % faster than in data-loader order", faster(first, ranked.end))
            }
            None => "no order is faster than the data-loader order".to_owned(),
        };
        let (rollouts, ending) = (searched.rollouts, searched.description());
        let orders = if rollouts == 1 { "order" } else { "orders" };
        format!("{cut}; tried {rollouts} {orders} ({ending}); {gain}{swaps}")
    }
}

/// Formats an integer using thousands separators: "3,384".
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Reduction of the end in per cent.
fn faster(before: Nanos, after: Nanos) -> f64 {
    100.0 * (before.secs() / after.secs().max(f64::MIN_POSITIVE) - 1.0)
}

pub(crate) fn decisions(scenario: &Scenario, sized: &Sized, step: Step, tally: &Tally, batches: usize) -> Vec<String> {
    let mut decisions = Vec::new();
    let ranks = sized.layout.pipeline as usize;
    let stages = sized.partition.stages_by_module(scenario.model.modules.len()).unwrap_or_default();
    for ((module, module_stages), &size) in scenario.model.modules.iter().zip(&stages).zip(&sized.sizes) {
        let layers = sized.partition.stages[module_stages.clone()].iter().flatten().map(LayerRange::len);
        let (min_layers, max_layers) = (layers.clone().min().unwrap_or(0), layers.max().unwrap_or(0));
        let each =
            if min_layers == max_layers { format!("{min_layers}") } else { format!("{min_layers} to {max_layers}") };
        let segments = module_stages.len() / ranks.max(1);
        let plural = if segments == 1 { "segment" } else { "segments" };
        decisions.push(format!(
            "{}: {segments} {plural} of {ranks} stages, {each} {} each; at most {size} per sub-microbatch.",
            module.name,
            if max_layers == 1 { "layer" } else { "layers" }
        ));
    }
    let parts = grouped(tally.parts);
    decisions.push(match batches {
        1 => format!("1 batch is split into {parts} sub-microbatches."),
        _ => format!("{batches} batches are split into {parts} sub-microbatches."),
    });
    if step >= Step::Ranking {
        decisions.push(format!(
            "Tried {} {}.",
            grouped(tally.rollouts),
            if tally.rollouts == 1 { "order" } else { "orders" }
        ));
        let searches = tally.searches;
        if tally.near_bound > 0 {
            let ended = tally.near_bound;
            decisions.push(format!("{ended} of {searches} searches ended within 0.1 % of the lower bound."));
        }
        if tally.exhausted > 0 {
            decisions.push(format!("{} of {searches} searches tried all orders.", tally.exhausted));
        }
    }
    if step == Step::Tuning {
        let layers: u64 = tally.tuned_layers.iter().sum();
        let counts = LayerStrategy::ALL.iter().zip(tally.tuned_layers).filter(|(_, count)| *count > 0);
        let share = |count: u64| 100.0 * count as f64 / layers.max(1) as f64;
        let shares: Vec<String> =
            counts.map(|(strategy, count)| format!("{:.0} % {}", share(count), strategy.title())).collect();
        if !shares.is_empty() {
            decisions.push(format!("Activation strategy of the layers: {}.", shares.join(", ")));
        }
    }
    decisions
}

#[cfg(test)]
mod tests;
