//! Scenario changes that match a run's job.

use serde::{Deserialize, Serialize};

use super::{Agreement, JobComparison, JobQuantity, LoggedJob, PlannedJob, StatedLayout, StatedModel, layout, model};
use planscope_core::workload::{Distribution, Packing, SampleSource};
use planscope_plan::scenario::Scenario;

/// A scenario change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Correction {
    /// Sets the global batch size.
    GlobalBatch {
        /// Samples per global batch.
        samples: u32,
    },
    /// Sets the context length, and the sample length if it is constant.
    ContextLength {
        /// Context length in tokens.
        tokens: u32,
    },
    /// Sets the number of devices.
    Devices {
        /// Number of devices.
        devices: u32,
    },
    /// Sets the dimensions of the model.
    Model(StatedModel),
    /// Sets degrees, microbatch and recomputation; what is absent stays.
    Layout(StatedLayout),
}

impl Correction {
    /// Returns a short description, for example "global batch 2048".
    pub fn describe(self) -> String {
        match self {
            Self::GlobalBatch { samples } => format!("global batch {samples}"),
            Self::ContextLength { tokens } => format!("context length {tokens}"),
            Self::Devices { devices } => format!("{devices} devices"),
            Self::Model(model) => model.to_string(),
            Self::Layout(layout) => layout.to_string(),
        }
    }
}

/// Returns the changes that match the plan's job to the log. Only values stated in the log are
/// used: values derived from rates describe a mean step, and a batch size in sequences is not a
/// number of samples.
pub(crate) fn corrections(log: &LoggedJob, plan: &PlannedJob, comparison: &JobComparison) -> Vec<Correction> {
    let differs = |quantity: JobQuantity| {
        comparison.checks.iter().any(|check| check.quantity == quantity && check.agreement == Agreement::Different)
    };
    let samples = log.global_batch.filter(|_| differs(JobQuantity::GlobalBatch) && plan.has_a_sample_per_sequence());
    let is_other_length = |tokens: &f64| (tokens - plan.context_length).abs() >= 0.5;
    let tokens = log.sequence_length.filter(|_| differs(JobQuantity::TokensPerStep)).filter(is_other_length);
    let devices = log.devices.filter(|_| differs(JobQuantity::Devices));
    let count = devices.and_then(to_count).map_or(plan.devices, f64::from);
    let corrections = [
        model::correction(log, plan).map(Correction::Model),
        samples.and_then(to_count).map(|samples| Correction::GlobalBatch { samples }),
        tokens.and_then(to_count).map(|tokens| Correction::ContextLength { tokens }),
        devices.and_then(to_count).map(|devices| Correction::Devices { devices }),
        layout::correction(log, plan, count).map(Correction::Layout),
    ];
    corrections.into_iter().flatten().collect()
}

pub(super) fn to_count(value: f64) -> Option<u32> {
    (value.round() >= 1.0 && value < f64::from(u32::MAX)).then(|| value.round() as u32)
}

/// Returns the scenario with the corrections. Layout degrees that no longer divide the number of
/// devices are reset, so that the planner searches them.
pub fn corrected(scenario: &Scenario, corrections: &[Correction]) -> Scenario {
    let mut changed = scenario.clone();
    for correction in corrections {
        match *correction {
            Correction::GlobalBatch { samples } => changed.workload.global_batch = samples,
            Correction::ContextLength { tokens } => {
                // Samples that fill their sequence grow with the context length. Shorter samples
                // keep their length, and more of them share a sequence.
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
            Correction::Model(model) => model.apply(&mut changed),
            Correction::Layout(layout) => layout.apply(&mut changed),
        }
    }
    changed
}

/// Sets the node size to the current size if it divides the number of devices, otherwise to the
/// next smaller divisor.
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
