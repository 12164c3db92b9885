//! Proposes strategies for a dataset.

use serde::{Deserialize, Serialize};

use super::lengths::{DATA_SET, MAX, clamped, wrong_lengths};
use crate::host::{Watch, Workers};
use crate::planners::hydraulis::{ProposalError, ProposalSettings, SchemeCost, propose};
use crate::scenario::FieldError;

/// Maximum schemes.
const SCHEMES: usize = 256;
/// Maximum devices.
const DEVICES: u32 = 1_000_000;
/// Maximum length steps. The work grows cubically in the worst case.
const STEPS: u64 = 2048;

/// A dataset, devices and schemes. Exactly one of `lengths` and `histogram` is set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Sequence lengths in tokens.
    #[serde(default)]
    pub lengths: Vec<u64>,
    /// Pairs (tokens, sequence count).
    #[serde(default)]
    pub histogram: Vec<(u64, f64)>,
    /// Number of devices.
    pub devices: u32,
    /// Permitted pipeline schemes.
    pub schemes: Vec<Scheme>,
    /// Length step in tokens. Default: 128.
    #[serde(default)]
    pub length_step: Option<u64>,
    /// Step for fractional pipeline counts. Default: 0.1.
    #[serde(default)]
    pub device_step: Option<f64>,
}

/// A pipeline scheme.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Devices per pipeline, a multiple of `pp`.
    pub devices: u32,
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
}

/// Proposed strategies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Integer strategies.
    pub strategies: Vec<StrategyAnswer>,
    /// Relaxed strategies close to the integer strategies, by maximum length.
    pub relaxed: Vec<RelaxedAnswer>,
}

/// An integer strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyAnswer {
    /// Pipelines per scheme.
    pub copies: Vec<u32>,
    /// Devices used.
    pub devices: u32,
    /// Maximum supported sequence length.
    pub max_len: u64,
    /// Minimum and maximum L for which the strategy is proposed.
    pub proposed_for: (u64, u64),
}

/// A relaxed strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelaxedAnswer {
    /// L, the maximum sequence length.
    pub longest: u64,
    /// `t[N][L]` for the complete dataset, in seconds.
    pub seconds: f64,
    /// Fractional pipelines per scheme.
    pub copies: Vec<f64>,
}

/// Proposes strategies.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn answer(question: &Question, _: &dyn Workers, _: &dyn Watch) -> Result<Answer, Vec<FieldError>> {
    let settings = ProposalSettings::default();
    let settings = ProposalSettings {
        length_step: question.length_step.unwrap_or(settings.length_step),
        device_step: question.device_step.unwrap_or(settings.device_step),
    };
    let lengths = lengths(question, settings.length_step)?;
    let schemes = schemes(question)?;
    let proposal = propose(&lengths, question.devices, &schemes, settings)
        .map_err(|error| errors_of(&error, question.histogram.is_empty()))?;
    let strategies = proposal.strategies.into_iter().map(|strategy| StrategyAnswer {
        copies: strategy.copies,
        devices: strategy.devices,
        max_len: strategy.max_len,
        proposed_for: strategy.proposed_for,
    });
    let relaxed = proposal.relaxed.into_iter().map(|relaxed| RelaxedAnswer {
        longest: relaxed.longest,
        seconds: relaxed.seconds,
        copies: relaxed.copies,
    });
    Ok(Answer { strategies: strategies.collect(), relaxed: relaxed.collect() })
}

/// Converts the dataset to (tokens, count) pairs, or returns validation errors.
fn lengths(question: &Question, step: u64) -> Result<Vec<(u64, f64)>, Vec<FieldError>> {
    let mut errors = wrong_lengths(&question.lengths, DATA_SET);
    for (place, (length, _)) in question.histogram.iter().enumerate().filter(|(_, (length, _))| *length > MAX) {
        let detail = format!("{length} tokens are more than {MAX}");
        errors.push(FieldError::new(&format!("/histogram/{place}/0"), detail));
    }
    if !question.lengths.is_empty() && !question.histogram.is_empty() {
        errors.push(FieldError::new("/histogram", "lengths are given too: one of both is enough".to_owned()));
    }
    let pairs: Vec<(u64, f64)> = if question.histogram.is_empty() {
        question.lengths.iter().map(|&tokens| (tokens, 1.0)).collect()
    } else {
        question.histogram.clone()
    };
    let longest = pairs.iter().map(|pair| pair.0).max().unwrap_or(0);
    if step > 0 && longest.div_ceil(step) > STEPS {
        let detail = format!("{longest} tokens in steps of {step} are more than {STEPS} steps");
        errors.push(FieldError::new("/length_step", detail));
    }
    if errors.is_empty() { Ok(pairs) } else { Err(errors) }
}

/// Converts the schemes, or returns validation errors.
fn schemes(question: &Question) -> Result<Vec<SchemeCost>, Vec<FieldError>> {
    let mut errors = Vec::new();
    if question.schemes.len() > SCHEMES {
        let detail = format!("{} schemes are more than {SCHEMES}", question.schemes.len());
        errors.push(FieldError::new("/schemes", detail));
    }
    if question.devices > DEVICES {
        errors.push(FieldError::new("/devices", format!("{} devices are more than {DEVICES}", question.devices)));
    }
    let schemes = question.schemes.iter().enumerate().map(|(place, scheme)| {
        let Scheme { devices, pp, max_len, a, b, c } = *scheme;
        if pp == 0 || devices == 0 || !devices.is_multiple_of(pp) {
            let detail = format!("{devices} devices are no multiple of {pp} stages");
            errors.push(FieldError::new(&format!("/schemes/{place}/devices"), detail));
        }
        SchemeCost { tp: devices / pp.max(1), pp, cp: 1, a, b, c, max_len: clamped(max_len), util_len: 0 }
    });
    let schemes: Vec<SchemeCost> = schemes.collect();
    if errors.is_empty() { Ok(schemes) } else { Err(errors) }
}

fn errors_of(error: &ProposalError, listed: bool) -> Vec<FieldError> {
    let data = if listed { "/lengths" } else { "/histogram" };
    let at = |pointer: &str| vec![FieldError::new(pointer, error.to_string())];
    match error {
        ProposalError::Empty | ProposalError::TooLong { .. } => at(data),
        ProposalError::Length { entry } => at(&format!("{data}/{entry}")),
        ProposalError::Step { field } => at(&format!("/{field}")),
        ProposalError::Scheme { scheme, fields } => {
            fields.iter().flat_map(|field| at(&format!("/schemes/{scheme}/{field}"))).collect()
        }
        ProposalError::NothingHeld => at("/schemes"),
        ProposalError::TooFewDevices { .. } => at("/devices"),
    }
}
