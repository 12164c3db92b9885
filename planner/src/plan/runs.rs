//! What plans do on the batches of a run: every replica executed once, kept for the judge where that has been seen already.

use std::sync::Arc;

use super::misfit::Misfit;
use super::{Plan, ReplicaPlan, groups, modules, replica, stage_flops, strategy};
use crate::cost::{MicrobatchLoad, PipelineCosts, Pricing};
use crate::host::{round_of, side_by_side};
use crate::observer::{Cancelled, Observer, go_on};
use crate::outcome::Search;
use crate::scenario::Scenario;
use crate::simulate::{Deadlock, Execution, execute, peak_memory_over};
use crate::units::Flops;
use crate::workload::PackedBatch;

/// Cells of runs that are kept, about 20 MB.
const KEPT_CELLS: usize = 100_000;

/// Replicas of one iteration.
pub(super) type Runs = Vec<Arc<ReplicaRun>>;

/// A plan, and what it was seen to do while it was made: the first iterations, as far as they are kept.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    plan: Plan,
    runs: Vec<Runs>,
}

impl From<Plan> for Tried {
    fn from(plan: Plan) -> Self {
        Self { plan, runs: Vec::new() }
    }
}

impl Tried {
    pub(crate) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What the replicas of an iteration did, where it is known.
    pub(super) fn runs(&self, iteration: usize) -> Option<&Runs> {
        self.runs.get(iteration)
    }

    /// With what is said of it.
    pub(super) fn told(mut self, search: Search, decisions: Vec<String>) -> Self {
        self.plan.search = search;
        self.plan.decisions = decisions;
        self
    }
}

/// One replica of one iteration, executed.
#[derive(Debug)]
pub(super) struct ReplicaRun {
    pub costs: PipelineCosts,
    pub execution: Execution,
    pub flops: Flops,
    /// Model operations of every stage.
    pub stage_flops: Vec<f64>,
}

/// Runs every replica of an iteration. Replicas that do the same at the same place of their nodes are run once and
/// share the result.
pub(super) fn run_iteration(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: &Plan,
    iteration: usize,
    batch: &PackedBatch,
) -> Result<Runs, Deadlock> {
    let layout = plan.layout;
    let node = scenario.cluster.devices_per_node;
    let devices = layout.tensor * scenario.training.context_parallel;
    let mut distinct: Vec<(Vec<MicrobatchLoad>, usize, u32, Arc<ReplicaRun>)> = Vec::new();
    let mut runs = Vec::with_capacity(plan.iterations[iteration].replicas.len());
    for (index, assigned) in plan.iterations[iteration].replicas.iter().enumerate() {
        let loads = replica::loads(scenario, batch, &assigned.microbatches);
        let offset = (index as u32).wrapping_mul(devices) % node;
        let replicas = &plan.iterations[iteration].replicas;
        let same = distinct.iter().find(|(known, other, at, _)| {
            *at == offset && *known == loads && does_the_same(&replicas[*other], assigned, batch)
        });
        if let Some((.., run)) = same {
            runs.push(Arc::clone(run));
            continue;
        }
        let costs = if let Some(strategy) = &assigned.strategy {
            strategy::costs(scenario, pricing, batch, assigned, strategy)
        } else if !plan.modules.is_empty() {
            modules::of_plan(scenario, pricing, plan, batch, assigned)
        } else if assigned.is_grouped() {
            groups::costs(scenario, pricing, layout, batch, assigned)
        } else {
            replica::costs(scenario, pricing, (&plan.partition, layout), index, batch, assigned)
        };
        let mut execution = execute(&assigned.schedule, &costs)?;
        if let Some(strategy) = &assigned.strategy {
            strategy::stagger(strategy, &costs, &mut execution);
        }
        let flops = loads.iter().map(|load| load.model_flops(&scenario.model)).sum();
        let stage_flops = stage_flops::of_replica(scenario, plan, assigned, &loads, batch);
        let run = Arc::new(ReplicaRun { costs, execution, flops, stage_flops });
        runs.push(Arc::clone(&run));
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
        && a.strategy == b.strategy
        && (a.parts.is_empty() || contents())
}

/// Replicas that are compared with.
pub(super) const REMEMBERED: usize = 16;

/// A plan that runs and stays within memory on every batch; batches are simulated side by side.
pub(super) fn fits(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    plan: Plan,
    batches: &[PackedBatch],
    observer: &dyn Observer,
) -> Result<Result<Tried, Misfit>, Cancelled> {
    let (limit, workers) = (scenario.memory_limit(), observer.workers());
    let fits = |iteration: usize| {
        let runs = run_iteration(scenario, pricing, &plan, iteration, &batches[iteration]);
        let runs = runs.map_err(|_| Misfit::deadlock())?;
        for (run, replica) in runs.iter().zip(&plan.iterations[iteration].replicas) {
            let (rank, peak) = peak_memory_over(&replica.schedule, &run.execution, &run.costs);
            if peak > limit {
                return Err(Misfit::activations(rank, peak));
            }
        }
        Ok(runs)
    };
    let all: Vec<usize> = (0..batches.len()).collect();
    let (mut kept, mut cells) = (Vec::new(), 0);
    // By rounds, so that little is simulated behind the first that does not fit.
    for round in all.chunks(round_of(workers)) {
        go_on(observer)?;
        for runs in side_by_side(workers, round.len(), |place| fits(round[place])) {
            let runs = match runs {
                Ok(runs) => runs,
                Err(misfit) => return Ok(Err(misfit)),
            };
            cells += runs.iter().map(|run| run.costs.flows.cells()).sum::<usize>();
            if cells <= KEPT_CELLS {
                kept.push(runs);
            }
        }
    }
    Ok(Ok(Tried { plan, runs: kept }))
}
