//! One simulator and one checker judge every plan.

use super::Plan;
use super::misfit::Misfit;
use crate::check::{self, Violation};
use crate::compare::{self, IterationTotals};
use crate::cost::{LayerTable, MicrobatchLoad, PipelineCosts, Place};
use crate::model::Model;
use crate::outcome::{IterationMetrics, Planned, Provenance, StageSummary};
use crate::scenario::Scenario;
use crate::simulate::{Deadlock, Execution, StepEnd, assemble, execute, peak_memory_over};
use crate::timeline::Timeline;
use crate::units::Nanos;
use crate::workload::{PackedBatch, Sequence};

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

/// The loads of microbatches given by the sequences in them.
pub(super) fn loads(scenario: &Scenario, batch: &PackedBatch, microbatches: &[Vec<u32>]) -> Vec<MicrobatchLoad> {
    let of = |microbatch: &Vec<u32>| {
        let sequences: Vec<Sequence> = microbatch.iter().map(|&index| batch.sequences[index as usize]).collect();
        MicrobatchLoad::of(&sequences, &scenario.model, scenario.workload.packing)
    };
    microbatches.iter().map(of).collect()
}

/// One replica of one iteration, executed.
struct ReplicaRun {
    costs: PipelineCosts,
    execution: Execution,
    flops: crate::units::Flops,
}

fn run_iteration(
    scenario: &Scenario,
    plan: &Plan,
    iteration: usize,
    batch: &PackedBatch,
) -> Result<Vec<ReplicaRun>, Deadlock> {
    let layout = plan.layout;
    let replicas = plan.iterations[iteration].replicas.iter().enumerate();
    replicas
        .map(|(replica, assigned)| {
            let loads = loads(scenario, batch, &assigned.microbatches);
            let table = LayerTable::new(&scenario.model, &scenario.cluster, &scenario.training, layout.tensor, &loads);
            let place = Place { pipeline: layout.pipeline, data: layout.data, replica: replica as u32 };
            let all: Vec<usize> = (0..loads.len()).collect();
            let costs = table.pipeline(&plan.partition, place, &all);
            let execution = execute(&assigned.schedule, &costs)?;
            let flops = loads.iter().map(|load| load.model_flops(&scenario.model)).sum();
            Ok(ReplicaRun { costs, execution, flops })
        })
        .collect()
}

/// Whether a plan runs and stays within memory on every batch.
pub(super) fn fits(scenario: &Scenario, plan: &Plan, batches: &[PackedBatch]) -> Result<(), Misfit> {
    let limit = scenario.memory_limit();
    for (iteration, batch) in batches.iter().enumerate() {
        let runs = run_iteration(scenario, plan, iteration, batch).map_err(|_| Misfit::deadlock())?;
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
pub fn judge(scenario: &Scenario, plan: &Plan, batches: &[PackedBatch]) -> Result<Judged, Violation> {
    let sequences: Vec<usize> = batches.iter().map(|batch| batch.sequences.len()).collect();
    check::check_assignment(plan, &scenario.model, scenario.cluster.devices(), &sequences)?;
    let limit = scenario.memory_limit();
    let mut totals = Vec::with_capacity(batches.len());
    let mut iterations = Vec::with_capacity(batches.len());
    let mut timelines = Vec::with_capacity(batches.len());
    let mut stages = StageTimes::new(plan.partition.stages.len());
    for (iteration, batch) in batches.iter().enumerate() {
        let planned = &plan.iterations[iteration];
        let runs = run_iteration(scenario, plan, iteration, batch)
            .map_err(|deadlock| Violation::Deadlock { waiting: deadlock.to_string() })?;
        for (run, replica) in runs.iter().zip(&planned.replicas) {
            check::check_run(&replica.schedule, &run.execution, &run.costs, limit)?;
            stages.add(&run.costs);
        }
        let end = StepEnd::of(plan.layout.pipeline as usize, runs.iter().map(|run| &run.execution));
        let mut total = IterationTotals { tokens: batch.summary.tokens, ..IterationTotals::default() };
        for (run, replica) in runs.iter().zip(&planned.replicas) {
            total.add_replica(&replica.schedule, &run.costs);
            total.model_flops += run.flops;
            total.time = total.time.max(end.iteration_end(&run.costs));
            total.bound = total.bound.max(compare::lower_bound(&run.costs));
            total.peak = total.peak.max(peak_memory_over(&replica.schedule, &run.execution, &run.costs).1);
        }
        // Free work on a perfect machine still takes the clock's smallest step, so that rates stay numbers.
        let tick = Nanos::new(1);
        (total.time, total.bound) = (total.time.max(tick), total.bound.max(tick));
        let makespans = || runs.iter().map(|run| run.execution.makespan());
        let slowest =
            (0..runs.len()).max_by_key(|&replica| (runs[replica].execution.makespan(), std::cmp::Reverse(replica)));
        let slowest = slowest.unwrap_or(0);
        let run = &runs[slowest];
        let timeline = assemble(&planned.replicas[slowest].schedule, &run.execution, &run.costs, &end);
        iterations.push(IterationMetrics {
            iteration_s: total.time.secs(),
            lower_bound_s: total.bound.secs(),
            bubble: total.bubble(),
            peak_memory_gib: total.peak.gib(),
            fastest_replica_s: makespans().min().unwrap_or(Nanos::ZERO).secs(),
            slowest_replica: slowest as u32,
            microbatches: run.costs.microbatches as u32,
            critical_path: compare::shares(&timeline, &run.costs),
            decision: planned.decision.clone(),
        });
        totals.push(total);
        timelines.push(timeline);
    }
    let planned = Planned {
        layout: plan.layout,
        stages: stages.summaries(plan, &scenario.model),
        metrics: compare::metrics_of(&totals, &scenario.cluster, limit),
        iterations,
        provenance: Provenance {
            algorithm: plan.algorithm.clone(),
            seed: scenario.seed,
            status: plan.status,
            search: plan.search.clone(),
        },
        decisions: plan.decisions.clone(),
    };
    Ok(Judged { planned, timelines })
}

/// Sums of stage times over all microbatches of the run.
struct StageTimes {
    forward: Vec<f64>,
    backward: Vec<f64>,
    microbatches: usize,
}

impl StageTimes {
    fn new(stages: usize) -> Self {
        Self { forward: vec![0.0; stages], backward: vec![0.0; stages], microbatches: 0 }
    }

    fn add(&mut self, costs: &PipelineCosts) {
        self.microbatches += costs.microbatches;
        for stage in 0..costs.stages {
            for cell in costs.cell(stage, 0)..costs.cell(stage + 1, 0) {
                self.forward[stage] += costs.forward[cell].secs();
                self.backward[stage] += costs.backward(cell).secs();
            }
        }
    }

    fn summaries(&self, plan: &Plan, model: &Model) -> Vec<StageSummary> {
        let count = self.microbatches.max(1) as f64;
        let summary = |(stage, ranges): (usize, &Vec<crate::cost::partition::LayerRange>)| {
            let names = ranges.iter().map(|range| {
                format!("{} {}-{}", model.modules[range.module].name, range.first, range.end.saturating_sub(1))
            });
            StageSummary {
                stage: stage as u32,
                rank: stage as u32 % plan.layout.pipeline,
                layers: names.collect::<Vec<_>>().join(", "),
                forward_ms: 1e3 * self.forward[stage] / count,
                backward_ms: 1e3 * self.backward[stage] / count,
            }
        };
        plan.partition.stages.iter().enumerate().map(summary).collect()
    }
}
