//! Changes to a scenario that make it the job of a run.

use serde::{Deserialize, Serialize};

use super::{Agreement, JobComparison, JobQuantity, LoggedJob, PlannedJob, StatedLayout, layout};
use crate::scenario::Scenario;
use crate::workload::{Distribution, Packing, SampleSource};

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
    /// Sets degrees, microbatch and recomputation; what is absent stays.
    Layout(StatedLayout),
}

impl Correction {
    /// The change in words, for example "global batch 2048".
    pub fn describe(self) -> String {
        match self {
            Self::GlobalBatch { samples } => format!("global batch {samples}"),
            Self::ContextLength { tokens } => format!("context length {tokens}"),
            Self::Devices { devices } => format!("{devices} devices"),
            Self::Layout(layout) => layout.to_string(),
        }
    }
}

/// The changes that make a plan's job that of a log. Every value is one that the log states: values derived from rates are those of
/// a mean step, and a batch in sequences is no number of samples.
pub(super) fn corrections(log: &LoggedJob, plan: &PlannedJob, comparison: &JobComparison) -> Vec<Correction> {
    let differs = |quantity: JobQuantity| {
        comparison.checks.iter().any(|check| check.quantity == quantity && check.agreement == Agreement::Different)
    };
    let samples = log.global_batch.filter(|_| differs(JobQuantity::GlobalBatch) && plan.has_a_sample_per_sequence());
    let is_other_length = |tokens: &f64| (tokens - plan.context_length).abs() >= 0.5;
    let tokens = log.sequence_length.filter(|_| differs(JobQuantity::TokensPerStep)).filter(is_other_length);
    let devices = log.devices.filter(|_| differs(JobQuantity::Devices));
    let count = devices.and_then(whole).map_or(plan.devices, f64::from);
    let corrections = [
        samples.and_then(whole).map(|samples| Correction::GlobalBatch { samples }),
        tokens.and_then(whole).map(|tokens| Correction::ContextLength { tokens }),
        devices.and_then(whole).map(|devices| Correction::Devices { devices }),
        layout::correction(log, plan, count).map(Correction::Layout),
    ];
    corrections.into_iter().flatten().collect()
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
            Correction::Layout(layout) => layout.apply(&mut changed),
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
