//! Proposes strategies for a dataset.

use serde::{Deserialize, Serialize};

use super::lengths::{DATA_SET, MAX, clamped, wrong_lengths};
use planscope_core::host::{Cancellation, Workers};
use planscope_planners::planners::hydraulis::{
    Proposal, ProposalError, ProposalSettings, SchemeCost, propose,
};
use planscope_plan::scenario::FieldError;

/// Maximum schemes.
const SCHEMES: usize = 256;
/// Maximum devices.
const DEVICES: u32 = 1_000_000;
/// Length step of the first run within a time budget, relative to the requested one.
const COARSEST: u64 = 16;
/// Maximum length steps. The work grows cubically in the worst case.
const STEPS: u64 = 2048;

/// A dataset, devices and schemes. Exactly one of `lengths` and `histogram` is set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
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
pub struct Response {
    /// Integer strategies.
    pub strategies: Vec<StrategyResponse>,
    /// Relaxed strategies close to the integer strategies, by maximum length.
    pub relaxed: Vec<RelaxedResponse>,
    /// Length step used, in tokens. Above the requested one if the time budget ended.
    pub length_step: u64,
}

/// An integer strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyResponse {
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
pub struct RelaxedResponse {
    /// L, the maximum sequence length.
    pub longest: u64,
    /// `t[N][L]` for the complete dataset, in seconds.
    pub seconds: f64,
    /// Fractional pipelines per scheme.
    pub copies: Vec<f64>,
}

/// Proposes strategies. Within a time budget, the first length step is coarse, and it is halved down to
/// the requested one while time is left.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn respond(
    request: &Request,
    _: &dyn Workers,
    cancellation: &dyn Cancellation,
) -> Result<Response, Vec<FieldError>> {
    let settings = ProposalSettings::default();
    let settings = ProposalSettings {
        length_step: request.length_step.unwrap_or(settings.length_step),
        device_step: request.device_step.unwrap_or(settings.device_step),
    };
    let lengths = lengths(request, settings.length_step)?;
    let schemes = schemes(request)?;
    let (proposal, length_step) = within_time(settings.length_step, cancellation, |length_step| {
        propose(&lengths, request.devices, &schemes, ProposalSettings { length_step, ..settings })
    });
    let proposal = proposal.map_err(|error| field_errors(&error, request.histogram.is_empty()))?;
    let strategies = proposal.strategies.into_iter().map(|strategy| StrategyResponse {
        copies: strategy.copies,
        devices: strategy.devices,
        max_len: strategy.max_len,
        proposed_for: strategy.proposed_for,
    });
    let relaxed = proposal.relaxed.into_iter().map(|relaxed| RelaxedResponse {
        longest: relaxed.max_length,
        seconds: relaxed.seconds,
        copies: relaxed.copies,
    });
    Ok(Response { strategies: strategies.collect(), relaxed: relaxed.collect(), length_step })
}

/// Calls `run` with a step of [`COARSEST`] times `step`, then with half of it, down to `step`. Stops if
/// the next run is not expected to end in time: half the step takes about eight times as long. Returns
/// the last proposal and its step. Without a time budget, only `step` is used.
fn within_time(
    step: u64,
    cancellation: &dyn Cancellation,
    run: impl Fn(u64) -> Result<Proposal, ProposalError>,
) -> (Result<Proposal, ProposalError>, u64) {
    let mut factor = if cancellation.remaining().is_infinite() { 1 } else { COARSEST };
    loop {
        let begin = cancellation.seconds();
        let proposal = run(step.saturating_mul(factor));
        let next_s = 8.0 * (cancellation.seconds() - begin);
        // A coarse step can exceed the longest sequence of a scheme, so an error needs a finer step.
        let is_last = proposal.is_ok() && (cancellation.is_over() || next_s > cancellation.remaining());
        if factor == 1 || is_last {
            return (proposal, step.saturating_mul(factor));
        }
        factor /= 2;
    }
}

/// Converts the dataset to (tokens, count) pairs, or returns validation errors.
fn lengths(request: &Request, step: u64) -> Result<Vec<(u64, f64)>, Vec<FieldError>> {
    let mut errors = wrong_lengths(&request.lengths, DATA_SET);
    for (index, (length, _)) in request.histogram.iter().enumerate().filter(|(_, (length, _))| *length > MAX) {
        let detail = format!("{length} tokens are more than {MAX}");
        errors.push(FieldError::new(&format!("/histogram/{index}/0"), detail));
    }
    if !request.lengths.is_empty() && !request.histogram.is_empty() {
        errors.push(FieldError::new("/histogram", "lengths are given too: one of both is enough".to_owned()));
    }
    let pairs: Vec<(u64, f64)> = if request.histogram.is_empty() {
        request.lengths.iter().map(|&tokens| (tokens, 1.0)).collect()
    } else {
        request.histogram.clone()
    };
    let max_length = pairs.iter().map(|pair| pair.0).max().unwrap_or(0);
    if step > 0 && max_length.div_ceil(step) > STEPS {
        let detail = format!("{max_length} tokens in steps of {step} are more than {STEPS} steps");
        errors.push(FieldError::new("/length_step", detail));
    }
    if errors.is_empty() { Ok(pairs) } else { Err(errors) }
}

/// Converts the schemes, or returns validation errors.
fn schemes(request: &Request) -> Result<Vec<SchemeCost>, Vec<FieldError>> {
    let mut errors = Vec::new();
    if request.schemes.len() > SCHEMES {
        let detail = format!("{} schemes are more than {SCHEMES}", request.schemes.len());
        errors.push(FieldError::new("/schemes", detail));
    }
    if request.devices > DEVICES {
        errors.push(FieldError::new("/devices", format!("{} devices are more than {DEVICES}", request.devices)));
    }
    let schemes = request.schemes.iter().enumerate().map(|(index, scheme)| {
        let Scheme { devices, pp, max_len, a, b, c } = *scheme;
        if pp == 0 || devices == 0 || !devices.is_multiple_of(pp) {
            let detail = format!("{devices} devices are no multiple of {pp} stages");
            errors.push(FieldError::new(&format!("/schemes/{index}/devices"), detail));
        }
        SchemeCost { tp: devices / pp.max(1), pp, cp: 1, a, b, c, max_len: clamped(max_len), util_len: 0 }
    });
    let schemes: Vec<SchemeCost> = schemes.collect();
    if errors.is_empty() { Ok(schemes) } else { Err(errors) }
}

fn field_errors(error: &ProposalError, listed: bool) -> Vec<FieldError> {
    let data = if listed { "/lengths" } else { "/histogram" };
    let at = |pointer: &str| vec![FieldError::new(pointer, error.to_string())];
    match error {
        ProposalError::Empty | ProposalError::TooLong { .. } => at(data),
        ProposalError::Length { entry } => at(&format!("{data}/{entry}")),
        ProposalError::Step { field } => at(&format!("/{field}")),
        ProposalError::Scheme { scheme, fields } => {
            fields.iter().flat_map(|field| at(&format!("/schemes/{scheme}/{field}"))).collect()
        }
        ProposalError::NoCapacity => at("/schemes"),
        ProposalError::TooFewDevices { .. } => at("/devices"),
    }
}
