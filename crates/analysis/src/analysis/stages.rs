//! Stage time variation between microbatches, its effect on the bubble, and stage throughput.
//!
//! Reproduces DFLOP Fig. 4, 13 and 14 for any set of plans. Stage times of a module vary if
//! microbatches contain different work. With equal microbatches, a pipeline idles for (p - 1) / (v
//! m + p - 1) of the time; variation causes the excess. Stage throughput is model FLOPs divided by
//! compute time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use planscope_core::model::Model;
use planscope_core::timeline::{SpanKind, Timeline};
use planscope_plan::outcome::{Outcome, PlanOutcome, Planned};
use planscope_plan::scenario::PlannerKind;

/// Limit on stored durations per module, evenly thinned in ascending order.
const MAX_DURATIONS: usize = 400;

/// Stages of several plans in an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StageAnalysis {
    /// Iteration, from 0.
    pub iteration: u32,
    /// Pipeline plans in ascending time order.
    pub plans: Vec<PlanStages>,
}

/// Stages of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanStages {
    /// Planner.
    pub planner: PlannerKind,
    /// Idle time divided by (ranks x time) in the iteration.
    pub bubble: f64,
    /// Bubble with equal stage times, (p - 1) / (v m + p - 1); omitted if modules share devices,
    /// because the formula does not apply.
    pub ideal_bubble: Option<f64>,
    /// Ranks on a microbatch's path, p.
    pub depth: u32,
    /// Microbatches per pipeline, m.
    pub microbatches: u32,
    /// Durations by the modules on a stage.
    pub modules: Vec<ModuleDurations>,
    /// Throughput per stage, across all iterations.
    pub rates: Vec<StageRate>,
}

/// Stage durations per module in an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModuleDurations {
    /// Module name, or of several modules whose layers share a stage.
    pub module: String,
    /// Forward plus backward time per microbatch and stage, in s, ascending; at most 400 values,
    /// evenly thinned.
    pub durations_s: Vec<f64>,
    /// Number of durations before thinning.
    pub count: u64,
    /// Mean duration in s.
    pub mean_s: f64,
    /// Standard deviation divided by the mean.
    pub variation: f64,
}

/// Throughput of a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StageRate {
    /// Stage number.
    pub stage: u32,
    /// Layers in the stage.
    pub layers: String,
    /// Model FLOPs divided by forward plus backward time, in TFLOP/s per device.
    pub tflops_per_device: f64,
}

/// Analyses the stages of all plans that have a timeline for the iteration. Plans with
/// context-parallel groups have no stages.
pub fn stages(
    model: &Model,
    outcome: &Outcome,
    iteration: u32,
    timelines: &[(PlannerKind, Timeline)],
) -> StageAnalysis {
    let plan = |result: &planscope_plan::outcome::PlannerResult| {
        let PlanOutcome::Planned(planned) = &result.answer else { return None };
        let (_, timeline) = timelines.iter().find(|(planner, _)| *planner == result.planner)?;
        if timeline.is_grouped() || planned.iterations.get(iteration as usize)?.strategy.is_some() {
            return None;
        }
        plan_stages(model, result.planner, planned, iteration, timeline)
    };
    StageAnalysis { iteration, plans: outcome.results.iter().filter_map(plan).collect() }
}

fn plan_stages(
    model: &Model,
    planner: PlannerKind,
    planned: &Planned,
    iteration: u32,
    timeline: &Timeline,
) -> Option<PlanStages> {
    let metrics = planned.iterations.get(iteration as usize)?;
    let rate = |stage: &planscope_plan::outcome::StageSummary| {
        let tflops_per_device = stage.tflops_per_device?;
        Some(StageRate { stage: stage.stage, layers: stage.layers.clone(), tflops_per_device })
    };
    let (depth, is_shared) = depth(planned);
    // Copies on different ranks split the iteration's microbatches; in other plans, `microbatches`
    // is already per replica.
    let copies =
        planned.placement.as_ref().and_then(|placement| placement.layouts.last()).map_or(1, |layout| layout.data);
    let microbatches = metrics.microbatches.div_ceil(copies.max(1));
    let rounds = f64::from(planned.layout.chunks.max(1)) * f64::from(microbatches);
    let steps = f64::from(depth.saturating_sub(1));
    Some(PlanStages {
        planner,
        bubble: metrics.bubble,
        ideal_bubble: (!is_shared && rounds > 0.0).then(|| steps / (rounds + steps)),
        depth,
        microbatches,
        modules: durations(model, planned, timeline),
        rates: planned.stages.iter().filter_map(rate).collect(),
    })
}

/// Returns the number of ranks on a microbatch's path, and true if modules with separate layouts
/// share devices.
fn depth(planned: &Planned) -> (u32, bool) {
    planned.placement.as_ref().map_or((planned.layout.pipeline, false), |placement| {
        let is_shared = placement.layouts.iter().any(|layout| layout.colocated);
        (placement.layouts.iter().map(|layout| layout.pipeline).sum(), is_shared)
    })
}

fn durations(model: &Model, planned: &Planned, timeline: &Timeline) -> Vec<ModuleDurations> {
    let mut by_cell: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for rank in 0..timeline.ranks as usize {
        for span in timeline.compute_lane(rank) {
            if SpanKind::from_index(timeline.kind[span]).is_some_and(is_work) {
                let cell = (timeline.stage[span], timeline.microbatch[span]);
                *by_cell.entry(cell).or_default() += timeline.duration_ns[span];
            }
        }
    }
    let mut by_modules: BTreeMap<&[u32], Vec<f64>> = BTreeMap::new();
    for ((stage, _), nanoseconds) in by_cell {
        let modules = planned.stages.get(stage as usize).map_or(&[][..], |stage| &stage.modules);
        by_modules.entry(modules).or_default().push(nanoseconds as f64 * 1e-9);
    }
    let named = by_modules.into_iter().filter(|(modules, _)| !modules.is_empty());
    named.map(|(modules, durations)| spread(name(model, modules), durations)).collect()
}

const fn is_work(kind: SpanKind) -> bool {
    matches!(kind, SpanKind::Forward | SpanKind::Backward | SpanKind::InputGrad | SpanKind::WeightGrad)
}

fn name(model: &Model, modules: &[u32]) -> String {
    let names: Vec<&str> = modules
        .iter()
        .filter_map(|&module| model.modules.get(module as usize))
        .map(|module| module.name.as_str())
        .collect();
    names.join(" + ")
}

fn spread(module: String, mut durations: Vec<f64>) -> ModuleDurations {
    durations.sort_by(f64::total_cmp);
    let count = durations.len();
    let mean = durations.iter().sum::<f64>() / count.max(1) as f64;
    let variance = durations.iter().map(|time| (time - mean) * (time - mean)).sum::<f64>() / count.max(1) as f64;
    let selected = if count <= MAX_DURATIONS {
        durations
    } else {
        (0..MAX_DURATIONS).map(|index| durations[index * (count - 1) / (MAX_DURATIONS - 1)]).collect()
    };
    ModuleDurations {
        module,
        durations_s: selected,
        count: count as u64,
        mean_s: mean,
        variation: if mean > 0.0 { variance.sqrt() / mean } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 1 and 4 s: mean 2, deviation sqrt((1 + 1 + 4) / 3) = sqrt 2.
    #[test]
    fn spread_is_the_deviation_over_the_mean() {
        let spread = spread("LLM".to_owned(), vec![4.0, 1.0, 1.0]);
        assert_eq!(spread.durations_s, [1.0, 1.0, 4.0]);
        assert!((spread.mean_s - 2.0).abs() < 1e-12 && (spread.variation - 2.0_f64.sqrt() / 2.0).abs() < 1e-12);
    }

    #[test]
    fn thinning_keeps_the_ends() {
        let spread = spread("LLM".to_owned(), (0..1000).map(f64::from).collect());
        assert_eq!(spread.durations_s.len(), MAX_DURATIONS);
        assert_eq!((spread.durations_s[0], spread.durations_s[MAX_DURATIONS - 1]), (0.0, 999.0));
        assert_eq!(spread.count, 1000);
    }
}
