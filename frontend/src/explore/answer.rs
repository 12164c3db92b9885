//! Views of the current outcome for the cards. They share one `Arc`; a copy per card would slow
//! down slider drags.

use std::ops::Deref;
use std::sync::Arc;

use api::job::StoredOutcome;
use api::planner::outcome::{Answer, Planned, PlannerResult};
use api::planner::scenario::PlannerKind;

/// Results of the outcome, fastest first. Empty before the first outcome.
#[derive(Debug, Clone)]
pub(crate) struct Results(pub(super) Option<Arc<StoredOutcome>>);

impl Deref for Results {
    type Target = [PlannerResult];

    fn deref(&self) -> &[PlannerResult] {
        self.0.as_ref().map_or(&[], |outcome| &outcome.outcome.results)
    }
}

impl Results {
    /// Returns the result of a planner.
    pub(crate) fn of(self, planner: PlannerKind) -> Option<OneResult> {
        let place = self.iter().position(|result| result.planner == planner)?;
        Some(OneResult { results: self, place })
    }
}

/// Result of a planner.
#[derive(Debug, Clone)]
pub(crate) struct OneResult {
    results: Results,
    place: usize,
}

impl Deref for OneResult {
    type Target = PlannerResult;

    fn deref(&self) -> &PlannerResult {
        &self.results[self.place]
    }
}

impl PartialEq for OneResult {
    fn eq(&self, other: &Self) -> bool {
        let one = self.results.0.as_ref().zip(other.results.0.as_ref());
        let shared = one.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        (shared && self.place == other.place) || **self == **other
    }
}

impl OneResult {
    /// Returns the plan, or `None` if the planner found no plan.
    pub(crate) fn plan(self) -> Option<Plan> {
        matches!(self.answer, Answer::Planned(_)).then_some(Plan(self))
    }
}

/// Validated plan of a planner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan(OneResult);

impl Deref for Plan {
    type Target = Planned;

    fn deref(&self) -> &Planned {
        match &self.0.answer {
            Answer::Planned(planned) => planned,
            Answer::Infeasible { .. } => unreachable!("it was made of a result with a plan"),
        }
    }
}
