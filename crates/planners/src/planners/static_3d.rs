//! Static planners: a fixed layout for the run, microbatches in data-loader order (Megatron-LM).

mod nnscaler;
mod optimus;

use crate::planners::batches::SpanCount;
use crate::planners::dynamic::{deal, order_by_length};
use crate::planners::equal_replicas::first_equal;
use crate::planners::executed::{TestedPlan, fits};
use crate::planners::infeasible::Infeasibility;
use crate::planners::layout_search;
use crate::planners::layout_search::{LayoutPlanner, LayoutSearch, Microbatches, Ramp, Sized};
use crate::planners::{Batches, NoPlan, PlanningContext, SearchError, replica};
use planscope_core::action::Schedule;
use planscope_core::model::{Module, ModuleRole};
use planscope_core::stage_graph::Placement;
use planscope_core::units::Bytes;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::partition::ModuleWeight;
use planscope_cost::cost::{LayerTable, MicrobatchLoad, Partition, PipelineCosts, Pricing, UniformTimes};
use planscope_pipeline::schedule::{ChunksRule, Grouping, ScheduleKind, Shape, gpipe, interleaved, one_f_one_b};
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::{Layout, Search, SolverStatus};
use planscope_plan::plan::{IterationPlan, Plan, ReplicaKind, ReplicaPlan};
use planscope_plan::scenario::{FreeSetting, PlannerKind, Scenario};

/// A fixed schedule for round-robin microbatches.
pub(crate) struct Fixed {
    pub kind: PlannerKind,
}

impl Fixed {
    /// Generates the order for `microbatches`. A pipeline that is flushed several times per step runs one schedule
    /// after the other.
    fn order(
        &self,
        scenario: &Scenario,
        layout: Layout,
        microbatches: usize,
        costs: impl FnOnce() -> PipelineCosts,
    ) -> Result<Schedule, Infeasibility> {
        let limit = scenario.memory_limit();
        let flush = scenario.training.microbatches_per_flush.map_or(microbatches, |flush| flush as usize);
        if flush >= microbatches || layout.pipeline == 1 {
            return self.schedule(layout, microbatches, limit, costs);
        }
        if self.kind.schedule().is_some_and(ScheduleKind::is_cost_dependent) {
            return Err(Infeasibility::rule(
                "the order is not defined for a pipeline that is flushed several times per step",
            ));
        }
        let no_costs = || PipelineCosts::default();
        Schedule::flushed(microbatches, flush, |count| self.schedule(layout, count, limit, no_costs))
    }

    /// Generates the order of a pipeline that is flushed once. Some schedules depend on the costs.
    fn schedule(
        &self,
        layout: Layout,
        microbatches: usize,
        limit: Bytes,
        costs: impl FnOnce() -> PipelineCosts,
    ) -> Result<Schedule, Infeasibility> {
        let (ranks, chunks) = (layout.pipeline as usize, layout.chunks as usize);
        let kind = self.kind.schedule().expect("a static planner fills layouts with a schedule");
        match kind {
            ScheduleKind::Gpipe => Ok(gpipe(ranks, microbatches)),
            ScheduleKind::OneFOneB => Ok(one_f_one_b(ranks, microbatches)),
            ScheduleKind::Interleaved => {
                let grouping = layout.group.map_or(Grouping::Balanced, |group| Grouping::Fixed(group as usize));
                Ok(interleaved(ranks, chunks, microbatches, grouping))
            }
            _ => {
                let group = layout.group.filter(|_| kind.has_groups()).map(|group| group as usize);
                let shape = Shape { ranks, chunks, microbatches, group };
                let costs = if kind.is_cost_dependent() {
                    costs()
                } else {
                    PipelineCosts::uniform_over(kind.flows(ranks, chunks, microbatches), UniformTimes::default())
                };
                kind.generate(shape, &costs, Some(limit)).map_err(|error| Infeasibility::schedule(&error))
            }
        }
    }

    /// Plans the microbatches of a replica.
    fn replica_plan(
        &self,
        scenario: &Scenario,
        pricing: &Pricing<'_>,
        sized: &Sized,
        (number, batch): (usize, &PackedBatch),
        assigned: Vec<Vec<u32>>,
    ) -> Result<ReplicaPlan, Infeasibility> {
        if self.kind == PlannerKind::Optimus {
            return Ok(optimus::replica_plan(scenario, sized, batch, assigned));
        }
        let empty = Schedule { stages: 0, microbatches: 0, orders: Vec::new() };
        let mut plan = ReplicaPlan::new(assigned, ReplicaKind::Pipeline, empty);
        if !sized.mixes.is_empty() {
            plan.mixes = plan.microbatches.iter().flat_map(|_| sized.mixes.iter().copied()).collect();
        }
        let placed = (&sized.partition, sized.layout);
        let costs = || replica::costs(scenario, pricing, placed, number, batch, &plan);
        plan.schedule = self.order(scenario, sized.layout, plan.microbatches.len(), costs)?;
        Ok(plan)
    }
}

impl LayoutPlanner for Fixed {
    fn assign(
        &self,
        scenario: &Scenario,
        layout: Layout,
        loads: &[MicrobatchLoad],
        table: &LayerTable<'_>,
    ) -> Vec<Vec<usize>> {
        assign_microbatches(scenario, layout, loads.len(), || table.microbatch_times(layout.pipeline * layout.chunks))
    }

    fn cut(&self, batch: &Microbatches<'_>, table: &LayerTable<'_>, layout: Layout) -> Result<Sized, Infeasibility> {
        match self.kind {
            PlannerKind::OneFOneBParameters | PlannerKind::InterleavedParameters => {
                by_parameters(batch.scenario, layout)
            }
            PlannerKind::NnScaler => nnscaler::cut(batch, table, layout),
            PlannerKind::Optimus => optimus::cut(batch.scenario, table, layout),
            _ => {
                let placement = self.kind.schedule().map_or(Placement::Cyclic, ScheduleKind::placement);
                let sized = layout_search::balanced(batch, table, layout)?;
                Ok(Sized { partition: sized.partition.placed(placement), ..sized })
            }
        }
    }

    fn replica(
        &self,
        batch: &Microbatches<'_>,
        table: &LayerTable<'_>,
        sized: &Sized,
        (replica, assigned): (usize, &[usize]),
    ) -> Result<(PipelineCosts, Schedule), Infeasibility> {
        let position = replica::replica_position(sized.layout, replica);
        if sized.sizes.is_empty() && sized.mixes.is_empty() {
            let costs = table.pipeline(&sized.partition, position, assigned);
            let schedule = self.order(batch.scenario, sized.layout, assigned.len(), || costs.clone())?;
            return Ok((costs, schedule));
        }
        let microbatches = assigned.iter().map(|&microbatch| batch.sequences[microbatch].clone()).collect();
        let plan = self.replica_plan(batch.scenario, batch.pricing, sized, (replica, batch.batch), microbatches)?;
        let placed = (&sized.partition, sized.layout);
        let costs = replica::costs(batch.scenario, batch.pricing, placed, replica, batch.batch, &plan);
        Ok((costs, plan.schedule))
    }

    fn sequence_order(&self, scenario: &Scenario, batch: &PackedBatch) -> Vec<usize> {
        if scenario.is_free(FreeSetting::Assignment) {
            return order_by_length(scenario, batch);
        }
        (0..batch.sequences.len()).collect()
    }

    fn min_relative_work(&self) -> f64 {
        // Without recomputation, layers are faster than under the settings.
        if self.kind == PlannerKind::NnScaler { 0.6 } else { 1.0 }
    }

    fn chooses_strategies(&self) -> bool {
        self.kind == PlannerKind::NnScaler
    }

    fn ramp(&self) -> Ramp {
        match self.kind.schedule() {
            // nnScaler chooses other layer strategies, and Optimus takes the encoder out of the pipeline.
            _ if matches!(self.kind, PlannerKind::NnScaler | PlannerKind::Optimus) => Ramp::None,
            Some(kind) if kind.overlaps() => Ramp::None,
            Some(kind) if kind.splits_backward() => Ramp::Forward,
            Some(_) => Ramp::ForwardAndBackward,
            None => Ramp::None,
        }
    }
}

/// Assigns microbatch `i` to replica `i mod DP`, as Megatron-LM's sampler does. If the assignment is free, the
/// replicas are balanced by the compute times of the microbatches.
fn assign_microbatches(
    scenario: &Scenario,
    layout: Layout,
    microbatches: usize,
    times: impl FnOnce() -> Vec<f64>,
) -> Vec<Vec<usize>> {
    if scenario.is_free(FreeSetting::Assignment) {
        return deal(layout, &times());
    }
    let data = layout.data as usize;
    (0..data).map(|replica| (replica..microbatches).step_by(data).collect()).collect()
}

/// Splits layers into contiguous chunks of nearly equal parameter count.
fn by_parameters(scenario: &Scenario, layout: Layout) -> Result<Sized, Infeasibility> {
    let model = &scenario.model;
    let weight = |module: &Module| ModuleWeight {
        layer: module.layer_parameters() as f64,
        input: module.input_parameters() as f64,
        output: module.output_parameters() as f64,
        kinds: None,
    };
    let weights: Vec<ModuleWeight> = model.modules.iter().map(weight).collect();
    let stages = layout.pipeline * layout.chunks;
    let cut = if !scenario.layers_per_stage.is_empty() {
        Partition::stated(model, &scenario.layers_per_stage)
    } else if model.modules.len() == 1 {
        Partition::even(model, stages)
    } else {
        Partition::balanced(model, &weights, stages)
    };
    cut.map(|partition| Sized { by_parameters: true, ..Sized::undivided(layout, partition) })
        .ok_or_else(|| Infeasibility::rule("more stages than layers"))
}

/// Chooses the best layout on the sizing batch. If a plan exceeds the memory limit on a batch of the
/// run, the next best layout is tried.
pub(crate) fn plan(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
) -> Result<TestedPlan, SearchError<NoPlan>> {
    let PlanningContext { scenario, planner: kind, .. } = context;
    if let Some(why) = does_not_apply(scenario, kind) {
        return Err(NoPlan::inapplicable(why).into());
    }
    let planner = Fixed { kind };
    let sizing = context.batches.sizing;
    let mut search = LayoutSearch::run(context, &planner, observer)?;
    loop {
        let Some(mut sized) = search.winner() else { return Err(search.no_plan().into()) };
        let misfit = loop {
            let plan = fill(context, &planner, &sized, observer).and_then(|plan| fits(context, plan, observer));
            let misfit = match plan {
                Ok(plan) => {
                    let decisions = decisions(scenario, &sized, plan.plan(), sizing, search.failed_later());
                    return Ok(plan.with_report(search.report(), decisions));
                }
                Err(error) => error.reason()?,
            };
            match nnscaler::leaner(&sized, &misfit) {
                Some(leaner) => sized = leaner,
                None => break misfit,
            }
        };
        search.reject_winner(&misfit, observer)?;
    }
}

fn fill(
    context: PlanningContext<'_>,
    planner: &Fixed,
    sized: &Sized,
    observer: &dyn Observer,
) -> Result<Plan, SearchError<Infeasibility>> {
    let PlanningContext { scenario, pricing, batches: Batches { evaluated: batches, .. }, .. } = context;
    let layout = sized.layout;
    let (mut iterations, mut spans) = (Vec::with_capacity(batches.len()), 0);
    for batch in batches {
        go_on(observer)?;
        let order = planner.sequence_order(scenario, batch);
        let microbatches = sized.composition.microbatches(scenario, pricing, layout.microbatch, batch, &order);
        let times = || {
            let loads = replica::loads(scenario, batch, &microbatches);
            pricing.table(layout.tensor, &loads).microbatch_times(layout.pipeline * layout.chunks)
        };
        let mut replicas: Vec<ReplicaPlan> = Vec::with_capacity(layout.data as usize);
        let assignment = assign_microbatches(scenario, layout, microbatches.len(), times);
        let first = first_equal(scenario, layout, batch, &microbatches, &assignment);
        for (replica, assigned) in assignment.into_iter().enumerate() {
            let assigned: Vec<Vec<u32>> =
                assigned.into_iter().map(|microbatch| microbatches[microbatch].clone()).collect();
            if assigned.is_empty() {
                return Err(Infeasibility::rule("a batch has fewer microbatches than replicas").into());
            }
            replicas.push(if first[replica] < replica {
                ReplicaPlan { microbatches: assigned, ..replicas[first[replica]].clone() }
            } else {
                planner.replica_plan(scenario, pricing, sized, (replica, batch), assigned)?
            });
        }
        let iteration = IterationPlan { replicas, decision: None };
        spans += iteration.spans();
        observer.drafted(spans);
        iterations.push(iteration);
    }
    go_on(observer)?;
    let open = open_degrees(scenario, planner.kind);
    let assigned = if scenario.is_free(FreeSetting::Assignment) { "; replicas balanced by compute time" } else { "" };
    Ok(Plan {
        layout,
        partition: sized.partition.clone(),
        modules: Vec::new(),
        iterations,
        algorithm: format!("exhaustive search over {open}; {}{assigned}", planner.kind.title()),
        status: SolverStatus::Optimal,
        search: Search::default(),
        decisions: Vec::new(),
    })
}

/// Returns an explanation if the planner does not apply to the model.
fn does_not_apply(scenario: &Scenario, kind: PlannerKind) -> Option<String> {
    let feeds_backbone = |(index, module): (usize, &Module)| {
        module.role == ModuleRole::Backbone && !scenario.model.fed_by(index).is_empty()
    };
    let has_encoder = scenario.model.modules.iter().enumerate().any(feeds_backbone);
    let has_generator = scenario.model.modules.iter().any(|module| module.role == ModuleRole::Generator);
    (kind == PlannerKind::Optimus && (!has_encoder || has_generator))
        .then(|| "does not apply: it moves encoders out of the backbone's pipeline, and this model has none".to_owned())
}

fn open_degrees(scenario: &Scenario, kind: PlannerKind) -> String {
    let request = scenario.layout;
    let interleaves = |kind: ScheduleKind| matches!(kind.chunks_rule(), ChunksRule::Any { .. });
    let chunked = kind == PlannerKind::Optimus || kind.schedule().is_some_and(interleaves);
    let chunks = if chunked { request.chunks } else { Some(1) };
    let open = [("TP", request.tensor), ("PP", request.pipeline), ("VPP", chunks), ("microbatch", request.microbatch)];
    let names: Vec<&str> = open.iter().filter(|(_, fixed)| fixed.is_none()).map(|(name, _)| *name).collect();
    if names.is_empty() { "nothing (all degrees are fixed)".to_owned() } else { names.join(", ") }
}

fn decisions(scenario: &Scenario, sized: &Sized, plan: &Plan, sizing: &PackedBatch, failed_later: u32) -> Vec<String> {
    let mut decisions = vec![crate::planners::fastest(sized.layout, sizing.sequences.len(), failed_later)];
    if plan.partition.stages.iter().any(|stage| stage.len() > 1) || plan.partition.stages.len() > 1 {
        let layers: Vec<u32> = plan
            .partition
            .stages
            .iter()
            .map(|stage| stage.iter().map(planscope_cost::cost::partition::LayerRange::len).sum())
            .collect();
        let (min_layers, max_layers) =
            (layers.iter().min().copied().unwrap_or(0), layers.iter().max().copied().unwrap_or(0));
        decisions.push(if min_layers == max_layers {
            format!("{} stages, {min_layers} {} each.", layers.len(), if min_layers == 1 { "layer" } else { "layers" })
        } else {
            let origin = if !scenario.layers_per_stage.is_empty() {
                "as the scenario fixes them"
            } else if sized.by_parameters {
                "balanced for equal parameters"
            } else {
                "balanced for equal mean time"
            };
            format!("{} stages, {min_layers} to {max_layers} layers each, {origin}.", layers.len())
        });
    }
    decisions.extend(nnscaler::decision(sized));
    decisions.push(match (sized.composition.describe(), scenario.is_free(FreeSetting::Assignment)) {
        (Some(microbatches), _) => format!("{microbatches} The replicas are balanced by compute time."),
        (None, true) => "Microbatches are assigned to replicas by compute time.".to_owned(),
        (None, false) => {
            "Microbatches keep the data-loader order and are assigned to the replicas round-robin.".to_owned()
        }
    });
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_pipeline::schedule::interleaved_zero_bubble;

    /// Eight microbatches in groups of four if requested. Otherwise groups have the size of the
    /// rank count, two.
    #[test]
    fn requested_groups_are_run() {
        let layout = Layout { tensor: 1, pipeline: 2, data: 1, chunks: 2, microbatch: 1, group: None };
        let limit = Bytes::new(u64::MAX);
        for (group, size) in [(None, 2), (Some(4), 4)] {
            let layout = Layout { group, ..layout };
            let order = |kind| Fixed { kind }.schedule(layout, 8, limit, PipelineCosts::default).unwrap();
            let zero_bubble = order(PlannerKind::InterleavedZeroBubble);
            assert_eq!(zero_bubble, interleaved_zero_bubble(2, 2, 8, Grouping::Fixed(size)), "{group:?}");
            assert_eq!(order(PlannerKind::Interleaved), interleaved(2, 2, 8, Grouping::Fixed(size)), "{group:?}");
        }
        // Schedules without groups ignore the setting.
        let layout = Layout { chunks: 1, group: Some(4), ..layout };
        assert!(
            Fixed { kind: PlannerKind::ZbH1 }
                .schedule(layout, 8, limit, || PipelineCosts::uniform(2, 1, 8, UniformTimes::default()))
                .is_ok()
        );
    }

    /// Orders of three, three and two microbatches follow each other on each rank.
    #[test]
    fn pipelines_are_flushed_several_times_per_step() {
        let uniform = r#"{"schema": "scenario/1", "model": {"preset": "llama-3-8b"}, "cluster": {"preset": "h100", "nodes": 1},
            "workload": {"samples": {"kind": "drawn", "text_tokens": {"kind": "constant", "value": 4096}}, "global_batch": 16,
            "context_length": 4096, "packing": "padded"}, "planners": ["1f1b"]}"#;
        let mut scenario = planscope_plan::scenario::parse(uniform).unwrap();
        let layout = Layout { tensor: 1, pipeline: 4, data: 2, chunks: 1, microbatch: 1, group: None };
        let costs = PipelineCosts::uniform(4, 1, 8, UniformTimes::default());
        let order = |scenario: &Scenario, kind| Fixed { kind }.order(scenario, layout, 8, || costs.clone());
        let whole = order(&scenario, PlannerKind::OneFOneB).unwrap();
        scenario.training.microbatches_per_flush = Some(8);
        assert_eq!(order(&scenario, PlannerKind::OneFOneB).unwrap(), whole);
        scenario.training.microbatches_per_flush = Some(3);
        let rounds = order(&scenario, PlannerKind::OneFOneB).unwrap();
        let (three, two) = (one_f_one_b(4, 3), one_f_one_b(4, 2));
        for rank in 0..4 {
            let numbers = |schedule: &Schedule, first: u32| -> Vec<_> {
                schedule.orders[rank].iter().map(|action| (action.kind, first + action.microbatch)).collect()
            };
            assert_eq!(numbers(&rounds, 0), [numbers(&three, 0), numbers(&three, 3), numbers(&two, 6)].concat());
        }
        assert!(order(&scenario, PlannerKind::ZbH1).is_err());
    }
}
