//! Steps of the search for the best plan. A step plans the sizing batch with one planner under one combination of
//! settings. The order is fixed, so the same number of steps gives the same plan.

use super::super::PlanError;
use super::super::settings::{Screened, candidates_of, screen};
use super::super::special_cases::is_small;
use super::super::spent::Budgeted;
use super::TIE;
use super::{bound, close, refine};
use crate::planners::settings_search::{self, CONCURRENT, Searcher};
use crate::planners::{Batches, PlanningContext};
use planscope_core::host::side_by_side;
use planscope_core::training::{LayoutRequest, Recompute};
use planscope_core::units::Seconds;
use planscope_plan::observer::{BestSoFar, Cancelled, Observer};
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerFamily, PlannerKind, Scenario};

/// Planners whose plans are candidates, static schedules first: their fastest time is the opponent in the gains.
/// Ablation steps of a paper and baselines that ignore stage times are
/// never faster than the full method.
pub(super) const CANDIDATES: [PlannerKind; 25] = [
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
    PlannerKind::HotSpa,
    PlannerKind::Homogeneous,
    PlannerKind::HeterogeneousColocated,
    PlannerKind::HeterogeneousApart,
    PlannerKind::Dflop,
];
/// The search ends with a plan that takes at most this much more than the bound over all layouts.
const CLOSE_TO_BOUND: f64 = 0.01;
/// Candidates of a shortened search, without rollouts.
const QUICK: [PlannerKind; 4] =
    [PlannerKind::OneFOneB, PlannerKind::Interleaved, PlannerKind::WaitFreeCyclic, PlannerKind::PipeWeaver];
/// Phase of the search, for progress.
const PHASE: &str = "trying planners and settings";
/// Settings that planners with a long layout search try.
const EXPENSIVE_SETTINGS: usize = 2;
/// Layouts of other planners that PipeWeaver tries.
const PIPEWEAVER_LAYOUTS: usize = 3;

/// Results of all steps, fastest first.
pub(super) struct Screening {
    pub screened: Vec<Screened>,
    pub steps: Steps,
    /// Number of steps with the settings that all planners try. Times of later steps are of refined settings.
    pub common_steps: u32,
}

/// Steps of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps {
    pub done: u32,
    /// Steps of a search without limit. Smaller searches have fewer if a planner has no layout to try.
    pub total: u32,
    /// Limit of the scenario.
    limit: Option<u32>,
    /// Reason why the search ended early.
    end: Option<EarlyEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EarlyEnd {
    /// The limit of steps of the scenario.
    Limit,
    /// No plan is much faster.
    Bound,
}

impl Steps {
    /// Returns whether the limit ends a search that has a plan. A search without a plan goes on.
    fn is_over(self, has_plan: bool) -> bool {
        has_plan && self.limit.is_some_and(|limit| self.done >= limit)
    }

    /// Number of steps that run at the same time. A search with a limit and no plan yet stops at its first plan.
    fn round(self, has_plan: bool) -> usize {
        match self.limit {
            _ if self.done == 0 => 1,
            Some(_) if !has_plan => 1,
            Some(limit) => (limit.saturating_sub(self.done) as usize).clamp(1, CONCURRENT),
            None => CONCURRENT,
        }
    }

    /// Returns the text of a search that ended early.
    pub(super) fn decision(self) -> Option<String> {
        let Steps { done, total, .. } = self;
        Some(match self.end? {
            EarlyEnd::Limit => format!("The search stopped after {done} of {total} steps, the limit of the scenario."),
            EarlyEnd::Bound => format!(
                "The search stopped after {done} of {total} steps: no plan of any layout is more than {:.0} % faster.",
                100.0 * CLOSE_TO_BOUND
            ),
        })
    }
}

/// Search for the best plan on the sizing batch.
pub(super) struct PlanSearch<'a, 'o> {
    pub context: PlanningContext<'a>,
    observer: &'a mut Budgeted<'o>,
    pub screened: Vec<Screened>,
    /// Plans without a degree or microbatch that the scenario fixes, because their method has no place for it. They are
    /// used if there are no other plans.
    others: Vec<Screened>,
    pub steps: Steps,
    /// Fastest time in s.
    pub fastest: f64,
    /// Fastest time that was reported, in s.
    reported: f64,
    /// Time in s that no plan undercuts.
    bound_s: f64,
}

/// One step of the search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub planner: PlannerKind,
    /// Degrees that are fixed.
    pub request: LayoutRequest,
    pub settings: PlanSettings,
}

impl PlanSearch<'_, '_> {
    /// Plans the sizing batch in each of the steps, several at a time, and reports each plan that is faster than all
    /// before. Plans of `ceiling_s` seconds and more, or far slower than the fastest before a round, are not simulated.
    /// Returns false if the limit of steps ends the search.
    pub(super) fn run(&mut self, mut steps: &[Step], ceiling_s: f64) -> Result<bool, PlanError> {
        while !steps.is_empty() {
            let has_plan = self.has_plan();
            let is_close = self.is_close_to_bound();
            if is_close || self.steps.is_over(has_plan) {
                self.steps.end = Some(if is_close { EarlyEnd::Bound } else { EarlyEnd::Limit });
                return Ok(false);
            }
            let (round, rest) = steps.split_at(self.steps.round(has_plan).min(steps.len()));
            self.observer.progress(PlannerKind::Best, PHASE, self.steps.done, self.steps.total);
            let ceiling_s = ceiling_s.min(close(self.context.scenario) * self.fastest);
            let ceiling =
                if ceiling_s.is_finite() { Seconds::from_secs(ceiling_s).to_nanos() } else { self.context.ceiling };
            let (context, observer): (_, &dyn Observer) = (self.context, &*self.observer);
            let tried = side_by_side(observer.workers(), round.len(), |index| {
                let Step { planner, request, settings } = round[index];
                let scenario = Scenario { layout: request, ..context.scenario.clone() };
                screen(PlanningContext { scenario: &scenario, planner, ceiling, ..context }, &[settings], observer)
            });
            for (step, tried) in round.iter().zip(tried) {
                self.add(step.planner, tried?);
            }
            steps = rest;
        }
        Ok(true)
    }

    /// Returns whether the search ends before its next step.
    pub(super) fn is_over(&self) -> bool {
        self.is_close_to_bound() || self.steps.is_over(self.has_plan())
    }

    fn has_plan(&self) -> bool {
        self.screened.iter().any(|candidate| candidate.time.is_ok())
    }

    fn is_close_to_bound(&self) -> bool {
        self.fastest <= self.bound_s * (1.0 + CLOSE_TO_BOUND)
    }

    /// Returns the candidates for the free settings of a scenario with other degrees.
    pub(super) fn candidates_at(&mut self, scenario: &Scenario) -> Result<Vec<PlanSettings>, Cancelled> {
        if scenario.has_free_settings() {
            let searcher = Searcher { reference: PlannerKind::OneFOneB, reported: PlannerKind::Best };
            let PlanningContext { pricing, batches, .. } = self.context;
            settings_search::candidates(scenario, pricing, batches, searcher, self.observer)
        } else {
            Ok(vec![PlanSettings::from_scenario(scenario)])
        }
    }

    /// Adds the results of a step.
    fn add(&mut self, planner: PlannerKind, tried: Vec<Screened>) {
        self.steps.done += 1;
        self.steps.total = self.steps.total.max(self.steps.done);
        let step = self.steps.done;
        let fixed = self.context.scenario.layout;
        let (tried, others): (Vec<Screened>, Vec<Screened>) = tried
            .into_iter()
            .map(|candidate| Screened { step, ..candidate })
            .partition(|candidate| candidate.layout.is_none_or(|layout| layout.has_fixed(fixed)));
        for candidate in &tried {
            self.fastest = self.fastest.min(candidate.seconds());
            if self.fastest < self.reported {
                self.reported = self.fastest;
                self.observer.improved(BestSoFar { planner, iteration_s: self.fastest, step });
            }
        }
        self.screened.extend(tried);
        self.others.extend(others);
    }
}

/// Plans the sizing batch with every candidate under all settings, then under settings close to the fastest, up to
/// the limit of steps of the scenario, and reports each plan that is faster than the draft and all plans before.
pub(super) fn screen_all(
    context: PlanningContext<'_>,
    (settings, draft_s): (&[PlanSettings], Option<f64>),
    observer: &mut Budgeted<'_>,
) -> Result<Screening, PlanError> {
    let scenario = context.scenario;
    let is_quick = scenario.search.rollouts == 0;
    let candidates: &[PlannerKind] = if is_quick { &QUICK } else { &CANDIDATES };
    // With equal sequences, groups and strategies by length equal those of a static plan with the same degrees, if that
    // can have their microbatches.
    let is_free = scenario.is_free(FreeSetting::ContextParallel) && scenario.layout.microbatch.is_none();
    let is_uniform = is_free && has_equal_sequences(context.batches);
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
    let layouts_of = |planner: PlannerKind| match planner.family() {
        PlannerFamily::PipeWeaver => PIPEWEAVER_LAYOUTS + usize::from(is_small(scenario)),
        _ => 1,
    };
    let total: usize = candidates.iter().map(|&planner| settings_of(planner).len() * layouts_of(planner)).sum();
    let steps = Steps { done: 0, total: total as u32, limit: scenario.search.best_steps, end: None };
    let reported = draft_s.unwrap_or(f64::INFINITY);
    let bound_s = bound::all_layouts(context, std::slice::from_ref(context.batches.sizing), observer)?;
    let (screened, others, fastest) = (Vec::new(), Vec::new(), f64::INFINITY);
    let mut search = PlanSearch { context, observer, screened, others, steps, fastest, reported, bound_s };
    let mut next: Vec<Step> = Vec::new();
    let mut is_over = false;
    for &planner in candidates {
        if search.fastest.is_finite() && is_needless(planner) {
            continue;
        }
        let requests = match planner.family() {
            // Its search of layouts takes minutes, so PipeWeaver uses those that are fastest for other planners.
            PlannerFamily::PipeWeaver => {
                is_over = !search.run(&std::mem::take(&mut next), f64::INFINITY)?;
                pipelines(scenario, &search.screened)
            }
            _ => vec![scenario.layout],
        };
        for request in requests {
            next.extend(settings_of(planner).into_iter().map(|settings| Step { planner, request, settings }));
        }
        // The other steps wait for those of the next planner.
        if next.len() >= CONCURRENT && !is_over {
            is_over = !search.run(&std::mem::take(&mut next), f64::INFINITY)?;
        }
        if is_over {
            break;
        }
    }
    if !is_over {
        search.run(&next, f64::INFINITY)?;
    }
    let common_steps = search.steps.done;
    if !is_quick && search.steps.end.is_none() {
        refine::refine(&mut search)?;
    }
    let PlanSearch { mut screened, others, steps, .. } = search;
    if screened.iter().all(|candidate| candidate.time.is_err()) {
        screened.extend(others);
    }
    // Of plans with equal times, those that offload less are first; others remain in the order of the candidates.
    let fastest = screened.iter().map(Screened::seconds).fold(f64::INFINITY, f64::min);
    let ties = |candidate: &Screened| ((candidate.seconds() / fastest - 1.0) / TIE) as u64;
    screened.sort_by(|a, b| ties(a).cmp(&ties(b)).then_with(|| a.offloaded().total_cmp(&b.offloaded())));
    Ok(Screening { screened, steps, common_steps })
}

/// Returns whether all sequences of the batches have the same shape.
fn has_equal_sequences(batches: Batches<'_>) -> bool {
    let mut sequences = batches.evaluated.iter().chain([batches.sizing]).flat_map(|batch| &batch.sequences);
    sequences.next().is_none_or(|first| sequences.all(|other| other == first))
}

/// Plans the sizing batch with 1F1B and reports the plan, before searches that take seconds. As long as no plan fits,
/// it adds free settings that save memory. Returns the iteration time in s.
pub(in super::super) fn report_draft(
    context: PlanningContext<'_>,
    observer: &mut dyn Observer,
) -> Result<Option<f64>, PlanError> {
    let (planner, scenario) = (PlannerKind::OneFOneB, context.scenario);
    let own = PlanSettings::from_scenario(scenario);
    let mut settings = vec![own];
    let mut extend = |setting: FreeSetting, change: &dyn Fn(PlanSettings) -> PlanSettings| {
        if scenario.is_free(setting) {
            settings.push(change(settings[settings.len() - 1]));
        }
    };
    extend(FreeSetting::Recompute, &|settings| settings.with_recompute(Recompute::Full, None));
    extend(FreeSetting::Zero, &|settings| PlanSettings { zero: 3, ..settings });
    extend(FreeSetting::OptimizerOffload, &|settings| PlanSettings { optimizer_offload: 1.0, ..settings });
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

/// Returns the layouts for PipeWeaver: the degrees of the fastest pipelines so far, each with other TP or PP. In a small
/// search, the layout of the scenario is one of them.
fn pipelines(scenario: &Scenario, screened: &[Screened]) -> Vec<LayoutRequest> {
    let mut fastest: Vec<&Screened> = screened.iter().filter(|candidate| candidate.time.is_ok()).collect();
    fastest.sort_by(|a, b| a.seconds().total_cmp(&b.seconds()));
    let mut requests: Vec<LayoutRequest> = is_small(scenario).then_some(scenario.layout).into_iter().collect();
    let most = requests.len() + PIPEWEAVER_LAYOUTS;
    for layout in fastest.into_iter().filter_map(|candidate| candidate.layout) {
        let request = LayoutRequest {
            tensor: Some(layout.tensor),
            pipeline: Some(layout.pipeline),
            microbatch: Some(layout.microbatch),
            ..scenario.layout
        };
        let has_degrees = |other: &LayoutRequest| (other.tensor, other.pipeline) == (request.tensor, request.pipeline);
        if requests.len() < most && !requests.iter().any(has_degrees) {
            requests.push(request);
        }
    }
    requests
}
