//! Settings that exchange time for memory, for given degrees.

use crate::planners::setting_choices;
use planscope_core::training::{AttentionKernel, Recompute};
use planscope_plan::scenario::{FreeSetting, PlanSettings, Scenario};

/// Settings between no and full recomputation, and shares of offloaded activations and optimizer states.
pub(super) fn refinements(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let mut refined = Vec::new();
    if scenario.is_free(FreeSetting::Recompute) {
        let counts = PlanSettings::recomputed_layers(scenario.model.layers());
        refined.extend(counts.into_iter().map(|count| base.with_recompute(Recompute::Full, Some(count))));
        let sets = PlanSettings::recomputed_modules(scenario);
        refined.extend(sets.into_iter().map(|modules| base.with_recomputed_modules(modules)));
    }
    if setting_choices::chooses_sequence_parallelism(scenario) {
        let other = PlanSettings { sequence_parallel: Some(!scenario.training.sequence_parallel), ..base };
        refined.push(other);
        if scenario.is_free(FreeSetting::Recompute) {
            refined
                .extend([Recompute::Selective, Recompute::Full].map(|recompute| other.with_recompute(recompute, None)));
        }
    }
    if scenario.is_free(FreeSetting::ActivationOffload) {
        let is_free = scenario.is_free(FreeSetting::Recompute);
        let base = if is_free { base.with_recompute(Recompute::None, None) } else { base };
        let shares = [0.25, 0.5, 0.75, 1.0];
        refined.extend(shares.map(|activation_offload| PlanSettings { activation_offload, ..base }));
    }
    if scenario.is_free(FreeSetting::OptimizerOffload) {
        let offloaded = PlanSettings { optimizer_offload: 1.0, ..base };
        refined.extend([PlanSettings { optimizer_offload: 0.5, ..base }, offloaded]);
        if scenario.is_free(FreeSetting::Recompute) {
            refined.push(offloaded.with_recompute(Recompute::Full, None));
        }
        if scenario.is_free(FreeSetting::ActivationOffload) {
            refined.push(PlanSettings { activation_offload: 1.0, ..offloaded });
        }
    }
    refined
}

/// Combinations of recomputation, offloaded activations and offloaded optimizer states. Each of them alone is among
/// [`refinements`].
pub(super) fn combinations(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let mut combined = Vec::new();
    for recomputed in recomputations(scenario, base) {
        for activations in shares(scenario, FreeSetting::ActivationOffload, base.activation_offload) {
            for optimizer in shares(scenario, FreeSetting::OptimizerOffload, base.optimizer_offload) {
                let kinds = [recomputed.recompute != Recompute::None, activations > 0.0, optimizer > 0.0];
                if kinds.into_iter().filter(|&is_used| is_used).count() >= 2 {
                    combined.push(PlanSettings {
                        activation_offload: activations,
                        optimizer_offload: optimizer,
                        ..recomputed
                    });
                }
            }
        }
    }
    combined
}

/// Offloaded shares that are combined, the smallest first.
fn shares(scenario: &Scenario, setting: FreeSetting, own: f64) -> Vec<f64> {
    match setting {
        _ if !scenario.is_free(setting) => vec![own],
        FreeSetting::ActivationOffload => vec![0.0, 0.25, 0.5, 0.75, 1.0],
        _ => vec![0.0, 0.5, 1.0],
    }
}

/// Recomputation that is combined with offload, the cheapest first.
fn recomputations(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    if !scenario.is_free(FreeSetting::Recompute) {
        return vec![base];
    }
    let mut all = vec![base.with_recompute(Recompute::None, None)];
    // Fused attention stores no scores that selective recomputation saves.
    if scenario.training.attention == AttentionKernel::Unfused {
        all.push(base.with_recompute(Recompute::Selective, None));
    }
    let modules = PlanSettings::recomputed_modules(scenario).into_iter();
    all.extend(modules.map(|modules| base.with_recomputed_modules(modules)));
    let counts = PlanSettings::recomputed_layers(scenario.model.layers()).into_iter().step_by(2);
    all.extend(counts.map(|count| base.with_recompute(Recompute::Full, Some(count))));
    all.push(base.with_recompute(Recompute::Full, None));
    all
}
