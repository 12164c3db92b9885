//! Settings close to given ones: one or two settings differ.

use crate::planners::setting_choices;
use planscope_core::training::Recompute;
use planscope_core::workload::Packing;
use planscope_plan::scenario::{FreeSetting, PlanSettings, Scenario};

/// Steps of the offloaded shares. A small step can free too little memory for another microbatch size or schedule. The
/// optimizer on the host costs more time per byte than activations, so it has a smaller step.
const ACTIVATION_STEPS: [f64; 2] = [0.125, 0.5];
const OPTIMIZER_STEPS: [f64; 3] = [1.0 / 32.0, 0.125, 0.5];

/// Settings that differ from `base` in one free setting, then those that also differ in another one: a change that
/// saves time can need memory, which the other saves.
pub(super) fn neighbours(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let single = changes(scenario, base);
    let mut all = single.clone();
    for first in single.into_iter().filter(|first| !only_saves_memory(base, *first)) {
        all.extend(memory_changes(scenario, first).into_iter().filter(|second| only_saves_memory(first, *second)));
    }
    let mut distinct: Vec<PlanSettings> = Vec::with_capacity(all.len());
    for settings in all {
        if settings != base && !distinct.contains(&settings) {
            distinct.push(settings);
        }
    }
    distinct
}

/// Returns whether `to` differs from `from` only in settings that exchange time for memory, none of which needs more
/// memory.
fn only_saves_memory(from: PlanSettings, to: PlanSettings) -> bool {
    let has_equal_degrees = PlanSettings {
        recompute: from.recompute,
        recompute_layers: from.recompute_layers,
        recompute_modules: from.recompute_modules,
        activation_offload: from.activation_offload,
        optimizer_offload: from.optimizer_offload,
        zero: from.zero,
        ..to
    } == from;
    let recomputed = |settings: PlanSettings| match settings.recompute {
        Recompute::None => (0, 0),
        Recompute::Selective | Recompute::Operators => (1, settings.recompute_modules.iter().count() as u32),
        Recompute::Full => (2, settings.recompute_layers.unwrap_or(u32::MAX)),
    };
    has_equal_degrees
        && recomputed(to) >= recomputed(from)
        && to.activation_offload >= from.activation_offload
        && to.optimizer_offload >= from.optimizer_offload
        && to.zero >= from.zero
}

/// One changed setting, or offload instead of recomputation.
fn changes(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    // Planners with few steps try these first.
    let mut all = degree_changes(scenario, base);
    all.extend(memory_changes(scenario, base));
    all.extend(exchanges(scenario, base));
    if setting_choices::chooses_sequence_parallelism(scenario) {
        let own = scenario.training.sequence_parallel;
        let other = if base.sequence_parallel.unwrap_or(own) == own { Some(!own) } else { None };
        all.push(PlanSettings { sequence_parallel: other, ..base });
    }
    if scenario.is_free(FreeSetting::Packing) {
        let own = scenario.workload.packing;
        let packing = if base.packing == Packing::Packed { own } else { Packing::Packed };
        all.push(PlanSettings { packing, ..base });
    }
    all
}

/// Offload instead of recomputation, and the reverse. Smaller steps pass settings that need more memory.
fn exchanges(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    if !scenario.is_free(FreeSetting::Recompute) || !scenario.is_free(FreeSetting::ActivationOffload) {
        return Vec::new();
    }
    if base.activation_offload > 0.0 {
        return modules(scenario, PlanSettings { activation_offload: 0.0, ..base }).collect();
    }
    let shares = [0.25, 0.5, 0.75].into_iter().filter(|_| base.recompute != Recompute::None);
    let without = base.with_recompute(Recompute::None, None);
    shares.map(|activation_offload| PlanSettings { activation_offload, ..without }).collect()
}

/// Changed degrees: half and twice the degree, and the other exchange.
fn degree_changes(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let is_near = |degree: u32, own: u32| degree == own || 2 * degree == own || degree == 2 * own;
    let contexts = setting_choices::contexts(scenario).into_iter();
    let mut all: Vec<PlanSettings> = contexts
        .filter(|&(degree, _)| is_near(degree, base.context_parallel))
        .map(|(context_parallel, context_exchange)| PlanSettings { context_parallel, context_exchange, ..base })
        .collect();
    let experts = setting_choices::expert_degrees(scenario).into_iter();
    let near = experts.filter(|&degree| is_near(degree, base.expert_parallel));
    all.extend(near.map(|expert_parallel| PlanSettings { expert_parallel, ..base }));
    let tensors = setting_choices::expert_tensor_degrees(scenario).into_iter();
    all.extend(tensors.map(|expert_tensor_parallel| PlanSettings { expert_tensor_parallel, ..base }));
    all
}

/// Shares one step below and above.
fn near(share: f64, steps: &[f64]) -> Vec<f64> {
    let shares = steps.iter().flat_map(|step| [share - step, share + step]).map(|near| near.clamp(0.0, 1.0));
    shares.filter(|near| near.total_cmp(&share).is_ne()).collect()
}

/// Changed settings that exchange time for memory.
fn memory_changes(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let mut all = Vec::new();
    if scenario.is_free(FreeSetting::Recompute) {
        all.extend(recomputations(scenario, base));
    }
    if scenario.is_free(FreeSetting::OptimizerOffload) {
        let shares = near(base.optimizer_offload, &OPTIMIZER_STEPS).into_iter();
        all.extend(shares.map(|optimizer_offload| PlanSettings { optimizer_offload, ..base }));
    }
    if scenario.is_free(FreeSetting::ActivationOffload) {
        let shares = near(base.activation_offload, &ACTIVATION_STEPS).into_iter();
        all.extend(shares.map(|activation_offload| PlanSettings { activation_offload, ..base }));
    }
    if scenario.is_free(FreeSetting::Zero) {
        let possible = setting_choices::zero_stages(scenario);
        let near = [base.zero.saturating_sub(1), base.zero + 1];
        let stages = near.into_iter().filter(|zero| possible.contains(zero));
        all.extend(stages.map(|zero| PlanSettings { zero, ..base }));
    }
    all
}

/// The next smaller and larger numbers of recomputed layers; from no recomputation, all kinds of it.
fn recomputations(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let layers = scenario.model.layers();
    let full = |count: u32| base.with_recompute(Recompute::Full, (count < layers).then_some(count));
    match (base.recompute, base.recompute_layers) {
        (Recompute::Full, count) => {
            let count = count.unwrap_or(layers);
            let (less, more) = (count - count.div_ceil(4), (count + count.div_ceil(4)).min(layers));
            let mut all: Vec<PlanSettings> = [less, more].into_iter().filter(|&near| near > 0).map(full).collect();
            all.push(base.with_recompute(Recompute::None, None));
            all.extend(modules(scenario, base));
            all
        }
        (Recompute::None | Recompute::Selective | Recompute::Operators, _) => {
            let mut all: Vec<PlanSettings> = vec![base.with_recompute(Recompute::None, None)];
            all.push(base.with_recompute(Recompute::Selective, None));
            all.extend(modules(scenario, base));
            all.extend([1, 2, 4, 8].into_iter().filter(|&count| count < layers).map(full));
            all
        }
    }
}

fn modules(scenario: &Scenario, base: PlanSettings) -> impl Iterator<Item = PlanSettings> {
    PlanSettings::recomputed_modules(scenario).into_iter().map(move |set| base.with_recomputed_modules(set))
}
