//! Comparison of a run with a plan.

use planner::run_comparison::JobComparison;
use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::scenario::StoredScenario;

/// Comparison of a run with the plan of its scenario.
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
    /// Checks that run and plan are the same job. Where one of them differs, predictions and phases carry no differences.
    #[serde(default)]
    pub job: JobComparison,
    /// Predicted value and band of every quantity, and the measured median.
    pub predictions: Vec<Prediction>,
    /// Outliers, which are excluded from medians.
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
    /// TFLOP/s per device, by the log's formula where it is known.
    TflopsPerDevice,
    /// Tokens per second of one device.
    TokensPerSecondPerDevice,
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
    /// (measured - predicted) / predicted; absent where run and plan are different jobs or have different layouts.
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
    /// Predicted time, in s per step; absent where the plan has no such phase, or run and plan are different jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
}

/// Options of a correction.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct CorrectionQuery {
    /// Planner of the run's scenario; absent: the one that the run names, else the fastest.
    pub planner: Option<String>,
    /// Part of the run whose steps count; absent: all.
    pub segment: Option<u32>,
}

/// A scenario that was corrected to the job of a run and attached to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Corrected {
    /// The corrected scenario, a draft.
    pub scenario: StoredScenario,
    /// The job that plans it; done where it was planned before.
    pub job: Job,
    /// The changes, for example "global batch 2048".
    pub changes: Vec<String>,
}
