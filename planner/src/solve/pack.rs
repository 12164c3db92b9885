//! One pipeline's sequences to microbatches.

use serde::{Deserialize, Serialize};

use crate::heterogeneous_strategies::{PackingError, PackingSettings, SchemeCost, pack};
use super::lengths::{BATCH, clamped, wrong_lengths};
use crate::host::{Watch, Workers};
use crate::scenario::FieldError;

/// Partial assignments that stand for a second: there is no clock here, and the same number gives the same answer everywhere.
const NODES_PER_SECOND: f64 = 4e6;
/// Longest time.
const LONGEST_S: f64 = 3600.0;

/// A pipeline and its sequences.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Tokens of each sequence.
    pub lengths: Vec<u64>,
    /// Most tokens of a microbatch; negative is zero.
    pub max_len: i64,
    /// Fewest tokens of a microbatch that use the devices well.
    #[serde(default)]
    pub util_len: u64,
    /// Pipeline stages.
    pub pp: u32,
    /// Seconds per token squared.
    pub a: f64,
    /// Seconds per token.
    pub b: f64,
    /// Seconds per microbatch.
    pub c: f64,
    /// About how long branch and bound may take, counted in steps.
    #[serde(default)]
    pub time_limit_s: Option<f64>,
    /// Distance from the bound that is good enough.
    #[serde(default)]
    pub gap: Option<f64>,
}

/// The microbatches.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Of each the places of its sequences; the slowest first.
    pub microbatches: Vec<Vec<u32>>,
    /// The slowest microbatch times (PP - 1 + V), Eq. 1.
    pub cost_s: f64,
    /// No packing with a number of microbatches in the range costs less.
    pub lower_bound_s: f64,
    /// (cost - bound) / cost.
    pub gap: f64,
    /// "optimal", "within_gap" or "heuristic".
    pub status: &'static str,
    /// The numbers of microbatches considered.
    pub range: (u32, u32),
    /// Partial assignments that branch and bound followed.
    pub nodes: u64,
}

/// Packs the sequences.
///
/// # Errors
/// Names every wrong field by JSON pointer.
pub fn answer(question: &Question, _: &dyn Workers, _: &dyn Watch) -> Result<Answer, Vec<FieldError>> {
    let mut errors = wrong_lengths(&question.lengths, BATCH);
    let limit = question.time_limit_s.unwrap_or(0.05);
    if !(0.0..=LONGEST_S).contains(&limit) {
        errors.push(FieldError::new(
            "/time_limit_s",
            format!("{limit} is not a number of seconds from 0 to {LONGEST_S}"),
        ));
    }
    let gap = question.gap.unwrap_or(PackingSettings::default().gap);
    if !(0.0..1.0).contains(&gap) {
        errors.push(FieldError::new("/gap", format!("{gap} is not from 0 to below 1")));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let scheme = SchemeCost {
        tp: 1,
        pp: question.pp,
        cp: 1,
        a: question.a,
        b: question.b,
        c: question.c,
        max_len: clamped(question.max_len),
        util_len: question.util_len,
    };
    let settings = PackingSettings { gap, nodes: (limit * NODES_PER_SECOND) as u64 };
    let packing = pack(&question.lengths, &scheme, settings).map_err(|error| errors_of(&error))?;
    Ok(Answer {
        microbatches: packing.microbatches,
        cost_s: packing.seconds,
        lower_bound_s: packing.bound,
        gap: packing.gap,
        status: packing.proof.id(),
        range: packing.range,
        nodes: packing.nodes,
    })
}

fn errors_of(error: &PackingError) -> Vec<FieldError> {
    let at = |pointer: &str| vec![FieldError::new(pointer, error.to_string())];
    match error {
        PackingError::Empty => at("/lengths"),
        PackingError::Scheme { fields } => fields.iter().flat_map(|field| at(&format!("/{field}"))).collect(),
        PackingError::NoTokens { sequence } | PackingError::TooLong { sequence, .. } => {
            at(&format!("/lengths/{sequence}"))
        }
    }
}
