//! Sequences to pipelines of different schemes.

use serde::{Deserialize, Serialize};

use crate::heterogeneous_strategies::{DispatchError, DispatchSettings, PackingSettings, SchemeCost, assign};
use super::lengths::{BATCH, clamped, wrong_lengths};
use crate::host::{Watch, Workers};
use crate::scenario::FieldError;

/// Most pipelines.
const PIPELINES: usize = 4096;
/// Most trials.
const TRIALS: u32 = 100_000;

/// A batch and the pipelines that share it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Tokens of each sequence.
    pub lengths: Vec<u64>,
    /// A scheme for each pipeline.
    pub schemes: Vec<Scheme>,
    /// Orders that the greedy tries; 100 where left out.
    #[serde(default)]
    pub trials: Option<u32>,
    /// Seed of those orders.
    #[serde(default)]
    pub seed: u32,
    /// Partial assignments of branch and bound; 20,000 where left out.
    #[serde(default)]
    pub nodes: Option<u64>,
}

/// One pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Pipeline stages.
    pub pp: u32,
    /// Most tokens of a microbatch; negative is zero.
    pub max_len: i64,
    /// Seconds per token squared.
    pub a: f64,
    /// Seconds per token.
    pub b: f64,
    /// Seconds per microbatch.
    pub c: f64,
    /// Fewest tokens of a microbatch that use the devices well.
    #[serde(default)]
    pub util_len: u64,
}

/// Who trains what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// In the order of the schemes.
    pub pipelines: Vec<PipelineAnswer>,
    /// The slowest pipeline by Eq. 2, before packing.
    pub dispatch_s: f64,
    /// No dispatch has a smaller one.
    pub lower_bound_s: f64,
    /// (dispatch - bound) / dispatch.
    pub gap: f64,
    /// "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// The slowest pipeline by Eq. 1, after packing.
    pub packed_s: f64,
}

/// One pipeline's share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PipelineAnswer {
    /// Places of its sequences among the lengths.
    pub sequences: Vec<u32>,
    /// Its Eq. 2.
    pub lower_bound_s: f64,
    /// Its Eq. 1.
    pub packed_s: f64,
    /// Its microbatches.
    pub microbatches: Vec<Vec<u32>>,
}

/// Dispatches and packs.
///
/// # Errors
/// Names every wrong field by JSON pointer.
pub fn answer(question: &Question, _: &dyn Workers, _: &dyn Watch) -> Result<Answer, Vec<FieldError>> {
    let mut errors = wrong_lengths(&question.lengths, BATCH);
    if question.schemes.len() > PIPELINES {
        let detail = format!("{} pipelines are more than {PIPELINES}", question.schemes.len());
        errors.push(FieldError::new("/schemes", detail));
    }
    let defaults = DispatchSettings::default();
    let trials = question.trials.unwrap_or(defaults.trials);
    if trials > TRIALS {
        errors.push(FieldError::new("/trials", format!("{trials} trials are more than {TRIALS}")));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let pipelines: Vec<SchemeCost> = question.schemes.iter().map(Scheme::cost).collect();
    let settings =
        DispatchSettings { trials, seed: question.seed, nodes: question.nodes.unwrap_or(defaults.nodes), ..defaults };
    let assignment = assign(&question.lengths, &pipelines, settings, PackingSettings::default())
        .map_err(|error| errors_of(&error))?;
    let dispatch = assignment.dispatch;
    let shares = dispatch.pipelines.into_iter().zip(&dispatch.pipeline_seconds).zip(assignment.packings);
    Ok(Answer {
        pipelines: shares
            .map(|((sequences, &lower_bound_s), packing)| PipelineAnswer {
                sequences,
                lower_bound_s,
                packed_s: packing.as_ref().map_or(0.0, |packing| packing.seconds),
                microbatches: packing.map_or(Vec::new(), |packing| packing.microbatches),
            })
            .collect(),
        dispatch_s: dispatch.seconds,
        lower_bound_s: dispatch.bound,
        gap: dispatch.gap,
        status: dispatch.proof.id(),
        packed_s: assignment.seconds,
    })
}

impl Scheme {
    fn cost(&self) -> SchemeCost {
        let Self { pp, max_len, a, b, c, util_len } = *self;
        SchemeCost { tp: 1, pp, cp: 1, a, b, c, max_len: clamped(max_len), util_len }
    }
}

fn errors_of(error: &DispatchError) -> Vec<FieldError> {
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
