//! Points of a run in the API.

use serde::{Deserialize, Serialize};

use super::RunState;

/// Values for a training step. Values missing in the log are omitted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RunPoint {
    /// Row number in the run, from 1 and unique. Events and pages continue after a row.
    pub row: u64,
    /// Run segment. A restart, where the step number decreases, begins a segment.
    pub segment: u32,
    /// Step number in the trainer's count.
    pub step: u64,
    /// Time of day in ms since 1970 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<i64>,
    /// Step time, in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_s: Option<f64>,
    /// Origin of the step time. Omitted if the log prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_s_origin: Option<StepTimeOrigin>,
    /// Tokens per second for the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Tokens per second per device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Samples per second for the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// TFLOP/s per device, with the trainer's FLOP count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tflops_per_device: Option<f64>,
    /// Model FLOPs utilization from 0 to 1, with the trainer's FLOP count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mfu: Option<f64>,
    /// Loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Gradient norm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// Learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Samples per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_batch: Option<u64>,
    /// Total number of training steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Maximum allocated memory over all devices, in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<f64>,
    /// Maximum memory reserved by the caching allocator over all devices, in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_gib: Option<f64>,
    /// Timers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseTime>,
    /// Names with NaN or infinite values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
    /// True if later lines can extend the point. The server then sends the point again with the
    /// same row, which replaces it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// Origin of a step time that the log does not print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepTimeOrigin {
    /// Tokens per step divided by tokens per second.
    TokenRate,
    /// Difference between two clock times, divided by the number of steps.
    Clock,
    /// Difference between two elapsed times, divided by the number of steps.
    Elapsed,
    /// Progress bar average.
    ProgressBar,
    /// Average since the run start.
    RunAverage,
    /// Sum of the step timers.
    Timers,
}

impl StepTimeOrigin {
    /// Returns the display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenRate => "tokens of a step divided by tokens per second",
            Self::Clock => "difference of times of day",
            Self::Elapsed => "difference of elapsed times",
            Self::ProgressBar => "moving average of the progress bar",
            Self::RunAverage => "average since the start of the run",
            Self::Timers => "sum of the timers",
        }
    }
}

/// A step timer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PhaseTime {
    /// Timer name, for example "forward-compute".
    pub name: String,
    /// Time in s, for the slowest rank if the log has several.
    pub time_s: f64,
    /// Time of the fastest rank in s, if the log has the times of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_s: Option<f64>,
    /// True if only the printing rank is measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_rank: bool,
    /// Slowest rank, if the log has the time of each rank and this one is at least 10 % above their median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_rank: Option<u32>,
    /// All ranks that are at least 10 % above the median, in order; at most 256.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slow_ranks: Vec<u32>,
}

/// Points, in row order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PointPage {
    /// The points.
    pub points: Vec<RunPoint>,
    /// Row for the next request. Omitted if no further points exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The incomplete point after the last row. Only on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<RunPoint>,
}

/// Rows that were skipped because the client was too slow. Request them by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunGap {
    /// Last sent row.
    pub after: u64,
    /// Next row.
    pub before: u64,
}

/// A run event. Server-sent events are named "point", "gap" or "state"; the data is the content.
///
/// The server sends a point repeatedly while it is incomplete, and once when it is complete.
/// Clients store points by row. Only complete rows have an event id, which a stream can resume
/// from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every event is a point")]
pub enum RunEvent {
    /// A point.
    Point(Box<RunPoint>),
    /// Skipped rows.
    Gap(RunGap),
    /// Current run state.
    State(RunState),
}

/// An event in a stream for several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunUpdate {
    /// Run identifier.
    pub run: String,
    /// The event.
    #[serde(flatten)]
    pub event: RunEvent,
}
