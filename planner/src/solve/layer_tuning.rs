//! Layer tuning: for every stage pair of a rank one of its candidates, so that memory fits and time is short
//! (PipeWeaver, section 6.3).

use serde::{Deserialize, Serialize};

use crate::host::{Watch, Workers};
use crate::scenario::FieldError;
use crate::tuning::{self, Event, PairCost, ProblemError, Settings, TuningProblem};
use crate::units::{Bytes, Seconds};

/// Most candidates of all pairs together.
const CANDIDATES: usize = 200_000;
/// Longest time of a candidate, in seconds.
const LONGEST_S: f64 = 1e6;
/// Partial choices where the question names no number.
const NODES: u64 = 1_000_000;

/// One rank's stage pairs, each a forward and its backward.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Candidates of every pair.
    pub pairs: Vec<Vec<CandidateCost>>,
    /// The rank's order: "F0" is the forward of pair 0, "B0" its backward. This, or `lifetimes`.
    #[serde(default)]
    pub order: Option<Vec<String>>,
    /// Of every pair the instants, on any clock, of its forward's start and its backward's end. What ends at an instant is
    /// still held when another begins at the same one.
    #[serde(default)]
    pub lifetimes: Option<Vec<(f64, f64)>>,
    /// Bytes that may be held at any time.
    pub capacity: u64,
    /// Bytes that are held all the time.
    #[serde(default)]
    pub base: u64,
    /// Distance from the bound, (time - bound) / time, at which to stop.
    #[serde(default)]
    pub gap: f64,
    /// Partial choices that branch and bound may follow.
    #[serde(default)]
    pub nodes: Option<u64>,
}

/// What a pair costs with one of its candidates.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateCost {
    /// Seconds of forward and backward together.
    pub time: f64,
    /// Bytes held from the start of the forward to the end of the backward.
    pub memory: u64,
    /// Bytes held beside them while the backward runs.
    #[serde(default)]
    pub transient: u64,
}

/// The best choice found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What is proven of it: "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// Of every pair the index of its candidate.
    pub choice: Vec<u8>,
    /// Sum of their times.
    pub time_s: f64,
    /// No choice that fits takes less.
    pub lower_bound_s: f64,
    /// (time - bound) / time.
    pub gap: f64,
    /// Most bytes held at once.
    pub peak: u64,
    /// The last solver that ran.
    pub solver: &'static str,
    /// Partial choices looked at.
    pub nodes: u64,
}

/// Chooses a candidate for each pair. The work is bounded by `nodes`; nothing looks at the watch.
///
/// # Errors
/// Names every wrong field; `/capacity` where no choice fits.
pub fn answer(question: &Question, _: &dyn Workers, _: &dyn Watch) -> Result<Answer, Vec<FieldError>> {
    let mut errors = Vec::new();
    costs(question, &mut errors);
    let order = order(question, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let pair = |candidate: &CandidateCost| PairCost {
        time: Seconds::from_secs(candidate.time).to_nanos(),
        memory: Bytes::new(candidate.memory),
        transient: Bytes::new(candidate.transient),
    };
    let pairs = question.pairs.iter().map(|pairs| pairs.iter().map(pair).collect()).collect();
    let problem = TuningProblem::new(pairs, &order, Bytes::new(question.base), Bytes::new(question.capacity))
        .map_err(|error| vec![FieldError::new(&place(&error), error.to_string())])?;
    let settings = Settings { gap: question.gap, nodes: question.nodes.unwrap_or(NODES), ..Settings::default() };
    let tuning = tuning::solve(&problem, &settings)
        .map_err(|infeasible| vec![FieldError::new("/capacity", infeasible.to_string())])?;
    Ok(Answer {
        status: tuning.proof.id(),
        time_s: tuning.time.secs(),
        lower_bound_s: tuning.bound.secs(),
        gap: tuning.gap,
        peak: tuning.peak.get(),
        solver: tuning.solver.id(),
        nodes: tuning.nodes,
        choice: tuning.choice,
    })
}

fn costs(question: &Question, errors: &mut Vec<FieldError>) {
    let mut wrong = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    if question.pairs.iter().map(Vec::len).sum::<usize>() > CANDIDATES {
        wrong("/pairs", format!("has more than {CANDIDATES} candidates"));
    }
    for (pair, candidates) in question.pairs.iter().enumerate() {
        for (at, candidate) in candidates.iter().enumerate() {
            if !(0.0..=LONGEST_S).contains(&candidate.time) {
                let detail = format!("{} is not a time from 0 to {LONGEST_S} s", candidate.time);
                wrong(&format!("/pairs/{pair}/{at}/time"), detail);
            }
        }
    }
    if !(0.0..1.0).contains(&question.gap) {
        wrong("/gap", format!("{} is not from 0 to below 1", question.gap));
    }
}

/// The rank's order, as it is given or from the lifetimes.
fn order(question: &Question, errors: &mut Vec<FieldError>) -> Vec<Event> {
    match (&question.order, &question.lifetimes) {
        (Some(order), None) => of_cells(order, errors),
        (None, Some(lifetimes)) => of_lifetimes(question.pairs.len(), lifetimes, errors),
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

fn of_cells(cells: &[String], errors: &mut Vec<FieldError>) -> Vec<Event> {
    let mut order = Vec::with_capacity(cells.len());
    for (place, cell) in cells.iter().enumerate() {
        let event = match (cell.strip_prefix('F'), cell.strip_prefix('B')) {
            (Some(pair), _) => pair.parse().ok().map(Event::Hold),
            (_, Some(pair)) => pair.parse().ok().map(Event::Release),
            _ => None,
        };
        if let Some(event) = event {
            order.push(event);
        } else {
                let detail = format!("{cell:?} is no action: F or B and the number of a pair");
                errors.push(FieldError::new(&format!("/order/{place}"), detail));
        }
    }
    order
}

fn of_lifetimes(pairs: usize, lifetimes: &[(f64, f64)], errors: &mut Vec<FieldError>) -> Vec<Event> {
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
    events.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    events.into_iter().map(|(.., event)| event).collect()
}

fn place(error: &ProblemError) -> String {
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

    use super::super::tests::{answered, refused};

    /// Two pairs held together, of which room for 10 bytes lets only one be kept: the one that saves 3 s, not 2.
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
    fn the_pair_that_saves_most_is_kept() {
        let answer = answered(&problem());
        assert_eq!((&answer["choice"], &answer["status"]), (&json!([1, 0]), &json!("optimal")));
        assert_eq!((&answer["time_s"], &answer["lower_bound_s"], &answer["peak"]), (&json!(4.0), &json!(4.0), &json!(110)));
    }

    /// The same order by instants; and one behind the other, where both can be kept.
    #[test]
    fn lifetimes_are_an_order() {
        let mut problem = problem();
        problem.as_object_mut().unwrap().remove("order");
        for (lifetimes, choice) in [
            (json!([[0, 9], [1, 5]]), json!([1, 0])),
            (json!([[0, 5], [5, 9]]), json!([1, 0])),
            (json!([[0, 5], [6, 9]]), json!([0, 0])),
        ] {
            problem["lifetimes"] = lifetimes;
            assert_eq!(answered(&problem)["choice"], choice, "{problem}");
        }
    }

    #[test]
    fn every_wrong_field_is_named() {
        for (changed, expected) in [
            (json!({"pairs": [[], []]}), "/pairs/0: pair 0 has no candidate"),
            (json!({"pairs": [[{"time": -1, "memory": 0}], []]}), "/pairs/0/0/time: -1"),
            (json!({"pairs": [[{"time": 1}], []]}), "/pairs/0/0: missing field `memory`"),
            (json!({"order": ["F0", "F1", "X1", "B0"]}), "/order/2: \"X1\" is no action"),
            (json!({"order": ["F0", "F1", "B2", "B0"]}), "/order/2: "),
            (json!({"order": ["F0", "B0"]}), "/order: "),
            (json!({"order": null}), "/order: is missing"),
            (json!({"lifetimes": [[0, 1], [0, 1]]}), "/lifetimes: cannot stand beside"),
            (json!({"order": null, "lifetimes": [[0, 1], [2, 1]]}), "/lifetimes/1: ends at 1, before"),
            (json!({"capacity": 99}), "/capacity: "),
            (json!({"capacity": 103}), "/capacity: the leanest candidates"),
            (json!({"gap": 1.5}), "/gap: 1.5"),
        ] {
            let mut problem = problem();
            for (name, value) in changed.as_object().unwrap() {
                problem[name] = value.clone();
            }
            let told = refused(&problem);
            assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?} {expected:?}");
        }
    }
}
