//! Requests to the schedule comparison and to the solver, action times, formulas.

use planner::cost::overrides::Formula;
use planner::schedule_comparison;
use planner::schedule_comparison::{Limits, ValidRequest};
use planner::solve;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match schedule_comparison::parse(text) {
        Ok(question) => drop(ValidRequest::new(question, Limits::SERVED)),
        Err(errors) => assert!(!errors.is_empty()),
    }
    if let Err(errors) = schedule_comparison::parse_times(text) {
        assert!(!errors.is_empty());
    }
    if let Err(errors) = solve::parse(text) {
        assert!(!errors.is_empty());
    }
    drop(Formula::parse(text));
}
