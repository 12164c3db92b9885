//! A run beside the plan that it is held against.

use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

/// A run beside the plan that it is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Comparison {
    /// The run.
    pub run: String,
    /// Scenario, whole identifier.
    pub scenario: String,
    /// Planner whose plan it is.
    pub planner: PlannerKind,
    /// Layout and schedule of the plan, in a line.
    pub plan: String,
    /// Predicted value and band of every quantity, beside what was measured.
    pub predictions: Vec<Prediction>,
    /// Steps that stand apart from the rest and are left out of medians.
    pub outliers: Vec<Outlier>,
    /// Parts of the run, a restart opening the next.
    pub segments: Vec<SegmentSummary>,
    /// Measured against predicted time by phase of a step; empty where the log has no timers.
    pub phases: Vec<PhaseResidual>,
    /// What a reader should know, in words.
    pub notes: Vec<String>,
}

/// What is predicted and measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Time of a step, in s.
    StepTime,
    /// Tokens per second of the whole job.
    TokensPerSecond,
    /// TFLOP/s per device.
    TflopsPerDevice,
    /// Largest memory of a device, in GiB.
    Memory,
}

/// A predicted value and its band.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PredictionBand {
    /// Predicted value.
    pub value: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end of the band.
    pub high: f64,
    /// What the band is made of, in words.
    pub reason: String,
}

/// One quantity, predicted and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Prediction {
    /// What.
    pub quantity: Quantity,
    /// What the plan says.
    pub band: PredictionBand,
    /// Median of the run, outliers left out; absent where the log does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// (measured - predicted) / predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Share of the steps inside the band, outliers left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<f64>,
}

/// Why a step stands apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutlierReason {
    /// Among the first steps of a part of the run.
    WarmUp,
    /// Far slower than the median: a checkpoint, an evaluation, a hiccup.
    Slow,
    /// Far faster than the median.
    Fast,
}

/// A step that stands apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outlier {
    /// Row of its point.
    pub row: u64,
    /// Its step.
    pub step: u64,
    /// Time of the step, in s.
    pub step_s: f64,
    /// Distance from the median in median absolute deviations, with its sign.
    pub deviations: f64,
    /// Why.
    pub reason: OutlierReason,
}

/// A part of a run between restarts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SegmentSummary {
    /// Number, from 0.
    pub segment: u32,
    /// First step.
    pub first_step: u64,
    /// Last step.
    pub last_step: u64,
    /// Points.
    pub points: u64,
    /// Median time of a step, outliers left out, in s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_step_s: Option<f64>,
}

/// Time of one phase of a step, predicted and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseResidual {
    /// Phase in words, for example "forward compute".
    pub phase: String,
    /// Timers of the log that were added up.
    pub timers: Vec<String>,
    /// Median of the run, in s per step.
    pub measured_s: f64,
    /// What the plan says, in s per step; absent where it has no such phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
}
