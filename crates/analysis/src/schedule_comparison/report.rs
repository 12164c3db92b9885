//! Schedule bench results.

use serde::{Deserialize, Serialize};

use planscope_core::timeline::Timeline;
use planscope_pipeline::schedule::ScheduleKind;
use planscope_pipeline::schedule::csv::{CellWait, TableProblem, TableRejection};

/// Result schema name.
pub const RESPONSE_SCHEMA: &str = "schedule-answer/1";

/// Results for all requested schedules in request order: kinds, then tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleResponse {
    /// Schema name, "schedule-answer/1".
    pub schema: String,
    /// Nanoseconds per time unit in timelines.
    pub unit_ns: u64,
    /// Bytes per activation in timelines.
    pub activation_bytes: u64,
    /// Results per schedule.
    pub entries: Vec<ScheduleEntry>,
}

/// Schedule result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleEntry {
    /// Display name.
    pub name: String,
    /// Schedule kind. Omitted for a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ScheduleKind>,
    /// Publication that introduced the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Schedule outcome.
    pub outcome: EntryOutcome,
}

/// Schedule outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum EntryOutcome {
    /// The simulation succeeded.
    Run(Box<ScheduleReport>),
    /// The schedule does not exist for these sizes, or the table is invalid.
    Refused(Refusal),
}

/// Describes the rejection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// Explanation in a sentence.
    pub detail: String,
    /// Invalid table cells, limited to 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<TableProblem>,
    /// Number of problems beyond 100.
    #[serde(default)]
    pub further_problems: u64,
    /// Deadlock cycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlock: Vec<CellWait>,
}

/// Schedule metrics. Times and memory use the request's units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleReport {
    /// Pipeline ranks, p.
    pub ranks: u32,
    /// Stages on all ranks.
    pub stages: u32,
    /// Microbatches, m.
    pub microbatches: u32,
    /// Actions on all ranks.
    pub actions: u64,
    /// Rank per stage.
    pub stage_ranks: Vec<u32>,
    /// Latest action end on any rank.
    pub makespan: f64,
    /// Maximum in `rank_spans`.
    pub span: f64,
    /// Span per rank: end of its last action minus start of its first action.
    pub rank_spans: Vec<f64>,
    /// Span per stage.
    pub stage_spans: Vec<f64>,
    /// Busy time per rank.
    pub busy: Vec<f64>,
    /// Idle fraction relative to (ranks x makespan).
    pub bubble_of_makespan: f64,
    /// Idle fraction relative to (ranks x span). "Zero bubble" refers to this fraction.
    pub bubble_of_span: f64,
    /// Span minus the minimum busy time, as in the published bubble formulas.
    pub bubble: f64,
    /// Lower bound on the makespan for these actions and ranks.
    pub lower_bound: f64,
    /// Makespan divided by lower bound, minus 1.
    pub gap: f64,
    /// Peak activations per rank.
    pub peak_activations: Vec<f64>,
    /// Memory limit check. Omitted if the request has no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<CapReport>,
    /// Published formulas for the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_form: Option<ClosedFormReport>,
    /// Notes on corrections and omissions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Schedule in PyTorch's action format, a row per rank.
    pub csv: String,
    /// Simulated timeline.
    pub timeline: Timeline,
}

/// Memory limit check.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CapReport {
    /// Activation limit per rank.
    pub limit: f64,
    /// Rank that exceeds the limit by the maximum amount. Omitted if all ranks respect the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<LimitViolation>,
}

/// A rank that exceeds the memory limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitViolation {
    /// Rank index.
    pub rank: u32,
    /// Peak activations on the rank.
    pub needed: f64,
}

/// Published formulas for a schedule kind. Numeric values are present if the conditions are met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClosedFormReport {
    /// Formula for the bubble.
    pub bubble: String,
    /// Formula for the peak memory, in stage activations on the rank that has the highest peak.
    pub memory: String,
    /// Conditions for the formulas.
    pub conditions: String,
    /// Bubble from the formula. Omitted if the conditions are not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_bubble: Option<f64>,
    /// Peak memory from the formula, on the rank that has the highest peak. Omitted if the
    /// conditions are not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_peak: Option<f64>,
}

impl From<Result<ScheduleReport, Refusal>> for EntryOutcome {
    fn from(result: Result<ScheduleReport, Refusal>) -> Self {
        match result {
            Ok(report) => Self::Run(Box::new(report)),
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

impl Refusal {
    /// Rejection with an explanation only.
    pub fn because(detail: String) -> Self {
        Self { detail, ..Self::default() }
    }
}

impl From<TableRejection> for Refusal {
    fn from(rejection: TableRejection) -> Self {
        Self {
            detail: rejection.to_string(),
            problems: rejection.problems,
            further_problems: rejection.further as u64,
            deadlock: rejection.deadlock,
        }
    }
}
