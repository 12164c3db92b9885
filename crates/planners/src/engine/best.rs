//! The planner `best`: the fastest plan of all planners under the same settings, with improved orders.
//!
//! Layouts and settings are chosen on the sizing batch, as by every planner, in steps. The plans of the fastest
//! families are then compared on the batches of the run.

mod bound;
mod neighbours;
mod orders;
mod refine;
mod steps;

use super::settings::{CLOSE, Screened, closest, plan_with, screen, with_settings};
use super::special_cases::is_small;
use super::spent::{Budgeted, Excess, Spent};
use super::{Evaluation, PlanError, judged, plan_family};
use crate::planners::settings_search::{Quiet, degrees_of};
use crate::planners::{EvaluatedPlan, NoPlan, PlanningContext};
use planscope_core::training::{ContextExchange, LayoutRequest};
use planscope_core::units::Seconds;
use planscope_plan::observer::{Observer, go_on};
use planscope_plan::outcome::{Gain, Layout};
use planscope_plan::scenario::budget::EvaluationSize;
use planscope_plan::scenario::{PlanSettings, PlannerFamily, PlannerKind, Scenario};
use refine::is_pipeline;
use steps::Screening;
pub(super) use steps::report_draft;

/// Planners whose plans are compared on the batches of the run, and the same for small scenarios.
const FINALISTS: usize = 3;
const SMALL_FINALISTS: usize = 8;
/// Plans of small scenarios are alternatives up to this ratio to the fastest time on the sizing batch: a batch of few
/// sequences represents the run badly, and simulations are short.
const SMALL_CLOSE: f64 = 1.1;
/// Plans of a planner of pipelines that are compared, each with other degrees, and the limit on those beyond the
/// first of each planner. The order of close times on the sizing batch differs from that on the run.
const VARIANTS: usize = 3;
const MAX_VARIANTS: usize = 6;
/// Limit on the settings of a planner that are tried if its plans do not fit the batches of the run.
const MAX_ATTEMPTS: usize = 8;
/// Relative difference of equal times. The planner that comes first in the list of candidates is the simplest.
const TIE: f64 = 1e-6;
/// Smallest relative gain that is listed.
const MIN_GAIN: f64 = 1e-3;
/// Layouts of a finalist that are simulated to the end, up to this ratio to its fastest time on the sizing batch.
/// They are alternatives if the fastest does not fit a batch of the run.
const REPORTED: f64 = 1.25;

/// Plans with every candidate and returns the fastest plan. `others` are the results of the planners that the
/// scenario requests, `draft_s` is the time of the draft that was reported.
pub(super) fn plan(
    context: PlanningContext<'_>,
    (settings, draft_s): (&[PlanSettings], Option<f64>),
    others: &[(PlannerKind, &Evaluation)],
    observer: &mut Budgeted<'_>,
) -> Result<Evaluation, PlanError> {
    let Screening { screened, steps, common_steps } = steps::screen_all(context, (settings, draft_s), observer)?;
    let feasible: Vec<&Screened> = screened.iter().filter(|candidate| candidate.time.is_ok()).collect();
    let fastest = feasible.first().map_or(f64::INFINITY, |first| first.seconds());
    let requested = |kind: PlannerKind| others.iter().any(|&(other, _)| other == kind);
    // Planner and whether its settings are refined, degrees that were fixed for it, and plan.
    let mut winner: Option<((PlannerKind, bool), LayoutRequest, EvaluatedPlan)> = None;
    let mut consider = |source: (PlannerKind, bool), request: LayoutRequest, evaluated: &EvaluatedPlan| {
        let has_fixed = |plan: &EvaluatedPlan| plan.layout().has_fixed(context.scenario.layout);
        let is_better = |best: &EvaluatedPlan| match (has_fixed(evaluated), has_fixed(best)) {
            (true, false) => true,
            (false, true) => false,
            _ => evaluated.iteration_s() < best.iteration_s() * (1.0 - TIE),
        };
        if winner.as_ref().is_none_or(|(.., best)| is_better(best)) {
            winner = Some((source, request, evaluated.clone()));
        }
    };
    for &(kind, evaluation) in others {
        if let Evaluation::Planned(evaluated) = evaluation {
            consider((kind, false), context.scenario.layout, evaluated);
        }
    }
    let (mut finalists, mut failed) = (Vec::new(), Vec::new());
    let mut variants = Variants::default();
    let finalist_count = if is_small(context.scenario) { SMALL_FINALISTS } else { FINALISTS };
    for (number, candidate) in feasible.iter().enumerate() {
        let is_close = candidate.seconds() <= close(context.scenario) * fastest;
        if finalists.len() >= finalist_count && !is_close {
            break;
        }
        let planner = candidate.planner;
        let is_planned = requested(planner) && candidate.step <= common_steps;
        let attempts = failed.iter().filter(|&&other| other == planner).count();
        // On the batches of the run, refined settings can be slower than those that all planners try.
        let finalist = (planner, candidate.step > common_steps);
        if is_planned || attempts == MAX_ATTEMPTS {
            continue;
        }
        let is_first = !finalists.contains(&finalist);
        if !variants.admit(candidate, is_first, is_close) {
            continue;
        }
        observer.progress(PlannerKind::Best, "comparing the fastest plans", number as u32, feasible.len() as u32);
        let size = EvaluationSize::new(context.scenario.iterations, observer.workers().count());
        let spent = Spent::new(observer.max_bytes(), size);
        // The first plan of a planner can fall back on other layouts, if its own does not fit a batch of the run.
        let request = if is_first { candidate.request } else { fixed_request(candidate) };
        let scenario = Scenario { layout: request, ..context.scenario.clone() };
        let ceiling = Seconds::from_secs(REPORTED * candidate.seconds()).to_nanos();
        let step = PlanningContext { planner: candidate.planner, scenario: &scenario, ceiling, ..context };
        let evaluation = plan_with(step, candidate.settings, &mut Budgeted::new(&spent, &mut Quiet(observer)));
        go_on(observer)?;
        // The result must not depend on the memory of an attempt. The caller tries again with more.
        if let Some(excess @ Excess::Bytes(_)) = spent.excess() {
            return Err(excess.into());
        }
        match evaluation {
            Ok(Evaluation::Planned(evaluated)) => {
                consider(finalist, request, &evaluated);
                if is_first {
                    finalists.push(finalist);
                }
            }
            // The plan does not fit a batch of the run, or exceeds the limits of an answer.
            Ok(Evaluation::Infeasible(_)) | Err(PlanError::Cancelled(_) | PlanError::Outgrown { .. }) => {
                if is_first {
                    failed.push(planner);
                }
            }
            Err(error) => return Err(error),
        }
    }
    let Some(((kind, is_refined), request, evaluated)) = winner else {
        let reasons = screened.iter().filter_map(|candidate| candidate.time.as_ref().err());
        let none = closest(reasons).cloned();
        return Ok(Evaluation::Infeasible(none.unwrap_or_else(|| NoPlan::inapplicable("no planner applies"))));
    };
    let mut gains = gains(context, (&screened, common_steps), (kind, is_refined), observer)?;
    let mut decisions = decisions(kind, &screened);
    decisions.extend(steps.decision());
    let scenario = Scenario { layout: request, ..context.scenario.clone() };
    let improved = improve_orders(PlanningContext { scenario: &scenario, ..context }, kind, &evaluated, observer)?;
    let improved = improved.filter(|improved| improved.iteration_s() < evaluated.iteration_s());
    let best = match improved {
        Some(improved) => {
            let (before, after) = (evaluated.iteration_s(), improved.iteration_s());
            gains.extend(Gain::new("swaps on the critical path", "the orders of this planner", before, after));
            improved
        }
        None => evaluated,
    };
    let bound_s = bound::all_layouts(context, context.batches.evaluated, observer)?;
    decisions.push(format!(
        "No plan of any layout takes less than {bound_s:.3} s; this plan takes {:.1} % more.",
        100.0 * (best.iteration_s() / bound_s - 1.0)
    ));
    Ok(Evaluation::Planned(Box::new(best.into_best(kind, gains, bound_s, decisions))))
}

/// Returns the ratio to the fastest time on the sizing batch up to which a plan is an alternative.
fn close(scenario: &Scenario) -> f64 {
    if is_small(scenario) { SMALL_CLOSE } else { CLOSE }
}

/// Degrees of a candidate: those among its settings, and its layout.
type Degrees = ((u32, ContextExchange, u32, Option<u32>), Option<Layout>);

fn degrees(candidate: &Screened) -> Degrees {
    (degrees_of(&candidate.settings), candidate.layout)
}

/// Plans that are compared, by planner and degrees.
#[derive(Debug, Default)]
struct Variants {
    known: Vec<(PlannerKind, Degrees)>,
    /// Number of plans beyond the first of each planner.
    further: usize,
}

impl Variants {
    /// Returns whether a candidate is compared: the first of a planner, or a close one of a planner of pipelines with other
    /// degrees.
    fn admit(&mut self, candidate: &Screened, is_first: bool, is_close: bool) -> bool {
        let planner = candidate.planner;
        let variant = (planner, degrees(candidate));
        if !is_first {
            let count = self.known.iter().filter(|&&(other, _)| other == planner).count();
            let is_other = is_pipeline(planner) && count < VARIANTS && !self.known.contains(&variant);
            if !is_close || !is_other || self.further == MAX_VARIANTS {
                return false;
            }
            self.further += 1;
        }
        self.known.push(variant);
        true
    }
}

/// Returns the request of a candidate with the degrees of its plan.
fn fixed_request(candidate: &Screened) -> LayoutRequest {
    let Some(layout) = candidate.layout else { return candidate.request };
    LayoutRequest {
        tensor: Some(layout.tensor),
        pipeline: Some(layout.pipeline),
        chunks: Some(layout.chunks),
        microbatch: Some(layout.microbatch),
        ..candidate.request
    }
}

/// Plans with `planner` again and improves the orders of its plan. `None` if orders of this kind of plan are not
/// improved.
fn improve_orders(
    context: PlanningContext<'_>,
    planner: PlannerKind,
    evaluated: &EvaluatedPlan,
    observer: &mut Budgeted<'_>,
) -> Result<Option<EvaluatedPlan>, PlanError> {
    let is_pipeline =
        matches!(planner.family(), PlannerFamily::Static | PlannerFamily::WaitFree | PlannerFamily::PipeWeaver);
    if !is_pipeline || context.scenario.search.rollouts == 0 {
        return Ok(None);
    }
    observer.progress(PlannerKind::Best, "improving orders", 0, 1);
    let settings = evaluated.settings().unwrap_or_else(|| PlanSettings::from_scenario(context.scenario));
    with_settings(PlanningContext { planner, ..context }, settings, |context| {
        let Ok(tested) = plan_family(context, &mut Quiet(observer)) else { return Ok(None) };
        go_on(observer)?;
        let Some(improved) = orders::improve(context, &tested, observer)? else { return Ok(None) };
        Ok(match judged(context, &improved, observer)? {
            Evaluation::Planned(improved) => Some(improved.with_settings(settings)),
            Evaluation::Infeasible(_) => None,
        })
    })
}

/// Seconds that each ingredient of the plan saves on the sizing batch, each after the one before: the free settings for
/// a schedule that every framework has; `winner`, the planner of the plan; its refined settings, if the plan has them.
fn gains(
    context: PlanningContext<'_>,
    (screened, common_steps): (&[Screened], u32),
    (winner, is_refined): (PlannerKind, bool),
    observer: &dyn Observer,
) -> Result<Vec<Gain>, PlanError> {
    let fastest_of = |kinds: &[PlannerKind], is_common: bool| {
        let those = screened
            .iter()
            .filter(|candidate| kinds.contains(&candidate.planner) && (candidate.step <= common_steps) == is_common);
        those.map(Screened::seconds).fold(f64::INFINITY, f64::min)
    };
    let (usual, usual_name): (&[PlannerKind], &str) = match winner {
        PlannerKind::OneFOneB | PlannerKind::Interleaved => (&[PlannerKind::OneFOneB], "1F1B"),
        _ => (&[PlannerKind::OneFOneB, PlannerKind::Interleaved], "1F1B or interleaved"),
    };
    let mut gains = Vec::new();
    let usual_s = fastest_of(usual, true);
    if context.scenario.has_free_settings() {
        let own = [PlanSettings::from_scenario(context.scenario)];
        let mut fixed_s = f64::INFINITY;
        for &planner in usual {
            let screened = screen(PlanningContext { planner, ..context }, &own, observer)?;
            fixed_s = screened.iter().map(Screened::seconds).fold(fixed_s, f64::min);
        }
        gains.push(Gain::new(
            "free settings",
            &format!("{usual_name} with the settings of the scenario"),
            fixed_s,
            usual_s,
        ));
    }
    let common_s = fastest_of(&[winner], true);
    if winner != PlannerKind::OneFOneB {
        gains.push(Gain::new(winner.short_title(), usual_name, usual_s, common_s));
    }
    if is_refined {
        let refined_s = fastest_of(&[winner], false);
        let ingredient = format!("{} with refined settings", winner.short_title());
        // The strongest opponent can be another planner.
        let common = screened.iter().find(|candidate| candidate.step <= common_steps);
        let opponent_s = common.map_or(f64::INFINITY, Screened::seconds);
        let is_own = common.is_some_and(|common| common.planner == winner);
        let opponent =
            if is_own { winner.short_title() } else { "the fastest planner with settings that all planners try" };
        gains.push(Gain::new(&ingredient, opponent, opponent_s, refined_s));
    }
    Ok(gains.into_iter().flatten().filter(|gain| gain.opponent_s > gain.iteration_s * (1.0 + MIN_GAIN)).collect())
}

fn decisions(winner: PlannerKind, screened: &[Screened]) -> Vec<String> {
    let planned = screened.iter().filter(|candidate| candidate.time.is_ok()).count();
    let mut decisions = vec![format!(
        "The plan of {} is the fastest on the batches of the run. On the sizing batch, {planned} of {} combinations of planner and settings have a plan that is not far behind the fastest one.",
        winner.title(),
        screened.len()
    )];
    let mut others: Vec<PlannerKind> = Vec::new();
    for candidate in screened.iter().filter(|candidate| candidate.time.is_ok()) {
        if candidate.planner != winner && !others.contains(&candidate.planner) {
            others.push(candidate.planner);
        }
    }
    if !others.is_empty() {
        let names: Vec<&str> = others.iter().take(3).map(|kind| kind.short_title()).collect();
        decisions.push(format!("Next on the sizing batch: {}.", names.join(", ")));
    }
    decisions
}
