//! Steps of the search for the best plan. A step plans the sizing batch with one planner under one combination of
//! settings. The order is fixed, so the same number of steps gives the same plan.

use super::super::PlanError;
use super::super::settings::{CLOSE, Screened, candidates_of, screen};
use super::super::spent::Budgeted;
use crate::planners::{Batches, PlanningContext};
use planscope_core::training::{LayoutRequest, Recompute};
use planscope_core::units::Seconds;
use planscope_plan::observer::{BestSoFar, Observer};
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerFamily, PlannerKind, Scenario};

/// Planners whose plans are candidates, static schedules first: their fastest time is the opponent in the gains.
/// Ablation steps of a paper and baselines that ignore stage times are
/// never faster than the full method.
const CANDIDATES: [PlannerKind; 24] = [
    PlannerKind::OneFOneB,
    PlannerKind::Interleaved,
    PlannerKind::Zbv,
    PlannerKind::ZbH1,
    PlannerKind::ZbH2,
    PlannerKind::InterleavedZeroBubble,
    PlannerKind::VHalf,
    PlannerKind::VMin,
    PlannerKind::LoopedBfs,
    PlannerKind::Gpipe,
    PlannerKind::NnScaler,
    PlannerKind::Optimus,
    PlannerKind::WaitFreeCyclic,
    PlannerKind::PipeWeaver,
    PlannerKind::Dhp,
    PlannerKind::BalancedContext,
    PlannerKind::Ulysses,
    PlannerKind::StaticContext,
    PlannerKind::Hydraulis,
    PlannerKind::StaticStrategy,
    PlannerKind::Homogeneous,
    PlannerKind::HeterogeneousColocated,
    PlannerKind::HeterogeneousApart,
    PlannerKind::Dflop,
];
/// Candidates of a shortened search, without rollouts.
const QUICK: [PlannerKind; 4] =
    [PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::WaitFreeCyclic, PlannerKind::PipeWeaver];
/// Settings that planners with a long layout search try.
const EXPENSIVE_SETTINGS: usize = 2;
/// Layouts of other planners that PipeWeaver tries.
const PIPEWEAVER_LAYOUTS: usize = 2;

/// Results of all steps, fastest first.
pub(super) struct Screening {
    pub screened: Vec<Screened>,
    pub steps: Steps,
}

/// Steps of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    done: u32,
    /// Steps of a search without limit. Smaller searches have fewer if a planner has no layout to try.
    total: u32,
    /// Limit of the scenario.
    limit: Option<u32>,
    /// True if the limit ended the search.
    is_limited: bool,
}

impl Steps {
    /// Returns whether the limit ends a search that has a plan. A search without a plan goes on.
    fn is_over(self, has_plan: bool) -> bool {
        has_plan && self.limit.is_some_and(|limit| self.done >= limit)
    }

    /// Returns the text of a search that the limit ended.
    pub(super) fn decision(self) -> Option<String> {
        self.is_limited.then(|| {
            format!("The search stopped after {} of {} steps, the limit of the scenario.", self.done, self.total)
        })
    }
}

/// Plans the sizing batch with every candidate under all settings, up to the limit of steps of the scenario, and
/// reports each plan that is faster than the draft and all plans before.
pub(super) fn screen_all(
    context: PlanningContext<'_>,
    (settings, draft_s): (&[PlanSettings], Option<f64>),
    observer: &mut Budgeted<'_>,
) -> Result<Screening, PlanError> {
    let scenario = context.scenario;
    let candidates: &[PlannerKind] = if scenario.search.rollouts == 0 { &QUICK } else { &CANDIDATES };
    // With equal sequences, groups and strategies by length equal those of a static plan with the same degrees.
    let is_uniform = scenario.is_free(FreeSetting::ContextParallel) && has_equal_sequences(context.batches);
    let is_needless = |planner: PlannerKind| {
        is_uniform && matches!(planner.family(), PlannerFamily::ContextParallel | PlannerFamily::Strategies)
    };
    let settings_of = |planner: PlannerKind| {
        let mut own = candidates_of(planner, scenario, settings);
        if matches!(planner.family(), PlannerFamily::PipeWeaver | PlannerFamily::ModuleLayouts) {
            own.truncate(EXPENSIVE_SETTINGS);
        }
        own
    };
    let layouts_of =
        |planner: PlannerKind| if planner.family() == PlannerFamily::PipeWeaver { PIPEWEAVER_LAYOUTS } else { 1 };
    let total: usize = candidates.iter().map(|&planner| settings_of(planner).len() * layouts_of(planner)).sum();
    let mut steps = Steps { done: 0, total: total as u32, limit: scenario.search.best_steps, is_limited: false };
    let mut screened: Vec<Screened> = Vec::new();
    let mut fastest = f64::INFINITY;
    let mut reported = draft_s.unwrap_or(f64::INFINITY);
    'planners: for &planner in candidates {
        if fastest.is_finite() && is_needless(planner) {
            continue;
        }
        // Its search of layouts takes minutes, so PipeWeaver uses those that are fastest for other planners.
        let requests = match planner.family() {
            PlannerFamily::PipeWeaver => pipelines(scenario, &screened),
            _ => vec![scenario.layout],
        };
        for request in requests {
            let scenario = Scenario { layout: request, ..scenario.clone() };
            for settings in settings_of(planner) {
                if steps.is_over(fastest.is_finite()) {
                    steps.is_limited = true;
                    break 'planners;
                }
                observer.progress(PlannerKind::Best, "trying planners and settings", steps.done, steps.total);
                let ceiling =
                    if fastest.is_finite() { Seconds::from_secs(CLOSE * fastest).to_nanos() } else { context.ceiling };
                let step = PlanningContext { scenario: &scenario, planner, ceiling, ..context };
                let tried = screen(step, &[settings], observer)?;
                steps.done += 1;
                for candidate in &tried {
                    fastest = fastest.min(candidate.seconds());
                    if fastest < reported {
                        reported = fastest;
                        observer.improved(BestSoFar { planner, iteration_s: fastest, step: steps.done });
                    }
                }
                screened.extend(tried);
            }
        }
    }
    screened.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    Ok(Screening { screened, steps })
}

/// Returns whether all sequences of the batches have the same shape.
fn has_equal_sequences(batches: Batches<'_>) -> bool {
    let mut sequences = batches.evaluated.iter().chain([batches.sizing]).flat_map(|batch| &batch.sequences);
    sequences.next().is_none_or(|first| sequences.all(|other| other == first))
}

/// Plans the sizing batch with 1F1B and reports the plan, before searches that take seconds. If no plan fits and
/// recomputation is free, it recomputes all layers. Returns the iteration time in s.
pub(in super::super) fn report_draft(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
) -> Result<Option<f64>, PlanError> {
    let planner = PlannerKind::OneFOneB;
    let own = PlanSettings::from_scenario(context.scenario);
    let mut settings = vec![own];
    if context.scenario.is_free(FreeSetting::Recompute) {
        settings.push(PlanSettings { recompute: Recompute::Full, recompute_layers: None, ..own });
    }
    observer.progress(PlannerKind::Best, "looking for a first plan", 0, 1);
    for settings in settings {
        let drafted = screen(PlanningContext { planner, ..context }, &[settings], observer)?;
        if let Some(draft) = drafted.iter().find(|draft| draft.time.is_ok()) {
            observer.improved(BestSoFar { planner, iteration_s: draft.seconds(), step: 0 });
            return Ok(Some(draft.seconds()));
        }
    }
    Ok(None)
}

/// Returns the degrees of the fastest layouts so far that are pipelines.
fn pipelines(scenario: &Scenario, screened: &[Screened]) -> Vec<LayoutRequest> {
    let mut fastest: Vec<&Screened> = screened.iter().filter(|candidate| candidate.time.is_ok()).collect();
    fastest.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let mut requests: Vec<LayoutRequest> = Vec::new();
    for layout in fastest.into_iter().filter_map(|candidate| candidate.layout).filter(|layout| layout.pipeline > 1) {
        let request = LayoutRequest {
            tensor: Some(layout.tensor),
            pipeline: Some(layout.pipeline),
            microbatch: Some(layout.microbatch),
            ..scenario.layout
        };
        if requests.len() < PIPEWEAVER_LAYOUTS && !requests.contains(&request) {
            requests.push(request);
        }
    }
    requests
}
