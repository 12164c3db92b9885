//! Planning jobs.

use planner::outcome::Outcome;
use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

/// A planning job. Its events (SSE, event name "job") carry the same document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Job {
    /// Identifier.
    pub id: String,
    /// Scenario that is planned.
    pub scenario: String,
    /// Where it stands.
    pub state: JobState,
}

/// Where a job stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// Waiting for a worker.
    Queued,
    /// A planner is at work.
    Running {
        /// The planner.
        planner: PlannerKind,
        /// What it does, for example "searching layouts".
        phase: String,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// The outcome is stored.
    Done,
    /// Ended by a user.
    Cancelled,
    /// Ended by a fault of ours.
    Failed {
        /// What happened.
        detail: String,
    },
}

impl JobState {
    /// Whether nothing more will happen.
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
    /// Wall time of each planner on the server that computed it, in ms.
    pub planning_ms: Vec<PlanningTime>,
    /// When it was computed, RFC 3339 in UTC.
    pub created_at: String,
    /// Engine of this server; where it differs from the outcome's, a re-run is on offer.
    pub current_engine: String,
    /// It answers the sketch of what was asked, without the searches that take long. What is stored never is one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sketch: bool,
}

/// The answers that engines have given to a scenario, the latest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EngineAnswerList {
    /// The answers.
    pub answers: Vec<EngineAnswer>,
}

/// That an engine has answered a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EngineAnswer {
    /// Name and version of the engine.
    pub engine: String,
    /// When it answered, RFC 3339 in UTC.
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
    /// Of it, what every judged batch took that is planned anew, in their order; empty where a planner plans once for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<BatchPlanning>,
}

/// Planning of one batch, which goes on while the batch before it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchPlanning {
    /// Wall time on the server, in ms.
    pub ms: f64,
    /// Simulated step of the batch before, in ms; absent for the first, which is planned before training begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_before_ms: Option<f64>,
    /// What of the planning that step does not hide, in ms: max(0, planning - step).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed_ms: Option<f64>,
}

impl BatchPlanning {
    /// Planning that took `ms` beside a step.
    pub fn beside(ms: f64, step_before_ms: Option<f64>) -> Self {
        Self { ms, step_before_ms, exposed_ms: step_before_ms.map(|step| (ms - step).max(0.0)) }
    }
}
