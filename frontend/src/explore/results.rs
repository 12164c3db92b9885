//! Views of the current outcome for the cards. They share one `Arc`; a copy per card would slow
//! down slider drags.

use std::ops::Deref;
use std::sync::Arc;

use api::job::StoredOutcome;
use api::planner::outcome::{PlanOutcome, Planned, PlannerResult};
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
    pub(crate) fn find_planner(self, planner: PlannerKind) -> Option<ResultRef> {
        let index = self.iter().position(|result| result.planner == planner)?;
        Some(ResultRef { results: self, index })
    }
}

/// Result of a planner.
#[derive(Debug, Clone)]
pub(crate) struct ResultRef {
    results: Results,
    index: usize,
}

impl Deref for ResultRef {
    type Target = PlannerResult;

    fn deref(&self) -> &PlannerResult {
        &self.results[self.index]
    }
}

impl PartialEq for ResultRef {
    fn eq(&self, other: &Self) -> bool {
        let outcomes = self.results.0.as_ref().zip(other.results.0.as_ref());
        let shared = outcomes.is_some_and(|(first, other)| Arc::ptr_eq(first, other));
        (shared && self.index == other.index) || **self == **other
    }
}

impl ResultRef {
    /// Returns the plan, or `None` if the planner found no plan.
    pub(crate) fn plan(self) -> Option<Plan> {
        matches!(self.answer, PlanOutcome::Planned(_)).then_some(Plan(self))
    }
}

/// Validated plan of a planner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan(ResultRef);

impl Deref for Plan {
    type Target = Planned;

    fn deref(&self) -> &Planned {
        match &self.0.answer {
            PlanOutcome::Planned(planned) => planned,
            PlanOutcome::Infeasible { .. } => unreachable!("it was made of a result with a plan"),
        }
    }
}
