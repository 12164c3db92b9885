//! Breakdown of time and memory by stage and rank.

use planscope_core::action::{ActionKind, Schedule};
use planscope_core::model::Model;
use planscope_core::units::Nanos;
use planscope_cost::cost::PipelineCosts;
use planscope_cost::cost::partition::LayerRange;
use planscope_cost::cost::pipeline::Cell;
use planscope_pipeline::simulate::{Execution, peak_composition};
use planscope_plan::outcome::{RankMemory, RankSummary, RankTime, StageSummary};
use planscope_plan::plan::Arrangement;
use planscope_plan::plan::Plan;

use super::contents;

/// Stage times in seconds, summed across all microbatches in the run.
pub(crate) struct StageTimes {
    stages: Vec<StageTotals>,
}

#[derive(Clone, Copy, Default)]
struct StageTotals {
    /// Microbatches processed so far.
    visits: u32,
    forward: f64,
    backward: f64,
    recompute: f64,
    exposed: f64,
    communication: f64,
    /// Model FLOPs.
    flops: f64,
}

impl StageTimes {
    pub(crate) fn new(stages: usize) -> Self {
        Self { stages: vec![StageTotals::default(); stages] }
    }

    /// Adds the costs of `count` equal replicas.
    pub(crate) fn add(&mut self, costs: &PipelineCosts, count: u32) {
        let together = costs.flows.gangs() > 0;
        // Context-parallel ranks all run the same single stage.
        self.add_as(costs, &|stage| if together { 0 } else { stage }, count);
    }

    /// Adds the model FLOPs per stage of `count` equal replicas.
    pub(crate) fn add_flops(&mut self, flops: &[f64], count: u32) {
        for (totals, flops) in self.stages.iter_mut().zip(flops) {
            totals.flops += flops * f64::from(count);
        }
    }

    /// Adds the costs per stage of `count` equal replicas to the totals at index `slot(stage)`.
    pub(crate) fn add_as(&mut self, costs: &PipelineCosts, slot: &dyn Fn(usize) -> usize, count: u32) {
        let times = f64::from(count);
        for Cell { index, stage, .. } in costs.cells() {
            let at = slot(stage);
            if at >= self.stages.len() {
                self.stages.resize(at + 1, StageTotals::default());
            }
            let totals = &mut self.stages[at];
            totals.visits += count;
            totals.forward += times * costs.forward[index].secs();
            totals.backward += times * costs.backward(index).secs();
            totals.recompute += times * costs.recomputed[index].secs();
            totals.exposed += times * (costs.exposed_forward[index].secs() + costs.exposed_backward[index].secs());
            totals.communication += times * costs.communication[index].secs();
        }
    }

    /// Returns one summary per stage, or per stage and copy for separate module layouts. `context`
    /// is the context-parallel degree of plans with a single layout.
    pub(crate) fn summaries(
        &self,
        plan: &Plan,
        arrangement: Option<&Arrangement>,
        model: &Model,
        context: u32,
    ) -> Vec<StageSummary> {
        let summary = |stage: usize| {
            let ranges = &plan.partition.stages[arrangement.map_or(stage, |arranged| arranged.cut[stage] as usize)];
            let rank = || plan.partition.placement.rank_for_stage(stage, plan.layout.pipeline as usize) as u32;
            let rank = arrangement.map_or_else(rank, |arranged| arranged.stage_rank[stage]);
            let devices =
                arrangement.map_or(plan.layout.tensor * context, |arranged| arranged.ranks[rank as usize].len() as u32);
            let totals = &self.stages[stage];
            let device_seconds = (totals.forward + totals.backward) * f64::from(devices);
            let has_rate = totals.flops > 0.0 && device_seconds > 0.0;
            StageSummary {
                tflops_per_device: has_rate.then(|| totals.flops / device_seconds / 1e12),
                ..self.summary(stage, rank, ranges, model)
            }
        };
        (0..self.stages.len()).map(summary).collect()
    }

    /// Returns the summary for a stage that contains the layers `ranges`.
    pub(crate) fn summary(&self, index: usize, rank: u32, ranges: &[LayerRange], model: &Model) -> StageSummary {
        let names = ranges.iter().map(|range| {
            if range.is_empty() {
                return match (range.begins(), range.ends(model)) {
                    (true, _) => "embedding".to_owned(),
                    (false, true) => "output head".to_owned(),
                    (false, false) => "no layers".to_owned(),
                };
            }
            format!("{} {}-{}", model.modules[range.module].name, range.first, range.end.saturating_sub(1))
        });
        let totals = self.stages.get(index).copied().unwrap_or_default();
        let milliseconds = 1e3 / f64::from(totals.visits.max(1));
        let compute = totals.forward + totals.backward - totals.recompute - totals.exposed;
        StageSummary {
            stage: index as u32,
            rank,
            layers: names.collect::<Vec<_>>().join(", "),
            forward_ms: milliseconds * totals.forward,
            backward_ms: milliseconds * totals.backward,
            compute_ms: milliseconds * compute.max(0.0),
            recompute_ms: milliseconds * totals.recompute,
            exposed_ms: milliseconds * totals.exposed,
            communication_ms: milliseconds * totals.communication,
            modules: ranges.iter().map(|range| range.module as u32).collect(),
            ranges: ranges.iter().map(contents::layers).collect(),
            tflops_per_device: None,
        }
    }
}

/// Sums across replicas and iterations per rank.
pub(crate) struct RankTotals {
    ranks: Vec<(RankTime, RankMemory)>,
    runs: usize,
}

impl RankTotals {
    pub(crate) fn new(ranks: usize) -> Self {
        Self { ranks: vec![Default::default(); ranks], runs: 0 }
    }

    /// Adds `count` equal replicas from an iteration of duration `time`.
    pub(crate) fn add(
        &mut self,
        schedule: &Schedule,
        execution: &Execution,
        costs: &PipelineCosts,
        time: Nanos,
        count: u32,
    ) {
        self.runs += count as usize;
        let weight = f64::from(count);
        for (rank, (sum, memory)) in self.ranks.iter_mut().enumerate() {
            let times = rank_time(rank, schedule, costs, time);
            sum.compute_s += weight * times.compute_s;
            sum.recompute_s += weight * times.recompute_s;
            sum.exposed_s += weight * times.exposed_s;
            sum.sync_s += weight * times.sync_s;
            sum.optimizer_s += weight * times.optimizer_s;
            sum.bubble_s += weight * times.bubble_s;
            let peak = rank_memory(rank, schedule, execution, costs);
            if peak.resident_gib() > memory.resident_gib() {
                *memory = peak;
            }
        }
    }

    pub(crate) fn summaries(&self, reserve_gib: f64) -> Vec<RankSummary> {
        let share = 1.0 / self.runs.max(1) as f64;
        let summary = |(rank, (time, memory)): (usize, &(RankTime, RankMemory))| RankSummary {
            rank: rank as u32,
            time: RankTime {
                compute_s: time.compute_s * share,
                recompute_s: time.recompute_s * share,
                exposed_s: time.exposed_s * share,
                sync_s: time.sync_s * share,
                optimizer_s: time.optimizer_s * share,
                bubble_s: time.bubble_s * share,
            },
            memory: RankMemory { reserve_gib, ..*memory },
        };
        self.ranks.iter().enumerate().map(summary).collect()
    }
}

pub(crate) fn rank_time(rank: usize, schedule: &Schedule, costs: &PipelineCosts, time: Nanos) -> RankTime {
    let (mut compute, mut exposed, mut recompute) = (0.0, 0.0, 0.0);
    for action in &schedule.orders[rank] {
        let cell = costs.cell(action.stage as usize, action.microbatch as usize);
        match action.kind {
            ActionKind::Forward => {
                compute += costs.forward[cell].secs();
                exposed += costs.exposed_forward[cell].secs();
            }
            ActionKind::Backward | ActionKind::InputGrad => {
                compute += costs.input_grad[cell].secs();
                exposed += costs.exposed_backward[cell].secs();
                recompute += costs.recomputed[cell].secs();
            }
            ActionKind::WeightGrad => {}
        }
        if matches!(action.kind, ActionKind::Backward | ActionKind::WeightGrad) {
            compute += costs.weight_grad[cell].secs();
        }
    }
    let (sync, optimizer) = (costs.sync[rank].secs(), costs.optimizer[rank].secs());
    RankTime {
        compute_s: (compute - exposed - recompute).max(0.0),
        recompute_s: recompute,
        exposed_s: exposed,
        sync_s: sync,
        optimizer_s: optimizer,
        bubble_s: (time.secs() - compute - sync - optimizer).max(0.0),
    }
}

pub(crate) fn rank_memory(
    rank: usize,
    schedule: &Schedule,
    execution: &Execution,
    costs: &PipelineCosts,
) -> RankMemory {
    let peak = peak_composition(rank, schedule, execution, costs);
    let state = costs.state[rank];
    RankMemory {
        weights_gib: state.weights.gib(),
        gradients_gib: state.gradients.gib(),
        optimizer_gib: state.optimizer.gib(),
        activations_gib: peak.activations.gib(),
        temporary_gib: peak.temporary.gib(),
        reserve_gib: 0.0,
        in_flight: peak.in_flight,
        at_s: peak.at.secs(),
    }
}
