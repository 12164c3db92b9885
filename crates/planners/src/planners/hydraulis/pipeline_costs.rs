//! Costs for iterations that combine pipelines of different schemes.
//!
//! All pipelines form a single list of ranks, in pipeline order. A microbatch visits only the ranks
//! of its pipeline, so the pipelines are independent until the iteration end. Simulator and checker
//! process them as a single schedule.

mod exchange;
mod summary;

pub(crate) use exchange::Interaction;
pub(crate) use summary::{DeviceTotals, SchemeStages, iteration_strategy};

use exchange::Traffic;

use crate::planners::dhp::group_costs::loads;
use planscope_core::action::{Action, Schedule};
use planscope_core::stage_graph::{Flows, Path};
use planscope_core::units::Nanos;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::{MicrobatchLoad, PipelineCosts, Pricing};
use planscope_pipeline::lower_bound::work_bounds;
use planscope_pipeline::schedule::one_f_one_b;
use planscope_pipeline::simulate::{Execution, StepEnd};
use planscope_plan::plan::{OptimizerSharding, ReplicaPlan, SchemedPipeline, Strategy};
use planscope_plan::scenario::Scenario;

/// 1F1B on every pipeline.
pub(crate) fn schedule(strategy: &Strategy) -> Schedule {
    let mut orders = Vec::with_capacity(strategy.ranks());
    let mut total = 0;
    for (_, ranks, microbatches) in strategy.spans() {
        for order in one_f_one_b(ranks.len(), microbatches.len()).orders {
            let shifted = |action: Action| Action {
                stage: action.stage + ranks.start as u32,
                microbatch: action.microbatch + microbatches.start as u32,
                ..action
            };
            orders.push(order.into_iter().map(shifted).collect());
        }
        total = microbatches.end;
    }
    Schedule { stages: orders.len(), microbatches: total, orders }
}

/// The costs of all ranks of all pipelines.
pub(crate) fn costs(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    batch: &PackedBatch,
    plan: &ReplicaPlan,
    strategy: &Strategy,
) -> PipelineCosts {
    let loads = loads(scenario, batch, &plan.microbatches);
    let devices = scenario.cluster.devices();
    let mut merged =
        PipelineCosts { overlapped_ppm: planscope_cost::cost::pipeline::NO_GAIN_PPM, ..PipelineCosts::default() };
    let mut paths = Vec::with_capacity(loads.len());
    let mut parameters = 0.0_f64;
    for (pipeline, ranks, microbatches) in strategy.spans() {
        let (costs, model_parameters) =
            pipeline_costs(pricing, pipeline, &loads[microbatches.clone()], strategy.optimizer, devices);
        parameters = parameters.max(model_parameters);
        append(&mut merged, costs);
        paths.extend(microbatches.map(|_| Path { stages: ranks.clone(), inputs: Vec::new() }));
    }
    let ranks = strategy.ranks();
    merged.flows = Flows::new(ranks, (0..ranks as u32).collect(), &paths).expect("every stage is a rank of its own");
    if strategy.optimizer == OptimizerSharding::AllDevices {
        let tokens: Vec<f64> = loads.iter().map(|load| f64::from(load.shape.tokens)).collect();
        Traffic::new(scenario, strategy, parameters, &tokens).expose(strategy, &mut merged);
    }
    merged
}

/// The costs of one pipeline by itself, and the parameters of the model.
pub(crate) fn pipeline_costs(
    pricing: &Pricing<'_>,
    pipeline: &SchemedPipeline,
    loads: &[MicrobatchLoad],
    optimizer: OptimizerSharding,
    devices: u32,
) -> (PipelineCosts, f64) {
    let (scheme, position) = (pipeline.scheme, pipeline.replica_layout());
    let replicas = position.data * scheme.context;
    let table = pricing
        .table_shared_by(scheme.tensor, scheme.context, replicas, loads)
        .expect("the planner asked for prices of these degrees before");
    let all: Vec<usize> = (0..loads.len()).collect();
    let mut costs = table.pipeline(&pipeline.partition, position, &all);
    if optimizer == OptimizerSharding::Replicas {
        return (costs, 0.0);
    }
    let shares = table.disaggregated(&pipeline.partition, position, devices);
    costs.static_memory = shares.state.iter().map(|state| state.total()).collect();
    costs.state = shares.state;
    costs.optimizer = shares.optimizer;
    costs.sync.fill(Nanos::ZERO);
    (costs, shares.parameters)
}

/// Appends the columns of another pipeline. Cells are numbered by microbatch, so pipelines are
/// contiguous.
fn append(to: &mut PipelineCosts, from: PipelineCosts) {
    to.forward.extend(from.forward);
    to.input_grad.extend(from.input_grad);
    to.weight_grad.extend(from.weight_grad);
    to.send_forward.extend(from.send_forward);
    to.send_backward.extend(from.send_backward);
    to.activation.extend(from.activation);
    to.offloaded.extend(from.offloaded);
    to.transient.extend(from.transient);
    to.exposed_forward.extend(from.exposed_forward);
    to.exposed_backward.extend(from.exposed_backward);
    to.recomputed.extend(from.recomputed);
    to.communication.extend(from.communication);
    to.static_memory.extend(from.static_memory);
    to.state.extend(from.state);
    to.sync.extend(from.sync);
    to.optimizer.extend(from.optimizer);
    to.shapes.extend(from.shapes);
}

/// Puts off every phase until the one before it is done and its parameters have moved. Before, all begin at zero.
pub(crate) fn stagger(strategy: &Strategy, costs: &PipelineCosts, execution: &mut Execution) {
    let mut begin = Nanos::ZERO;
    for phase in 0..strategy.phases() {
        let mut end = begin;
        let mut switch = Nanos::ZERO;
        for (_, ranks, _) in strategy.spans().filter(|(pipeline, ..)| pipeline.phase == phase) {
            for rank in ranks {
                let columns = [&mut execution.start, &mut execution.end, &mut execution.send_start];
                for column in columns {
                    for time in &mut column[rank] {
                        *time += begin;
                    }
                }
                end = end.max(execution.rank_end(rank));
                switch = switch.max(costs.sync[rank]);
            }
        }
        begin = end + switch;
    }
}

/// What no order of these microbatches on these pipelines can beat: every phase takes as long as the slowest of its pipelines at least, then its
/// parameters move; exchange and step of a rank begin when the work of all that it waits for can be done.
pub(crate) fn lower_bound(strategy: &Strategy, costs: &PipelineCosts) -> Nanos {
    let work = work_bounds(costs);
    let (mut begin, mut bound) = (Nanos::ZERO, Nanos::ZERO);
    for phase in 0..strategy.phases() {
        let rows: Vec<(usize, usize)> = strategy
            .spans()
            .filter(|(pipeline, ..)| pipeline.phase == phase)
            .flat_map(|(_, ranks, _)| ranks.enumerate())
            .collect();
        let all = rows.iter().map(|&(_, rank)| work[rank]).max().unwrap_or(Nanos::ZERO);
        for &(stage, rank) in &rows {
            let done = match strategy.optimizer {
                OptimizerSharding::AllDevices => all,
                OptimizerSharding::Replicas => {
                    let joined = rows.iter().filter(|row| row.0 == stage).map(|row| work[row.1]);
                    joined.max().unwrap_or(Nanos::ZERO)
                }
            };
            bound = bound.max(begin + done + costs.sync[rank] + costs.optimizer[rank]);
        }
        begin += all + rows.iter().map(|&(_, rank)| costs.sync[rank]).max().unwrap_or(Nanos::ZERO);
    }
    bound
}

/// When each rank may begin what stands behind its last backward: with the optimizer cut over all devices, or with a phase to come,
/// when all pipelines of its phase are done; otherwise when all ranks with its layers are.
pub(crate) fn step_end(strategy: &Strategy, execution: &Execution) -> StepEnd {
    let rows: Vec<(u32, usize, usize)> = strategy
        .spans()
        .flat_map(|(pipeline, ranks, _)| {
            let first = ranks.start;
            ranks.map(move |rank| (pipeline.phase, rank - first, rank))
        })
        .collect();
    let joined = |(phase, stage, _): (u32, usize, usize)| {
        let waits = move |other: &&(u32, usize, usize)| {
            other.0 == phase && (strategy.optimizer == OptimizerSharding::AllDevices || other.1 == stage)
        };
        rows.iter().filter(waits).map(|other| execution.rank_end(other.2)).max().unwrap_or(Nanos::ZERO)
    };
    StepEnd { sync_start: rows.iter().map(|&row| joined(row)).collect(), joined: true }
}
