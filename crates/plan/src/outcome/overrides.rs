//! Values of a plan that differ from those that its scenario fixes.

use super::{Layout, PlacedModules, Planned};
use crate::scenario::{FreeSetting, PlannerKind, Scenario};

/// Returns a text for each fixed value of the scenario that the plan of `planner` does not have, for example
/// "microbatch 10 (fixed: 1)". The method of such a planner has no place for the value.
pub fn overrides(scenario: &Scenario, planner: PlannerKind, planned: &Planned) -> Vec<String> {
    let planner = planned.source.unwrap_or(planner);
    let Layout { tensor, pipeline, chunks, microbatch, .. } = planned.layout;
    let request = scenario.layout;
    let degrees = [
        ("TP", request.tensor, tensor),
        ("PP", request.pipeline, pipeline),
        ("VPP", request.chunks, chunks),
        ("microbatch", request.microbatch, microbatch),
    ];
    let differs = |(name, fixed, actual): (&str, Option<u32>, u32)| {
        fixed.filter(|&fixed| fixed != actual).map(|fixed| format!("{name} {actual} (fixed: {fixed})"))
    };
    let mut all: Vec<String> = degrees.into_iter().filter_map(differs).collect();
    all.extend(planned.placement.iter().flat_map(|placement| &placement.layouts).flat_map(|one| placed(scenario, one)));
    let is_fixed = |setting| !scenario.is_free(setting);
    if planner.tunes_layers() && is_fixed(FreeSetting::Recompute) {
        all.push("recomputation by layer (fixed for all layers)".to_owned());
    }
    if planner == PlannerKind::DeepSpeed && is_fixed(FreeSetting::Zero) && scenario.training.zero_stage() != 3 {
        all.push(format!("ZeRO 3 (fixed: {})", scenario.training.zero_stage()));
    }
    all.dedup();
    all
}

/// Returns the fixed values that the layout of some modules does not have.
fn placed(scenario: &Scenario, layout: &PlacedModules) -> Vec<String> {
    let training = &scenario.training;
    let setting = |setting, value: u32| (!scenario.is_free(setting)).then_some(value);
    let degrees = [
        ("TP", scenario.layout.tensor, layout.tensor),
        ("PP", scenario.layout.pipeline, layout.pipeline),
        ("CP", setting(FreeSetting::ContextParallel, training.context_parallel), layout.context),
        ("EP", setting(FreeSetting::ExpertParallel, training.expert_parallel), layout.expert),
    ];
    let modules = layout.modules.join(", ");
    let differs = |(name, fixed, actual): (&str, Option<u32>, u32)| {
        fixed.filter(|&fixed| fixed != actual).map(|fixed| format!("{name} {actual} of {modules} (fixed: {fixed})"))
    };
    degrees.into_iter().filter_map(differs).collect()
}
