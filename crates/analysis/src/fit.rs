//! Fit of a scenario: the memory need by rank and term, the single changes that help most, and the fewest devices.

mod devices;

pub use devices::{DeviceTable, FewestDevices};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use planscope_plan::outcome::{Layout, RankNeed};
use planscope_plan::scenario::PlannerKind;

/// Memory need of a scenario and its most useful single changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Fit {
    /// Planner of all figures.
    pub planner: PlannerKind,
    /// Result for the scenario itself.
    pub base: FitResult,
    /// Memory by rank and term, of the plan or of the layout with the smallest need.
    pub ranks: Vec<RankNeed>,
    /// Memory limit per device in GiB: device memory without the reserve.
    pub limit_gib: f64,
    /// Single changes that fit, in ascending iteration time, at most 10. If the scenario fits, only changes that
    /// save time. If it fits with a risk of running out of memory, changes that remove the risk come first.
    pub changes: Vec<Change>,
    /// Number of simulated changes.
    pub simulated: u32,
    /// Number of changes that do not fit.
    pub rejected: u32,
    /// Changes of `changes` that save most time together; omitted if no two of them do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub combination: Option<Combination>,
    /// True if the time limit was reached before all changes were simulated.
    pub is_partial: bool,
}

/// Result of one scenario on one global batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FitResult {
    /// Layout of the plan, or the layout with the smallest memory need.
    pub layout: Option<Layout>,
    /// Iteration time in s; omitted if nothing fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_s: Option<f64>,
    /// Tokens per second and device; omitted if nothing fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Highest peak memory of a rank in GiB, without the reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gib: Option<f64>,
    /// Layers of each stage, if they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage_layers: Vec<u32>,
    /// Binding constraint if nothing fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
}

/// Part of the scenario that a change modifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Degrees, microbatch, layers per stage.
    Layout,
    /// Recomputation, offload, ZeRO stage, formats, kernels.
    Training,
    /// Nodes and links.
    Cluster,
    /// Packing.
    Workload,
}

/// New value of a field of the scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldChange {
    /// JSON pointer into the scenario.
    pub pointer: String,
    /// New value. `null` removes the field.
    pub value: Value,
}

/// A single change of the scenario that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Change {
    /// Description, for example "recompute 4 layers per stage".
    pub title: String,
    /// Part of the scenario.
    pub kind: ChangeKind,
    /// Fields to change.
    pub fields: Vec<FieldChange>,
    /// Result with the change.
    pub result: FitResult,
    /// Change of the iteration time in s; omitted if the scenario itself does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_s: Option<f64>,
    /// Probability that a run with the change is faster (docs/models.md, section 18); omitted if the scenario itself
    /// does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability_faster: Option<f64>,
}

/// Several changes applied together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Combination {
    /// Indices into the list of changes.
    pub changes: Vec<u32>,
    /// Result with these changes.
    pub result: FitResult,
    /// Change of the iteration time in s; omitted if the scenario itself does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_s: Option<f64>,
}
