//! Stored sweeps: what they ask, how far they are, and their pictures.

use planner::scenario::PlannerKind;
use planner::sweep::{PointRow, Study, UsualField};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shelf::ListPage;

/// A stored sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredSweep {
    /// Identifier, 52 characters of lower-case base32.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
    /// The sweep itself, values spelled out.
    pub sweep: Value,
    /// Its axes, slowest first.
    pub axes: Vec<LabelledAxis>,
    /// Planners that answer every point.
    pub planners: Vec<NamedPlanner>,
    /// How far it is.
    pub progress: SweepProgress,
    /// Engine whose rows are shown.
    pub engine: String,
    /// Engine of this server.
    pub current_engine: String,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
}

/// An axis, ready to draw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelledAxis {
    /// JSON pointer of the field.
    pub pointer: String,
    /// What the field is called, with its unit.
    pub title: String,
    /// Its values in words.
    pub labels: Vec<String>,
    /// Its values, where all are numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<f64>>,
}

/// A planner with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedPlanner {
    /// The planner.
    pub planner: PlannerKind,
    /// Its name as shown.
    pub title: String,
}

/// How far a sweep is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepProgress {
    /// What happens to it.
    pub state: SweepState,
    /// Points in all.
    pub points: u32,
    /// Of them planned, rows that say why not among them.
    pub done: u32,
    /// Of these without any plan: no layout fits, or the values make no scenario.
    pub without_plan: u32,
    /// Points a second since it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points_per_s: Option<f64>,
}

/// What happens to a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SweepState {
    /// Nothing: points are missing and nobody plans them.
    Idle,
    /// Points are planned, or wait until nobody else asks.
    Running,
    /// Every point has its row.
    Done,
    /// It cannot go on.
    Failed {
        /// Why.
        detail: String,
    },
}

/// A line of the list of sweeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepLine {
    /// Identifier.
    pub id: String,
    /// What it is called.
    pub title: String,
    /// Its axes in words, "nodes x context length".
    pub axes: String,
    /// Points in all.
    pub points: u32,
    /// Of them planned by the engine of this server.
    pub done: u32,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
    /// When it was deleted, RFC 3339 in UTC; it can come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Bytes that it takes with its rows.
    #[serde(default)]
    pub bytes: u64,
    /// Why the server gave it up; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A page of the stored sweeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepList {
    /// The sweeps.
    pub sweeps: Vec<SweepLine>,
    /// What is said of the whole list.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RowPage {
    /// The rows, in the order of their numbers.
    pub rows: Vec<PointRow>,
    /// Number to ask from for the next page; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u32>,
}

/// What taking rows in came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gathered {
    /// Identifier of the sweep.
    pub sweep: String,
    /// Points in all.
    pub points: u32,
    /// Rows that were not there before.
    pub added: u64,
    /// Points without a row of that engine, as runs of numbers, first and last of each.
    pub missing: Vec<[u32; 2]>,
}

/// A picture of one or two axes, the others held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Picture {
    /// The metric.
    pub metric: Metric,
    /// What it is called, with its unit.
    pub title: String,
    /// Place of the horizontal axis among the axes.
    pub x: usize,
    /// Place of the vertical axis; absent: one line per planner in place of a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<usize>,
    /// One per planner: a line, or the one map that was asked for.
    pub layers: Vec<Layer>,
}

/// What one planner gives over a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Layer {
    /// The planner.
    pub planner: NamedPlanner,
    /// One row per value of the vertical axis (one for a line), one cell per value of the horizontal one.
    pub cells: Vec<Vec<Cell>>,
}

/// A point of a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cell {
    /// Number of the point.
    pub point: u32,
    /// The metric, if there is a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Why there is none; absent too where the point has no row yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Figures that pictures are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Mean time of an iteration.
    #[default]
    IterationS,
    /// Backbone tokens per second.
    TokensPerS,
    /// The same per device.
    TokensPerSPerDevice,
    /// Model FLOP utilisation.
    Mfu,
    /// Idle share.
    Bubble,
    /// Share of exposed communication.
    ExposedCommunication,
    /// Largest memory of any rank.
    PeakMemoryGib,
    /// Distance from the lower bound.
    Gap,
}

impl Metric {
    /// All of them, in the order of pickers.
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

    /// Its name in addresses.
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

    /// What it is called, with its unit.
    pub const fn title(self) -> &'static str {
        match self {
            Self::IterationS => "iteration time, s",
            Self::TokensPerS => "tokens per second",
            Self::TokensPerSPerDevice => "tokens per second and device",
            Self::Mfu => "MFU, %",
            Self::Bubble => "bubble, %",
            Self::ExposedCommunication => "exposed communication, %",
            Self::PeakMemoryGib => "peak memory, GiB",
            Self::Gap => "above the lower bound, %",
        }
    }
}

/// Time against memory of all plans of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Front {
    /// Plans, those of the front first; at most 5,000.
    pub plans: Vec<FrontPlan>,
    /// Plans in all.
    pub total: u64,
    /// Of them on the front: no other one is faster with no more memory.
    pub optimal: u64,
    /// Whether plans are compared by tokens per second and device, because points have different workloads; else by time.
    #[serde(default)]
    pub by_throughput: bool,
}

/// A plan of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FrontPlan {
    /// Number of the point.
    pub point: u32,
    /// The planner.
    pub planner: NamedPlanner,
    /// Mean time of an iteration, in s.
    pub iteration_s: f64,
    /// Backbone tokens per second and device, where plans are compared by these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Largest memory of any rank, in GiB.
    pub peak_memory_gib: f64,
    /// Whether it is on the front.
    pub optimal: bool,
    /// The point in words, "nodes 4, context length 8192".
    pub words: String,
}

/// What can be swept around a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SweepsOfScenario {
    /// Fields that people often sweep.
    pub fields: Vec<UsualField>,
    /// Scaling studies, ready to be stored.
    pub studies: Vec<ReadyStudy>,
}

/// A scaling study, ready to be stored as a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReadyStudy {
    /// Which one.
    pub study: Study,
    /// What it is called.
    pub title: String,
    /// The sweep.
    pub sweep: Value,
}
