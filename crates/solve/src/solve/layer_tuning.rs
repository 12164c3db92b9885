//! Layer tuning: selects a candidate per stage pair on a rank to minimize time within the memory
//! limit (PipeWeaver Sec. 6.3).

use serde::{Deserialize, Serialize};

use super::slices::run_in_slices;
use super::times::time_error;
use planscope_core::host::{Cancellation, Workers};
use planscope_core::optimality::Optimality;
use planscope_planners::planners::pipeweaver::layer_tuning;
use planscope_planners::planners::pipeweaver::layer_tuning::{Event, PairCost, ProblemError, Settings, TuningProblem};
use planscope_plan::scenario::FieldError;
use planscope_core::units::{Bytes, Seconds};

/// Maximum candidates in total.
const CANDIDATES: usize = 200_000;
/// Maximum candidate time in seconds.
const MAX_S: f64 = 1e6;
/// Maximum total time in seconds. An `f64` still represents it exactly in nanoseconds.
const MAX_TOTAL_S: f64 = 9e6;
/// Nodes of the first run within a time budget.
const FIRST_NODES: u64 = 1000;
/// Default node limit.
const NODES: u64 = 1_000_000;

/// Stage pairs on a rank. A pair is a forward and its backward.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Candidates per pair.
    pub pairs: Vec<Vec<CandidateCost>>,
    /// Action order on the rank: "F0" is the forward for pair 0, "B0" its backward. Alternative to
    /// `lifetimes`.
    #[serde(default)]
    pub order: Option<Vec<String>>,
    /// Start of the forward and end of the backward per pair, on an arbitrary clock. If a pair ends
    /// at the time when another pair starts, both occupy memory. Alternative to `order`.
    #[serde(default)]
    pub lifetimes: Option<Vec<(f64, f64)>>,
    /// Memory limit in bytes.
    pub capacity: u64,
    /// Static memory in bytes.
    #[serde(default)]
    pub base: u64,
    /// Target gap, (time - bound) / time.
    #[serde(default)]
    pub gap: f64,
    /// Node limit for branch and bound.
    #[serde(default)]
    pub nodes: Option<u64>,
}

/// Cost of a candidate for a pair.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateCost {
    /// Forward plus backward time in seconds.
    pub time: f64,
    /// Bytes allocated from the start of the forward to the end of the backward.
    pub memory: u64,
    /// Additional bytes during the backward.
    #[serde(default)]
    pub transient: u64,
}

/// Best selection found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Proof status: "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// Candidate index per pair.
    pub choice: Vec<u8>,
    /// Total time in seconds.
    pub time_s: f64,
    /// Lower bound on the total time of any feasible selection, in seconds.
    pub lower_bound_s: f64,
    /// (time - bound) / time.
    pub gap: f64,
    /// Peak memory in bytes.
    pub peak: u64,
    /// The last solver used.
    pub solver: &'static str,
    /// Branch-and-bound nodes visited.
    pub nodes: u64,
}

/// Selects a candidate per pair. Within a time budget, the node limit increases up to `nodes`.
///
/// # Errors
/// Returns all invalid fields, or `/capacity` if no selection is feasible.
pub fn respond(request: &Request, _: &dyn Workers, cancellation: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let mut errors = Vec::new();
    costs(request, &mut errors);
    let order = order(request, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let pair = |candidate: &CandidateCost| PairCost {
        time: Seconds::from_secs(candidate.time).to_nanos(),
        memory: Bytes::new(candidate.memory),
        transient: Bytes::new(candidate.transient),
    };
    let pairs = request.pairs.iter().map(|pairs| pairs.iter().map(pair).collect()).collect();
    let problem = TuningProblem::new(pairs, &order, Bytes::new(request.base), Bytes::new(request.capacity))
        .map_err(|error| vec![FieldError::new(&error_pointer(&error), error.to_string())])?;
    let solve = |nodes: u64| {
        layer_tuning::solve(&problem, &Settings { gap: request.gap, nodes, ..Settings::default() })
    };
    let is_final = |found: &Result<layer_tuning::Tuning, _>| {
        found.as_ref().map_or(true, |tuning| tuning.optimality != Optimality::Heuristic)
    };
    let nodes = request.nodes.unwrap_or(NODES);
    let tuning = run_in_slices((FIRST_NODES.min(nodes), nodes), cancellation, is_final, solve)
        .map_err(|infeasible| vec![FieldError::new("/capacity", infeasible.to_string())])?;
    Ok(Response {
        status: tuning.optimality.id(),
        time_s: tuning.time.secs(),
        lower_bound_s: tuning.bound.secs(),
        gap: tuning.gap,
        peak: tuning.peak.get(),
        solver: tuning.solver.id(),
        nodes: tuning.nodes,
        choice: tuning.selection,
    })
}

fn costs(request: &Request, errors: &mut Vec<FieldError>) {
    let mut wrong = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    if request.pairs.iter().map(Vec::len).sum::<usize>() > CANDIDATES {
        wrong("/pairs", format!("has more than {CANDIDATES} candidates"));
    }
    for (pair, candidates) in request.pairs.iter().enumerate() {
        for (at, candidate) in candidates.iter().enumerate() {
            if !(0.0..=MAX_S).contains(&candidate.time) {
                let detail = format!("{} is not a time from 0 to {MAX_S} s", candidate.time);
                wrong(&format!("/pairs/{pair}/{at}/time"), detail);
            } else if let Some(detail) = time_error(candidate.time) {
                wrong(&format!("/pairs/{pair}/{at}/time"), detail);
            }
        }
    }
    let longest = |candidates: &Vec<CandidateCost>| candidates.iter().map(|candidate| candidate.time).fold(0.0, f64::max);
    let total: f64 = request.pairs.iter().map(longest).sum();
    if total > MAX_TOTAL_S {
        let detail = format!("the longest candidates together take {total:e} s, more than {MAX_TOTAL_S:e}");
        wrong("/pairs", detail);
    }
    if !(0.0..1.0).contains(&request.gap) {
        wrong("/gap", format!("{} is not from 0 to below 1", request.gap));
    }
}

/// Returns the given order, or derives it from the lifetimes.
fn order(request: &Request, errors: &mut Vec<FieldError>) -> Vec<Event> {
    match (&request.order, &request.lifetimes) {
        (Some(order), None) => events_from_cells(order, errors),
        (None, Some(lifetimes)) => events_from_lifetimes(request.pairs.len(), lifetimes, errors),
        (Some(_), Some(_)) => {
            errors.push(FieldError::new("/lifetimes", "cannot stand beside /order".to_owned()));
            Vec::new()
        }
        (None, None) => {
            errors.push(FieldError::new("/order", "is missing: this or /lifetimes".to_owned()));
            Vec::new()
        }
    }
}

fn events_from_cells(cells: &[String], errors: &mut Vec<FieldError>) -> Vec<Event> {
    let mut order = Vec::with_capacity(cells.len());
    for (index, cell) in cells.iter().enumerate() {
        let event = match (cell.strip_prefix('F'), cell.strip_prefix('B')) {
            (Some(pair), _) => pair.parse().ok().map(Event::Hold),
            (_, Some(pair)) => pair.parse().ok().map(Event::Release),
            _ => None,
        };
        if let Some(event) = event {
            order.push(event);
        } else {
            let detail = format!("{cell:?} is no action: F or B and the number of a pair");
            errors.push(FieldError::new(&format!("/order/{index}"), detail));
        }
    }
    order
}

fn events_from_lifetimes(pairs: usize, lifetimes: &[(f64, f64)], errors: &mut Vec<FieldError>) -> Vec<Event> {
    if lifetimes.len() != pairs {
        errors.push(FieldError::new("/lifetimes", format!("has {} pairs, /pairs has {pairs}", lifetimes.len())));
    }
    let mut events = Vec::with_capacity(2 * lifetimes.len());
    for (pair, &(start, end)) in lifetimes.iter().enumerate() {
        if !(start.is_finite() && end.is_finite() && start <= end) {
            let detail = format!("ends at {end}, before it starts at {start}");
            errors.push(FieldError::new(&format!("/lifetimes/{pair}"), detail));
        }
        events.push((start, 0, Event::Hold(pair as u32)));
        events.push((end, 1, Event::Release(pair as u32)));
    }
    events.sort_by(|left, other| left.0.total_cmp(&other.0).then(left.1.cmp(&other.1)));
    events.into_iter().map(|(.., event)| event).collect()
}

fn error_pointer(error: &ProblemError) -> String {
    match error {
        ProblemError::NoCandidate { pair } | ProblemError::TooManyCandidates { pair, .. } => format!("/pairs/{pair}"),
        ProblemError::UnknownPair { event, .. }
        | ProblemError::Twice { event, .. }
        | ProblemError::BackwardFirst { event, .. } => format!("/order/{event}"),
        ProblemError::Missing { .. } => "/order".to_owned(),
        ProblemError::TooLarge => "/pairs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{answered, validation_errors};

    /// Two pairs overlap in time. A limit of 10 bytes permits storing only one: the pair that saves
    /// 3 s instead of 2 s.
    fn problem() -> Value {
        json!({
            "kind": "layer-tuning",
            "pairs": [
                [{"time": 1, "memory": 8}, {"time": 3, "memory": 2}],
                [{"time": 1, "memory": 8}, {"time": 4, "memory": 2}],
            ],
            "order": ["F0", "F1", "B1", "B0"],
            "capacity": 110, "base": 100,
        })
    }

    #[test]
    fn the_pair_with_the_larger_saving_is_stored() {
        let response = answered(&problem());
        assert_eq!((&response["choice"], &response["status"]), (&json!([1, 0]), &json!("optimal")));
        assert_eq!(
            (&response["time_s"], &response["lower_bound_s"], &response["peak"]),
            (&json!(4.0), &json!(4.0), &json!(110))
        );
    }

    /// The same order, given by lifetimes. If the pairs run sequentially, both can be stored.
    #[test]
    fn lifetimes_are_an_order() {
        let mut problem = problem();
        problem.as_object_mut().unwrap().remove("order");
        for (lifetimes, selection) in [
            (json!([[0, 9], [1, 5]]), json!([1, 0])),
            (json!([[0, 5], [5, 9]]), json!([1, 0])),
            (json!([[0, 5], [6, 9]]), json!([0, 0])),
        ] {
            problem["lifetimes"] = lifetimes;
            assert_eq!(answered(&problem)["choice"], selection, "{problem}");
        }
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (changed, expected) in [
            (json!({"pairs": [[], []]}), "/pairs/0: pair 0 has no candidate"),
            (json!({"pairs": [[{"time": -1, "memory": 0}], []]}), "/pairs/0/0/time: -1"),
            (json!({"pairs": [[{"time": 1}], []]}), "/pairs/0/0/memory: is missing"),
            (json!({"order": ["F0", "F1", "X1", "B0"]}), "/order/2: \"X1\" is no action"),
            (json!({"order": ["F0", "F1", "B2", "B0"]}), "/order/2: "),
            (json!({"order": ["F0", "B0"]}), "/order: "),
            (json!({"order": null}), "/order: is missing"),
            (json!({"lifetimes": [[0, 1], [0, 1]]}), "/lifetimes: cannot stand beside"),
            (json!({"order": null, "lifetimes": [[0, 1], [2, 1]]}), "/lifetimes/1: ends at 1, before"),
            (json!({"capacity": 99}), "/capacity: "),
            (json!({"capacity": 103}), "/capacity: the leanest candidates"),
            (json!({"gap": 1.5}), "/gap: 1.5"),
            (json!({"pairs": [[{"time": 1e-12, "memory": 0}], [{"time": 1, "memory": 0}]]}), "/pairs/0/0/time: 1e-12 s"),
        ] {
            let mut problem = problem();
            for (name, value) in changed.as_object().unwrap() {
                problem[name] = value.clone();
            }
            let errors = validation_errors(&problem);
            assert!(errors.len() == 1 && errors[0].starts_with(expected), "{errors:?} {expected:?}");
        }
    }
}
