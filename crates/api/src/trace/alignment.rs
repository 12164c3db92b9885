//! Observed pipeline actions compared with planned ones.

use crate::planner::scenario::PlannerKind;
use crate::planner::trace_alignment::Aligned;
use serde::{Deserialize, Serialize};

/// Pipeline iterations in a trace, or in all traces of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionList {
    /// Combined traces.
    pub traces: Vec<String>,
    /// Ranks with actions, ascending. Row r in the timelines is the r-th rank.
    pub ranks: Vec<u32>,
    /// Iterations in time order.
    pub iterations: Vec<MeasuredIteration>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A pipeline iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MeasuredIteration {
    /// Step number if the program announced it, otherwise the index from 0.
    pub number: u64,
    /// True if the program announced the step.
    pub announced: bool,
    /// Start of the first action, in nanoseconds since the first start over all combined traces.
    pub start_ns: u64,
    /// Time from the first start to the last end.
    pub span_ns: u64,
    /// Number of actions.
    pub actions: u64,
}

/// An observed iteration compared with a planned one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alignment {
    /// Full scenario identifier.
    pub scenario: String,
    /// Planner of the plan.
    pub planner: PlannerKind,
    /// Planned iteration.
    pub iteration: u32,
    /// Index of the observed iteration, from 0.
    pub observed_iteration: u32,
    /// Actions in both, with differences.
    pub aligned: Aligned,
    /// Notes for the user.
    pub notes: Vec<String>,
}
