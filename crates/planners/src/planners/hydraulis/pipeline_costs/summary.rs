//! Summary for iterations with pipeline schemes.

use super::exchange::Traffic;
use super::pipeline_costs;
use crate::planners::breakdown::{StageTimes, rank_memory, rank_time};
use planscope_core::action::Schedule;
use planscope_core::model::Model;
use planscope_core::units::{Bytes, Nanos};
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::{MicrobatchLoad, Partition, PipelineCosts, Pricing};
use planscope_pipeline::simulate::Execution;
use planscope_plan::outcome::{IterationStrategy, PipelineSummary, RankMemory, RankSummary, RankTime, StageSummary};
use planscope_plan::plan::ReplicaPlan;
use planscope_plan::plan::{OptimizerSharding, Scheme, Strategy};
use planscope_plan::scenario::Scenario;

/// Summarises an iteration. `known` contains the labels of all strategies so far, in order of first
/// use.
pub(crate) fn iteration_strategy(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    batch: &PackedBatch,
    (plan, strategy): (&ReplicaPlan, &Strategy),
    execution: &Execution,
    known: &mut Vec<String>,
) -> IterationStrategy {
    let label = strategy.label();
    let number = known.iter().position(|other| *other == label).unwrap_or_else(|| {
        known.push(label.clone());
        known.len() - 1
    });
    let ends: Vec<Nanos> = (0..strategy.ranks()).map(|rank| execution.rank_end(rank)).collect();
    let begin = |phase: u32| {
        let ranks = strategy.spans().filter(|(pipeline, ..)| pipeline.phase == phase).flat_map(|(_, ranks, _)| ranks);
        ranks.filter_map(|rank| execution.start[rank].first().copied()).min().unwrap_or(Nanos::ZERO)
    };
    let begins: Vec<Nanos> = (0..strategy.phases()).map(begin).collect();
    let pipelines = strategy.spans().map(|(pipeline, ranks, microbatches)| {
        let lists = &plan.microbatches[microbatches];
        let mut lengths: Vec<u32> =
            lists.iter().flatten().map(|&index| batch.sequences[index as usize].tokens).collect();
        lengths.sort_unstable();
        let end = ranks.clone().map(|rank| ends[rank]).max().unwrap_or(Nanos::ZERO);
        let simulated = if lists.is_empty() { 0.0 } else { end.secs() - begins[pipeline.phase as usize].secs() };
        let Scheme { tensor, pipeline: stages, context } = pipeline.scheme;
        PipelineSummary {
            scheme: pipeline.scheme.to_string(),
            tensor,
            pipeline: stages,
            context,
            first_row: ranks.start as u32,
            first_device: pipeline.first_device,
            devices: pipeline.scheme.devices(),
            phase: pipeline.phase,
            microbatches: pipeline.microbatches,
            sequences: lengths.len() as u32,
            tokens: lengths.iter().map(|&tokens| u64::from(tokens)).sum(),
            shortest: lengths.first().copied().unwrap_or(0),
            median: lengths.get(lengths.len() / 2).copied().unwrap_or(0),
            longest: lengths.last().copied().unwrap_or(0),
            estimated_s: pipeline.estimated_s,
            simulated_s: simulated,
        }
    });
    let pipelines: Vec<PipelineSummary> = pipelines.collect();
    let traffic = (strategy.optimizer == OptimizerSharding::AllDevices).then(|| {
        let loads = super::loads(scenario, batch, &plan.microbatches);
        let tokens: Vec<f64> = loads.iter().map(|load| f64::from(load.shape.tokens)).collect();
        Traffic::new(scenario, strategy, parameters(pricing, strategy, scenario.cluster.devices()), &tokens)
    });
    let gib = |bytes: f64| Bytes::from_f64(bytes).gib();
    let (exposed_s, switch_s) = traffic.as_ref().map_or((0.0, 0.0), Traffic::seconds);
    IterationStrategy {
        label,
        number: number as u32,
        estimated_s: strategy.estimated_s,
        propagation_s: ends.into_iter().max().unwrap_or(Nanos::ZERO).secs(),
        pull_gib: traffic.as_ref().map_or(0.0, |traffic| gib(traffic.pull)),
        push_gib: traffic.as_ref().map_or(0.0, |traffic| gib(traffic.push)),
        exposed_s,
        switch_s,
        switch_gib: traffic.as_ref().map_or(0.0, |traffic| gib(traffic.switched)),
        idle_devices: idle_devices(strategy, scenario.cluster.devices()),
        pipelines,
    }
}

/// Model parameters, as counted by the iteration's costs.
fn parameters(pricing: &Pricing<'_>, strategy: &Strategy, devices: u32) -> f64 {
    let model_parameters =
        |pipeline| pipeline_costs(pricing, pipeline, &[] as &[MicrobatchLoad], strategy.optimizer, devices).1;
    strategy.pipelines.iter().map(model_parameters).fold(0.0, f64::max)
}

/// Devices without a pipeline in any phase.
fn idle_devices(strategy: &Strategy, devices: u32) -> u32 {
    let mut used = vec![false; devices as usize];
    for pipeline in &strategy.pipelines {
        for device in (0..pipeline.scheme.pipeline).flat_map(|stage| pipeline.stage_device_range(stage)) {
            used[device as usize] = true;
        }
    }
    used.into_iter().filter(|used| !used).count() as u32
}

/// Totals across iterations per device. Devices with identical work are merged.
pub(crate) struct DeviceTotals {
    devices: Vec<(RankTime, RankMemory)>,
    /// True if the device always has the same work as its predecessor.
    joined: Vec<bool>,
    runs: usize,
}

impl DeviceTotals {
    pub(crate) fn new(devices: u32) -> Self {
        let count = devices as usize;
        Self { devices: vec![Default::default(); count], joined: vec![true; count], runs: 0 }
    }

    /// Adds an iteration with duration `time`.
    pub(crate) fn add(
        &mut self,
        strategy: &Strategy,
        schedule: &Schedule,
        execution: &Execution,
        costs: &PipelineCosts,
        time: Nanos,
    ) {
        self.runs += 1;
        let mut active = vec![0.0; self.devices.len()];
        for phase in 0..strategy.phases() {
            let mut rank_by_device = vec![usize::MAX; self.devices.len()];
            for (pipeline, ranks, _) in strategy.spans().filter(|(pipeline, ..)| pipeline.phase == phase) {
                for (stage, rank) in ranks.enumerate() {
                    let times = rank_time(rank, schedule, costs, time);
                    let peak = rank_memory(rank, schedule, execution, costs);
                    for device in pipeline.stage_device_range(stage as u32) {
                        rank_by_device[device as usize] = rank;
                        let (sum, memory) = &mut self.devices[device as usize];
                        sum.compute_s += times.compute_s;
                        sum.recompute_s += times.recompute_s;
                        sum.exposed_s += times.exposed_s;
                        sum.sync_s += times.sync_s;
                        sum.optimizer_s += times.optimizer_s;
                        active[device as usize] += time.secs() - times.bubble_s;
                        if peak.resident_gib() > memory.resident_gib() {
                            *memory = peak;
                        }
                    }
                }
            }
            for device in 1..rank_by_device.len() {
                self.joined[device] &= rank_by_device[device] == rank_by_device[device - 1];
            }
        }
        for (device, active_time) in active.into_iter().enumerate() {
            self.devices[device].0.bubble_s += (time.secs() - active_time).max(0.0);
        }
    }

    pub(crate) fn summaries(&self, reserve_gib: f64) -> Vec<RankSummary> {
        let share = 1.0 / self.runs.max(1) as f64;
        let firsts = (0..self.devices.len()).filter(|&device| device == 0 || !self.joined[device]);
        let summary = |(number, device): (usize, usize)| {
            let (time, memory) = &self.devices[device];
            RankSummary {
                rank: number as u32,
                time: RankTime {
                    compute_s: time.compute_s * share,
                    recompute_s: time.recompute_s * share,
                    exposed_s: time.exposed_s * share,
                    sync_s: time.sync_s * share,
                    optimizer_s: time.optimizer_s * share,
                    bubble_s: time.bubble_s * share,
                },
                memory: RankMemory { reserve_gib, ..*memory },
            }
        };
        firsts.enumerate().map(summary).collect()
    }
}

/// Stage times per scheme in use.
pub(crate) struct SchemeStages {
    schemes: Vec<(Scheme, Partition)>,
    times: StageTimes,
}

impl SchemeStages {
    pub(crate) fn new() -> Self {
        Self { schemes: Vec::new(), times: StageTimes::new(0) }
    }

    pub(crate) fn add(&mut self, strategy: &Strategy, costs: &PipelineCosts) {
        let mut stage_indices = Vec::with_capacity(strategy.ranks());
        for pipeline in &strategy.pipelines {
            let known = self.schemes.iter().position(|(scheme, _)| *scheme == pipeline.scheme);
            let scheme = known.unwrap_or_else(|| {
                self.schemes.push((pipeline.scheme, pipeline.partition.clone()));
                self.schemes.len() - 1
            });
            let before: u32 = self.schemes[..scheme].iter().map(|(scheme, _)| scheme.pipeline).sum();
            stage_indices.extend(before as usize..(before + pipeline.scheme.pipeline) as usize);
        }
        self.times.add_as(costs, &|stage| stage_indices[stage], 1);
    }

    pub(crate) fn summaries(&self, model: &Model) -> Vec<StageSummary> {
        let mut summaries = Vec::new();
        for (scheme, partition) in &self.schemes {
            for (stage, ranges) in partition.stages.iter().enumerate() {
                let number = summaries.len();
                let summary = self.times.summary(number, stage as u32, ranges, model);
                summaries.push(StageSummary { layers: format!("{scheme} {}", summary.layers), ..summary });
            }
        }
        summaries
    }
}
