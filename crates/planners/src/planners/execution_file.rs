//! Writes execution plan files.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::planners::contents;
use crate::planners::executed::{ReplicaRun, TestedPlan, run_iteration};
use crate::planners::hydraulis::pipeline_costs;
use planscope_check::check::{self, FileViolation};
use planscope_core::action::{Action, ActionKind};
use planscope_core::timeline::SpanKind;
use planscope_core::units::{Bytes, Nanos};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::{PipelineCosts, Pricing};
use planscope_pipeline::execution_plan::{Buffers, CompileError, Ending, PlanAction, PlanActionKind, compile};
use planscope_pipeline::simulate::{StepEnd, assemble, peak_memory};
use planscope_plan::execution_file::{
    ActivationSettings, Degrees, ExecutionFile, FORMAT, FileStage, MicrobatchCosts, ModuleDegrees, PipelineDegrees,
    RankGroup, RankRun, Replica, Run, ShardingSettings, VERSION,
};
use planscope_plan::outcome::ENGINE;
use planscope_plan::plan::{Arrangement, OptimizerSharding, Plan, ReplicaPlan};
use planscope_plan::scenario::{PlanSettings, PlannerKind, Scenario};

/// Buffers per channel that are tried in order, before unlimited buffers. The first that delay nothing are
/// used.
const BUFFERS: [u32; 5] = [2, 4, 8, 16, 32];

/// Reason why a plan has no execution plan file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionFileError {
    /// There is no such iteration.
    #[error("the run has {iterations} iterations")]
    Iteration {
        /// Number of iterations.
        iterations: usize,
    },
    /// The plan cannot be executed. This is a bug in the planner.
    #[error("the plan has no execution: {0}")]
    Deadlock(String),
    /// The timeline is not a pipeline.
    #[error("no action lists: {0}")]
    Compile(#[from] CompileError),
    /// The checker refuses the file. This is a bug.
    #[error("the checker refuses the file: {0}")]
    Rejected(#[from] FileViolation),
}

/// Returns the execution plan file of an iteration. The file has passed the checker, which simulates it
/// again. The scenario identifier is empty.
pub(crate) fn execution_file(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    planner: PlannerKind,
    tested: &TestedPlan,
    iteration: usize,
    batches: &[PackedBatch],
) -> Result<ExecutionFile, ExecutionFileError> {
    let plan = tested.plan();
    let iterations = batches.len();
    let (Some(batch), Some(planned)) = (batches.get(iteration), plan.iterations.get(iteration)) else {
        return Err(ExecutionFileError::Iteration { iterations });
    };
    let replica_runs = match tested.runs(iteration) {
        Some(runs) => runs.clone(),
        None => run_iteration(scenario, pricing, plan, iteration, batch)
            .map_err(|deadlock| ExecutionFileError::Deadlock(deadlock.to_string()))?,
    };
    let writer = Writer::new(scenario, plan, &replica_runs, &planned.replicas);
    let mut runs: Vec<Run> = Vec::new();
    let mut distinct: Vec<&Arc<ReplicaRun>> = Vec::new();
    let mut replicas = Vec::with_capacity(replica_runs.len());
    for (replica, executed) in planned.replicas.iter().zip(&replica_runs) {
        let known = distinct.iter().position(|other| Arc::ptr_eq(other, executed));
        let run = if let Some(run) = known {
            run
        } else {
            runs.push(writer.run(replica, executed, runs.len())?);
            distinct.push(executed);
            runs.len() - 1
        };
        let microbatches = contents::microbatch_samples(scenario, batch, replica);
        replicas.push(Replica { run: run as u32, microbatches });
    }
    let iteration_time = replica_runs.iter().map(|run| writer.end.iteration_end(&run.costs)).max();
    let training = &scenario.training;
    let peak_bytes = (0..writer.ranks.len())
        .map(|rank| runs.iter().map(|run| run.ranks[rank].peak_bytes).max().unwrap_or(0))
        .collect();
    let file = ExecutionFile {
        format: FORMAT.to_owned(),
        version: VERSION,
        engine: ENGINE.to_owned(),
        scenario: String::new(),
        planner,
        source: None,
        iteration: iteration as u32,
        devices: scenario.cluster.devices(),
        modules: scenario.model.modules.iter().map(|module| module.name.clone()).collect(),
        layout: Degrees::new(plan.layout, training.context_parallel, training.expert_parallel),
        module_layouts: module_layouts(plan),
        activations: ActivationSettings {
            recompute: training.recompute,
            recompute_layers: training.recompute_layers,
            recompute_modules: PlanSettings::from_scenario(scenario).recompute_modules,
            activation_offload: training.activation_offload,
        },
        sharding: Some(ShardingSettings::from_scenario(scenario)),
        iteration_ns: iteration_time.unwrap_or(Nanos::ZERO).get().max(1),
        peak_bytes,
        runs,
        replicas,
        digests: BTreeMap::new(),
    };
    check::check_execution_file(&file)?;
    Ok(file)
}

fn module_layouts(plan: &Plan) -> Vec<ModuleDegrees> {
    let degrees = plan.modules.iter().map(|layout| ModuleDegrees {
        first: layout.first,
        end: layout.end,
        tensor: layout.tensor,
        context: layout.context,
        pipeline: layout.pipeline,
        data: layout.data,
        expert: layout.expert,
        first_device: layout.first_device,
        copies_per_rank: layout.copies_per_rank,
    });
    degrees.collect()
}

/// Values that all runs share.
struct Writer<'a> {
    plan: &'a Plan,
    arrangement: Option<Arrangement>,
    end: StepEnd,
    /// Synchronisation group, phase and devices per rank.
    ranks: Vec<RankPlace>,
}

#[derive(Clone, Copy)]
struct RankPlace {
    sync_group: u32,
    phase: u32,
    devices: u32,
}

impl<'a> Writer<'a> {
    fn new(scenario: &Scenario, plan: &'a Plan, runs: &[Arc<ReplicaRun>], replicas: &[ReplicaPlan]) -> Self {
        let arrangement = plan.arrangement();
        let strategy = replicas.first().and_then(ReplicaPlan::strategy);
        let count = plan.ranks();
        let count = strategy.map_or(count, planscope_plan::plan::Strategy::ranks);
        let end = if let Some(strategy) = strategy {
            pipeline_costs::step_end(strategy, &runs[0].execution)
        } else {
            let mut end = StepEnd::from_executions(count, runs.iter().map(|run| &run.execution));
            if let Some(arrangement) = &arrangement {
                end.join(&arrangement.synchronised(&plan.modules));
            }
            end
        };
        let ranks = if let Some(strategy) = strategy {
            let place = |(pipeline, stage): (&planscope_plan::plan::SchemedPipeline, usize)| RankPlace {
                // Ranks of a phase synchronise together, or those with the same stage.
                sync_group: match strategy.optimizer {
                    OptimizerSharding::AllDevices => pipeline.phase,
                    OptimizerSharding::Replicas => pipeline.phase + strategy.phases() * stage as u32,
                },
                phase: pipeline.phase,
                devices: pipeline.scheme.stage_devices(),
            };
            let stages =
                strategy.spans().flat_map(|(pipeline, ranks, _)| (0..ranks.len()).map(move |stage| (pipeline, stage)));
            stages.map(place).collect()
        } else if let Some(arrangement) = &arrangement {
            let groups = arrangement.synchronised(&plan.modules);
            let place = |(group, devices): (usize, u32)| RankPlace { sync_group: group as u32, phase: 0, devices };
            groups.into_iter().zip(arrangement.sizes()).map(place).collect()
        } else {
            let devices = scenario.cluster.devices() / (count.max(1) * runs.len().max(1)) as u32;
            (0..count as u32).map(|rank| RankPlace { sync_group: rank, phase: 0, devices }).collect()
        };
        Self { plan, arrangement, end, ranks }
    }

    /// Writes run `number` with the fewest buffers that delay nothing.
    fn run(&self, replica: &ReplicaPlan, executed: &ReplicaRun, number: usize) -> Result<Run, ExecutionFileError> {
        let table = self.table(replica, executed);
        if replica.is_grouped() {
            let lists = group_lists(replica, executed);
            return Ok(with_lists(table, Buffers::UNLIMITED, lists));
        }
        let timeline = assemble(&replica.schedule, &executed.execution, &executed.costs, &self.end);
        let with_buffers = |buffers| -> Result<Run, ExecutionFileError> {
            let run = with_lists(table.clone(), buffers, compile(&timeline, buffers)?.ranks);
            check::check_run_lists(&run, number)?;
            Ok(run)
        };
        let limited = BUFFERS.into_iter().filter_map(NonZeroU32::new);
        for count in limited {
            match with_buffers(Buffers::uniform(count)) {
                // Scarce buffers delay an action.
                Err(ExecutionFileError::Rejected(_)) => {}
                other => return other,
            }
        }
        with_buffers(Buffers::UNLIMITED)
    }

    /// Writes a run without action lists.
    fn table(&self, replica: &ReplicaPlan, executed: &ReplicaRun) -> Run {
        let costs = &executed.costs;
        let rank = |(rank, place): (usize, &RankPlace)| {
            let (sync, optimizer) = (costs.sync[rank], costs.optimizer[rank]);
            let start = self.end.sync_start[rank];
            let ending = |kind, start: Nanos, duration: Nanos| Ending {
                rank: rank as u32,
                kind,
                start_ns: start.get(),
                duration_ns: duration.get(),
            };
            let endings =
                [ending(SpanKind::GradientSync, start, sync), ending(SpanKind::Optimizer, start + sync, optimizer)];
            RankRun {
                devices: place.devices,
                phase: place.phase,
                sync_group: place.sync_group,
                static_bytes: costs.static_memory[rank].get(),
                peak_bytes: peak_memory(rank, &replica.schedule, &executed.execution, costs).get(),
                sync_ns: sync.get(),
                optimizer_ns: optimizer.get(),
                actions: Vec::new(),
                endings: endings.into_iter().filter(|ending| ending.duration_ns > 0).collect(),
            }
        };
        Run {
            buffers: Buffers::UNLIMITED,
            overlapped_ppm: costs.overlapped_ppm,
            pipelines: pipelines(replica),
            groups: groups(replica),
            stages: self.stages(replica, costs),
            microbatches: (0..costs.microbatches()).map(|index| microbatch(index, costs, replica)).collect(),
            ranks: self.ranks.iter().enumerate().map(rank).collect(),
        }
    }

    fn stages(&self, replica: &ReplicaPlan, costs: &PipelineCosts) -> Vec<FileStage> {
        let layers = contents::stage_layers(self.plan, self.arrangement.as_ref(), replica);
        let stage = |stage: usize| FileStage {
            rank: costs.rank_for_stage(stage) as u32,
            // In a group of ranks, each has all layers.
            layers: if replica.is_grouped() { layers[0].clone() } else { layers[stage].clone() },
        };
        (0..costs.stages()).map(stage).collect()
    }
}

fn with_lists(mut run: Run, buffers: Buffers, lists: Vec<Vec<PlanAction>>) -> Run {
    run.buffers = buffers;
    for (rank, actions) in run.ranks.iter_mut().zip(lists) {
        rank.actions = actions;
    }
    run
}

fn pipelines(replica: &ReplicaPlan) -> Vec<PipelineDegrees> {
    let Some(strategy) = replica.strategy() else { return Vec::new() };
    let degrees = strategy.spans().map(|(pipeline, ranks, _)| PipelineDegrees {
        tensor: pipeline.scheme.tensor,
        pipeline: pipeline.scheme.pipeline,
        context: pipeline.scheme.context,
        first_rank: ranks.start as u32,
        first_device: pipeline.first_device,
        stage_stride: pipeline.stage_stride,
        phase: pipeline.phase,
    });
    degrees.collect()
}

fn groups(replica: &ReplicaPlan) -> Vec<RankGroup> {
    let group = |group: &planscope_plan::plan::SequenceGroup| RankGroup {
        ranks: group.ranks.clone(),
        microbatch: group.microbatch,
        exchange: group.exchange,
    };
    replica.groups().iter().map(group).collect()
}

fn microbatch(index: usize, costs: &PipelineCosts, replica: &ReplicaPlan) -> MicrobatchCosts {
    let cells = costs.flows.microbatch_cells(index);
    let times = |column: &[Nanos]| column[cells.clone()].iter().map(|time| time.get()).collect();
    let bytes = |column: &[Bytes]| column[cells.clone()].iter().map(|bytes| bytes.get()).collect();
    let mut inputs = costs.flows.inputs(index).to_vec();
    inputs.sort_unstable();
    MicrobatchCosts {
        first_stage: costs.flows.microbatch_stages(index).start as u32,
        inputs,
        gang: costs.flows.microbatch_gang(index).map(|gang| gang as u32),
        forward_ns: times(&costs.forward),
        input_grad_ns: times(&costs.input_grad),
        weight_grad_ns: times(&costs.weight_grad),
        send_forward_ns: times(&costs.send_forward),
        send_backward_ns: times(&costs.send_backward),
        activation_bytes: bytes(&costs.activation),
        transient_bytes: bytes(&costs.transient),
        layer_strategies: replica.mixes.get(cells.clone()).unwrap_or(&[]).iter().map(|mix| mix.0).collect(),
    }
}

/// Action lists of ranks that process microbatches jointly and exchange no activations.
fn group_lists(replica: &ReplicaPlan, executed: &ReplicaRun) -> Vec<Vec<PlanAction>> {
    let action = |rank: usize, index: usize, action: &Action| {
        let (start, end) = (executed.execution.start[rank][index], executed.execution.end[rank][index]);
        PlanAction {
            start_ns: start.get(),
            duration_ns: Some((end - start).get()),
            action: match action.kind {
                ActionKind::Forward => PlanActionKind::ForwardStage,
                ActionKind::Backward => PlanActionKind::BackwardStage,
                ActionKind::InputGrad => PlanActionKind::InputGradStage,
                ActionKind::WeightGrad => PlanActionKind::WeightGradStage,
            },
            stage: action.stage,
            microbatch: action.microbatch,
            with_next: action.with_next,
            transfer: None,
        }
    };
    let list = |(rank, order): (usize, &Vec<Action>)| {
        order.iter().enumerate().map(|(index, planned)| action(rank, index, planned)).collect()
    };
    replica.schedule.orders.iter().enumerate().map(list).collect()
}
