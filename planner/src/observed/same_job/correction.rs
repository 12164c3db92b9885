//! Changes to a scenario that make it the job of a run.

use serde::{Deserialize, Serialize};

use super::{Agreement, JobComparison, JobQuantity, LoggedJob, PlannedJob, TOKENS_TOLERANCE};
use crate::scenario::Scenario;
use crate::workload::{Distribution, Packing, SampleSource};

/// A derived length is taken as the nearest multiple of this many tokens, if that is within one per cent.
const LENGTH_STEP: f64 = 128.0;

/// One change to a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Correction {
    /// Sets the samples of a global batch.
    GlobalBatch {
        /// Samples.
        samples: u32,
    },
    /// Sets the context length, and the length of the samples where all have one.
    ContextLength {
        /// Tokens.
        tokens: u32,
    },
    /// Sets the number of devices.
    Devices {
        /// Devices.
        devices: u32,
    },
}

impl Correction {
    /// The change in words, for example "global batch 2048".
    pub fn describe(self) -> String {
        match self {
            Self::GlobalBatch { samples } => format!("global batch {samples}"),
            Self::ContextLength { tokens } => format!("context length {tokens}"),
            Self::Devices { devices } => format!("{devices} devices"),
        }
    }
}

/// The changes that make a plan's job that of a log, as far as the log states it.
pub(super) fn corrections(log: &LoggedJob, plan: &PlannedJob, comparison: &JobComparison) -> Vec<Correction> {
    let differs = |quantity: JobQuantity| {
        comparison.checks.iter().any(|check| check.quantity == quantity && check.agreement == Agreement::Different)
    };
    let mut corrections = Vec::new();
    let samples = log.samples().map(|(samples, _)| samples);
    if let Some(samples) = samples.filter(|_| differs(JobQuantity::GlobalBatch)) {
        let scaled = samples * plan.samples / plan.samples_of_a_step();
        corrections.extend(whole(scaled).map(|samples| Correction::GlobalBatch { samples }));
    }
    let devices = log.devices();
    let tokens = log.tokens(devices.unwrap_or(plan.devices));
    if let (Some(samples), Some(tokens)) = (samples, tokens) {
        let (measured, planned) = (tokens / samples, plan.tokens.mean / plan.samples_of_a_step());
        let padded = plan.padded_tokens.mean / plan.sequences.mean;
        let is_off = |planned: f64| (measured / planned - 1.0).abs() > TOKENS_TOLERANCE;
        if differs(JobQuantity::TokensPerStep) && is_off(planned) && is_off(padded) {
            corrections.extend(whole(plain_length(measured)).map(|tokens| Correction::ContextLength { tokens }));
        }
    }
    if let Some(devices) = devices.filter(|_| differs(JobQuantity::Devices)) {
        corrections.extend(whole(devices).map(|devices| Correction::Devices { devices }));
    }
    corrections
}

fn plain_length(tokens: f64) -> f64 {
    let near = (tokens / LENGTH_STEP).round() * LENGTH_STEP;
    if near > 0.0 && (tokens / near - 1.0).abs() <= 0.01 { near } else { tokens }
}

fn whole(value: f64) -> Option<u32> {
    (value.round() >= 1.0 && value < f64::from(u32::MAX)).then(|| value.round() as u32)
}

/// A scenario with corrections. Degrees of a layout that no longer divide the devices are searched again.
pub fn corrected(scenario: &Scenario, corrections: &[Correction]) -> Scenario {
    let mut changed = scenario.clone();
    for correction in corrections {
        match *correction {
            Correction::GlobalBatch { samples } => changed.workload.global_batch = samples,
            Correction::ContextLength { tokens } => {
                // Samples that fill their sequence grow with it; shorter ones stay, and more of them share one.
                let before = std::mem::replace(&mut changed.workload.context_length, tokens);
                let is_packed = changed.workload.packing == Packing::Packed;
                if let SampleSource::Drawn {
                    text_tokens: Distribution::Constant { value },
                    images: Distribution::Constant { value: 0 },
                    audio_clips: None,
                    ..
                } = &mut changed.workload.samples
                    && (*value >= before || !is_packed)
                {
                    *value = tokens;
                }
            }
            Correction::Devices { devices } => set_devices(&mut changed, devices),
        }
    }
    changed
}

/// Nodes of the scenario's size where they divide the devices, else the largest that do.
fn set_devices(scenario: &mut Scenario, devices: u32) {
    let before = scenario.cluster.devices_per_node.max(1);
    let per_node = (1..=before.min(devices)).rev().find(|size| devices.is_multiple_of(*size)).unwrap_or(1);
    scenario.cluster.devices_per_node = per_node;
    scenario.cluster.nodes = devices / per_node;
    let layout = &mut scenario.layout;
    let degrees = [layout.tensor, layout.pipeline, Some(scenario.training.context_parallel)];
    let fixed = degrees.into_iter().flatten().fold(1_u32, u32::saturating_mul);
    if !devices.is_multiple_of(fixed.max(1)) {
        layout.tensor = None;
        layout.pipeline = None;
        layout.chunks = None;
    }
}
