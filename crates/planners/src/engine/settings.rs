//! Planning with free settings: every planner chooses among the same candidates on the sizing batch.

use super::spent::{Budgeted, Spent};
use super::{Evaluation, PlanError, plan_fixed};
use crate::planners::settings_search::{self, Quiet, Searcher};
use crate::planners::{Batches, NoPlan, PlanningContext};
use planscope_core::training::LayoutRequest;
use planscope_core::units::Seconds;
use planscope_cost::cost::{ContextSettings, DegreeSettings};
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::Layout;
use planscope_plan::scenario::budget::EvaluationSize;
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerFamily, PlannerKind, Scenario};
use std::cmp::Ordering;

/// Settings are alternatives up to this ratio to the fastest time on the sizing batch, if the fastest do not fit a
/// batch of the run.
pub(super) const CLOSE: f64 = 1.03;

/// A planner under certain settings, and its iteration time on the sizing batch.
#[derive(Debug, Clone)]
pub(super) struct Screened {
    pub planner: PlannerKind,
    pub settings: PlanSettings,
    /// Degrees that were fixed.
    pub request: LayoutRequest,
    /// Layout of the plan.
    pub layout: Option<Layout>,
    /// Number of the step of `best` that planned it.
    pub step: u32,
    /// Mean iteration time in s, or the reason why there is no plan.
    pub time: Result<f64, NoPlan>,
}

impl Screened {
    /// Mean iteration time in s; infinite without a plan.
    pub(super) fn seconds(&self) -> f64 {
        self.time.as_ref().copied().unwrap_or(f64::INFINITY)
    }

    /// Compares times; of equal times, the plan that offloads less is first.
    fn compare(&self, other: &Self) -> Ordering {
        self.seconds().total_cmp(&other.seconds()).then_with(|| self.offloaded().total_cmp(&other.offloaded()))
    }

    /// Sum of the offloaded shares of activations and optimizer state.
    pub(super) fn offloaded(&self) -> f64 {
        self.settings.activation_offload + self.settings.optimizer_offload
    }
}

/// Returns the candidates that differ for the planner. Families that search degrees themselves use the degrees
/// of the scenario, and families that pack themselves its packing.
pub(super) fn candidates_of(
    planner: PlannerKind,
    scenario: &Scenario,
    candidates: &[PlanSettings],
) -> Vec<PlanSettings> {
    let own = PlanSettings::from_scenario(scenario);
    let chooses_layers = planner == PlannerKind::PipeWeaver;
    let is_offload_free = scenario.is_free(FreeSetting::ActivationOffload);
    let restrict = |settings: &PlanSettings| match planner.family() {
        // It chooses the strategies of layers, so settings that differ in recomputation are equal.
        PlannerFamily::PipeWeaver if chooses_layers => PlanSettings {
            activation_offload: if is_offload_free { 0.0 } else { own.activation_offload },
            ..settings.with_recompute(own.recompute, own.recompute_layers)
        },
        PlannerFamily::Best
        | PlannerFamily::Static
        | PlannerFamily::WaitFree
        | PlannerFamily::PipeWeaver
        | PlannerFamily::Dflop => *settings,
        PlannerFamily::ContextParallel | PlannerFamily::Strategies => PlanSettings {
            context_parallel: own.context_parallel,
            context_exchange: own.context_exchange,
            expert_parallel: own.expert_parallel,
            expert_tensor_parallel: own.expert_tensor_parallel,
            packing: own.packing,
            ..*settings
        },
        PlannerFamily::ModuleLayouts => PlanSettings {
            context_parallel: own.context_parallel,
            expert_parallel: own.expert_parallel,
            expert_tensor_parallel: own.expert_tensor_parallel,
            ..*settings
        },
    };
    let mut restricted: Vec<PlanSettings> = Vec::new();
    for settings in candidates.iter().map(restrict) {
        if !restricted.contains(&settings) {
            restricted.push(settings);
        }
    }
    restricted
}

/// Plans the sizing batch under each of the settings. Returns the results fastest first, then those without a
/// plan, or with no plan below the ceiling of the context and `CLOSE` times the fastest time.
pub(super) fn screen(
    context: PlanningContext<'_>,
    settings: &[PlanSettings],
    observer: &dyn Observer,
) -> Result<Vec<Screened>, PlanError> {
    let planner = context.planner;
    let mut screened = Vec::with_capacity(settings.len());
    let mut ceiling = context.ceiling;
    for &settings in settings {
        go_on(observer)?;
        let (layout, time) = match screen_one(PlanningContext { ceiling, ..context }, settings, observer)? {
            Evaluation::Planned(evaluated) => {
                ceiling = ceiling.min(Seconds::from_secs(CLOSE * evaluated.iteration_s()).to_nanos());
                (Some(evaluated.layout()), Ok(evaluated.iteration_s()))
            }
            Evaluation::Infeasible(none) => (None, Err(none)),
        };
        screened.push(Screened { planner, settings, request: context.scenario.layout, layout, step: 0, time });
    }
    screened.sort_by(Screened::compare);
    Ok(screened)
}

fn screen_one(
    context: PlanningContext<'_>,
    settings: PlanSettings,
    observer: &dyn Observer,
) -> Result<Evaluation, PlanError> {
    let spent = Spent::new(observer.max_bytes(), EvaluationSize::new(1, observer.workers().count()));
    let evaluated = std::slice::from_ref(context.batches.sizing);
    let batches = Batches { evaluated, ..context.batches };
    let context = PlanningContext { batches, recorded: None, ..context };
    match plan_with(context, settings, &mut Budgeted::new(&spent, &mut Quiet(observer))) {
        Err(PlanError::Cancelled(cancelled)) => match spent.excess() {
            Some(_) => Ok(Evaluation::Infeasible(NoPlan::inapplicable("the plan exceeds the limits of an answer"))),
            None => Err(cancelled.into()),
        },
        other => other,
    }
}

/// Plans the batches of the run under `settings`.
pub(super) fn plan_with(
    context: PlanningContext<'_>,
    settings: PlanSettings,
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    with_settings(context, settings, |context| {
        Ok(match plan_fixed(context, observer)? {
            Evaluation::Planned(evaluated) => Evaluation::Planned(Box::new(evaluated.with_settings(settings))),
            none @ Evaluation::Infeasible(_) => none,
        })
    })
}

/// Calls `run` with the scenario under `settings` and the costs that the planner needs.
pub(super) fn with_settings<T>(
    context: PlanningContext<'_>,
    settings: PlanSettings,
    run: impl FnOnce(PlanningContext<'_>) -> T,
) -> T {
    let scenario = context.scenario.with_settings(&settings);
    let family = context.planner.family();
    let has_groups = matches!(family, PlannerFamily::Strategies | PlannerFamily::ContextParallel);
    let contexts = ContextSettings::up_to(&scenario.training, if has_groups { scenario.cluster.devices() } else { 0 });
    let degrees = match family {
        PlannerFamily::ModuleLayouts => crate::planners::module_layouts::degree_settings(&scenario),
        _ => DegreeSettings::default(),
    };
    let pricing = context.pricing.for_training(&scenario.training);
    let pricing = pricing.with_contexts(&contexts).with_degrees(&degrees);
    run(PlanningContext { scenario: &scenario, pricing: &pricing, ..context })
}

/// Plans with the fastest settings on the sizing batch. If no plan of the run fits, the next settings are tried.
pub(super) fn plan_free(
    context: PlanningContext<'_>,
    candidates: &[PlanSettings],
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    let settings = candidates_of(context.planner, context.scenario, candidates);
    let mut screened = screen(context, &settings, observer)?;
    // Schedules that store the activations of all microbatches need more memory than the reference planner.
    let has_plan = screened.first().is_some_and(|candidate| candidate.time.is_ok());
    let is_static = context.planner.family() == PlannerFamily::Static;
    if !has_plan && is_static && context.planner.schedule().is_some() {
        let PlanningContext { scenario, pricing, batches, .. } = context;
        let searcher = Searcher { reference: context.planner, reported: context.planner };
        let settings = settings_search::candidates(scenario, pricing, batches, searcher, observer)?;
        screened = screen(context, &settings, observer)?;
    }
    let mut infeasible = Vec::new();
    // Settings without a plan below the ceiling come last. They have slower plans if no faster one fits the run.
    let is_any = screened.first().is_some_and(|candidate| candidate.time.is_ok());
    for candidate in screened {
        if let (Err(none), false) = (&candidate.time, is_any) {
            infeasible.push(none.clone());
            continue;
        }
        match plan_with(context, candidate.settings, observer)? {
            Evaluation::Infeasible(none) => infeasible.push(none),
            planned @ Evaluation::Planned(_) => return Ok(planned),
        }
    }
    let closest = closest(&infeasible).cloned();
    Ok(Evaluation::Infeasible(closest.unwrap_or_else(|| NoPlan::inapplicable("no settings to choose from"))))
}

/// Returns the reason that came closest to a plan: the one with the smallest need if memory is the constraint of any,
/// else the first one.
pub(super) fn closest<'a>(reasons: impl IntoIterator<Item = &'a NoPlan>) -> Option<&'a NoPlan> {
    let need = |none: &NoPlan| none.search.nearest.as_ref().map_or(f64::INFINITY, |nearest| nearest.needs_gib);
    reasons.into_iter().min_by(|a, b| need(a).total_cmp(&need(b)))
}
