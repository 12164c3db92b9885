//! Packs sequences into microbatches for a pipeline.

use serde::{Deserialize, Serialize};

use super::lengths::{BATCH, clamped, wrong_lengths};
use super::slices::run_in_slices;
use planscope_core::host::{Cancellation, Workers};
use planscope_core::optimality::Optimality;
use planscope_planners::planners::hydraulis::{Packing, PackingError, PackingSettings, SchemeCost, pack};
use planscope_plan::scenario::FieldError;

/// Branch-and-bound nodes per second. A fixed rate instead of a clock makes the result
/// machine-independent.
const NODES_PER_SECOND: f64 = 4e6;
/// Nodes of the first run within a time budget.
const FIRST_NODES: u64 = 1000;
/// Maximum time limit.
const MAX_S: f64 = 3600.0;

/// A pipeline and its sequences.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Sequence lengths in tokens.
    pub lengths: Vec<u64>,
    /// Maximum tokens per microbatch. Negative values mean 0.
    pub max_len: i64,
    /// Minimum tokens per microbatch for good device utilization.
    #[serde(default)]
    pub util_len: u64,
    /// Pipeline stages.
    pub pp: u32,
    /// Seconds per squared token.
    pub a: f64,
    /// Seconds per token.
    pub b: f64,
    /// Seconds per microbatch.
    pub c: f64,
    /// Approximate branch-and-bound time in seconds, converted to a node limit.
    #[serde(default)]
    pub time_limit_s: Option<f64>,
    /// Target gap.
    #[serde(default)]
    pub gap: Option<f64>,
}

/// Packed microbatches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Sequence indices per microbatch, by descending time.
    pub microbatches: Vec<Vec<u32>>,
    /// Maximum microbatch time multiplied by (PP - 1 + V), Hydraulis Eq. 1.
    pub cost_s: f64,
    /// Lower bound on the cost for all numbers of microbatches in `range`.
    pub lower_bound_s: f64,
    /// (cost - bound) / cost.
    pub gap: f64,
    /// "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// Considered numbers of microbatches, minimum and maximum.
    pub range: (u32, u32),
    /// Branch-and-bound nodes visited.
    pub nodes: u64,
}

/// Packs the sequences. Within a time budget, the node limit increases up to that of `time_limit_s`.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn respond(request: &Request, _: &dyn Workers, cancellation: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let mut errors = wrong_lengths(&request.lengths, BATCH);
    let limit = request.time_limit_s.unwrap_or(0.05);
    if !(0.0..=MAX_S).contains(&limit) {
        errors.push(FieldError::new("/time_limit_s", format!("{limit} is not a number of seconds from 0 to {MAX_S}")));
    }
    let gap = request.gap.unwrap_or(PackingSettings::default().gap);
    if !(0.0..1.0).contains(&gap) {
        errors.push(FieldError::new("/gap", format!("{gap} is not from 0 to below 1")));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let scheme = SchemeCost {
        tp: 1,
        pp: request.pp,
        cp: 1,
        a: request.a,
        b: request.b,
        c: request.c,
        max_len: clamped(request.max_len),
        util_len: request.util_len,
    };
    let nodes = (limit * NODES_PER_SECOND) as u64;
    let is_final = |found: &Result<Packing, PackingError>| {
        found.as_ref().map_or(true, |packing| packing.optimality != Optimality::Heuristic)
    };
    let packing = run_in_slices((FIRST_NODES.min(nodes), nodes), cancellation, is_final, |nodes| {
        pack(&request.lengths, &scheme, PackingSettings { gap, nodes })
    });
    let packing = packing.map_err(|error| field_errors(&error))?;
    Ok(Response {
        microbatches: packing.microbatches,
        cost_s: packing.seconds,
        lower_bound_s: packing.bound,
        gap: packing.gap,
        status: packing.optimality.id(),
        range: packing.range,
        nodes: packing.nodes,
    })
}

fn field_errors(error: &PackingError) -> Vec<FieldError> {
    let at = |pointer: &str| vec![FieldError::new(pointer, error.to_string())];
    match error {
        PackingError::Empty => at("/lengths"),
        PackingError::Scheme { fields } => fields.iter().flat_map(|field| at(&format!("/{field}"))).collect(),
        PackingError::NoTokens { sequence } | PackingError::TooLong { sequence, .. } => {
            at(&format!("/lengths/{sequence}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::solve::tests::answered;

    #[test]
    fn a_packing_without_cost_is_optimal() {
        let response = answered(&json!({
            "kind": "pack", "lengths": [3, 4, 5], "max_len": 8, "pp": 2, "a": 0, "b": 0, "c": 0
        }));
        let zero = json!(0.0);
        assert_eq!((&response["status"], &response["cost_s"], &response["gap"]), (&json!("optimal"), &zero, &zero));
    }

    /// Five sequences of 6 tokens: no two fit into 10 tokens, although 30 / 10 = 3 microbatches would
    /// hold the tokens. Five microbatches on two stages take 6 x 6 s, and no packing is faster.
    #[test]
    fn microbatches_that_cannot_be_shared_count_for_the_bound() {
        let response = answered(&json!({
            "kind": "pack", "lengths": [6, 6, 6, 6, 6], "max_len": 10, "pp": 2, "a": 0, "b": 1, "c": 0,
            "time_limit_s": 0, "gap": 0
        }));
        assert_eq!((&response["status"], &response["cost_s"]), (&json!("optimal"), &json!(36.0)));
        assert_eq!((&response["lower_bound_s"], &response["nodes"]), (&json!(36.0), &json!(0)));
    }
}
