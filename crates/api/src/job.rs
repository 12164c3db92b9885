//! Planning jobs.

use crate::planner::observer::BestSoFar;
use crate::planner::outcome::Outcome;
use crate::planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

/// A planning job. Server-sent events with the name "job" contain the same document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// Identifier.
    pub id: String,
    /// Identifier of the planned scenario.
    pub scenario: String,
    /// Job state.
    pub state: JobState,
}

/// State of a planning job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// The job waits for a worker.
    Queued,
    /// A planner is running.
    Running {
        /// The planner.
        planner: PlannerKind,
        /// Phase, for example "searching layouts".
        phase: String,
        /// Completed steps.
        done: u32,
        /// Total number of steps.
        total: u32,
        /// Fastest plan that `best` has found so far. Omitted before the first one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        best: Option<BestSoFar>,
    },
    /// The outcome is stored.
    Done,
    /// A user cancelled the job.
    Cancelled,
    /// The job failed because of an internal error.
    Failed {
        /// Error description.
        detail: String,
    },
}

impl JobState {
    /// Returns whether the state is final.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Failed { .. })
    }
}

/// The stored outcome of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredOutcome {
    /// The outcome.
    pub outcome: Outcome,
    /// Wall time per planner on the server that computed the outcome, in ms.
    pub planning_ms: Vec<PlanningTime>,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// Engine version of this server. If it differs from the outcome's version, the scenario can be
    /// planned again.
    pub current_engine: String,
    /// True for a what-if result without the long searches. Stored outcomes are never sketches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sketch: bool,
}

/// Outcomes of a scenario by engine version, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EngineOutcomeList {
    /// The answers.
    pub answers: Vec<EngineOutcome>,
}

/// An outcome of an engine version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EngineOutcome {
    /// Engine name and version.
    pub engine: String,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
}

/// Wall time of a planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanningTime {
    /// The planner.
    pub planner: PlannerKind,
    /// Wall time, in ms.
    pub ms: f64,
    /// Planning time per evaluated batch, in order. Empty if the planner plans once for all
    /// batches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<BatchPlanning>,
}

/// Planning of a batch, which runs during the previous batch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchPlanning {
    /// Wall time on the server, in ms.
    pub ms: f64,
    /// Simulated step time of the previous batch, in ms. Omitted for the first batch, which is
    /// planned before the training starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_before_ms: Option<f64>,
    /// Exposed planning time, in ms: max(0, planning - step).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed_ms: Option<f64>,
}

impl BatchPlanning {
    /// Creates an entry for planning that took `ms` during a step.
    pub fn during_step(ms: f64, step_before_ms: Option<f64>) -> Self {
        Self { ms, step_before_ms, exposed_ms: step_before_ms.map(|step| (ms - step).max(0.0)) }
    }
}
