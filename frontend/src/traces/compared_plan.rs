//! Plan that a trace is compared with.

use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

/// Scenario and planner, by the user's choice.
#[derive(Clone, Copy)]
pub(crate) struct ComparedPlan {
    /// Scenario identifier.
    pub(crate) scenario: RwSignal<Option<String>>,
    /// Planner, or `None` for the fastest.
    pub(crate) planner: RwSignal<Option<PlannerKind>>,
    /// Scenario whose plans are on the server.
    pub(crate) planned: RwSignal<Option<String>>,
    /// Choice that is not stored with the trace: the last one, and one that came with the page.
    pub(crate) known: StoredValue<Choice>,
}

/// Scenario identifier and planner.
pub(crate) type Choice = (Option<String>, Option<PlannerKind>);

impl ComparedPlan {
    pub(crate) fn new(scenario: Option<String>, planner: Option<PlannerKind>) -> Self {
        Self {
            scenario: RwSignal::new(scenario.clone()),
            planner: RwSignal::new(planner),
            planned: RwSignal::new(None),
            known: StoredValue::new((scenario, planner)),
        }
    }

    /// Returns scenario and planner when the scenario is planned.
    pub(crate) fn ready(self) -> Option<(String, Option<PlannerKind>)> {
        let scenario = self.scenario.get()?;
        let is_planned = self.planned.with(|planned| planned.as_ref() == Some(&scenario));
        is_planned.then(|| (scenario, self.planner.get()))
    }
}
