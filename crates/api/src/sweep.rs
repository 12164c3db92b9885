//! Stored sweeps: definition, progress and charts.

use crate::planner::certainty::Interval;
use crate::planner::scenario::PlannerKind;
use crate::planner::sweep::{PointRow, ScalingSweep, UsualField};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::listing::ListPage;

/// A stored sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredSweep {
    /// Identifier, 52 characters of lower-case base32.
    pub id: String,
    /// Title.
    pub title: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// True if the sweep is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
    /// The sweep with explicit values.
    pub sweep: Value,
    /// Axes. The first axis varies slowest.
    pub axes: Vec<LabelledAxis>,
    /// Planners for all points.
    pub planners: Vec<NamedPlanner>,
    /// Progress.
    pub progress: SweepProgress,
    /// Engine version for the rows.
    pub engine: String,
    /// Engine version on this server.
    pub current_engine: String,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
}

/// An axis for charts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelledAxis {
    /// JSON pointer to the field.
    pub pointer: String,
    /// Field title with unit.
    pub title: String,
    /// Values as text.
    pub labels: Vec<String>,
    /// Values, if all are numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<f64>>,
}

/// A planner with its title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedPlanner {
    /// The planner.
    pub planner: PlannerKind,
    /// Display title.
    pub title: String,
}

/// Progress of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepProgress {
    /// State.
    pub state: SweepState,
    /// Total number of points.
    pub points: u32,
    /// Number of planned points, including points without a plan.
    pub done: u32,
    /// Number of points without a plan: no layout fits, or the scenario is invalid.
    pub without_plan: u32,
    /// Points with a plan per second since the start. Omitted before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points_per_s: Option<f64>,
}

/// State of a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SweepState {
    /// Points are missing and planning is stopped.
    Idle,
    /// Points are planned or wait for a worker.
    Running,
    /// All points are complete.
    Done,
    /// Planning failed.
    Failed {
        /// Reason.
        detail: String,
    },
}

/// A sweep in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepLine {
    /// Identifier.
    pub id: String,
    /// Title.
    pub title: String,
    /// Axes as text, "nodes x context length".
    pub axes: String,
    /// Total number of points.
    pub points: u32,
    /// Number of points planned with the engine version on this server.
    pub done: u32,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// True if the sweep is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
    /// Deletion time, RFC 3339 in UTC. Deleted sweeps can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Stored size including rows, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Reason why the server stopped planning the sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A page of sweeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepList {
    /// The sweeps.
    pub sweeps: Vec<SweepLine>,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RowPage {
    /// Rows, sorted by point number.
    pub rows: Vec<PointRow>,
    /// First point number of the next page. Omitted on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// Result of a row import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gathered {
    /// Sweep identifier.
    pub sweep: String,
    /// Total number of points.
    pub points: u32,
    /// Number of new rows.
    pub added: u64,
    /// Points without a row for the engine version, as ranges (first, last).
    pub missing: Vec<[u32; 2]>,
}

/// A chart over up to two axes; the other axes are fixed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Picture {
    /// The metric.
    pub metric: Metric,
    /// Metric title with unit.
    pub title: String,
    /// Index of the horizontal axis.
    pub x: usize,
    /// Index of the vertical axis. Omitted for a line chart with a line per planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<usize>,
    /// A line per planner, or the requested map.
    pub layers: Vec<Layer>,
}

/// Chart data for a planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Layer {
    /// The planner.
    pub planner: NamedPlanner,
    /// Rows: a row per value on the vertical axis (a single row for a line). Cells: a cell per
    /// value on the horizontal axis.
    pub cells: Vec<Vec<Cell>>,
}

/// A chart point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cell {
    /// Point number.
    pub point: u32,
    /// Metric value, if a plan exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Reason for a missing plan. Omitted if the point is not planned yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Probability of running out of memory, if it is a risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<f64>,
}

/// Metrics for charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Mean iteration time.
    #[default]
    IterationS,
    /// Backbone tokens per second.
    TokensPerS,
    /// Backbone tokens per second per device.
    TokensPerSPerDevice,
    /// Model FLOPs utilization.
    Mfu,
    /// Bubble fraction.
    Bubble,
    /// Fraction of exposed communication.
    ExposedCommunication,
    /// Peak memory over all ranks.
    PeakMemoryGib,
    /// Gap to the lower bound.
    Gap,
}

impl Metric {
    /// All metrics in display order.
    pub const ALL: [Self; 8] = [
        Self::IterationS,
        Self::TokensPerS,
        Self::TokensPerSPerDevice,
        Self::Mfu,
        Self::Bubble,
        Self::ExposedCommunication,
        Self::PeakMemoryGib,
        Self::Gap,
    ];

    /// Name in URLs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::IterationS => "iteration_s",
            Self::TokensPerS => "tokens_per_s",
            Self::TokensPerSPerDevice => "tokens_per_s_per_device",
            Self::Mfu => "mfu",
            Self::Bubble => "bubble",
            Self::ExposedCommunication => "exposed_communication",
            Self::PeakMemoryGib => "peak_memory_gib",
            Self::Gap => "gap",
        }
    }

    /// Title with unit.
    pub const fn title(self) -> &'static str {
        match self {
            Self::IterationS => "step time, s",
            Self::TokensPerS => "tokens/s",
            Self::TokensPerSPerDevice => "tokens/s/GPU",
            Self::Mfu => "MFU, %",
            Self::Bubble => "bubble, %",
            Self::ExposedCommunication => "exposed communication, %",
            Self::PeakMemoryGib => "peak memory, GiB",
            Self::Gap => "above the lower bound, %",
        }
    }
}

/// Time and memory of all plans in a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Front {
    /// Plans, Pareto-optimal plans first; at most 5,000.
    pub plans: Vec<FrontPlan>,
    /// Total number of plans.
    pub total: u64,
    /// Number of Pareto-optimal plans in time and memory.
    pub optimal: u64,
    /// True if plans are compared by tokens per second per device, because the workloads or the
    /// numbers of devices differ.
    /// Otherwise by time.
    #[serde(default)]
    pub by_throughput: bool,
}

/// A plan for a sweep point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FrontPlan {
    /// Point number.
    pub point: u32,
    /// The planner.
    pub planner: NamedPlanner,
    /// Mean iteration time, in s.
    pub iteration_s: f64,
    /// 80 % interval of the iteration time, in s, for the first 20 Pareto-optimal plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<Interval>,
    /// Backbone tokens per second per device, if plans are compared by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Peak memory over all ranks, in GiB.
    pub peak_memory_gib: f64,
    /// Probability of running out of memory, if it is a risk, for the first 20 Pareto-optimal plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<f64>,
    /// True if the plan is Pareto-optimal.
    pub optimal: bool,
    /// Point values as text, "nodes 4, context length 8192".
    pub words: String,
}

/// Suggested sweeps for a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioSweeps {
    /// Common sweep fields.
    pub fields: Vec<UsualField>,
    /// Scaling studies.
    pub studies: Vec<SuggestedSweep>,
}

/// A scaling study as a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SuggestedSweep {
    /// Study.
    pub study: ScalingSweep,
    /// Title.
    pub title: String,
    /// The sweep.
    pub sweep: Value,
}
