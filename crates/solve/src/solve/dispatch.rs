//! Dispatches sequences to pipelines that use different schemes.

use serde::{Deserialize, Serialize};

use super::lengths::{BATCH, clamped, wrong_lengths};
use super::slices::run_in_slices;
use planscope_core::host::{Cancellation, Workers};
use planscope_planners::planners::hydraulis::{
    Assignment, DispatchError, DispatchSettings, PackingSettings, SchemeCost, assign,
};
use planscope_plan::scenario::FieldError;

/// Maximum pipelines.
const PIPELINES: usize = 4096;
/// Parts of the requested trials and nodes; the first run within a time budget uses one.
const SHARES: u64 = 256;
/// Maximum trials.
const TRIALS: u32 = 100_000;

/// A batch and its pipelines.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Sequence lengths in tokens.
    pub lengths: Vec<u64>,
    /// Scheme per pipeline.
    pub schemes: Vec<Scheme>,
    /// Sequence orders tried by the greedy algorithm. Default: 100.
    #[serde(default)]
    pub trials: Option<u32>,
    /// Random seed for these orders.
    #[serde(default)]
    pub seed: u32,
    /// Node limit for branch and bound. Default: 20,000.
    #[serde(default)]
    pub nodes: Option<u64>,
}

/// Cost model for a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Pipeline stages.
    pub pp: u32,
    /// Maximum tokens per microbatch. Negative values mean 0.
    pub max_len: i64,
    /// Seconds per squared token.
    pub a: f64,
    /// Seconds per token.
    pub b: f64,
    /// Seconds per microbatch.
    pub c: f64,
    /// Minimum tokens per microbatch for good device utilization.
    #[serde(default)]
    pub util_len: u64,
}

/// Assignment of sequences to pipelines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Pipelines in request order.
    pub pipelines: Vec<PipelineResponse>,
    /// Maximum pipeline cost by Hydraulis Eq. 2, before packing, in seconds.
    pub dispatch_s: f64,
    /// Lower bound on `dispatch_s` for any dispatch, in seconds.
    pub lower_bound_s: f64,
    /// (dispatch - bound) / dispatch.
    pub gap: f64,
    /// "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// Maximum pipeline cost by Hydraulis Eq. 1, after packing, in seconds.
    pub packed_s: f64,
}

/// Result for a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PipelineResponse {
    /// Sequence indices into `lengths`.
    pub sequences: Vec<u32>,
    /// Pipeline cost by Hydraulis Eq. 2, in seconds.
    pub lower_bound_s: f64,
    /// Pipeline cost by Hydraulis Eq. 1, in seconds.
    pub packed_s: f64,
    /// Sequence indices per microbatch.
    pub microbatches: Vec<Vec<u32>>,
}

/// Dispatches and packs the sequences. Within a time budget, trials and nodes increase up to the
/// requested ones.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn respond(request: &Request, _: &dyn Workers, cancellation: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let mut errors = wrong_lengths(&request.lengths, BATCH);
    if request.schemes.len() > PIPELINES {
        let detail = format!("{} pipelines are more than {PIPELINES}", request.schemes.len());
        errors.push(FieldError::new("/schemes", detail));
    }
    let defaults = DispatchSettings::default();
    let trials = request.trials.unwrap_or(defaults.trials);
    if trials > TRIALS {
        errors.push(FieldError::new("/trials", format!("{trials} trials are more than {TRIALS}")));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let pipelines: Vec<SchemeCost> = request.schemes.iter().map(Scheme::cost).collect();
    let (nodes, packing) = (request.nodes.unwrap_or(defaults.nodes), PackingSettings::default());
    let run = |share: u64| {
        let part = |all: u64| (u128::from(all) * u128::from(share) / u128::from(SHARES)) as u64;
        let settings =
            DispatchSettings { trials: part(trials.into()) as u32, seed: request.seed, nodes: part(nodes), ..defaults };
        assign(
            &request.lengths,
            &pipelines,
            settings,
            PackingSettings { nodes: part(packing.nodes), ..packing },
        )
    };
    let is_final = |found: &Result<Assignment, DispatchError>| found.is_err();
    let assignment =
        run_in_slices((1, SHARES), cancellation, is_final, run).map_err(|error| field_errors(&error))?;
    let dispatch = assignment.dispatch;
    let shares = dispatch.pipelines.into_iter().zip(&dispatch.pipeline_seconds).zip(assignment.packings);
    Ok(Response {
        pipelines: shares
            .map(|((sequences, &lower_bound_s), packing)| PipelineResponse {
                sequences,
                lower_bound_s,
                packed_s: packing.as_ref().map_or(0.0, |packing| packing.seconds),
                microbatches: packing.map_or(Vec::new(), |packing| packing.microbatches),
            })
            .collect(),
        dispatch_s: dispatch.seconds,
        lower_bound_s: dispatch.bound,
        gap: dispatch.gap,
        status: dispatch.optimality.id(),
        packed_s: assignment.seconds,
    })
}

impl Scheme {
    fn cost(&self) -> SchemeCost {
        let Self { pp, max_len, a, b, c, util_len } = *self;
        SchemeCost { tp: 1, pp, cp: 1, a, b, c, max_len: clamped(max_len), util_len }
    }
}

fn field_errors(error: &DispatchError) -> Vec<FieldError> {
    let at = |pointer: &str| vec![FieldError::new(pointer, error.to_string())];
    match error {
        DispatchError::Empty => at("/lengths"),
        DispatchError::NoPipelines => at("/schemes"),
        DispatchError::Scheme { pipeline, fields } => {
            fields.iter().flat_map(|field| at(&format!("/schemes/{pipeline}/{field}"))).collect()
        }
        DispatchError::NoTokens { sequence } | DispatchError::TooLong { sequence, .. } => {
            at(&format!("/lengths/{sequence}"))
        }
    }
}
