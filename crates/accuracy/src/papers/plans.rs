//! Lazily planned scenarios of a paper.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use api::papers::PaperPlan;
use planner::analysis::{SearchProgress, SubMicrobatches};
use planner::engine::plan;
use planner::outcome::{Outcome, PlanOutcome, Planned, PlannedTimeline, RankTime};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, Scenario, ValidScenario, parse};
use planner::timeline::Timeline;

use super::clock::PlanningClock;
use super::published::{PlanReference, PublishedFigure, PublishedPaper};
use super::studies;
use super::{Error, four_digits};

/// Planners and timelines that the figures of a paper need, by scenario.
#[derive(Debug, Default)]
pub(super) struct Needs {
    planners: BTreeMap<String, BTreeSet<PlannerKind>>,
    timelines: BTreeSet<String>,
}

impl Needs {
    /// Returns the needs of all figures.
    pub(super) fn of_all(paper: &PublishedPaper) -> Self {
        Self::of(paper.sets.iter().flat_map(|set| &set.figures))
    }

    /// Returns the needs of the figures.
    pub(super) fn of<'a>(figures: impl Iterator<Item = &'a PublishedFigure>) -> Self {
        let mut needs = Self::default();
        for quantity in figures.map(|figure| &figure.quantity) {
            for plan in quantity.plans().into_iter().chain(quantity.opponents()) {
                if quantity.needs_timelines() {
                    needs.timelines.insert(plan.scenario.clone());
                }
                needs.planners.entry(plan.scenario).or_default().insert(plan.planner);
            }
        }
        needs
    }
}

/// Scenarios in a folder, with their plans.
pub(super) struct Plans<'a> {
    folder: PathBuf,
    needs: &'a Needs,
    /// Added to the seed of each scenario. For 0, all planners of a scenario are planned, and
    /// otherwise only the needed planners.
    offset: u32,
    planned: BTreeMap<String, PlannedScenario>,
}

/// Scenario and outcome.
pub(super) struct PlannedScenario {
    pub valid: ValidScenario,
    pub outcome: Outcome,
    /// Planning times per batch.
    pub clock: PlanningClock,
    timelines: Vec<PlannedTimeline>,
    pub search: Option<SearchProgress>,
    pub sizes: Option<SubMicrobatches>,
}

impl<'a> Plans<'a> {
    pub(super) const fn new(folder: PathBuf, needs: &'a Needs, offset: u32) -> Self {
        Self { folder, needs, offset, planned: BTreeMap::new() }
    }

    /// Returns a scenario by its path in the folder, without file extension.
    pub(super) fn scenario(&mut self, name: &str) -> Result<&mut PlannedScenario, Error> {
        if !self.planned.contains_key(name) {
            let planned = self.plan(name)?;
            self.planned.insert(name.to_owned(), planned);
        }
        Ok(self.planned.get_mut(name).expect("it was put there"))
    }

    fn plan(&self, name: &str) -> Result<PlannedScenario, Error> {
        let path = self.folder.join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path).map_err(|error| Error::File { path: path.clone(), error })?;
        let valid = parse(&text).and_then(|mut scenario| {
            self.adapt(name, &mut scenario);
            ValidScenario::new(scenario, &NoDatasets)
        });
        let valid = valid.map_err(|fields| Error::Scenario {
            path,
            field: fields.first().map_or_else(String::new, ToString::to_string),
        })?;
        let mut clock = PlanningClock::default();
        let planning = plan(&valid, &mut clock).map_err(|error| Error::Plan { scenario: name.to_owned(), error })?;
        let (outcome, mut timelines) = (planning.outcome, planning.timelines);
        if !self.needs.timelines.contains(name) {
            timelines.clear();
        }
        Ok(PlannedScenario { valid, outcome, clock, timelines, search: None, sizes: None })
    }

    /// Sets the seed, and adds needed planners that the scenario does not request.
    fn adapt(&self, name: &str, scenario: &mut Scenario) {
        scenario.seed = scenario.seed.wrapping_add(self.offset);
        let Some(needed) = self.needs.planners.get(name) else { return };
        if self.offset > 0 {
            scenario.planners.retain(|planner| needed.contains(planner));
        }
        let missing: Vec<PlannerKind> =
            needed.iter().copied().filter(|planner| !scenario.planners.contains(planner)).collect();
        scenario.planners.extend(missing);
    }

    /// Returns a plan.
    pub(super) fn planned(&mut self, of: &PlanReference) -> Result<&Planned, Unavailable> {
        self.scenario(&of.scenario)?.planned(of.planner)
    }

    /// Returns the source of the figures in a plan.
    pub(super) fn evidence(&mut self, reference: &PlanReference) -> Result<PaperPlan, Error> {
        let (scenario, planner) = (slug(&reference.scenario), reference.planner);
        let binding = match self.planned(reference) {
            Ok(planned) => {
                return Ok(PaperPlan {
                    scenario,
                    planner,
                    layout: Some(planned.layout),
                    binding: None,
                    iteration_s: four_digits(planned.metrics.iteration_s),
                    mfu: four_digits(planned.metrics.mfu),
                    time: mean(planned),
                    gap: four_digits(planned.metrics.gap),
                    peak_memory_gib: four_digits(planned.metrics.peak_memory_gib),
                    memory_limit_gib: four_digits(planned.metrics.memory_limit_gib),
                });
            }
            Err(Unavailable::Error(error)) => return Err(error),
            Err(unavailable) => unavailable.to_string(),
        };
        Ok(PaperPlan {
            scenario,
            planner,
            layout: None,
            binding: Some(binding),
            iteration_s: 0.0,
            mfu: 0.0,
            time: RankTime::default(),
            gap: 0.0,
            peak_memory_gib: 0.0,
            memory_limit_gib: 0.0,
        })
    }
}

/// Error for a value or chart that cannot be computed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unavailable {
    /// The planner finds no feasible plan. This is a valid result.
    #[error("no plan: {0}")]
    Infeasible(String),
    /// The value or chart does not apply to the scenario. This is an error in the file.
    #[error("{0}")]
    Inapplicable(String),
    /// Planning fails.
    #[error(transparent)]
    Error(#[from] Error),
}

impl From<String> for Unavailable {
    fn from(reason: String) -> Self {
        Self::Inapplicable(reason)
    }
}

impl PlannedScenario {
    pub(super) fn planned(&self, planner: PlannerKind) -> Result<&Planned, Unavailable> {
        let result = self.outcome.results.iter().find(|result| result.planner == planner);
        let result = result.ok_or_else(|| format!("the scenario does not request {}", planner.id()))?;
        match &result.answer {
            PlanOutcome::Planned(planned) => Ok(planned),
            PlanOutcome::Infeasible { binding, .. } => Err(Unavailable::Infeasible(binding.clone())),
        }
    }

    /// Returns the timelines of a planner, by iteration.
    pub(super) fn timelines(&self, planner: PlannerKind) -> impl Iterator<Item = &Timeline> {
        self.timelines.iter().filter(move |entry| entry.planner == planner).map(|entry| &entry.timeline)
    }

    /// Returns the ranking search for the first batch. It runs at the first call.
    pub(super) fn search(&mut self, rollouts: u32) -> Result<&SearchProgress, String> {
        if self.search.is_none() {
            self.search = Some(studies::search(&self.valid, &self.outcome, rollouts)?);
        }
        self.search.as_ref().ok_or_else(String::new)
    }

    /// Returns the sub-microbatch size study for the first batch. It runs at the first call.
    pub(super) fn sizes(&mut self, rollouts: u32) -> Result<&SubMicrobatches, String> {
        if self.sizes.is_none() {
            self.sizes = Some(studies::sizes(&self.valid, &self.outcome, rollouts)?);
        }
        self.sizes.as_ref().ok_or_else(String::new)
    }
}

/// Returns the gallery identifier used in URLs.
fn slug(scenario: &str) -> String {
    scenario.replace('/', "-")
}

/// Returns the time breakdown averaged over the ranks.
fn mean(planned: &Planned) -> RankTime {
    let share = 1.0 / planned.ranks.len().max(1) as f64;
    let average = |part: fn(&RankTime) -> f64| {
        four_digits(planned.ranks.iter().map(|rank| part(&rank.time)).sum::<f64>() * share)
    };
    RankTime {
        compute_s: average(|time| time.compute_s),
        recompute_s: average(|time| time.recompute_s),
        exposed_s: average(|time| time.exposed_s),
        sync_s: average(|time| time.sync_s),
        optimizer_s: average(|time| time.optimizer_s),
        bubble_s: average(|time| time.bubble_s),
    }
}
