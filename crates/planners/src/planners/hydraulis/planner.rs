//! Planners of pipelines with schemes of their own: Hydraulis, the steps towards it, and what it is compared with.
//!
//! Each scheme <TP,PP,CP> gets a fitted latency and a longest microbatch from the operator graph ([`profile`]). Hydraulis proposes
//! strategies once, from samples that are not judged, and for every batch assigns the sequences under each of them and runs the
//! one that ends first ([`crate::planners::hydraulis`]). Static planners and HotSPa choose among homogeneous strategies by
//! simulating the sizing batch. The simulator judges all of them by the graph itself.

mod baselines;
mod dealing;
mod dynamic;
mod profile;
mod rebalance;
mod words;

use crate::planners::executed::{TestedPlan, fits};
use crate::planners::hydraulis::pipeline_costs::{costs, stagger, step_end};
use crate::planners::{NoPlan, PlanningContext, SearchError};
use planscope_core::units::Bytes;
use planscope_core::workload::{PackedBatch, Packing};
use planscope_pipeline::simulate::{execute, peak_memory_over};
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::{Layout, Search, SolverStatus};
use planscope_plan::plan::OptimizerSharding;
use planscope_plan::plan::{IterationPlan, Plan, ReplicaPlan};
use planscope_plan::scenario::{PlannerKind, Scenario};

use profile::{Profile, Profiled};

/// Limit on MaxLen reductions, used when simulated memory exceeds the profile's estimate.
const MAX_TIGHTENINGS: u32 = 6;
/// Factor per MaxLen reduction.
const TIGHTENED: f64 = 0.96;

/// State of a planner.
struct Setting<'a> {
    context: PlanningContext<'a>,
    schemes: Vec<Profiled>,
    optimizer: OptimizerSharding,
    /// Maximum sequence length in tokens across all batches.
    max_length: u64,
    parameters: f64,
    tightenings: u32,
}

/// Iteration plans of a planner, before the memory check.
struct Draft {
    iterations: Vec<IterationPlan>,
    decisions: Vec<String>,
    search: Search,
}

pub(crate) fn plan(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
) -> Result<TestedPlan, SearchError<NoPlan>> {
    if let Some(binding) = does_not_apply(context.scenario, context.planner) {
        return Err(NoPlan::inapplicable(binding).into());
    }
    let mut setting = Setting::new(context)?;
    loop {
        go_on(observer)?;
        let draft = match context.planner {
            PlannerKind::HydraulisStatic | PlannerKind::Hydraulis => dynamic::plan(&setting, observer)?,
            _ => baselines::plan(&setting, observer)?,
        };
        let plan = setting.finish(draft);
        let search = plan.search.clone();
        let misfit = match fits(context, plan, observer) {
            Ok(tested) => return Ok(tested),
            Err(error) => error.reason()?,
        };
        if setting.tightenings == MAX_TIGHTENINGS {
            return Err(NoPlan { binding: misfit.reason, search }.into());
        }
        setting.tighten();
    }
}

/// Returns an explanation if the planner does not apply to the scenario.
fn does_not_apply(scenario: &Scenario, kind: PlannerKind) -> Option<String> {
    let training = &scenario.training;
    let why = if scenario.model.modules.len() > 1 {
        "with several modules, the length of a sequence does not determine its cost"
    } else if scenario.model.backbone().is_none() {
        "its sequences are text, and the model has no language model"
    } else if scenario.workload.packing != Packing::Single {
        "it packs the samples itself, so each sample must be one sequence (packing \"single\")"
    } else if training.context_parallel > 1 {
        "it chooses the context-parallel degree of every pipeline, so the setting must be 1"
    } else if training.expert_parallel > 1 {
        "pipelines of variable degree do not allow fixed expert-parallel groups"
    } else if kind != PlannerKind::StaticStrategy && training.zero_stage() > 1 {
        "the optimizer's state is sharded over all devices, weights and gradients are not, so ZeRO must be 1"
    } else if kind != PlannerKind::StaticStrategy && training.shard_degree.is_some() {
        "the optimizer's state is sharded over all devices, so hybrid sharding (shard_degree) must not be set"
    } else if scenario.layout.chunks.is_some_and(|chunks| chunks > 1) {
        "its pipelines have no virtual stages"
    } else {
        return None;
    };
    Some(format!("does not apply: {why}"))
}

impl<'a> Setting<'a> {
    fn new(context: PlanningContext<'a>) -> Result<Self, NoPlan> {
        let PlanningContext { scenario, pricing, planner: kind, batches, .. } = context;
        let optimizer = match kind {
            PlannerKind::StaticStrategy => OptimizerSharding::Replicas,
            _ => OptimizerSharding::AllDevices,
        };
        let all = batches.survey.iter().chain([batches.sizing]).chain(batches.evaluated);
        let max_length = all.flat_map(lengths).max().unwrap_or(1);
        let Profile { schemes, too_large, min_states, parameters } =
            profile::profile(scenario, pricing, optimizer, max_length);
        let looked_at = schemes.len() as u32 + too_large;
        let search = Search { candidates: looked_at, rejected: too_large, ..Search::default() };
        let none = |binding: String| NoPlan { binding, search: search.clone() };
        let Some(roomiest) = schemes.iter().max_by_key(|known| (known.cost.max_len, std::cmp::Reverse(known.scheme)))
        else {
            let binding = min_states.map_or_else(
                || "no scheme divides the devices, layers and heads".to_owned(),
                |(states, scheme)| {
                    let (states, limit) = (states.gib(), scenario.memory_limit().gib());
                    format!(
                        "weights, gradients and optimizer state need {states:.1} GiB even at {scheme}; {limit:.1} GiB available"
                    )
                },
            );
            return Err(none(binding));
        };
        if roomiest.cost.max_len < max_length {
            let (scheme, max_tokens) = (roomiest.scheme, roomiest.cost.max_len);
            return Err(none(format!(
                "the longest sequence has {max_length} tokens; the scheme with the most memory, {scheme}, fits {max_tokens}"
            )));
        }
        Ok(Self { context, schemes, optimizer, max_length, parameters, tightenings: 0 })
    }

    /// Reduces MaxLen by one step.
    fn tighten(&mut self) {
        self.tightenings += 1;
        for known in &mut self.schemes {
            // Do not skip the maximum sequence length: a scheme that supports it keeps this support
            // for one more step.
            let less = (known.cost.max_len as f64 * TIGHTENED) as u64;
            known.cost.max_len = if known.cost.max_len > self.max_length { less.max(self.max_length) } else { less };
            known.cost.util_len = known.cost.util_len.min(known.cost.max_len);
        }
        self.schemes.retain(|known| known.cost.max_len > 0);
    }

    /// Returns the iteration end in seconds and the highest peak memory per rank.
    fn simulate(&self, batch: &PackedBatch, replica: &ReplicaPlan) -> Option<(f64, Bytes)> {
        let strategy = replica.strategy()?;
        let costs = costs(self.context.scenario, self.context.pricing, batch, replica, strategy);
        let mut execution = execute(&replica.schedule, &costs).ok()?;
        stagger(strategy, &costs, &mut execution);
        let end = step_end(strategy, &execution).iteration_end(&costs);
        Some((end.secs(), peak_memory_over(&replica.schedule, &execution, &costs).1))
    }

    /// Pipelines of a scheme that fit on all devices.
    fn copies(&self, scheme: &Profiled) -> u32 {
        self.context.scenario.cluster.devices() / scheme.scheme.devices()
    }

    fn finish(&self, draft: Draft) -> Plan {
        let replicas = || draft.iterations.iter().flat_map(|iteration| &iteration.replicas);
        let widest =
            replicas().filter_map(|replica| replica.strategy()?.pipelines.first()).max_by_key(|first| first.scheme);
        let (tensor, pipeline) = widest.map_or((1, 1), |first| (first.scheme.tensor, first.scheme.pipeline));
        let data = replicas().filter_map(ReplicaPlan::strategy).map(|strategy| strategy.pipelines.len()).max();
        let microbatch = replicas().flat_map(|replica| &replica.microbatches).map(Vec::len).max();
        Plan {
            modules: Vec::new(),
            layout: Layout {
                tensor,
                pipeline,
                data: data.unwrap_or(1) as u32,
                chunks: 1,
                microbatch: microbatch.unwrap_or(1) as u32,
                group: None,
            },
            partition: crate::planners::dhp::group_costs::single_stage_partition(&self.context.scenario.model),
            algorithm: words::algorithm(self.context.planner).to_owned(),
            status: SolverStatus::Heuristic,
            iterations: draft.iterations,
            decisions: draft.decisions,
            search: draft.search,
        }
    }
}

/// Token count per sequence.
fn lengths(batch: &PackedBatch) -> Vec<u64> {
    batch.sequences.iter().map(|sequence| u64::from(sequence.computed_tokens.max(1))).collect()
}

#[cfg(test)]
mod tests;
