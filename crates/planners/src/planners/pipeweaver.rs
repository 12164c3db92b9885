//! PipeWeaver: the dynamic interleaved pipeline (Xue et al., 2025; PipeWeaver Sec. 3.3).
//!
//! The [`partitioner`] splits modules into separate segments, once per layout. For every batch,
//! microbatches are assigned to replicas in descending order, split into sub-microbatches per
//! module, and ordered. A search ranks the segment groups, and the dual queue interleaves forwards
//! and backwards for each candidate. Layer tuning then uses the remaining memory to reduce
//! recomputation. The steps can be enabled cumulatively, as in PipeWeaver Table 5.

#[cfg(test)]
mod check_tests;
mod cut_replica;
pub mod layer_tuning;
mod partitioner;
pub mod ranking;
mod steps;
mod swaps;
mod tuning;

use crate::planners::batches::EachBatch;
use crate::planners::dynamic::deal;
use crate::planners::equal_replicas::first_equal;
use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search::{LayoutPlanner, LayoutSearch, Microbatches, Sized};
use crate::planners::pipeweaver::ranking::Starts;
use crate::planners::{Batches, NoPlan, PlanningContext, SearchError, replica};
use planscope_core::action::Schedule;
use planscope_core::host::{Cancellation, NeverCancelled, SequentialWorkers, Workers};
use planscope_core::units::Nanos;
use planscope_core::workload::{MicrobatchContents, PackedBatch};
use planscope_cost::cost::{LayerTable, MicrobatchLoad, PipelineCosts, Pricing};
use planscope_plan::observer::{Observer, ObserverCancellation};
use planscope_plan::outcome::{Layout, SolverStatus};
use planscope_plan::plan::{IterationPlan, Plan, ReplicaPlan};
use planscope_plan::scenario::{FreeSetting, Scenario};

pub use cut_replica::CutReplica;
use partitioner::SizeRule;
pub(crate) use steps::Step;
use steps::{Ordered, order};

/// Minimum work after splitting and reduced recomputation, relative to undivided microbatches. Used
/// to prune layouts.
const MIN_WORK: f64 = 0.6;

pub(crate) struct PipeWeaver {
    pub(crate) step: Step,
}

impl LayoutPlanner for PipeWeaver {
    fn assign(
        &self,
        _: &Scenario,
        layout: Layout,
        loads: &[MicrobatchLoad],
        table: &LayerTable<'_>,
    ) -> Vec<Vec<usize>> {
        debug_assert_eq!(loads.len(), table.microbatches());
        deal(layout, &table.microbatch_times(layout.pipeline * layout.chunks))
    }

    fn cut(&self, batch: &Microbatches<'_>, _: &LayerTable<'_>, layout: Layout) -> Result<Sized, Infeasibility> {
        cut_by_rule(batch, layout, SizeRule::PUBLISHED)
    }

    fn variants(&self, batch: &Microbatches<'_>, sized: &Sized) -> Vec<Sized> {
        if !batch.scenario.is_free(FreeSetting::SubMicrobatch) {
            return Vec::new();
        }
        let mut variants: Vec<Sized> = Vec::new();
        for variant in SizeRule::OTHERS.into_iter().filter_map(|rule| cut_by_rule(batch, sized.layout, rule).ok()) {
            if variant.sizes != sized.sizes && variants.iter().all(|other| other.sizes != variant.sizes) {
                variants.push(variant);
            }
        }
        variants
    }

    fn replica(
        &self,
        batch: &Microbatches<'_>,
        _: &LayerTable<'_>,
        sized: &Sized,
        (replica, assigned): (usize, &[usize]),
    ) -> Result<(PipelineCosts, Schedule), Infeasibility> {
        let microbatches = assigned.iter().map(|&microbatch| batch.sequences[microbatch].clone()).collect();
        // Layouts are compared by the fastest start ranking; no rollouts are used.
        let quick = Effort {
            enough: Nanos::ZERO,
            starts: Starts::All,
            rollouts: 0,
            stream: 0,
            workers: &SequentialWorkers,
            cancellation: &NeverCancelled,
        };
        let step = self.step;
        let ordered = order(batch.scenario, batch.pricing, sized, (replica, batch.batch), microbatches, step, quick)?;
        Ok((ordered.costs, ordered.plan.schedule))
    }

    fn sequence_order(&self, _: &Scenario, batch: &PackedBatch) -> Vec<usize> {
        (0..batch.sequences.len()).collect()
    }

    fn min_relative_work(&self) -> f64 {
        MIN_WORK
    }

    fn chooses_strategies(&self) -> bool {
        self.step == Step::Tuning
    }
}

/// Cuts modules into segments, with the instances per sub-microbatch by `rule`.
fn cut_by_rule(batch: &Microbatches<'_>, layout: Layout, rule: SizeRule) -> Result<Sized, Infeasibility> {
    let contents: Vec<MicrobatchContents> =
        batch.sequences.iter().map(|sequences| batch.batch.contents(sequences)).collect();
    let degrees = (layout.tensor, layout.pipeline);
    let found = partitioner::partition(batch.scenario, batch.pricing, degrees, &contents, rule)?;
    let layout = Layout { chunks: found.segments.iter().sum(), ..layout };
    Ok(Sized { sizes: found.sizes, ..Sized::undivided(layout, found.partition) })
}

/// Search effort for a replica and batch.
#[derive(Clone, Copy)]
struct Effort<'a> {
    starts: Starts,
    rollouts: u32,
    stream: u64,
    /// An order that ends by then needs no search.
    enough: Nanos,
    workers: &'a dyn Workers,
    cancellation: &'a dyn Cancellation,
}

/// Chooses the layout on the sizing batch, then orders every batch of the run.
pub(crate) fn plan(context: PlanningContext<'_>, observer: &mut dyn Observer) -> Result<Plan, SearchError<NoPlan>> {
    let Batches { sizing, evaluated: batches, .. } = context.batches;
    let step = Step::from_planner(context.planner);
    let planner = PipeWeaver { step };
    let mut layouts = LayoutSearch::run(context, &planner, observer)?;
    loop {
        let Some(sized) = layouts.winner() else { return Err(layouts.no_plan().into()) };
        match fill(context, step, &sized, observer) {
            Ok((iterations, tally)) => {
                let mut decisions =
                    vec![crate::planners::fastest(sized.layout, sizing.sequences.len(), layouts.failed_later())];
                decisions.extend(steps::decisions(context.scenario, &sized, step, &tally, batches.len()));
                decisions.extend(sized.composition.describe().map(str::to_owned));
                return Ok(Plan {
                    layout: sized.layout,
                    partition: sized.partition.clone(),
                    modules: Vec::new(),
                    iterations,
                    algorithm: step.algorithm().to_owned(),
                    status: SolverStatus::Heuristic,
                    search: layouts.report(),
                    decisions,
                });
            }
            Err(error) => layouts.reject_winner(&error.reason()?, observer)?,
        }
    }
}

/// Counters across all batches.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    rollouts: u64,
    parts: u64,
    /// Replicas whose search result is near the lower bound.
    near_bound: u32,
    /// Replicas whose search was exhaustive.
    exhausted: u32,
    searches: u32,
    tuned_layers: [u64; 4],
}

fn fill(
    context: PlanningContext<'_>,
    step: Step,
    sized: &Sized,
    observer: &mut dyn Observer,
) -> Result<(Vec<IterationPlan>, Tally), SearchError<Infeasibility>> {
    let PlanningContext { scenario, pricing, planner: kind, batches: Batches { evaluated: batches, .. }, .. } = context;
    let each = EachBatch { kind, phase: "ordering batches", batches };
    let fill = |index: usize, batch: &PackedBatch, runtime: (&dyn Workers, &dyn Cancellation)| {
        fill_batch(scenario, pricing, step, sized, (index, batch), runtime)
    };
    // A ranking search uses all workers for a batch. Otherwise batches run in parallel.
    let filled = if kind.searches_rankings() && scenario.search.rollouts > 0 {
        each.in_turn(observer, |index, batch, observer| {
            fill(index, batch, (observer.workers(), &ObserverCancellation(observer)))
        })?
    } else {
        each.side_by_side(observer, |index, batch, observer| {
            fill(index, batch, (observer.workers(), &ObserverCancellation(observer)))
        })?
    };
    let mut tally = Tally::default();
    let mut iterations = Vec::with_capacity(filled.len());
    for (iteration, own) in filled {
        iterations.push(iteration);
        tally.add(own);
    }
    Ok((iterations, tally))
}

fn fill_batch(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    step: Step,
    sized: &Sized,
    (index, batch): (usize, &PackedBatch),
    (workers, cancellation): (&dyn Workers, &dyn Cancellation),
) -> Result<(IterationPlan, Tally), Infeasibility> {
    let layout = sized.layout;
    let mut tally = Tally::default();
    let consecutive: Vec<usize> = (0..batch.sequences.len()).collect();
    let microbatches = sized.composition.microbatches(scenario, pricing, layout.microbatch, batch, &consecutive);
    let loads = replica::loads(scenario, batch, &microbatches);
    let times = pricing.table(layout.tensor, &loads).microbatch_times(layout.pipeline * layout.chunks);
    let dealt = deal(layout, &times);
    if dealt.iter().any(Vec::is_empty) {
        return Err(Infeasibility::rule("a batch has fewer microbatches than replicas"));
    }
    let first = first_equal(scenario, layout, batch, &microbatches, &dealt);
    let sequences = |replica: usize| -> Vec<Vec<u32>> {
        dealt[replica].iter().map(|&microbatch| microbatches[microbatch].clone()).collect()
    };
    let work = |replica: usize| -> f64 { dealt[replica].iter().map(|&microbatch| times[microbatch]).sum() };
    // The replica with the most work is searched first; others only need to finish by then.
    let mut distinct: Vec<(usize, f64)> =
        (0..dealt.len()).filter(|&replica| first[replica] == replica).map(|replica| (replica, work(replica))).collect();
    distinct.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut planned: Vec<Option<ReplicaPlan>> = vec![None; dealt.len()];
    let mut slowest: Option<Ordered> = None;
    for (number, _) in distinct {
        let stream = index as u64 * u64::from(layout.data) + number as u64;
        let rollouts = scenario.search.rollouts;
        let enough = slowest.as_ref().map_or(Nanos::ZERO, |slowest| slowest.end);
        let effort =
            Effort { starts: Starts::from_rollouts(rollouts), rollouts, stream, enough, workers, cancellation };
        let ordered = order(scenario, pricing, sized, (number, batch), sequences(number), step, effort)?;
        tally.add(Tally::from_ordered(&ordered));
        planned[number] = Some(ordered.plan.clone());
        if slowest.as_ref().is_none_or(|slowest| slowest.end < ordered.end) {
            slowest = Some(ordered);
        }
    }
    let replica = |number: usize| {
        let plan = planned[first[number]].clone().expect("the first of equal replicas is planned");
        ReplicaPlan { microbatches: sequences(number), ..plan }
    };
    let replicas = (0..dealt.len()).map(replica).collect();
    Ok((IterationPlan { replicas, decision: slowest.map(|ordered| ordered.describe()) }, tally))
}
