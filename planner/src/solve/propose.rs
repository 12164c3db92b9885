//! Strategies for a data set.

use serde::{Deserialize, Serialize};

use crate::heterogeneous_strategies::{ProposalError, ProposalSettings, SchemeCost, propose};
use super::lengths::{DATA_SET, LONGEST, clamped, wrong_lengths};
use crate::host::{Watch, Workers};
use crate::scenario::FieldError;

/// Most schemes.
const SCHEMES: usize = 256;
/// Most devices.
const DEVICES: u32 = 1_000_000;
/// Most steps of length: the work grows with their cube at worst.
const STEPS: u64 = 2048;

/// A data set, devices and schemes. One of `lengths` and `histogram` is given.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Tokens of each sequence.
    #[serde(default)]
    pub lengths: Vec<u64>,
    /// Pairs of tokens and how many sequences have them.
    #[serde(default)]
    pub histogram: Vec<(u64, f64)>,
    /// Devices.
    pub devices: u32,
    /// Schemes that pipelines may have.
    pub schemes: Vec<Scheme>,
    /// Steps of length in tokens; 128 where left out.
    #[serde(default)]
    pub length_step: Option<u64>,
    /// Steps of a pipeline; a tenth where left out.
    #[serde(default)]
    pub device_step: Option<f64>,
}

/// One scheme.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// Devices of a pipeline, a multiple of its stages.
    pub devices: u32,
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
}

/// What is proposed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// Whole strategies.
    pub strategies: Vec<StrategyAnswer>,
    /// The relaxed strategies they are near to, by longest sequence.
    pub relaxed: Vec<RelaxedAnswer>,
}

/// A whole strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyAnswer {
    /// Of every scheme how many pipelines.
    pub copies: Vec<u32>,
    /// Devices in use.
    pub devices: u32,
    /// Longest sequence that it holds.
    pub max_len: u64,
    /// Shortest and longest L that it is proposed for.
    pub proposed_for: (u64, u64),
}

/// A relaxed strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RelaxedAnswer {
    /// L.
    pub longest: u64,
    /// t[N][L] for the whole data set.
    pub seconds: f64,
    /// Of every scheme how many pipelines.
    pub copies: Vec<f64>,
}

/// Proposes strategies.
///
/// # Errors
/// Names every wrong field by JSON pointer.
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

/// The data set as pairs, or what is wrong with it.
fn lengths(question: &Question, step: u64) -> Result<Vec<(u64, f64)>, Vec<FieldError>> {
    let mut errors = wrong_lengths(&question.lengths, DATA_SET);
    for (place, (length, _)) in question.histogram.iter().enumerate().filter(|(_, (length, _))| *length > LONGEST) {
        let detail = format!("{length} tokens are more than {LONGEST}");
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

/// The schemes, or what is wrong with them.
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
