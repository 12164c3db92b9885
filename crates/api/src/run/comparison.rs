//! Comparison of a run with a plan.

use crate::planner::run_comparison::JobComparison;
use crate::planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::scenario::StoredScenario;

/// Comparison of a run with the plan of its scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Comparison {
    /// The run.
    pub run: String,
    /// Full scenario identifier.
    pub scenario: String,
    /// Planner of the plan.
    pub planner: PlannerKind,
    /// Layout and schedule as text.
    pub plan: String,
    /// Checks whether run and plan are the same job. If a check fails, predictions and phases
    /// contain no differences.
    #[serde(default)]
    pub job: JobComparison,
    /// Predicted value, band and measured median per quantity.
    pub predictions: Vec<Prediction>,
    /// Outliers, which are excluded from medians.
    pub outliers: Vec<Outlier>,
    /// Segments. A restart begins a segment.
    pub segments: Vec<SegmentSummary>,
    /// Segment that is compared. Omitted if all segments are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<u32>,
    /// Measured and predicted time per phase. Empty if the log has no timers.
    pub phases: Vec<PhaseResidual>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A predicted and measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Step time, in s.
    StepTime,
    /// Tokens per second for the job.
    TokensPerSecond,
    /// TFLOP/s per device, with the log's FLOP formula if known.
    TflopsPerDevice,
    /// Tokens per second per device.
    TokensPerSecondPerDevice,
    /// Peak memory over all devices, in GiB.
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
    /// Explanation of the band.
    pub reason: String,
}

/// A quantity, predicted and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Prediction {
    /// Quantity.
    pub quantity: Quantity,
    /// Prediction.
    pub band: PredictionBand,
    /// Expected time of the next steps: the band of the step time narrowed by the steps seen. Omitted for other quantities, for
    /// fewer than five steps, and if job or layout differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<PredictionBand>,
    /// Median over the run without outliers. Without a rate of tokens in the log, tokens per step by the step time. Omitted if
    /// the log does not state the quantity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// (measured - predicted) / predicted. Omitted if job or layout differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Fraction of steps within the band, without outliers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<f64>,
}

/// Reason for an outlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutlierReason {
    /// First steps in a segment.
    WarmUp,
    /// Much slower than the median, for example a checkpoint or an evaluation.
    Slow,
    /// Much faster than the median.
    Fast,
}

/// An outlier step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Outlier {
    /// Row number.
    pub row: u64,
    /// Segment of the step.
    #[serde(default)]
    pub segment: u32,
    /// Step number.
    pub step: u64,
    /// Step time, in s.
    pub step_s: f64,
    /// Signed distance from the median, in median absolute deviations.
    pub deviations: f64,
    /// Reason.
    pub reason: OutlierReason,
}

/// A run segment between restarts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SegmentSummary {
    /// Number, from 0.
    pub segment: u32,
    /// First step.
    pub first_step: u64,
    /// Last step.
    pub last_step: u64,
    /// Number of points.
    pub points: u64,
    /// Median step time without outliers, in s. After a change, of the steps from there on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_step_s: Option<f64>,
    /// Change of the step time. Only the steps from there on are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<StepTimeChange>,
}

/// A step time that changes at one step and stays changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepTimeChange {
    /// First step with the new time.
    pub step: u64,
    /// Median step time before, in s.
    pub before_s: f64,
    /// Median step time from there on, in s.
    pub after_s: f64,
}

/// Predicted and measured time for a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseResidual {
    /// Phase, for example "forward compute".
    pub phase: String,
    /// Log timers in the sum.
    pub timers: Vec<String>,
    /// Median measured time, in s per step.
    pub measured_s: f64,
    /// Predicted time, in s per step. Omitted if the plan has no such phase or the jobs differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_s: Option<f64>,
}

/// Query parameters for a correction.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct CorrectionQuery {
    /// Planner in the run's scenario. Default: the planner attached to the run, otherwise the
    /// fastest.
    pub planner: Option<String>,
    /// Run segment to use. Default: the last one with regular steps.
    pub segment: Option<u32>,
}

/// A scenario corrected to match a run, and attached to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Corrected {
    /// Corrected scenario, a draft.
    pub scenario: StoredScenario,
    /// Planning job. Its state is done if the scenario was planned before.
    pub job: Job,
    /// Changes, for example "global batch 2048".
    pub changes: Vec<String>,
}
