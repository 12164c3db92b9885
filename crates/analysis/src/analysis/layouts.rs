//! All module layouts of a scenario as points: throughput per device against cluster throughput.

use serde::{Deserialize, Serialize};

use planscope_core::timeline::Timeline;
use planscope_plan::outcome::{ModulePlacement, PlacedModules, RejectionCount};

/// Relation between the module layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Freedom {
    /// One layout for all modules.
    Homogeneous,
    /// Separate layouts on the same devices.
    Colocated,
    /// Separate layouts on disjoint devices.
    NonColocated,
}

/// All points, and the winner per freedom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutSweep {
    /// Sequences in the evaluated batch.
    pub sequences: u32,
    /// Backbone tokens in the evaluated batch.
    pub tokens: u64,
    /// Simulated points first, then other points up to the list limit.
    pub points: Vec<LayoutPoint>,
    /// Winner per freedom on the full cluster.
    pub best: Vec<BestPoint>,
    /// Number of simulated points.
    pub simulated: u32,
    /// Points skipped due to worse estimates.
    pub left_out: u32,
    /// Points that violate a rule, exceed the memory limit or exceed the point limit, grouped by
    /// reason in descending order.
    pub rejections: Vec<RejectionCount>,
    /// True if the time limit was reached.
    pub is_partial: bool,
}

/// Winner for a freedom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestPoint {
    /// Relation between the module layouts.
    pub freedom: Freedom,
    /// Point index in `points`.
    pub point: u32,
    /// Relative difference in tokens/s to the best single layout, in %; omitted if there is no
    /// single layout.
    pub gain_percent: Option<f64>,
}

/// Layouts of all modules and a microbatch size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutPoint {
    /// Name, accepted by [`layout_plan`].
    pub name: String,
    /// Relation between the module layouts.
    pub freedom: Freedom,
    /// Layout description.
    pub title: String,
    /// Layouts in module order.
    pub layouts: Vec<PlacedModules>,
    /// Sequences per microbatch.
    pub microbatch: u32,
    /// Devices used.
    pub devices: u32,
    /// Explanation of a rejection; omitted for feasible points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Simulation results; omitted if not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<PointMetrics>,
    /// True if no point is better in both throughputs (Pareto front).
    pub is_on_front: bool,
    /// Comparison with the fastest point; omitted if not simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_best: Option<String>,
}

/// Simulation results for a point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PointMetrics {
    /// Batch time in s.
    pub iteration_s: f64,
    /// Model FLOPs per second and used device, in TFLOP/s.
    pub tflops_per_device: f64,
    /// Backbone tokens/s.
    pub tokens_per_s: f64,
    /// Highest peak memory per rank, in GiB.
    pub peak_memory_gib: f64,
    /// Idle time divided by (used devices x time).
    pub bubble: f64,
    /// Exposed communication divided by (used devices x time).
    pub exposed_communication: f64,
}

/// A point from the sweep, and its timeline for the same batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LayoutPlan {
    /// The point, with figures from the validated plan.
    pub point: LayoutPoint,
    /// Order of actions and binding constraint as text.
    pub words: Vec<String>,
    /// Placement of modules and transfers between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<ModulePlacement>,
    /// Timeline for all ranks.
    pub timeline: Timeline,
}
