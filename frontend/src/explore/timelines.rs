//! State machine that loads the timelines of an iteration: first timelines and overviews of large
//! timelines, then the large timelines one after another.
//!
//! The machine has no side effects. [`super::iterations`] executes its effects.

use std::collections::VecDeque;
use std::sync::Arc;

use api::job::StoredOutcome;
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;

use crate::client::RequestError;

/// Timelines of an iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct DisplayedIteration {
    pub(crate) iteration: u32,
    /// Planners with a plan, in result order.
    pub(crate) planners: Vec<PlannerKind>,
    /// Loaded timelines by planner.
    pub(crate) timelines: Vec<(PlannerKind, Arc<Timeline>)>,
    /// Overviews of large timelines.
    pub(crate) overviews: Vec<(PlannerKind, Arc<Overview>)>,
}

impl DisplayedIteration {
    /// Returns the timeline of a planner.
    pub(crate) fn timeline(&self, planner: PlannerKind) -> Option<Arc<Timeline>> {
        self.timelines.iter().find(|(kind, _)| *kind == planner).map(|(_, timeline)| Arc::clone(timeline))
    }

    /// Returns the overview of a planner's timeline.
    pub(crate) fn overview(&self, planner: PlannerKind) -> Option<Arc<Overview>> {
        self.overviews.iter().find(|(kind, _)| *kind == planner).map(|(_, overview)| Arc::clone(overview))
    }

    /// Returns true if the timelines of all given planners are loaded.
    pub(super) fn has_all(&self, mut planners: impl Iterator<Item = PlannerKind>) -> bool {
        planners.all(|planner| self.timelines.iter().any(|(kind, _)| *kind == planner))
    }

    /// Compares the timelines by pointer.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.timelines.iter().zip(&other.timelines);
        self.timelines.len() == other.timelines.len()
            && pairs.into_iter().all(|((_, left), (_, two))| Arc::ptr_eq(left, two))
    }

    /// Maximum makespan.
    pub(crate) fn extent_ns(&self) -> u64 {
        let makespans = self.timelines.iter().map(|(_, timeline)| timeline.makespan_ns);
        makespans.chain(self.overviews.iter().map(|(_, overview)| overview.makespan_ns)).max().unwrap_or(0)
    }

    /// Adds the timeline of a planner in result order, unless it is already loaded.
    pub(super) fn insert(&mut self, planner: PlannerKind, timeline: Arc<Timeline>) {
        if self.timeline(planner).is_some() {
            return;
        }
        self.timelines.push((planner, timeline));
        let position = |kind: PlannerKind| self.planners.iter().position(|planner| *planner == kind);
        self.timelines.sort_by_key(|(planner, _)| position(*planner));
    }
}

/// Clamps the requested iteration to the last iteration of the outcome, because a link may contain
/// a larger index.
pub(super) fn clamped_iteration(outcome: &StoredOutcome, requested: Option<u32>) -> u32 {
    let last = u32::try_from(outcome.outcome.batches.len()).unwrap_or(u32::MAX).saturating_sub(1);
    requested.unwrap_or(0).min(last)
}

/// Identifies a load. Results of other loads are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LoadNumber(u64);

/// Event of the loader.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// A new outcome is to be shown with the timelines of an iteration.
    OutcomeArrived { outcome: Arc<StoredOutcome>, iteration: Option<u32> },
    /// The user selects an iteration of the shown outcome.
    IterationSelected { outcome: Arc<StoredOutcome>, iteration: u32 },
    /// The timelines and overviews of the iteration are loaded.
    Loaded(Result<DisplayedIteration, RequestError>),
    /// A large timeline is loaded.
    TimelineLoaded(PlannerKind, Result<Arc<Timeline>, RequestError>),
    /// Another scenario is opened or edited.
    Abandoned,
}

/// Action that the page executes.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    /// Fetches timelines and overviews of an iteration.
    Fetch {
        outcome: Arc<StoredOutcome>,
        iteration: u32,
    },
    /// Fetches a large timeline.
    FetchTimeline {
        scenario: String,
        planner: PlannerKind,
        iteration: u32,
    },
    /// Shows a new outcome with its timelines, so that table and charts update together.
    ShowOutcome {
        outcome: Arc<StoredOutcome>,
        timelines: DisplayedIteration,
        error: Option<RequestError>,
    },
    /// Shows the timelines of another iteration.
    ShowIteration(DisplayedIteration),
    /// Adds a large timeline to the shown iteration.
    AddTimeline(PlannerKind, Arc<Timeline>),
    ShowError(RequestError),
}

#[derive(Debug, Clone)]
enum State {
    Idle,
    /// Fetches timelines and overviews. `is_new` is true if the outcome is not yet shown.
    Loading {
        outcome: Arc<StoredOutcome>,
        iteration: u32,
        is_new: bool,
    },
    /// Fetches the timelines whose overviews are shown.
    Completing {
        scenario: String,
        iteration: u32,
        remaining: VecDeque<PlannerKind>,
    },
}

/// Loader of timelines.
#[derive(Debug, Clone)]
pub(super) struct TimelineLoader {
    number: LoadNumber,
    state: State,
}

impl Default for TimelineLoader {
    fn default() -> Self {
        Self { number: LoadNumber::default(), state: State::Idle }
    }
}

impl TimelineLoader {
    /// Number of the current load. Effects report it with their result.
    pub(super) const fn number(&self) -> LoadNumber {
        self.number
    }

    /// Handles the result of an effect of load `number`.
    pub(super) fn respond(&mut self, number: LoadNumber, event: Event) -> Vec<Effect> {
        if number == self.number { self.handle(event) } else { Vec::new() }
    }

    /// Handles an event.
    pub(super) fn handle(&mut self, event: Event) -> Vec<Effect> {
        match (std::mem::replace(&mut self.state, State::Idle), event) {
            (_, Event::OutcomeArrived { outcome, iteration }) => {
                let iteration = clamped_iteration(&outcome, iteration);
                self.load(outcome, iteration, true)
            }
            // The new outcome is shown with the selected iteration.
            (State::Loading { outcome, is_new: true, .. }, Event::IterationSelected { iteration, .. }) => {
                let iteration = clamped_iteration(&outcome, Some(iteration));
                self.load(outcome, iteration, true)
            }
            (_, Event::IterationSelected { outcome, iteration }) => {
                let iteration = clamped_iteration(&outcome, Some(iteration));
                self.load(outcome, iteration, false)
            }
            (State::Loading { outcome, iteration, is_new }, Event::Loaded(result)) => {
                self.show(outcome, iteration, is_new, result)
            }
            (State::Completing { scenario, iteration, mut remaining }, Event::TimelineLoaded(planner, result)) => {
                remaining.retain(|kind| *kind != planner);
                let mut effects = vec![match result {
                    Ok(timeline) => Effect::AddTimeline(planner, timeline),
                    // The overview stays visible.
                    Err(error) => Effect::ShowError(error),
                }];
                effects.extend(self.complete(scenario, iteration, remaining));
                effects
            }
            (_, Event::Abandoned) => {
                self.number.0 += 1;
                Vec::new()
            }
            (state, Event::Loaded(_) | Event::TimelineLoaded(..)) => {
                self.state = state;
                Vec::new()
            }
        }
    }

    fn load(&mut self, outcome: Arc<StoredOutcome>, iteration: u32, is_new: bool) -> Vec<Effect> {
        self.number.0 += 1;
        self.state = State::Loading { outcome: Arc::clone(&outcome), iteration, is_new };
        vec![Effect::Fetch { outcome, iteration }]
    }

    fn show(
        &mut self,
        outcome: Arc<StoredOutcome>,
        iteration: u32,
        is_new: bool,
        result: Result<DisplayedIteration, RequestError>,
    ) -> Vec<Effect> {
        let (timelines, error) = match result {
            Ok(timelines) => (timelines, None),
            Err(error) if !is_new => return vec![Effect::ShowError(error)],
            Err(error) => (DisplayedIteration { iteration, ..DisplayedIteration::default() }, Some(error)),
        };
        let scenario = outcome.outcome.scenario.clone();
        let remaining = timelines.overviews.iter().map(|(planner, _)| *planner).collect();
        let mut effects = vec![if is_new {
            Effect::ShowOutcome { outcome, timelines, error }
        } else {
            Effect::ShowIteration(timelines)
        }];
        effects.extend(self.complete(scenario, iteration, remaining));
        effects
    }

    fn complete(&mut self, scenario: String, iteration: u32, remaining: VecDeque<PlannerKind>) -> Option<Effect> {
        let planner = *remaining.front()?;
        let effect = Effect::FetchTimeline { scenario: scenario.clone(), planner, iteration };
        self.state = State::Completing { scenario, iteration, remaining };
        Some(effect)
    }
}

#[cfg(test)]
mod tests;
