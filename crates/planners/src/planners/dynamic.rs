//! The dynamic planner: a fixed layout, but a new assignment and order of actions per global batch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::planners::batches::EachBatch;
use crate::planners::equal_replicas::first_equal;
use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search::{LayoutPlanner, LayoutSearch, Microbatches, Sized};
use crate::planners::{Batches, NoPlan, PlanningContext, SearchError};
use planscope_core::action::Schedule;
use planscope_core::host::{Workers, side_by_side};
use planscope_core::random::Random;
use planscope_core::units::Nanos;
use planscope_core::workload::{PackedBatch, Packing};
use planscope_cost::cost::{LayerTable, MicrobatchLoad, PipelineCosts, Pricing};
use planscope_pipeline::schedule::wait_free_cyclic::{Effort, Entry, ForwardOrder, Order, SearchResult, search};
use planscope_plan::observer::Observer;
use planscope_plan::outcome::{Layout, SolverStatus};
use planscope_plan::plan::{IterationPlan, Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Random stream for swaps in replica 0 of iteration 0. Streams for batches start at 0.
const SWAP_STREAM: u64 = 1 << 40;
/// Limit on actions simulated by swaps per iteration, so that planning a batch takes milliseconds.
const ACTIONS_PER_ITERATION: usize = 120_000;

struct WaitFree;

impl LayoutPlanner for WaitFree {
    fn assign(&self, _: &Scenario, layout: Layout, _: &[MicrobatchLoad], table: &LayerTable<'_>) -> Vec<Vec<usize>> {
        deal(layout, &table.microbatch_times(layout.pipeline * layout.chunks))
    }

    fn replica(
        &self,
        batch: &Microbatches<'_>,
        table: &LayerTable<'_>,
        sized: &Sized,
        (replica, assigned): (usize, &[usize]),
    ) -> Result<(PipelineCosts, Schedule), Infeasibility> {
        let position = crate::planners::replica::replica_position(sized.layout, replica);
        let costs = table.pipeline(&sized.partition, position, assigned);
        // The quick portfolio uses no random numbers.
        let selection =
            search(&costs, batch.scenario.memory_limit(), Effort::Quick, Nanos::ZERO, &mut Random::new(0, 0))
                .map_err(|too_large| Infeasibility::activations(too_large.rank, too_large.needs))?;
        Ok((costs, selection.schedule))
    }

    fn sequence_order(&self, scenario: &Scenario, batch: &PackedBatch) -> Vec<usize> {
        order_by_length(scenario, batch)
    }
}

/// Sorts unpacked sequences by length, because padding extends them to the maximum length in the microbatch. Packed
/// sequences have the order of the batch.
pub(crate) fn order_by_length(scenario: &Scenario, batch: &PackedBatch) -> Vec<usize> {
    let mut order: Vec<usize> = (0..batch.sequences.len()).collect();
    if scenario.workload.packing == Packing::Single {
        order.sort_by_key(|&index| (batch.sequences[index].computed_tokens, batch.sequences[index].images, index));
    }
    order
}

/// Assigns microbatches with the given times to replicas by the longest-processing-time rule: in
/// descending order, to the replica with the smallest load.
pub(crate) fn deal(layout: Layout, times: &[f64]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|&a, &b| times[b].total_cmp(&times[a]).then(a.cmp(&b)));
    let mut replicas = vec![Vec::new(); layout.data as usize];
    // Ordered by load, then number of microbatches. Bits of non-negative floats sort like their
    // values.
    let mut lightest: BinaryHeap<_> = (0..replicas.len()).map(|replica| Reverse((0_u64, 0_usize, replica))).collect();
    for microbatch in order {
        let Some(Reverse((time, count, replica))) = lightest.pop() else { break };
        replicas[replica].push(microbatch);
        lightest.push(Reverse(((f64::from_bits(time) + times[microbatch]).to_bits(), count + 1, replica)));
    }
    for assigned in &mut replicas {
        assigned.sort_unstable();
    }
    replicas
}

/// Chooses the layout on the sizing batch with a quick version of the per-batch algorithm:
/// longest-first assignment to replicas, then an order search per replica.
pub(crate) fn plan(context: PlanningContext<'_>, observer: &mut dyn Observer) -> Result<Plan, SearchError<NoPlan>> {
    let Batches { sizing, evaluated: batches, .. } = context.batches;
    let mut layouts = LayoutSearch::run(context, &WaitFree, observer)?;
    loop {
        let Some(sized) = layouts.winner() else { return Err(layouts.no_plan().into()) };
        match fill(context, &sized, observer) {
            Ok((iterations, evaluated)) => {
                let plan = Plan {
                    layout: sized.layout,
                    partition: sized.partition.clone(),
                    modules: Vec::new(),
                    iterations,
                    algorithm:
                        "layout search on a representative batch; for every batch, the longest microbatch is assigned \
                                first, several start orders and warm-up depths are simulated, and actions of the \
                                fastest order are swapped"
                            .to_owned(),
                    status: SolverStatus::Heuristic,
                    search: layouts.report(),
                    decisions: decisions(&sized, sizing, &layouts, batches.len(), evaluated),
                };
                return Ok(plan);
            }
            Err(error) => layouts.reject_winner(&error.reason()?, observer)?,
        }
    }
}

fn decisions(
    sized: &Sized,
    sizing: &PackedBatch,
    layouts: &LayoutSearch<'_>,
    batches: usize,
    evaluated: u32,
) -> Vec<String> {
    let mut decisions = vec![
        crate::planners::fastest(sized.layout, sizing.sequences.len(), layouts.failed_later()),
        "The longest microbatches are assigned first.".to_owned(),
        format!("Simulated {evaluated} orders for {batches} batches and used the fastest for each."),
    ];
    decisions.extend(sized.composition.describe().map(str::to_owned));
    decisions
}

/// Returns the plans of all batches, and the number of simulated orders.
fn fill(
    context: PlanningContext<'_>,
    sized: &Sized,
    observer: &mut dyn Observer,
) -> Result<(Vec<IterationPlan>, u32), SearchError<Infeasibility>> {
    let each = EachBatch { kind: context.planner, phase: "ordering batches", batches: context.batches.evaluated };
    let filled = each.side_by_side(observer, |index, batch, observer| {
        fill_batch(context.scenario, context.pricing, sized, (index, batch), observer.workers())
    })?;
    let evaluated = filled.iter().map(|(_, orders)| orders).sum();
    Ok((filled.into_iter().map(|(iteration, _)| iteration).collect(), evaluated))
}

fn fill_batch(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    sized: &Sized,
    (index, batch): (usize, &PackedBatch),
    workers: &dyn Workers,
) -> Result<(IterationPlan, u32), Infeasibility> {
    let layout = sized.layout;
    let order = order_by_length(scenario, batch);
    let microbatches = sized.composition.microbatches(scenario, pricing, layout.microbatch, batch, &order);
    let loads = crate::planners::replica::loads(scenario, batch, &microbatches);
    let table = pricing.table(layout.tensor, &loads);
    let actions = 2 * sized.partition.stages.len() * microbatches.len();
    let swaps = (ACTIONS_PER_ITERATION / actions.max(1)).clamp(8, 160) as u32;
    let times = table.microbatch_times(layout.pipeline * layout.chunks);
    let dealt = deal(layout, &times);
    if dealt.iter().any(Vec::is_empty) {
        return Err(Infeasibility::rule("a batch has fewer microbatches than replicas"));
    }
    // The replica with the highest work determines the target time; others only need to finish by
    // then.
    let work: Vec<f64> =
        dealt.iter().map(|assigned| assigned.iter().map(|&microbatch| times[microbatch]).sum()).collect();
    let mut by_work: Vec<usize> = (0..dealt.len()).collect();
    by_work.sort_by(|&a, &b| work[b].total_cmp(&work[a]).then(a.cmp(&b)));
    let stream = SWAP_STREAM + index as u64 * u64::from(layout.data);
    let search_order = |replica: usize, enough: Nanos| {
        let costs = table.pipeline(
            &sized.partition,
            crate::planners::replica::replica_position(layout, replica),
            &dealt[replica],
        );
        let mut random = Random::new(scenario.seed, stream + replica as u64);
        search(&costs, scenario.memory_limit(), Effort::Thorough { swaps }, enough, &mut random)
            .map_err(|too_large| Infeasibility::activations(too_large.rank, too_large.needs))
    };
    let first_equal = first_equal(scenario, layout, batch, &microbatches, &dealt);
    // The first of replicas with the highest work is the first of its equals.
    by_work.retain(|&replica| first_equal[replica] == replica);
    let (heaviest, others) = by_work.split_first().ok_or_else(|| Infeasibility::rule("a batch needs a replica"))?;
    let slowest = search_order(*heaviest, Nanos::ZERO)?;
    let found = side_by_side(workers, others.len(), |job| search_order(others[job], slowest.end));
    let mut searched: Vec<Option<SearchResult>> = vec![None; dealt.len()];
    for (&replica, found) in others.iter().zip(found) {
        searched[replica] = Some(found?);
    }
    searched[*heaviest] = Some(slowest);
    let evaluated = searched.iter().flatten().map(|selection| selection.evaluated).sum();
    let choices: Vec<SearchResult> = first_equal.iter().filter_map(|&first| searched[first].clone()).collect();
    let decision = choices.iter().rev().max_by_key(|selection| selection.end).map(describe);
    let replicas = dealt.iter().zip(choices).map(|(assigned, selection)| {
        let sequences = assigned.iter().map(|&microbatch| microbatches[microbatch].clone()).collect();
        ReplicaPlan::new(sequences, ReplicaKind::Pipeline, selection.schedule)
    });
    Ok((IterationPlan { replicas: replicas.collect(), decision }, evaluated))
}

fn describe(selection: &SearchResult) -> String {
    let entry = match selection.entry {
        Entry::Given => "microbatches in data-loader order",
        Entry::DescendingTime => "longest microbatch first",
        Entry::ShortestFirst => "shortest microbatch first",
        Entry::ShortOutside => "short microbatches first and last",
        Entry::Swapped => "microbatch order improved by swaps",
    };
    let order = match selection.order {
        Order::Fixed => "the fixed schedule is the fastest".to_owned(),
        Order::WaitFree(policy) => {
            let depth = match policy.extra_in_flight {
                None => "as many in flight as memory allows".to_owned(),
                Some(extra) => format!("{extra} more in flight than 1F1B"),
            };
            let chunks = match policy.forward_order {
                ForwardOrder::DeepestFirst => "deepest stage first",
                ForwardOrder::Grouped => "chunk by chunk",
            };
            format!("ready work first, {chunks}, {depth}")
        }
    };
    format!("{entry}; {order}; {} orders simulated", selection.evaluated)
}
