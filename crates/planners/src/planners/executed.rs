//! Plan execution on the batches of a run. Replicas are executed once, and the judge reuses stored
//! runs.

use std::sync::Arc;

use crate::planners::dhp::group_costs;
use crate::planners::equal_replicas::{REMEMBERED, link_class};
use crate::planners::hydraulis::pipeline_costs;
use crate::planners::infeasible::Infeasibility;
use crate::planners::module_layouts::module_costs;
use crate::planners::{Batches, PlanningContext, SearchError, replica, stage_flops};
use planscope_core::host::{jobs_per_round, side_by_side};
use planscope_core::units::Flops;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::{MicrobatchLoad, PipelineCosts, Pricing};
use planscope_pipeline::simulate::{Deadlock, Execution, execute, peak_memory_over};
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::Search;
use planscope_plan::plan::{Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::Scenario;

/// Limit on stored cells, about 20 MB.
const MAX_STORED_CELLS: usize = 100_000;

/// Runs of an iteration, by replica.
pub(crate) type Runs = Vec<Arc<ReplicaRun>>;

/// A plan and its stored runs, up to the storage limit.
#[derive(Debug, Clone)]
pub struct TestedPlan {
    plan: Plan,
    runs: Vec<Runs>,
}

impl From<Plan> for TestedPlan {
    fn from(plan: Plan) -> Self {
        Self { plan, runs: Vec::new() }
    }
}

impl TestedPlan {
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the stored runs of an iteration.
    pub(crate) fn runs(&self, iteration: usize) -> Option<&Runs> {
        self.runs.get(iteration)
    }

    /// Sets search statistics and decisions.
    pub(crate) fn with_report(mut self, search: Search, decisions: Vec<String>) -> Self {
        self.plan.search = search;
        self.plan.decisions = decisions;
        self
    }
}

/// Execution result for a replica in one iteration.
#[derive(Debug)]
pub(crate) struct ReplicaRun {
    pub costs: PipelineCosts,
    pub execution: Execution,
    pub flops: Flops,
    /// Model FLOPs per stage.
    pub stage_flops: Vec<f64>,
}

/// Executes all replicas in an iteration. Replicas share a run if their work and links
/// are equal.
pub(crate) fn run_iteration(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: &Plan,
    iteration: usize,
    batch: &PackedBatch,
) -> Result<Runs, Deadlock> {
    let layout = plan.layout;
    let mut distinct: Vec<(Vec<MicrobatchLoad>, usize, u32, Arc<ReplicaRun>)> = Vec::new();
    let mut runs = Vec::with_capacity(plan.iterations[iteration].replicas.len());
    for (index, assigned) in plan.iterations[iteration].replicas.iter().enumerate() {
        let loads = replica::loads(scenario, batch, &assigned.microbatches);
        let class = link_class(scenario, layout, index);
        let replicas = &plan.iterations[iteration].replicas;
        let same = distinct.iter().find(|(known, other, at, _)| {
            *at == class && *known == loads && is_same_plan(&replicas[*other], assigned, batch)
        });
        if let Some((.., run)) = same {
            runs.push(Arc::clone(run));
            continue;
        }
        let costs = match &assigned.kind {
            ReplicaKind::Strategy(strategy) => pipeline_costs::costs(scenario, pricing, batch, assigned, strategy),
            ReplicaKind::Groups(_) => group_costs::costs(scenario, pricing, layout, batch, assigned),
            ReplicaKind::Pipeline | ReplicaKind::Parts(_) if !plan.modules.is_empty() => {
                module_costs::plan_costs(scenario, pricing, plan, batch, assigned)
            }
            ReplicaKind::Pipeline | ReplicaKind::Parts(_) => {
                replica::costs(scenario, pricing, (&plan.partition, layout), index, batch, assigned)
            }
        };
        let mut execution = execute(&assigned.schedule, &costs)?;
        if let ReplicaKind::Strategy(strategy) = &assigned.kind {
            pipeline_costs::stagger(strategy, &costs, &mut execution);
        }
        let flops = loads.iter().map(|load| load.model_flops(&scenario.model)).sum();
        let stage_flops = stage_flops::replica_flops(scenario, plan, assigned, &loads, batch);
        let run = Arc::new(ReplicaRun { costs, execution, flops, stage_flops });
        runs.push(Arc::clone(&run));
        if distinct.len() == REMEMBERED {
            distinct.remove(0);
        }
        distinct.push((loads, index, class, run));
    }
    Ok(runs)
}

/// Returns true if the plans of two replicas are equal, given equal loads.
fn is_same_plan(a: &ReplicaPlan, b: &ReplicaPlan, batch: &PackedBatch) -> bool {
    let contents = || {
        let microbatch_contents = |sequences: &Vec<u32>| batch.contents(sequences);
        a.microbatches.iter().map(microbatch_contents).eq(b.microbatches.iter().map(microbatch_contents))
    };
    a.schedule == b.schedule && a.mixes == b.mixes && a.kind == b.kind && (a.parts().is_empty() || contents())
}

/// Returns the index of the first replica of each run, and the number of replicas that share it.
pub(crate) fn equal_runs(runs: &[Arc<ReplicaRun>]) -> Vec<(usize, u32)> {
    let mut equal: Vec<(usize, u32)> = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let is_shared = |(first, _): &&mut (usize, u32)| Arc::ptr_eq(&runs[*first], run);
        match equal.iter_mut().rev().take(REMEMBERED).find(is_shared) {
            Some((_, count)) => *count += 1,
            None => equal.push((index, 1)),
        }
    }
    equal
}

/// Simulates a plan on the evaluated batches, in parallel. Returns it if it runs within the memory
/// limit.
pub(crate) fn fits(
    context: PlanningContext<'_>,
    plan: Plan,
    observer: &dyn Observer,
) -> Result<TestedPlan, SearchError<Infeasibility>> {
    let PlanningContext { scenario, pricing, batches: Batches { evaluated: batches, .. }, .. } = context;
    let (limit, workers) = (scenario.memory_limit(), observer.workers());
    let fits = |iteration: usize| {
        let runs = run_iteration(scenario, pricing, &plan, iteration, &batches[iteration]);
        let runs = runs.map_err(|_| Infeasibility::deadlock())?;
        for (first, _) in equal_runs(&runs) {
            let (run, replica) = (&runs[first], &plan.iterations[iteration].replicas[first]);
            let (rank, peak) = peak_memory_over(&replica.schedule, &run.execution, &run.costs);
            if peak > limit {
                return Err(Infeasibility::activations(rank, peak));
            }
        }
        Ok(runs)
    };
    let all: Vec<usize> = (0..batches.len()).collect();
    let (mut stored, mut cells) = (Vec::new(), 0);
    // In rounds, so that little work is lost when a batch fails.
    for round in all.chunks(jobs_per_round(workers)) {
        go_on(observer)?;
        for runs in side_by_side(workers, round.len(), |index| fits(round[index])) {
            let runs = runs?;
            cells += equal_runs(&runs).iter().map(|&(first, _)| runs[first].costs.flows.cells()).sum::<usize>();
            if cells <= MAX_STORED_CELLS {
                stored.push(runs);
            }
        }
    }
    Ok(TestedPlan { plan, runs: stored })
}
