//! The scenarios of a paper, planned when they are first asked for.

use std::collections::BTreeMap;
use std::path::PathBuf;

use api::papers::PaperPlan;
use planner::analysis::{SearchProgress, SubMicrobatches};
use planner::engine::{Unobserved, plan};
use planner::outcome::{Answer, Outcome, Planned, PlannedTimeline, RankTime};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};
use planner::timeline::Timeline;

use super::published::PlanOf;
use super::studies;
use super::{Error, four_digits};

/// The scenarios in a folder.
pub(super) struct Plans {
    folder: PathBuf,
    planned: BTreeMap<String, PlannedScenario>,
}

/// A scenario and its answer.
pub(super) struct PlannedScenario {
    pub valid: ValidScenario,
    pub outcome: Outcome,
    timelines: Vec<PlannedTimeline>,
    pub search: Option<SearchProgress>,
    pub sizes: Option<SubMicrobatches>,
}

impl Plans {
    /// None planned yet.
    pub(super) const fn of(folder: PathBuf) -> Self {
        Self { folder, planned: BTreeMap::new() }
    }

    /// A scenario by its path below the folder, without ending.
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
        let valid = parse(&text).and_then(|scenario| ValidScenario::new(scenario, &NoDatasets));
        let valid = valid.map_err(|fields| Error::Scenario {
            path,
            field: fields.first().map_or_else(String::new, ToString::to_string),
        })?;
        let planning =
            plan(&valid, &mut Unobserved).map_err(|error| Error::Plan { scenario: name.to_owned(), error })?;
        let (outcome, timelines) = (planning.outcome, planning.timelines);
        Ok(PlannedScenario { valid, outcome, timelines, search: None, sizes: None })
    }

    /// A plan; the reason where the planner has none, or is not asked.
    pub(super) fn planned(&mut self, of: &PlanOf) -> Result<Result<&Planned, NoPlan>, Error> {
        Ok(self.scenario(&of.scenario)?.planned(of.planner))
    }

    /// What the figures of a plan rest on.
    pub(super) fn evidence(&mut self, of: &PlanOf) -> Result<PaperPlan, Error> {
        let (scenario, planner) = (slug(&of.scenario), of.planner);
        let planned = self.planned(of)?;
        Ok(match planned {
            Ok(planned) => PaperPlan {
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
            },
            Err(why) => PaperPlan {
                scenario,
                planner,
                layout: None,
                binding: Some(why.to_string()),
                iteration_s: 0.0,
                mfu: 0.0,
                time: RankTime::default(),
                gap: 0.0,
                peak_memory_gib: 0.0,
                memory_limit_gib: 0.0,
            },
        })
    }
}

/// Why there is no plan to look at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPlan {
    /// The planner found none.
    #[error("no plan: {0}")]
    Infeasible(String),
    /// The scenario does not ask it.
    #[error("the scenario does not ask {}", .0.id())]
    NotAsked(PlannerKind),
}

impl PlannedScenario {
    pub(super) fn planned(&self, planner: PlannerKind) -> Result<&Planned, NoPlan> {
        let result = self.outcome.results.iter().find(|result| result.planner == planner);
        match &result.ok_or(NoPlan::NotAsked(planner))?.answer {
            Answer::Planned(planned) => Ok(planned),
            Answer::Infeasible { binding, .. } => Err(NoPlan::Infeasible(binding.clone())),
        }
    }

    /// Timelines of a planner, by iteration.
    pub(super) fn timelines(&self, planner: PlannerKind) -> impl Iterator<Item = &Timeline> {
        self.timelines.iter().filter(move |of| of.planner == planner).map(|of| &of.timeline)
    }

    /// The search of the ranking of its first batch, made when first asked for.
    pub(super) fn search(&mut self, rollouts: u32) -> Result<&SearchProgress, String> {
        if self.search.is_none() {
            self.search = Some(studies::search(&self.valid, &self.outcome, rollouts)?);
        }
        self.search.as_ref().ok_or_else(String::new)
    }

    /// The sizes of its sub-microbatches in its first batch, studied when first asked for.
    pub(super) fn sizes(&mut self, rollouts: u32) -> Result<&SubMicrobatches, String> {
        if self.sizes.is_none() {
            self.sizes = Some(studies::sizes(&self.valid, &self.outcome, rollouts)?);
        }
        self.sizes.as_ref().ok_or_else(String::new)
    }
}

/// The gallery's name of a scenario, which stands in addresses.
fn slug(scenario: &str) -> String {
    scenario.replace('/', "-")
}

/// Where the time of the mean rank goes.
fn mean(planned: &Planned) -> RankTime {
    let share = 1.0 / planned.ranks.len().max(1) as f64;
    let of = |part: fn(&RankTime) -> f64| {
        four_digits(planned.ranks.iter().map(|rank| part(&rank.time)).sum::<f64>() * share)
    };
    RankTime {
        compute_s: of(|time| time.compute_s),
        recompute_s: of(|time| time.recompute_s),
        exposed_s: of(|time| time.exposed_s),
        sync_s: of(|time| time.sync_s),
        optimizer_s: of(|time| time.optimizer_s),
        bubble_s: of(|time| time.bubble_s),
    }
}
