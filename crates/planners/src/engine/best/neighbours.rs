//! Settings close to the fastest: one or two settings change at a time, as long as a plan gets faster.

use super::super::PlanError;
use super::super::settings::{Screened, candidates_of};
use super::steps::{CANDIDATES, PlanSearch, Step};
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

/// Settings that other planners try after each round of refinement, and the most rounds.
const SHARED_SETTINGS: usize = 2;
const ROUNDS: usize = 4;

/// Improves the settings of the fastest planners by coordinate descent. Then the other planners of pipelines try the
/// improved settings, and the fastest of them is improved in turn. Every plan is added to the search.
pub(super) fn refine(search: &mut PlanSearch<'_, '_>) -> Result<(), PlanError> {
    let mut starts = starts(&search.screened);
    for _ in 0..ROUNDS {
        for start in std::mem::take(&mut starts) {
            if !descend(search, &start)? {
                return Ok(());
            }
        }
        let fastest = search.fastest;
        if !share_settings(search)? {
            return Ok(());
        }
        if search.fastest >= fastest {
            break;
        }
        starts.extend(fastest_of(&search.screened).cloned());
    }
    Ok(())
}

/// Changes settings of `start` as long as a plan gets faster. Returns false if the limit of steps ends the search.
fn descend(search: &mut PlanSearch<'_, '_>, start: &Screened) -> Result<bool, PlanError> {
    let &Screened { planner, request, settings, .. } = start;
    let scenario = search.context.scenario;
    let limit = max_steps(planner, scenario.cluster.devices());
    search.steps.total += limit;
    let end = search.steps.done + limit;
    let (mut settings, mut seconds) = (settings, start.seconds());
    'descent: loop {
        let moves = candidates_of(planner, scenario, &neighbours(scenario, settings));
        let step_of = |settings: PlanSettings| Step { planner, request, settings };
        let untried: Vec<Step> = moves.into_iter().map(step_of).filter(|step| !is_tried(search, step)).collect();
        let mut is_improved = false;
        for round in untried.chunks(CONCURRENT) {
            let round = &round[..round.len().min(end.saturating_sub(search.steps.done) as usize)];
            if round.is_empty() {
                break 'descent;
            }
            let first = search.screened.len();
            if !search.run(round, seconds)? {
                return Ok(false);
            }
            let Some(fastest) = fastest_of(&search.screened[first..]) else { continue };
            if fastest.seconds() < seconds {
                (settings, seconds) = (fastest.settings, fastest.seconds());
                is_improved = true;
                break;
            }
        }
        if !is_improved {
            break;
        }
    }
    search.steps.total -= end.saturating_sub(search.steps.done);
    Ok(true)
}

/// Plans with the fastest settings and the planners of pipelines that have not tried them. Returns false if the limit
/// of steps ends the search.
fn share_settings(search: &mut PlanSearch<'_, '_>) -> Result<bool, PlanError> {
    let scenario = search.context.scenario;
    let mut order: Vec<&Screened> = search.screened.iter().filter(|candidate| is_pipeline(candidate.planner)).collect();
    order.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let mut shared: Vec<PlanSettings> = Vec::new();
    for candidate in order.into_iter().filter(|candidate| candidate.time.is_ok()) {
        if shared.len() < SHARED_SETTINGS && !shared.contains(&candidate.settings) {
            shared.push(candidate.settings);
        }
    }
    let request = scenario.layout;
    let planners = CANDIDATES.into_iter().filter(|&planner| is_pipeline(planner));
    let steps =
        shared.iter().flat_map(|&settings| planners.clone().map(move |planner| Step { planner, request, settings }));
    let steps: Vec<Step> = steps.filter(|step| !is_tried(search, step)).collect();
    let most = max_steps(PlannerKind::OneFOneB, scenario.cluster.devices()) as usize;
    let steps = &steps[..steps.len().min(most)];
    search.steps.total += steps.len() as u32;
    search.run(steps, f64::INFINITY)
}

/// Returns whether a step ran. A plan that was slower than a ceiling then is slower than the fastest plan now.
fn is_tried(search: &PlanSearch<'_, '_>, step: &Step) -> bool {
    let Step { planner, request, settings } = step;
    let is_same = |tried: &Screened| (tried.planner, tried.request, tried.settings) == (*planner, *request, *settings);
    search.screened.iter().any(is_same)
}

fn is_pipeline(planner: PlannerKind) -> bool {
    matches!(planner.family(), PlannerFamily::Static | PlannerFamily::WaitFree)
}

fn fastest_of(screened: &[Screened]) -> Option<&Screened> {
    screened.iter().min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
}

fn max_steps(planner: PlannerKind, devices: u32) -> u32 {
    (STEP_DEVICES / devices.max(1)).min(if is_pipeline(planner) { MAX_STEPS } else { MAX_EXPENSIVE_STEPS })
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
