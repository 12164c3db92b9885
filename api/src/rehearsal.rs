//! Rehearsals: plans that are walked through for real, a process for every rank.

use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

/// What is to be rehearsed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewRehearsal {
    /// Planner whose plan it is; absent: the fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// How many times faster than the plan says; 1 is real time. Absent: such that an iteration takes about a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Iterations, beginning with the first; absent: all that were planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
}

/// A rehearsal that began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StartedRehearsal {
    /// Run that its log and traces go to.
    pub run: String,
    /// Page that shows it.
    pub url: String,
    /// Processes, one for every rank of the pipeline.
    pub ranks: u32,
    /// How many times faster than the plan says.
    pub speed: f64,
}
