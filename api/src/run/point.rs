//! What the log of a run says of its steps, as it travels.

use serde::{Deserialize, Serialize};

use super::RunState;

/// One point: what a log says of a step. What it does not say is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RunPoint {
    /// Place in the run, from 1, never used twice; what events and pages go on from.
    pub row: u64,
    /// Part of the run: a restart, where the step goes back, opens the next.
    pub segment: u32,
    /// The step, as the trainer counts.
    pub step: u64,
    /// Time of day in ms since 1970 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<i64>,
    /// Time of one step, in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_s: Option<f64>,
    /// How that time was obtained; absent where the log prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_s_origin: Option<StepTimeOrigin>,
    /// Tokens per second of the whole job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<f64>,
    /// Tokens per second of one device, where the log has only that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_s_per_device: Option<f64>,
    /// Samples per second of the whole job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_s: Option<f64>,
    /// TFLOP/s per device, as the trainer counts operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tflops_per_device: Option<f64>,
    /// Share of the peak of a device that is used, from 0 to 1, as the trainer counts operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mfu: Option<f64>,
    /// Loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Norm of the gradient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// Learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Samples of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_batch: Option<u64>,
    /// Steps of the whole training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Most memory that any device has allocated, in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_gib: Option<f64>,
    /// Most memory that the caching allocator of any device has reserved, in GiB; some logs have only that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_gib: Option<f64>,
    /// Timers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseTime>,
    /// Names whose value was NaN or infinite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
    /// Whether lines that come may still add to it. It is sent again under the same row, and the later one counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// How the time of a step was obtained where the log does not print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepTimeOrigin {
    /// Tokens of a step divided by tokens per second.
    TokenRate,
    /// Difference of two times of day, divided by the steps between.
    Clock,
    /// Difference of two times since the start, divided by the steps between.
    Elapsed,
    /// Moving average of a progress bar.
    ProgressBar,
    /// Average since the start of the run.
    RunAverage,
    /// Sum of the timers of a step.
    Timers,
}

impl StepTimeOrigin {
    /// The origin in words.
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

/// A timer of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct PhaseTime {
    /// Its name, for example "forward-compute".
    pub name: String,
    /// Time in s: of the slowest rank where there are several.
    pub time_s: f64,
    /// Whether the log says it of the one rank that prints only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_rank: bool,
}

/// Points of a run, in the order of rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PointPage {
    /// The points.
    pub points: Vec<RunPoint>,
    /// Row to ask on after; absent: there are no more yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The point of the latest step, behind the last row, while lines may still add to it. Only the last page has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<RunPoint>,
}

/// Rows that were not sent, because the browser was too slow: ask for them by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunGap {
    /// The last row that was sent.
    pub after: u64,
    /// The row that comes next.
    pub before: u64,
}

/// An event of a run. The name of the server-sent event is "point", "gap" or "state"; its data is what stands inside.
///
/// A point comes again under its row while it is open and once when it is complete, so keep points by row. Only complete
/// rows have an event id, from which a stream goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every event is a point")]
pub enum RunEvent {
    /// A point.
    Point(Box<RunPoint>),
    /// Rows that were left out.
    Gap(RunGap),
    /// Where the run stands now.
    State(RunState),
}

/// An event in the stream of several runs: whose it is, beside what the stream of one run carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunUpdate {
    /// Identifier of the run.
    pub run: String,
    /// The event.
    #[serde(flatten)]
    pub event: RunEvent,
}
