//! One simulator and one checker judge every plan.

use std::rc::Rc;

use super::breakdown::{RankTotals, StageTimes};
use super::misfit::Misfit;
use super::{Plan, ReplicaPlan, groups, modules, replica};
use crate::check::{self, Violation};
use crate::compare::{self, IterationTotals};
use crate::cost::{MicrobatchLoad, PipelineCosts, Pricing};
use crate::outcome::{IterationMetrics, Planned, Provenance};
use crate::scenario::Scenario;
use crate::simulate::{Deadlock, Execution, StepEnd, assemble, execute, peak_memory_over};
use crate::timeline::Timeline;
use crate::units::Nanos;
use crate::workload::PackedBatch;

/// A plan that passed the checker, with what it does in time. Only [`judge`] makes one.
#[derive(Debug, Clone)]
pub struct Judged {
    planned: Planned,
    timelines: Vec<Timeline>,
}

impl Judged {
    /// The plan with its metrics, and the timeline of every iteration's slowest replica.
    pub fn into_parts(self) -> (Planned, Vec<Timeline>) {
        (self.planned, self.timelines)
    }
}

/// One replica of one iteration, executed.
struct ReplicaRun {
    costs: PipelineCosts,
    execution: Execution,
    flops: crate::units::Flops,
}

/// Runs every replica of an iteration. Replicas that do the same at the same place of their nodes are run once and
/// share the result.
fn run_iteration(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: &Plan,
    iteration: usize,
    batch: &PackedBatch,
) -> Result<Vec<Rc<ReplicaRun>>, Deadlock> {
    let layout = plan.layout;
    let node = scenario.cluster.devices_per_node;
    let devices = layout.tensor * scenario.training.context_parallel;
    let mut distinct: Vec<(Vec<MicrobatchLoad>, usize, u32, Rc<ReplicaRun>)> = Vec::new();
    let mut runs = Vec::with_capacity(plan.iterations[iteration].replicas.len());
    for (index, assigned) in plan.iterations[iteration].replicas.iter().enumerate() {
        let loads = replica::loads(scenario, batch, &assigned.microbatches);
        let offset = (index as u32).wrapping_mul(devices) % node;
        let replicas = &plan.iterations[iteration].replicas;
        let same = distinct.iter().find(|(known, other, at, _)| {
            *at == offset && *known == loads && does_the_same(&replicas[*other], assigned, batch)
        });
        if let Some((.., run)) = same {
            runs.push(Rc::clone(run));
            continue;
        }
        let costs = if !plan.modules.is_empty() {
            modules::of_plan(scenario, pricing, plan, batch, assigned)
        } else if assigned.is_grouped() {
            groups::costs(scenario, pricing, layout, batch, assigned)
        } else {
            replica::costs(scenario, pricing, (&plan.partition, layout), index, batch, assigned)
        };
        let execution = execute(&assigned.schedule, &costs)?;
        let flops = loads.iter().map(|load| load.model_flops(&scenario.model)).sum();
        let run = Rc::new(ReplicaRun { costs, execution, flops });
        runs.push(Rc::clone(&run));
        // Of many different replicas the last few are remembered: equal ones follow each other or alternate.
        if distinct.len() == REMEMBERED {
            distinct.remove(0);
        }
        distinct.push((loads, index, offset, run));
    }
    Ok(runs)
}

/// Whether two replicas with the same loads run them in the same way.
fn does_the_same(a: &ReplicaPlan, b: &ReplicaPlan, batch: &PackedBatch) -> bool {
    let contents = || {
        let of = |own: &Vec<u32>| batch.contents(own);
        a.microbatches.iter().map(of).eq(b.microbatches.iter().map(of))
    };
    a.schedule == b.schedule
        && a.mixes == b.mixes
        && a.parts == b.parts
        && a.groups == b.groups
        && (a.parts.is_empty() || contents())
}

/// Replicas that are compared with.
const REMEMBERED: usize = 16;

/// Whether a plan runs and stays within memory on every batch.
pub(super) fn fits(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: &Plan,
    batches: &[PackedBatch],
) -> Result<(), Misfit> {
    let limit = scenario.memory_limit();
    for (iteration, batch) in batches.iter().enumerate() {
        let runs = run_iteration(scenario, pricing, plan, iteration, batch).map_err(|_| Misfit::deadlock())?;
        for (run, replica) in runs.iter().zip(&plan.iterations[iteration].replicas) {
            let (rank, peak) = peak_memory_over(&replica.schedule, &run.execution, &run.costs);
            if peak > limit {
                return Err(Misfit::activations(rank, peak));
            }
        }
    }
    Ok(())
}

/// Checks a plan, simulates it on every batch and measures it.
///
/// # Errors
/// Names the first thing that is wrong with the plan.
pub fn judge(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: &Plan,
    batches: &[PackedBatch],
) -> Result<Judged, Violation> {
    let sequences: Vec<usize> = batches.iter().map(|batch| batch.sequences.len()).collect();
    let (context, devices) = (scenario.training.context_parallel, scenario.cluster.devices());
    let arrangement = plan.arrangement();
    if plan.modules.is_empty() {
        check::check_assignment(plan, &scenario.model, devices, context, &sequences)?;
    } else {
        check::check_modules(plan, &scenario.model, devices, batches)?;
    }
    let limit = scenario.memory_limit();
    let mut totals = Vec::with_capacity(batches.len());
    let mut iterations = Vec::with_capacity(batches.len());
    let mut timelines = Vec::with_capacity(batches.len());
    let mut stages = StageTimes::new(arrangement.as_ref().map_or(plan.partition.stages.len(), |of| of.cut.len()));
    let mut ranks = RankTotals::new(plan.ranks());
    for (iteration, batch) in batches.iter().enumerate() {
        let planned = &plan.iterations[iteration];
        let runs = run_iteration(scenario, pricing, plan, iteration, batch)
            .map_err(|deadlock| Violation::Deadlock { waiting: deadlock.to_string() })?;
        for (index, (run, replica)) in runs.iter().zip(&planned.replicas).enumerate() {
            // A shared run needs one check.
            if !runs[..index].iter().rev().take(REMEMBERED).any(|earlier| Rc::ptr_eq(earlier, run)) {
                check::check_run(&replica.schedule, &run.execution, &run.costs, limit)?;
                if arrangement.is_some() {
                    let of = (&scenario.model, &scenario.training);
                    check::check_module_run(plan, of, batch, replica, &run.execution, &run.costs)?;
                }
            }
            stages.add(&run.costs);
        }
        let mut end = StepEnd::of(plan.ranks(), runs.iter().map(|run| &run.execution));
        if let Some(arrangement) = &arrangement {
            end.join(&arrangement.synchronised(&plan.modules));
        }
        let mut total = IterationTotals { tokens: batch.summary.tokens, ..IterationTotals::default() };
        for (run, replica) in runs.iter().zip(&planned.replicas) {
            match &arrangement {
                Some(of) => total.add_blocks(&replica.schedule, &run.costs, &of.sizes(), devices),
                None => total.add_replica(&replica.schedule, &run.costs),
            }
            total.model_flops += run.flops;
            total.time = total.time.max(end.iteration_end(&run.costs));
            total.bound = total.bound.max(compare::lower_bound(&run.costs));
            total.peak = total.peak.max(peak_memory_over(&replica.schedule, &run.execution, &run.costs).1);
        }
        // Free work on a perfect machine still takes the clock's smallest step, so that rates stay numbers.
        let tick = Nanos::new(1);
        (total.time, total.bound) = (total.time.max(tick), total.bound.max(tick));
        for (run, replica) in runs.iter().zip(&planned.replicas) {
            ranks.add(&replica.schedule, &run.execution, &run.costs, total.time);
        }
        let makespans = || runs.iter().map(|run| run.execution.makespan());
        let slowest =
            (0..runs.len()).max_by_key(|&replica| (runs[replica].execution.makespan(), std::cmp::Reverse(replica)));
        let slowest = slowest.unwrap_or(0);
        let run = &runs[slowest];
        let timeline = assemble(&planned.replicas[slowest].schedule, &run.execution, &run.costs, &end);
        let mut balance = (
            makespans().min().unwrap_or(Nanos::ZERO),
            slowest as u32,
            planned.replicas[slowest].microbatches.len() as u32,
        );
        if planned.replicas[slowest].is_grouped() {
            // Each rank is a replica of its own.
            let work = groups::work(&planned.replicas[slowest].schedule, &run.costs);
            let most = (0..work.len()).max_by_key(|&rank| (work[rank].0, std::cmp::Reverse(rank))).unwrap_or(0);
            let least = work.iter().map(|of| of.0).min().unwrap_or(Nanos::ZERO);
            balance = (least, most as u32, work[most].1 as u32);
        }
        iterations.push(IterationMetrics {
            iteration_s: total.time.secs(),
            lower_bound_s: total.bound.secs(),
            bubble: total.bubble(),
            peak_memory_gib: total.peak.gib(),
            fastest_replica_s: balance.0.secs(),
            slowest_replica: balance.1,
            microbatches: balance.2,
            critical_path: compare::shares(&timeline, &run.costs),
            decision: planned.decision.clone(),
        });
        totals.push(total);
        timelines.push(timeline);
    }
    let planned = Planned {
        layout: plan.layout,
        stages: stages.summaries(plan, arrangement.as_ref(), &scenario.model),
        ranks: ranks.summaries(scenario.training.memory_reserve_gib),
        metrics: compare::metrics_of(&totals, &scenario.cluster, limit),
        iterations,
        provenance: Provenance {
            algorithm: plan.algorithm.clone(),
            seed: scenario.seed,
            status: plan.status,
            search: plan.search.clone(),
        },
        decisions: plan.decisions.clone(),
        placement: modules::placement(scenario, plan, batches),
    };
    Ok(Judged { planned, timelines })
}
