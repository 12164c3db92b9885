//! Refinement of the settings of the fastest plans: one or two settings change at a time, as long as a plan gets faster.
//! Then the settings are searched again at the degrees of the fastest pipelines.

use super::super::PlanError;
use super::super::settings::{Screened, candidates_of};
use super::super::special_cases::is_small;
use super::close;
use super::neighbours::neighbours;
use super::steps::{CANDIDATES, PlanSearch, Step};
use crate::planners::PlanningContext;
use crate::planners::setting_choices;
use crate::planners::settings_search::{CONCURRENT, degrees_of};
use planscope_core::training::{LayoutRequest, Recompute};
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerFamily, PlannerKind, Scenario};

/// Planners whose settings are refined.
const REFINED_PLANNERS: usize = 3;
/// Limit on the steps of a planner of pipelines. A step takes longer with more devices and more sequences per batch.
const MAX_STEPS: u32 = 160;
/// Limits on the products of steps with devices and with sequences.
const STEP_DEVICES: u32 = 80_000;
const STEP_SEQUENCES: u32 = 160_000;
/// Limit on the steps of a planner that profiles or searches for each combination of settings.
const MAX_EXPENSIVE_STEPS: u32 = 8;
/// Parts of a share in the bisection.
const TRIMMED_PARTS: f64 = 32.0;
/// Settings that other planners try after each round of refinement, and the most rounds.
const SHARED_SETTINGS: usize = 2;
const ROUNDS: usize = 4;
/// Limit on the steps in which the offloaded shares of another planner's plan are reduced.
const MAX_TRIMS: u32 = 24;
/// Layouts at whose degrees the settings are searched again.
const REFINED_LAYOUTS: usize = 2;

/// Improves the settings of the fastest planners by coordinate descent. Then the other planners of pipelines try the
/// improved settings, and the fastest of them is improved in turn. Every plan is added to the search.
pub(super) fn refine(search: &mut PlanSearch<'_, '_>) -> Result<(), PlanError> {
    let mut starts = starts(&search.screened);
    for _ in 0..ROUNDS {
        for start in std::mem::take(&mut starts) {
            if !descend(search, &start, search.context.scenario)? {
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
    for request in requests(search) {
        if !refine_at(search, request)? {
            return Ok(());
        }
    }
    for fixed in recomputations(search) {
        let own = PlanSettings::from_scenario(&fixed);
        if !refine_fixed(search, &fixed, |settings| recomputation(settings) == recomputation(own))? {
            return Ok(());
        }
    }
    for fixed in zero_stages(search) {
        let own = fixed.training.zero_stage();
        if !refine_fixed(search, &fixed, |settings| settings.zero == own)? {
            return Ok(());
        }
    }
    trim_alternatives(search)
}

/// Reduces the offloaded shares of the fastest plan of each planner of pipelines, in a small search. One of these plans can
/// be the fastest on the batches of the run.
fn trim_alternatives(search: &mut PlanSearch<'_, '_>) -> Result<(), PlanError> {
    let scenario = search.context.scenario;
    if !is_small(scenario) {
        return Ok(());
    }
    for planner in CANDIDATES.into_iter().filter(|&planner| is_pipeline(planner)) {
        let own = search.screened.iter().filter(|candidate| candidate.planner == planner);
        let fastest = fastest_among(own).filter(|own| own.seconds() <= close(scenario) * search.fastest).cloned();
        let Some(mut alternative) = fastest else { continue };
        search.steps.total += MAX_TRIMS;
        let end = search.steps.done + MAX_TRIMS;
        if !trim_offload(search, &mut alternative, end)? {
            return Ok(());
        }
        search.steps.total -= end.saturating_sub(search.steps.done);
    }
    Ok(())
}

fn recomputation(settings: PlanSettings) -> impl PartialEq {
    (settings.recompute, settings.recompute_layers, settings.recompute_modules)
}

/// Searches settings with the fixed setting of `fixed`, and improves the fastest plans that have it by changes of the other
/// settings. The first of these plans can be far slower than the fastest plan of the search, so that time limits none of
/// them. Returns false if the limit of steps ends the search.
fn refine_fixed(
    search: &mut PlanSearch<'_, '_>,
    fixed: &Scenario,
    has_setting: impl Fn(PlanSettings) -> bool,
) -> Result<bool, PlanError> {
    if search.is_over() {
        return Ok(true);
    }
    let fastest = std::mem::replace(&mut search.fastest, f64::INFINITY);
    let mut goes_on = try_candidates(search, fixed)?;
    let is_own = |candidate: &&Screened| is_pipeline(candidate.planner) && has_setting(candidate.settings);
    let plans: Vec<Screened> = search.screened.iter().filter(is_own).cloned().collect();
    for start in starts(&plans) {
        goes_on = goes_on && descend(search, &start, fixed)?;
    }
    // Then all settings change.
    let scenario = search.context.scenario;
    let reached = fastest_among(search.screened.iter().filter(is_own)).cloned();
    if let Some(start) = reached.filter(|reached| goes_on && reached.time.is_ok()) {
        goes_on = descend(search, &start, scenario)?;
    }
    search.fastest = search.fastest.min(fastest);
    Ok(goes_on)
}

/// Searches the settings at fixed degrees, and improves the fastest of them. The search over all degrees ranks settings by
/// the fastest layout of each, so it misses settings that are fastest at other degrees only, and each setting
/// costs a search over all layouts. Returns false if the limit of steps ends the search.
fn refine_at(search: &mut PlanSearch<'_, '_>, request: LayoutRequest) -> Result<bool, PlanError> {
    if search.is_over() {
        return Ok(true);
    }
    let scenario = search.context.scenario;
    let first = search.screened.len();
    if !try_candidates(search, &Scenario { layout: request, ..scenario.clone() })? {
        return Ok(false);
    }
    match fastest_of(&search.screened[first..]).cloned() {
        Some(start) if start.time.is_ok() => descend(search, &start, scenario),
        _ => Ok(true),
    }
}

/// Plans with the candidates for the free settings of a scenario with more fixed values, and with all planners of
/// pipelines. Returns false if the limit of steps ends the search.
fn try_candidates(search: &mut PlanSearch<'_, '_>, fixed: &Scenario) -> Result<bool, PlanError> {
    let request = fixed.layout;
    let settings = search.candidates_at(fixed)?;
    let planners = CANDIDATES.into_iter().filter(|&planner| is_pipeline(planner));
    let steps = planners.flat_map(|planner| {
        let settings = candidates_of(planner, fixed, &settings).into_iter();
        settings.map(move |settings| Step { planner, request, settings })
    });
    let most = max_steps(PlannerKind::OneFOneB, search.context) as usize;
    let steps: Vec<Step> = steps.take(most).collect();
    search.steps.total += steps.len() as u32;
    search.run(&steps, f64::INFINITY)
}

/// Returns the degrees of the fastest pipelines, if the scenario leaves a degree open.
fn requests(search: &PlanSearch<'_, '_>) -> Vec<LayoutRequest> {
    let own = search.context.scenario.layout;
    let mut order: Vec<&Screened> = search.screened.iter().filter(|candidate| is_pipeline(candidate.planner)).collect();
    order.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let mut requests: Vec<LayoutRequest> = Vec::new();
    for layout in order.into_iter().filter_map(|candidate| candidate.layout) {
        let request = LayoutRequest {
            tensor: Some(layout.tensor),
            pipeline: Some(layout.pipeline),
            microbatch: Some(layout.microbatch),
            ..own
        };
        if requests.len() < REFINED_LAYOUTS && request != own && !requests.contains(&request) {
            requests.push(request);
        }
    }
    requests
}

/// Returns the scenario with each fixed recomputation, if the fastest plan offloads and the search is small. With scarce
/// memory, the best settings under one recomputation can differ in many values from those under another one.
fn recomputations(search: &PlanSearch<'_, '_>) -> Vec<Scenario> {
    let scenario = search.context.scenario;
    if !has_scarce_memory(search) || !scenario.is_free(FreeSetting::Recompute) {
        return Vec::new();
    }
    let fix = |recompute| {
        let mut fixed = scenario.clone();
        fixed.free.retain(|&setting| setting != FreeSetting::Recompute);
        PlanSettings::from_scenario(scenario).with_recompute(recompute, None).apply(&mut fixed.training);
        fixed
    };
    [Recompute::None, Recompute::Selective, Recompute::Full].map(fix).into()
}

/// Returns the scenario with each fixed ZeRO stage, if it fixes the degrees, the fastest plan offloads, and the search is
/// small. A higher stage needs less memory and more time in each microbatch, so other settings change with it.
fn zero_stages(search: &PlanSearch<'_, '_>) -> Vec<Scenario> {
    let scenario = search.context.scenario;
    if !has_scarce_memory(search) || !requests(search).is_empty() || !scenario.is_free(FreeSetting::Zero) {
        return Vec::new();
    }
    let fix = |zero| {
        let mut fixed = scenario.clone();
        fixed.free.retain(|&setting| setting != FreeSetting::Zero);
        fixed.training.zero = Some(zero);
        fixed
    };
    setting_choices::zero_stages(scenario).map(fix).collect()
}

/// True if the search is small and its fastest plan offloads.
fn has_scarce_memory(search: &PlanSearch<'_, '_>) -> bool {
    let offloads =
        |fastest: &Screened| fastest.settings.activation_offload > 0.0 || fastest.settings.optimizer_offload > 0.0;
    is_small(search.context.scenario) && fastest_of(&search.screened).is_some_and(offloads)
}

/// Changes free settings of `scenario` in `start` as long as a plan gets faster. Returns false if the limit of steps ends
/// the search.
fn descend(search: &mut PlanSearch<'_, '_>, start: &Screened, scenario: &Scenario) -> Result<bool, PlanError> {
    let limit = max_steps(start.planner, search.context);
    search.steps.total += limit;
    let end = search.steps.done + limit;
    let mut best = start.clone();
    'descent: loop {
        if !trim_offload(search, &mut best, end)? {
            return Ok(false);
        }
        let moves = candidates_of(best.planner, scenario, &neighbours(scenario, best.settings));
        let steps: Vec<Step> = moves.into_iter().map(|settings| step_of(&best, settings)).collect();
        let known = fastest_among(steps.iter().filter_map(|step| tried(search, step)));
        if let Some(faster) = known.filter(|known| known.seconds() < best.seconds()) {
            best = faster.clone();
            continue;
        }
        let untried: Vec<Step> = steps.into_iter().filter(|step| tried(search, step).is_none()).collect();
        let mut is_improved = false;
        for round in untried.chunks(CONCURRENT) {
            let round = &round[..round.len().min(end.saturating_sub(search.steps.done) as usize)];
            if round.is_empty() {
                break 'descent;
            }
            let first = search.screened.len();
            if !search.run(round, best.seconds())? {
                return Ok(false);
            }
            let Some(fastest) = fastest_of(&search.screened[first..]) else { continue };
            if fastest.seconds() < best.seconds() {
                best = fastest.clone();
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

/// Reduces the offloaded shares of `best` as far as the plan fits and gets faster: first of the optimizer, then of the
/// activations. Offloaded shares cost time and save memory, so the smallest share that fits is found by bisection.
/// Returns false if the limit of steps ends the search.
fn trim_offload(search: &mut PlanSearch<'_, '_>, best: &mut Screened, end: u32) -> Result<bool, PlanError> {
    let scenario = search.context.scenario;
    for setting in [FreeSetting::OptimizerOffload, FreeSetting::ActivationOffload] {
        if !scenario.is_free(setting) {
            continue;
        }
        let with_parts = |settings: PlanSettings, parts: i32| match setting {
            FreeSetting::OptimizerOffload => {
                PlanSettings { optimizer_offload: f64::from(parts) / TRIMMED_PARTS, ..settings }
            }
            _ => PlanSettings { activation_offload: f64::from(parts) / TRIMMED_PARTS, ..settings },
        };
        let share = match setting {
            FreeSetting::OptimizerOffload => best.settings.optimizer_offload,
            _ => best.settings.activation_offload,
        };
        // The smallest share that fits is above `low` and not above `high`.
        let (mut low, mut high) = (-1, (share * TRIMMED_PARTS).round() as i32);
        while high - low > 1 {
            let third = (high - low).div_euclid(3).max(1);
            let mut parts = vec![low + third, high - third];
            parts.dedup();
            parts.retain(|&parts| low < parts && parts < high);
            let steps = parts.iter().map(|&parts| step_of(best, with_parts(best.settings, parts)));
            let untried: Vec<Step> = steps.filter(|step| tried(search, step).is_none()).collect();
            if search.steps.done + untried.len() as u32 > end {
                return Ok(true);
            }
            if !search.run(&untried, best.seconds())? {
                return Ok(false);
            }
            for parts in parts {
                if parts >= high {
                    continue;
                }
                let result = tried(search, &step_of(best, with_parts(best.settings, parts))).cloned();
                match result.filter(|result| result.seconds() < best.seconds()) {
                    Some(faster) => (*best, high) = (faster, parts),
                    None => low = parts,
                }
            }
        }
    }
    Ok(true)
}

/// Returns a step with the planner and the fixed degrees of `candidate`.
fn step_of(candidate: &Screened, settings: PlanSettings) -> Step {
    Step { planner: candidate.planner, request: candidate.request, settings }
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
    let steps: Vec<Step> = steps.filter(|step| tried(search, step).is_none()).collect();
    let most = max_steps(PlannerKind::OneFOneB, search.context) as usize;
    let steps = &steps[..steps.len().min(most)];
    search.steps.total += steps.len() as u32;
    search.run(steps, f64::INFINITY)
}

/// Returns the result of a step that ran. A plan that was slower than a ceiling then is slower than the fastest plan now.
fn tried<'s>(search: &'s PlanSearch<'_, '_>, step: &Step) -> Option<&'s Screened> {
    let Step { planner, request, settings } = step;
    let is_same = |tried: &&Screened| (tried.planner, tried.request, tried.settings) == (*planner, *request, *settings);
    search.screened.iter().find(is_same)
}

pub(super) fn is_pipeline(planner: PlannerKind) -> bool {
    matches!(planner.family(), PlannerFamily::Static | PlannerFamily::WaitFree)
}

fn fastest_of(screened: &[Screened]) -> Option<&Screened> {
    fastest_among(screened.iter())
}

fn fastest_among<'s>(screened: impl Iterator<Item = &'s Screened>) -> Option<&'s Screened> {
    screened.min_by(|a, b| a.seconds().total_cmp(&b.seconds()))
}

fn max_steps(planner: PlannerKind, context: PlanningContext<'_>) -> u32 {
    let devices = context.scenario.cluster.devices();
    let sequences = context.batches.sizing.sequences.len() as u32;
    let most = if is_pipeline(planner) { MAX_STEPS } else { MAX_EXPENSIVE_STEPS };
    (STEP_DEVICES / devices.max(1)).min(STEP_SEQUENCES / sequences.max(1)).min(most)
}

/// Returns the fastest plan of each of the fastest planners, and the fastest plan with other degrees than these.
fn starts(screened: &[Screened]) -> Vec<Screened> {
    let mut order: Vec<&Screened> = screened.iter().filter(|candidate| candidate.time.is_ok()).collect();
    order.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let mut starts: Vec<Screened> = Vec::new();
    for &candidate in &order {
        if starts.len() < REFINED_PLANNERS && starts.iter().all(|other| other.planner != candidate.planner) {
            starts.push(candidate.clone());
        }
    }
    let degrees = |candidate: &Screened| degrees_of(&candidate.settings);
    let has_other = |candidate: &&&Screened| starts.iter().all(|start| degrees(start) != degrees(candidate));
    let other =
        order.iter().filter(|candidate| is_pipeline(candidate.planner)).find(has_other).map(|other| (*other).clone());
    starts.extend(other);
    starts
}
