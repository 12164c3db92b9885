//! Changes that save most time together.

use serde_json::Value;

use super::risk::Risk;
use super::{
    Change, Combination, FieldChange, FitResult, MIN_SHARE, Watch, apply, evaluate, found_fields, planner_after,
};
use planscope_analysis::analysis::AnalysisError;
use planscope_core::host::{SequentialWorkers, side_by_side};
use planscope_plan::certainty::RISK;
use planscope_plan::scenario::{PlannerKind, ValidScenario};

/// Number of changes from which a combination starts. The fastest single change can fill the memory, so that no other
/// one fits with it.
const STARTS: usize = 3;

/// Combines changes of a scenario.
pub(super) struct Combining<'a> {
    pub document: &'a Value,
    pub valid: &'a ValidScenario,
    pub planner: PlannerKind,
    pub risk: Risk,
    /// Changes with their indices, in the order of the list.
    pub candidates: Vec<(u32, &'a Change)>,
    pub watch: &'a Watch<'a>,
}

/// Changes and their result.
type Combined = (Vec<u32>, FitResult);

impl Combining<'_> {
    /// Returns the fastest combination of two or more changes, if no single change is faster. One that is at risk of running
    /// out of memory is worse than one that is not.
    pub(super) fn best(&self, base_s: Option<f64>) -> Result<Option<Combination>, AnalysisError> {
        let starts = self.candidates.len().min(STARTS);
        let found = side_by_side(self.watch.workers, starts, |start| self.starting_at(start));
        let key = |result: &FitResult| (self.risk.of(result) > RISK, result.iteration_s.unwrap_or(f64::INFINITY));
        let mut best: Option<Combined> = None;
        for combined in found {
            let Some(combined) = combined?.filter(|(indices, _)| indices.len() > 1) else { continue };
            if best.as_ref().is_none_or(|(_, best)| key(&combined.1) < key(best)) {
                best = Some(combined);
            }
        }
        let is_fastest =
            |(_, combined): &Combined| self.candidates.iter().all(|(_, change)| key(combined) < key(&change.result));
        Ok(best.filter(is_fastest).map(|(mut changes, result)| {
            changes.sort_unstable();
            let difference_s = result.iteration_s.zip(base_s).map(|(seconds, base)| seconds - base);
            Combination { changes, result, difference_s }
        }))
    }

    /// Adds changes to that at position `start` in the order of the list, while the sum saves time and adds no risk.
    fn starting_at(&self, start: usize) -> Result<Option<Combined>, AnalysisError> {
        let (first, change) = self.candidates[start];
        let Some(mut changed) = apply(self.document, &found_fields(change)) else { return Ok(None) };
        let (mut indices, mut best) = (vec![first], change.result.clone());
        let watch = Watch { workers: &SequentialWorkers, ..*self.watch };
        for &(index, change) in self.candidates.iter().filter(|(index, _)| *index != first) {
            // A pointer to a group of fields compares all of them.
            let is_free =
                |field: &FieldChange| self.document.pointer(&field.pointer) == changed.pointer(&field.pointer);
            if !change.fields.iter().all(is_free) {
                continue;
            }
            let Some(candidate) = apply(&changed, &found_fields(change)) else { continue };
            let planner = planner_after(&candidate, self.document, self.planner);
            let Some(evaluated) = evaluate(&candidate, self.valid, planner, &watch)? else { continue };
            let result = evaluated.result;
            let is_faster = |seconds: f64| best.iteration_s.is_none_or(|best| seconds < best * (1.0 - MIN_SHARE));
            let adds_risk = self.risk.of(&result) > RISK.max(self.risk.of(&best));
            if result.iteration_s.is_some_and(is_faster) && !adds_risk {
                indices.push(index);
                (changed, best) = (candidate, result);
            }
        }
        Ok(Some((indices, best)))
    }
}
