//! Observed actions of a pipeline schedule, beside those of a plan.

use planner::scenario::PlannerKind;
use planner::trace_alignment::Aligned;
use serde::{Deserialize, Serialize};

/// Iterations of the pipeline that a trace, or all traces of its run, show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionList {
    /// Traces whose actions were put together.
    pub traces: Vec<String>,
    /// Ranks with actions, ascending; row r of the timelines is the r-th of them.
    pub ranks: Vec<u32>,
    /// Iterations, in time.
    pub iterations: Vec<ObservedIteration>,
    /// What a reader should know, in words.
    pub notes: Vec<String>,
}

/// One iteration of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ObservedIteration {
    /// Number of the step where the program announced it, otherwise its place from 0.
    pub number: u64,
    /// Whether the program announced it.
    pub announced: bool,
    /// When its first action begins, in nanoseconds since the first start of all traces that were put together.
    pub start_ns: u64,
    /// From its first start to its last end.
    pub span_ns: u64,
    /// Actions.
    pub actions: u64,
}

/// An observed iteration beside an iteration of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alignment {
    /// Scenario, whole identifier.
    pub scenario: String,
    /// Planner whose plan it is.
    pub planner: PlannerKind,
    /// Its iteration.
    pub iteration: u32,
    /// Place of the observed iteration, from 0.
    pub observed_iteration: u32,
    /// Actions of both, and what differs.
    pub aligned: Aligned,
    /// What a reader should know, in words.
    pub notes: Vec<String>,
}
