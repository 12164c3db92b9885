//! Uneven pipelines: computes the action order per rank from the time per microbatch and stage.

use serde::{Deserialize, Serialize};

use super::times::time_error;
use planscope_core::action::Schedule;
use planscope_cost::cost::{PipelineCosts, UniformTimes};
use crate::exact::{self, Budget, Ending, Exact};
use planscope_core::host::{Cancellation, Workers};
use planscope_plan::scenario::FieldError;
use planscope_pipeline::schedule::{Grouping, interleaved, one_f_one_b};
use planscope_pipeline::simulate::{Execution, execute, peak_memory};
use planscope_core::units::{Bytes, Nanos, Seconds};

/// Maximum ranks.
const RANKS: u32 = 1024;
/// Maximum microbatches x stages.
const CELLS: usize = 50_000;
/// Maximum total time in seconds. An `f64` still represents it exactly in nanoseconds.
const MAX_S: f64 = 9e6;

/// An uneven pipeline. Stage `s` runs on rank `s mod ranks`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Pipeline ranks, p.
    pub ranks: u32,
    /// Forward seconds by microbatch and stage. The number of stages must be a multiple of `ranks`.
    pub forward: Vec<Vec<f64>>,
    /// Backward seconds by microbatch and stage.
    pub backward: Vec<Vec<f64>>,
    /// Maximum activations in flight per rank. An activation is in flight between forward and
    /// backward, per microbatch and stage. A single number for all ranks, or a list.
    #[serde(default)]
    pub max_in_flight: Option<InFlight>,
    /// Transfer time for an activation or a gradient between ranks, in seconds. A rank sends one
    /// tensor at a time.
    #[serde(default)]
    pub send: f64,
    /// Target gap, (makespan - bound) / makespan.
    #[serde(default)]
    pub gap: f64,
    /// Random seed for the heuristics.
    #[serde(default)]
    pub seed: u32,
    /// Limit on nodes, or on improvement passes for more than 128 actions. Default: only the time
    /// budget ends the search. If the search is limited only by nodes, the result is the same on all
    /// machines.
    #[serde(default)]
    pub nodes: Option<u64>,
}

/// Activation limit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum InFlight {
    /// The same limit on all ranks.
    Everywhere(u64),
    /// A limit per rank.
    ByRank(Vec<u64>),
}

/// Best order found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Proof status.
    pub status: Status,
    /// End of the last action in seconds.
    pub makespan_s: f64,
    /// Lower bound on the makespan in seconds.
    pub lower_bound_s: f64,
    /// (makespan - bound) / makespan.
    pub gap: f64,
    /// Visited nodes, or improvement passes for more than 128 actions.
    pub nodes: u64,
    /// Ordered actions per rank: stage, letter, microbatch, as in PyTorch schedule tables.
    pub orders: Vec<Vec<String>>,
    /// Start time per action in seconds.
    pub starts_s: Vec<Vec<f64>>,
    /// Makespans of standard schedules.
    pub compared: Compared,
}

/// Proof status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Optimal.
    Optimal,
    /// Optimal within the target gap.
    WithinGap,
    /// Node limit reached; a faster order can exist.
    Nodes,
    /// Time limit reached; a faster order can exist.
    Time,
    /// More than 128 actions, too many for a proof: improved heuristic schedule, simple bound.
    Heuristic,
}

/// Makespans of other schedules in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// 1F1B, or interleaved 1F1B if ranks have several stages. Null if it exceeds the activation
    /// limit.
    pub one_f_one_b_s: Option<f64>,
    /// Wait-free cyclic. Null if no such schedule respects the activation limit.
    pub wait_free_s: Option<f64>,
    /// Dual queue, using the best ranking found.
    pub ranking_s: f64,
}

/// Schedules the pipeline.
///
/// # Errors
/// Returns all invalid fields.
pub fn respond(request: &Request, workers: &dyn Workers, cancellation: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let mut errors = Vec::new();
    shape(request, &mut errors);
    if errors.is_empty() {
        in_flight(request, &mut errors);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let (costs, limit) = pipeline(request);
    let budget = Budget { nodes: request.nodes.unwrap_or(u64::MAX), gap: request.gap, seed: request.seed };
    let found = exact::search(&costs, limit, budget, workers, cancellation)
        .map_err(|too_large| vec![FieldError::new("/max_in_flight", too_large.to_string())])?;
    let execution = execute(&found.schedule, &costs)
        .map_err(|deadlock| vec![FieldError::new("", format!("the order found does not run: {deadlock}"))])?;
    Ok(Response {
        status: Status::from_ending(found.ending),
        makespan_s: found.end.secs(),
        lower_bound_s: found.lower_bound.secs(),
        gap: found.gap(),
        nodes: found.nodes,
        orders: found.schedule.orders.iter().map(|order| order.iter().map(ToString::to_string).collect()).collect(),
        starts_s: execution.start.iter().map(|starts| starts.iter().map(|start| start.secs()).collect()).collect(),
        compared: compared(&found, &costs, limit),
    })
}

impl Status {
    const fn from_ending(ending: Ending) -> Self {
        match ending {
            Ending::Optimal => Self::Optimal,
            Ending::WithinGap => Self::WithinGap,
            Ending::Nodes => Self::Nodes,
            Ending::Time => Self::Time,
            Ending::Large => Self::Heuristic,
        }
    }
}

fn compared(found: &Exact, costs: &PipelineCosts, limit: Bytes) -> Compared {
    let (ranks, microbatches) = (costs.ranks(), costs.microbatches());
    let fixed = match costs.stages() / ranks {
        1 => one_f_one_b(ranks, microbatches),
        chunks => interleaved(ranks, chunks, microbatches, Grouping::Balanced),
    };
    let fits = |schedule: &Schedule, execution: &Execution| {
        (0..ranks).all(|rank| peak_memory(rank, schedule, execution, costs) <= limit)
    };
    let execution = execute(&fixed, costs).ok().filter(|execution| fits(&fixed, execution));
    Compared {
        one_f_one_b_s: execution.map(|execution| execution.makespan().secs()),
        wait_free_s: found.heuristics.wait_free.map(Nanos::secs),
        ranking_s: found.heuristics.ranking.secs(),
    }
}

/// Builds costs in which an activation is a byte, plus the memory limit.
fn pipeline(request: &Request) -> (PipelineCosts, Bytes) {
    let (ranks, stages) = (request.ranks as usize, request.forward[0].len());
    let nanos = |seconds: f64| Seconds::from_secs(seconds).to_nanos();
    let times = UniformTimes { communication: nanos(request.send), ..UniformTimes::default() };
    let mut costs = PipelineCosts::uniform(ranks, stages / ranks, request.forward.len(), times);
    for cell in 0..costs.flows.cells() {
        let (microbatch, stage) = (cell / stages, cell % stages);
        costs.forward[cell] = nanos(request.forward[microbatch][stage]);
        costs.input_grad[cell] = nanos(request.backward[microbatch][stage]);
    }
    let limit = match &request.max_in_flight {
        None => Bytes::new(u64::MAX),
        Some(InFlight::Everywhere(max)) => Bytes::new(*max),
        Some(InFlight::ByRank(caps)) => {
            // The solver accepts a single limit. For ranks that have a smaller limit, the
            // difference becomes static memory.
            let max_cap = Bytes::new(caps.iter().copied().max().unwrap_or(0));
            costs.static_memory = caps.iter().map(|&cap| max_cap.saturating_sub(Bytes::new(cap))).collect();
            max_cap
        }
    };
    (costs, limit)
}

fn shape(request: &Request, errors: &mut Vec<FieldError>) {
    let mut wrong = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    let Request { ranks, forward, backward, .. } = request;
    if !(1..=RANKS).contains(ranks) {
        wrong("/ranks", format!("{ranks} is not from 1 to {RANKS}"));
    }
    let stages = forward.first().map_or(0, Vec::len);
    if stages == 0 {
        wrong("/forward", "has no times: a row of every microbatch, with a time of every stage".to_owned());
        return;
    } else if *ranks > 0 && !stages.is_multiple_of(*ranks as usize) {
        let detail = if stages < *ranks as usize {
            format!("{ranks} ranks have only {stages} stages: every rank needs one")
        } else {
            format!("{stages} stages cannot be dealt evenly to {ranks} ranks")
        };
        wrong("/ranks", detail);
    }
    if backward.len() != forward.len() {
        wrong("/backward", format!("has {} microbatches, /forward has {}", backward.len(), forward.len()));
    }
    if stages.saturating_mul(forward.len()) > CELLS {
        wrong("/forward", format!("has more than {CELLS} pairs of a microbatch and a stage"));
    }
    let mut sum = 0.0;
    for (name, rows) in [("forward", forward), ("backward", backward)] {
        for (microbatch, row) in rows.iter().enumerate() {
            if row.len() != stages {
                let detail = format!("has {} stages, the first microbatch's forward has {stages}", row.len());
                wrong(&format!("/{name}/{microbatch}"), detail);
            }
            for (stage, &time) in row.iter().enumerate() {
                sum += time.max(0.0);
                if let Some(detail) = time_error(time) {
                    wrong(&format!("/{name}/{microbatch}/{stage}"), detail);
                }
            }
        }
    }
    sum += 2.0 * request.send.max(0.0) * stages as f64 * forward.len() as f64;
    if sum > MAX_S {
        wrong("/forward", format!("all times together, with those of /backward and /send, are {sum:e} s, more than {MAX_S:e}: multiply all by the same factor"));
    }
    if let Some(detail) = time_error(request.send) {
        wrong("/send", detail);
    }
    if !(0.0..1.0).contains(&request.gap) {
        wrong("/gap", format!("{} is not from 0 to below 1", request.gap));
    }
}

/// Checks the minimum: before its first backward on a rank, a microbatch stores an activation per
/// stage there.
fn in_flight(request: &Request, errors: &mut Vec<FieldError>) {
    let ranks = request.ranks as usize;
    let min_activations = (request.forward[0].len() / ranks) as u64;
    let mut judge = |pointer: &str, cap: u64| {
        if cap < min_activations {
            let detail = format!("{cap} is below {min_activations}, what one microbatch holds on a rank with {min_activations} stages");
            errors.push(FieldError::new(pointer, detail));
        }
    };
    match &request.max_in_flight {
        None => {}
        Some(InFlight::Everywhere(max)) => judge("/max_in_flight", *max),
        Some(InFlight::ByRank(caps)) => {
            for (rank, &rank_cap) in caps.iter().enumerate() {
                judge(&format!("/max_in_flight/{rank}"), rank_cap);
            }
            if caps.len() != ranks {
                errors.push(FieldError::new("/max_in_flight", format!("has {} ranks of {ranks}", caps.len())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{answered, validation_errors};

    /// p = 2, m = 2, F = B = 1 s: the last rank idles 1 s, then works 4 s; the last gradient takes
    /// 1 s.
    #[test]
    fn equal_microbatches_match_1f1b() {
        let ones = json!([[1, 1], [1, 1]]);
        let response = answered(&json!({"kind": "uneven-pipeline", "ranks": 2, "forward": ones, "backward": ones}));
        assert_eq!(response["kind"], "uneven-pipeline");
        assert_eq!((&response["status"], &response["makespan_s"]), (&json!("optimal"), &json!(6.0)));
        assert_eq!((&response["lower_bound_s"], &response["gap"]), (&json!(6.0), &json!(0.0)));
        assert_eq!(response["compared"], json!({"one_f_one_b_s": 6.0, "wait_free_s": 6.0, "ranking_s": 6.0}));
        let mut last_rank: Vec<&str> =
            response["orders"][1].as_array().unwrap().iter().map(|action| action.as_str().unwrap()).collect();
        last_rank.sort_unstable();
        assert_eq!(last_rank, ["1B0", "1B1", "1F0", "1F1"]);
        assert_eq!(response["starts_s"][1], json!([1.0, 2.0, 3.0, 4.0]));
    }

    /// A limit of 1 activation forces two sequential microbatches, 4 s each. 1F1B would store two.
    #[test]
    fn activation_caps_are_met() {
        let ones = json!([[1, 1], [1, 1]]);
        let mut problem = json!({"kind": "uneven-pipeline", "ranks": 2, "forward": ones, "backward": ones});
        problem["max_in_flight"] = json!([1, 2]);
        let response = answered(&problem);
        assert_eq!((&response["makespan_s"], &response["status"]), (&json!(8.0), &json!("optimal")));
        assert_eq!(response["compared"]["one_f_one_b_s"], json!(null));
    }

    #[test]
    fn no_time_at_all_takes_none() {
        let zeros = json!([[0, 0, 0, 0], [0, 0, 0, 0]]);
        let response = answered(&json!({"kind": "uneven-pipeline", "ranks": 2, "forward": zeros, "backward": zeros}));
        assert_eq!(
            (&response["makespan_s"], &response["status"], &response["gap"]),
            (&json!(0.0), &json!("optimal"), &json!(0.0))
        );
    }

    #[test]
    fn every_wrong_field_is_named() {
        let ones = json!([[1, 1], [1, 1]]);
        for (changed, expected) in [
            (json!({"ranks": 0}), vec!["/ranks: "]),
            (json!({"ranks": 3}), vec!["/ranks: 3 ranks have only 2 stages"]),
            (json!({"forward": []}), vec!["/forward: has no times"]),
            (json!({"forward": [[1, 1], [1]]}), vec!["/forward/1: has 1 stages"]),
            (json!({"forward": [[1, 1], [1, 1], [1, 1]]}), vec!["/backward: has 2 microbatches"]),
            (json!({"backward": [[1, -1], [-2, 1]]}), vec!["/backward/0/1: -1", "/backward/1/0: -2"]),
            (json!({"forward": [[1e7, 1], [1, 1]]}), vec!["/forward: all times together"]),
            (json!({"max_in_flight": 0}), vec!["/max_in_flight: 0 is below 1"]),
            (json!({"max_in_flight": [1, 0]}), vec!["/max_in_flight/1: 0 is below 1"]),
            (json!({"max_in_flight": [1]}), vec!["/max_in_flight: has 1 ranks of 2"]),
            (json!({"send": -1}), vec!["/send: -1"]),
            (json!({"send": 1e-10}), vec!["/send: 1e-10 s is below 0.5 ns"]),
            (json!({"forward": [[1e-11, 1], [1, 2e-12]]}), vec!["/forward/0/0: 1e-11 s", "/forward/1/1: 2e-12 s"]),
            (json!({"backward": [[1e300, 1], [1, 1e308]]}), vec!["/forward: all times together"]),
            (json!({"gap": 1}), vec!["/gap: 1"]),
        ] {
            let mut problem = json!({"kind": "uneven-pipeline", "ranks": 2, "forward": ones, "backward": ones});
            for (name, value) in changed.as_object().unwrap() {
                problem[name] = value.clone();
            }
            let errors = validation_errors(&problem);
            assert_eq!(errors.len(), expected.len(), "{errors:?}");
            assert!(
                errors.iter().zip(&expected).all(|(error, expected)| error.starts_with(expected)),
                "{errors:?} {expected:?}"
            );
        }
    }
}
