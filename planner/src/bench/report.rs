//! The answer: what every schedule does.

use serde::{Deserialize, Serialize};

use crate::schedule::ScheduleKind;
use crate::schedule::csv::{CellWait, TableProblem};
use crate::timeline::Timeline;

/// Name of the answer's format.
pub const ANSWER_SCHEMA: &str = "schedule-answer/1";

/// Every schedule that was asked for, in the order of the question: the kinds, then the tables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleAnswer {
    /// Format, "schedule-answer/1".
    pub schema: String,
    /// Nanoseconds that stand for one unit of time in timelines.
    pub unit_ns: u64,
    /// Bytes that stand for one activation in timelines.
    pub activation_bytes: u64,
    /// The schedules.
    pub entries: Vec<ScheduleEntry>,
}

/// One schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleEntry {
    /// Name shown to people.
    pub name: String,
    /// Its kind; absent where it is a table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ScheduleKind>,
    /// Where the kind was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What became of it.
    pub outcome: EntryOutcome,
}

/// What became of a schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum EntryOutcome {
    /// It runs.
    Run(Box<ScheduleReport>),
    /// There is no such schedule, or the table is wrong.
    Refused(Refusal),
}

/// Why there is no such schedule.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refusal {
    /// The reason in one sentence.
    pub detail: String,
    /// Of a table: what is wrong, by cell; the first hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<TableProblem>,
    /// Problems beyond those.
    #[serde(default)]
    pub further_problems: u64,
    /// Actions that wait for each other in a circle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlock: Vec<CellWait>,
}

/// What a schedule does. Times are in the question's unit, memory in its activations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleReport {
    /// Pipeline ranks, p.
    pub ranks: u32,
    /// Stages of all ranks.
    pub stages: u32,
    /// Microbatches, m.
    pub microbatches: u32,
    /// Actions of all ranks.
    pub actions: u64,
    /// Rank of each stage.
    pub stage_ranks: Vec<u32>,
    /// End of the last action of all ranks.
    pub makespan: f64,
    /// Longest time from the first to the last action of a rank.
    pub span: f64,
    /// Of each rank: end of its last action minus start of its first.
    pub rank_spans: Vec<f64>,
    /// Of each stage: the same.
    pub stage_spans: Vec<f64>,
    /// Of each rank: time in which it runs something.
    pub busy: Vec<f64>,
    /// Idle share of (ranks x makespan).
    pub bubble_of_makespan: f64,
    /// Idle share of (ranks x span), which is what "zero bubble" means.
    pub bubble_of_span: f64,
    /// The span, less the time of the rank that is busy the shortest: the bubble of formulas.
    pub bubble: f64,
    /// No schedule of these actions on these ranks has a shorter makespan.
    pub lower_bound: f64,
    /// Makespan over lower bound, minus 1.
    pub gap: f64,
    /// Of each rank: most activations held at once.
    pub peak_activations: Vec<f64>,
    /// The memory cap, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<CapReport>,
    /// What the literature says of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_form: Option<ClosedFormReport>,
    /// What was set right or left out, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The schedule in the torch action grammar, one row per rank.
    pub csv: String,
    /// What it does in time.
    pub timeline: Timeline,
}

/// Whether a schedule stays within the memory cap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CapReport {
    /// Activations that a rank may hold.
    pub limit: f64,
    /// The rank that needs the most beyond it, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenCap>,
}

/// A rank that needs more than it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrokenCap {
    /// The rank.
    pub rank: u32,
    /// Activations that it holds at its peak.
    pub needed: f64,
}

/// What the literature says of a kind of schedule, and its figures for these times where the conditions hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClosedFormReport {
    /// Formula of the bubble.
    pub bubble: String,
    /// Formula of the memory, in activations of one stage on the fullest rank.
    pub memory: String,
    /// When both hold.
    pub conditions: String,
    /// The bubble by the formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_bubble: Option<f64>,
    /// The peak of the fullest rank by the formula.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_peak: Option<f64>,
}
