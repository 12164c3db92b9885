//! Settings close to the fastest: one or two settings change at a time, as long as a plan gets faster.

use super::super::PlanError;
use super::super::settings::{Screened, candidates_of};
use super::steps::{PlanSearch, Step};
use crate::planners::setting_choices;
use crate::planners::settings_search::CONCURRENT;
use planscope_core::training::Recompute;
use planscope_core::workload::Packing;
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerFamily, PlannerKind, Scenario};

/// Planners whose settings are refined.
const REFINED_PLANNERS: usize = 3;
/// Limit on the steps of a planner of pipelines, up to `STEP_DEVICES / MAX_STEPS` devices. A step takes longer with
/// more devices.
const MAX_STEPS: u32 = 72;
/// Product of devices and steps.
const STEP_DEVICES: u32 = 40_000;
/// Limit on the steps of a planner that profiles or searches for each combination of settings.
const MAX_EXPENSIVE_STEPS: u32 = 8;
/// Steps of the offloaded shares.
const SHARE: f64 = 0.125;

/// Improves the settings of the fastest planners by coordinate descent. Every plan is added to the search.
pub(super) fn refine(search: &mut PlanSearch<'_, '_>) -> Result<(), PlanError> {
    for start in starts(&search.screened) {
        let Screened { planner, request, .. } = start;
        let limit = max_steps(planner, search.context.scenario.cluster.devices());
        search.steps.total += limit;
        let end = search.steps.done + limit;
        let (mut settings, mut seconds) = (start.settings, start.seconds());
        let mut tried = vec![settings];
        'descent: loop {
            let scenario = search.context.scenario;
            let moves = candidates_of(planner, scenario, &neighbours(scenario, settings));
            let mut is_improved = false;
            let untried: Vec<PlanSettings> = moves.into_iter().filter(|next| !tried.contains(next)).collect();
            for round in untried.chunks(CONCURRENT) {
                let round = &round[..round.len().min(end.saturating_sub(search.steps.done) as usize)];
                if round.is_empty() {
                    break 'descent;
                }
                tried.extend(round);
                let steps: Vec<Step> = round.iter().map(|&settings| Step { planner, request, settings }).collect();
                let first = search.screened.len();
                if !search.run(&steps, seconds)? {
                    return Ok(());
                }
                let fastest = search.screened[first..].iter().min_by(|a, b| a.seconds().total_cmp(&b.seconds()));
                let Some(fastest) = fastest.filter(|fastest| fastest.seconds() < seconds) else { continue };
                (settings, seconds) = (fastest.settings, fastest.seconds());
                is_improved = true;
                break;
            }
            if !is_improved {
                break;
            }
        }
        search.steps.total -= end.saturating_sub(search.steps.done);
    }
    Ok(())
}

fn max_steps(planner: PlannerKind, devices: u32) -> u32 {
    let is_pipeline = matches!(planner.family(), PlannerFamily::Static | PlannerFamily::WaitFree);
    (STEP_DEVICES / devices.max(1)).min(if is_pipeline { MAX_STEPS } else { MAX_EXPENSIVE_STEPS })
}

/// Returns the fastest plan of each of the fastest planners.
fn starts(screened: &[Screened]) -> Vec<Screened> {
    let mut order: Vec<&Screened> = screened.iter().filter(|candidate| candidate.time.is_ok()).collect();
    order.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let mut starts: Vec<Screened> = Vec::new();
    for candidate in order {
        if starts.len() < REFINED_PLANNERS && starts.iter().all(|other| other.planner != candidate.planner) {
            starts.push(candidate.clone());
        }
    }
    starts
}

/// Settings that differ from `base` in one free setting, then those that also differ in another one: a change that
/// saves time can need memory, which the other saves. Pairs with changed degrees come first.
fn neighbours(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let single = changes(scenario, base);
    let mut all = single.clone();
    all.extend(single.iter().rev().flat_map(|&first| memory_changes(scenario, first)));
    let mut distinct: Vec<PlanSettings> = Vec::with_capacity(all.len());
    for settings in all {
        if settings != base && !distinct.contains(&settings) {
            distinct.push(settings);
        }
    }
    distinct
}

/// One changed setting, or offload instead of recomputation.
fn changes(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let mut all = memory_changes(scenario, base);
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
    all.extend(degree_changes(scenario, base));
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

/// Changed settings that exchange time for memory.
fn memory_changes(scenario: &Scenario, base: PlanSettings) -> Vec<PlanSettings> {
    let mut all = Vec::new();
    if scenario.is_free(FreeSetting::Recompute) {
        all.extend(recomputations(scenario, base));
    }
    let near = |share: f64| [share - SHARE, share + SHARE].into_iter().filter(|near| (0.0..=1.0).contains(near));
    if scenario.is_free(FreeSetting::ActivationOffload) {
        let shares = near(base.activation_offload);
        all.extend(shares.map(|activation_offload| PlanSettings { activation_offload, ..base }));
    }
    if scenario.is_free(FreeSetting::OptimizerOffload) && base.optimizer_offload > 0.0 {
        all.extend(near(base.optimizer_offload).map(|optimizer_offload| PlanSettings { optimizer_offload, ..base }));
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
