//! What PipeWeaver does for one replica of one batch, step by step.

use super::swaps::swapped;
use super::tuning::Options;
use super::{Effort, Tally};
use crate::compare::lower_bound;
use crate::cost::partition::LayerRange;
use crate::cost::{
    LayerStrategy, LayerTable, MicrobatchLoad, Partition, PipelineCosts, Place, Pricing, StrategyMix, UniformTimes,
};
use crate::flow::Flows;
use crate::plan::misfit::Misfit;
use crate::plan::replica::{self, Cut, groups};
use crate::plan::sizing::Sized;
use crate::plan::{Part, ReplicaPlan};
use crate::ranking::{self, Budget, Ending, Goal, Ranked, Strategy};
use crate::scenario::{PlannerKind, Scenario};
use crate::schedule::Schedule;
use crate::schedule::dual_queue::{Interleaving, Priorities, interleave};
use crate::simulate::{StepEnd, execute};
use crate::units::Nanos;
use crate::workload::{MicrobatchContents, PackedBatch};

/// How many of its techniques PipeWeaver uses; each includes those before it (table 5 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::plan) enum Step {
    /// Modality-aware partition, in a fixed order.
    Partition,
    /// Dual-queue interleaving.
    Interleaving,
    /// Ranking of segment groups.
    Ranking,
    /// Layer tuning.
    Tuning,
}

impl Step {
    pub(super) const fn of(kind: PlannerKind) -> Self {
        match kind {
            PlannerKind::PipeWeaverPartition => Self::Partition,
            PlannerKind::PipeWeaverInterleaving => Self::Interleaving,
            PlannerKind::PipeWeaverRanking => Self::Ranking,
            _ => Self::Tuning,
        }
    }

    pub(super) const fn algorithm(self) -> &'static str {
        match self {
            Self::Partition => {
                "layout by search on a representative batch; modules on segments of their own, microbatches cut by \
                 module; the order of every batch is the one that equal stage times would give"
            }
            Self::Interleaving => {
                "layout by search on a representative batch; modules on segments of their own, microbatches cut by \
                 module; every batch: dual-queue interleaving in data-loader order"
            }
            Self::Ranking => {
                "layout by search on a representative batch; modules on segments of their own, microbatches cut by \
                 module; every batch: Monte-Carlo tree search over the ranking of segment groups, each interleaved by \
                 the dual queue; then swaps on the critical path"
            }
            Self::Tuning => {
                "layout by search on a representative batch; modules on segments of their own, microbatches cut by \
                 module; every batch: Monte-Carlo tree search over the ranking of segment groups, each interleaved by \
                 the dual queue; then the strategies of all layers by integer programme, and swaps on the critical path"
            }
        }
    }
}

/// One replica of one batch, ordered.
pub(super) struct Ordered {
    pub plan: ReplicaPlan,
    pub costs: PipelineCosts,
    /// End of the iteration if this replica were alone.
    pub end: Nanos,
    /// The ranking that its order is of, where that was searched.
    pub ranked: Option<Ranked>,
    /// What was searched for it, whether or not something better than the data loader's order was found.
    pub searched: Option<Searched>,
    /// Ends before and after swaps on the critical path, where some were tried.
    pub swapped: Option<(Nanos, Nanos)>,
}

/// A search over rankings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Searched {
    rollouts: u32,
    ending: Ending,
}

impl Searched {
    const fn of(ranked: &Ranked) -> Self {
        Self { rollouts: ranked.rollouts, ending: ranked.ending }
    }

    const fn words(self) -> &'static str {
        match self.ending {
            Ending::Optimal => "lower bound reached",
            Ending::NearBound => "within 0.1 % of the lower bound",
            Ending::Exhausted => "all orders tried",
            Ending::Rollouts => "search budget used",
            Ending::Time => "time limit reached",
        }
    }
}

/// Cuts, orders and tunes the microbatches of one replica.
pub(super) fn order(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    sized: &Sized,
    (number, batch): (usize, &PackedBatch),
    microbatches: Vec<Vec<u32>>,
    step: Step,
    effort: Effort<'_>,
) -> Result<Ordered, Misfit> {
    let contents: Vec<MicrobatchContents> = microbatches.iter().map(|own| batch.contents(own)).collect();
    let parts = replica::parts(&scenario.model, scenario.workload.packing, &contents, &sized.sizes);
    // A plan without parts is one of whole microbatches, which stages of one module have no way for.
    if parts.is_empty() {
        return Err(Misfit::rule(NOTHING_TO_DO));
    }
    let cut = Cut::of(&scenario.model, scenario.workload.packing, &contents, &parts);
    let asked = Asked::of(scenario, pricing, (sized, number), (&cut, &parts), (step, effort));
    let schedule = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
    let plan = ReplicaPlan { microbatches, parts, groups: Vec::new(), strategy: None, schedule, mixes: Vec::new() };
    match step {
        Step::Tuning => asked.tuned(plan, &cut.loads),
        _ => asked.ordered(plan, step),
    }
}

/// What is asked for one replica of one batch.
struct Asked<'a> {
    scenario: &'a Scenario,
    /// What its parts cost.
    table: LayerTable<'a>,
    placed: (&'a Partition, Place),
    /// Their ways through the stages of their modules.
    flows: Flows,
    effort: Effort<'a>,
}

impl<'a> Asked<'a> {
    fn of(
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
        let flows = cut.flows(partition, parts, layout.pipeline as usize, scenario.model.modules.len());
        Self { scenario, table, placed: (partition, replica::place(*layout, number)), flows, effort }
    }

    /// What the parts cost as a plan says.
    fn costs(&self, plan: &ReplicaPlan) -> PipelineCosts {
        let all: Vec<usize> = (0..plan.parts.len()).collect();
        let (partition, place) = self.placed;
        self.table.pipeline_over(partition, place, self.flows.clone(), &all, &plan.mixes)
    }

    fn interleaving<'b>(&self, costs: &'b PipelineCosts, groups: &'b [u32]) -> Result<Interleaving<'b>, Misfit> {
        Interleaving::new(costs, groups, self.scenario.memory_limit())
            .map_err(|too_large| Misfit::activations(too_large.rank, too_large.needs))
    }

    fn search(&self, interleaving: &Interleaving<'_>) -> Ranked {
        let Effort { starts, rollouts, stream, workers, watch } = self.effort;
        let budget = Budget { starts, rollouts, seed: self.scenario.seed, stream: STREAM + stream };
        ranking::search(interleaving, Strategy::MonteCarlo, Goal::Fastest, budget, workers, watch)
    }

    /// Swaps on the critical path of the order of a ranking.
    fn swapped(&self, mut ordered: Ordered) -> Ordered {
        let limit = self.scenario.memory_limit();
        let Effort { rollouts, watch, .. } = self.effort;
        if watch.is_over() {
            return ordered;
        }
        if let Some(found) = swapped(&ordered.plan.schedule, &ordered.costs, limit, rollouts) {
            ordered.swapped = Some((ordered.end, found.end));
            (ordered.plan.schedule, ordered.end) = (found.schedule, found.end);
        }
        ordered
    }

    /// What swaps moved may leave other layers room: tunes them again, as long as that and further swaps help.
    fn retuned(
        &self,
        mut tuned: Ordered,
        choose: impl Fn(&Schedule) -> Result<Vec<StrategyMix>, Misfit>,
    ) -> Result<Ordered, Misfit> {
        for _ in 0..RETUNINGS {
            if tuned.swapped.is_none_or(|(before, after)| after.get() / 1000 * WORTH_RETUNING > before.get()) {
                break;
            }
            // An order for which no choice is found is a good one all the same, with the layers that it has.
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

    fn finished(plan: ReplicaPlan, costs: PipelineCosts, ranked: Option<Ranked>) -> Result<Ordered, Misfit> {
        let execution = execute(&plan.schedule, &costs).map_err(|_| Misfit::deadlock())?;
        let end = StepEnd::of(costs.ranks(), std::iter::once(&execution)).iteration_end(&costs);
        let searched = ranked.as_ref().map(Searched::of);
        Ok(Ordered { plan, costs, end, ranked, searched, swapped: None })
    }

    /// An order with all layers as the settings have them.
    fn ordered(&self, mut plan: ReplicaPlan, step: Step) -> Result<Ordered, Misfit> {
        let costs = self.costs(&plan);
        let groups = groups(&plan.parts);
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

    /// Orders the leanest layers, as if they held more than they do: the tighter an order, the slower it is, and the
    /// more room it leaves in which layers need not be recomputed. The pressure whose tuned order ends first is kept, the
    /// ranking is searched under it with the times of the tuned layers, and the order found is tuned again.
    fn tuned(&self, mut plan: ReplicaPlan, loads: &[MicrobatchLoad]) -> Result<Ordered, Misfit> {
        let limit = self.scenario.memory_limit();
        let groups = groups(&plan.parts);
        let untuned = self.costs(&plan);
        let options = Options::of(&self.table, self.placed, (loads, &untuned));
        plan.mixes = options.leanest();
        let lean = self.costs(&plan);
        let mut best: Option<Ordered> = None;
        let mut keep_if_better = |ordered: Ordered| {
            if best.as_ref().is_none_or(|best| ordered.end < best.end) {
                best = Some(ordered);
            }
        };
        // How tight an order should be: with little memory it is slower, but leaves room for fewer recomputations.
        let mut tightest: Option<(Nanos, PipelineCosts, PipelineCosts)> = None;
        for pressure in PRESSURES {
            let pressed = options.pressed(&lean, pressure);
            let Ok(interleaving) = self.interleaving(&pressed, &groups) else { continue };
            let natural = Priorities::natural(interleaving.groups());
            let schedule = interleave(&interleaving, &natural).schedule;
            if schedule == plan.schedule {
                // The same order gets the same layers.
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
        let (_, pressed, timed) = tightest.ok_or_else(Misfit::deadlock)?;
        let roomy = PipelineCosts { activation: pressed.activation, transient: pressed.transient, ..timed };
        let interleaving = self.interleaving(&roomy, &groups)?;
        let found = self.search(&interleaving);
        let searched = Some(Searched::of(&found));
        plan.schedule = interleave(&interleaving, &found.priorities).schedule;
        plan.mixes = options.choose(&plan.schedule, &lean, limit)?;
        let timed = self.costs(&plan);
        keep_if_better(Self::finished(plan.clone(), timed, Some(found))?);
        let best = Ordered { searched, ..best.ok_or_else(Misfit::deadlock)? };
        let tuned = self.retuned(self.swapped(best), |schedule| options.choose(schedule, &lean, limit))?;
        // Where the settings recompute little already, their own order can be the best.
        if lower_bound(&untuned) >= tuned.end {
            return Ok(tuned);
        }
        match self.ordered(ReplicaPlan { mixes: Vec::new(), ..plan }, Step::Ranking) {
            Ok(ordered) if ordered.end < tuned.end => Ok(ordered),
            _ => Ok(tuned),
        }
    }
}

/// Shares of the way from the leanest to the fastest layers' memory at which orders are made.
const PRESSURES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Times that layers are tuned to an order after swaps, as long as that helps.
const RETUNINGS: u32 = 3;

/// An order must have come from that many thousandths of its end for its layers to be tuned again.
const WORTH_RETUNING: u64 = 1001;

/// A batch of samples without items gives a replica of a generator of images alone no instance to run.
pub(super) const NOTHING_TO_DO: &str = "the microbatches of a replica contain no work for any module";

/// The random stream of the first batch's search; batches and swaps have streams of their own below.
pub(super) const STREAM: u64 = 1 << 20;

/// The same pipeline with equal times: forwards of one unit, backwards of two, sends free.
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
    /// Of one replica of one batch.
    pub(super) fn of(ordered: &Ordered) -> Self {
        let mut tally = Self { parts: ordered.plan.parts.len() as u64, ..Self::default() };
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

    pub(super) fn add(&mut self, other: Self) {
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
    /// In words, for the iteration.
    pub(super) fn describe(&self) -> String {
        let parts = self.plan.parts.len();
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
        let (rollouts, ending) = (searched.rollouts, searched.words());
        let orders = if rollouts == 1 { "order" } else { "orders" };
        format!("{cut}; tried {rollouts} {orders} ({ending}); {gain}{swaps}")
    }
}

/// A count with a comma before each three digits: "3,384".
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

/// By how much an end is earlier than one before, in percent.
fn faster(before: Nanos, after: Nanos) -> f64 {
    100.0 * (before.secs() / after.secs().max(f64::MIN_POSITIVE) - 1.0)
}

/// Decisions of a plan, in words with figures.
pub(super) fn decisions(scenario: &Scenario, sized: &Sized, step: Step, tally: &Tally, batches: usize) -> Vec<String> {
    let mut decisions = Vec::new();
    let ranks = sized.layout.pipeline as usize;
    let stages = sized.partition.stages_by_module(scenario.model.modules.len()).unwrap_or_default();
    for ((module, own), &size) in scenario.model.modules.iter().zip(&stages).zip(&sized.sizes) {
        let layers = sized.partition.stages[own.clone()].iter().flatten().map(LayerRange::len);
        let (least, most) = (layers.clone().min().unwrap_or(0), layers.max().unwrap_or(0));
        let each = if least == most { format!("{least}") } else { format!("{least} to {most}") };
        let segments = own.len() / ranks.max(1);
        let plural = if segments == 1 { "segment" } else { "segments" };
        decisions.push(format!(
            "{}: {segments} {plural} of {ranks} stages, {each} {} each; at most {size} per sub-microbatch.",
            module.name,
            if most == 1 { "layer" } else { "layers" }
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
        let words: Vec<String> =
            counts.map(|(strategy, count)| format!("{:.0} % {}", share(count), strategy.title())).collect();
        if !words.is_empty() {
            decisions.push(format!("Activation strategy of the layers: {}.", words.join(", ")));
        }
    }
    decisions
}

#[cfg(test)]
mod tests;
