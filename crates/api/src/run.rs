//! Observed training jobs: logs, points and states.

mod comparison;
mod point;

pub use crate::planner::run_comparison::{Agreement, Correction, FlopFormula, JobCheck, JobComparison, JobQuantity};
pub use comparison::{
    Comparison, Corrected, CorrectionQuery, Outlier, OutlierReason, PhaseResidual, Prediction, PredictionBand,
    Quantity, SegmentSummary, StepTimeChange,
};
pub use point::{PhaseTime, PointPage, RunEvent, RunGap, RunPoint, RunUpdate, StepTimeOrigin};

use crate::planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::listing::ListPage;

/// Header with the stored size of a log file, in bytes.
pub const UPLOAD_OFFSET: &str = "upload-offset";
/// Header with the log file number. Default without `?file=`: the latest file.
pub const UPLOAD_FILE: &str = "upload-file";
/// Problem kind for log bytes that differ from the stored ones, because the file was rotated or
/// rewritten.
pub const DIVERGED: &str = "diverged";

/// A run to open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct NewRun {
    /// Display name. Default: the start time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Scenario to compare with, by identifier or unique prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner in the scenario. Default: the fastest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlannerKind>,
    /// Pattern table for log lines, as TOML or JSON (`log-table/1`), at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_table: Option<String>,
}

/// An opened run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedRun {
    /// Identifier.
    pub run: String,
    /// Page of the run.
    pub url: String,
    /// Token for log uploads. The server returns it once and stores only a hash.
    pub ingest_token: String,
}

/// Changes to a run. Omitted fields are unchanged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunChange {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Note. An empty string removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Scenario to compare with. An empty string removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner in the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlannerKind>,
    /// True to pin the run to the start of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FinishRun {
    /// Exit code of the trainer. 0 is success, 130 is an interruption by a user.
    pub exit_code: i32,
    /// Reason, as text; at most 2,000 characters are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Origin of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// The log was sent during the job.
    Live,
    /// The log was imported as a complete file.
    Imported,
    /// A rehearsal by an earlier version.
    Rehearsal,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// No step has arrived.
    Waiting,
    /// Steps are arriving.
    Live,
    /// The last step is older than five median intervals.
    Stalled,
    /// The run ended normally or was ended by a user.
    Ended,
    /// The run ended with a failure.
    Crashed,
}

impl RunOrigin {
    /// All origins.
    pub const ALL: [Self; 3] = [Self::Live, Self::Imported, Self::Rehearsal];

    /// Name in URLs and in the database.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Imported => "imported",
            Self::Rehearsal => "rehearsal",
        }
    }

    /// Returns the origin with a name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.id() == id)
    }
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Live, Self::Stalled, Self::Ended, Self::Crashed];

    /// Name in URLs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Live => "live",
            Self::Stalled => "stalled",
            Self::Ended => "ended",
            Self::Crashed => "crashed",
        }
    }

    /// Returns the state with a name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.id() == id)
    }
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunSummary {
    /// Identifier.
    pub id: String,
    /// Display name.
    pub name: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    /// Origin.
    pub origin: RunOrigin,
    /// State.
    pub state: RunState,
    /// Full identifier of the attached scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner in the scenario. Omitted for the fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlannerKind>,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the last log bytes, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Exit code of an ended run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Reason for the end, if stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// Log size, in bytes.
    pub bytes: u64,
    /// Number of points.
    pub points: u64,
    /// Last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<u64>,
    /// Total number of training steps, if the log states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Median step time, in s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_step_s: Option<f64>,
    /// Number of stored traces.
    #[serde(default)]
    pub traces: u32,
    /// True if the run is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
    /// Deletion time, RFC 3339 in UTC. Deleted runs can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    /// Runs: pinned first, then newest first by default.
    pub runs: Vec<RunSummary>,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A run with all details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunDetail {
    /// List entry.
    pub summary: RunSummary,
    /// Log files. A rotated or rewritten log has several.
    pub files: Vec<LogFile>,
    /// Log report.
    pub report: LogReport,
}

/// A log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogFile {
    /// Number, from 0.
    pub file: u32,
    /// Stored size, in bytes.
    pub bytes: u64,
}

/// Log report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogReport {
    /// Number of lines.
    pub lines: u64,
    /// Number of lines with a value.
    pub parsed: u64,
    /// Number of repaired lines.
    pub repaired: u64,
    /// Number of lines without a step.
    pub passed_over: u64,
    /// Number of unreadable step lines.
    pub skipped: u64,
    /// Detected formats.
    pub formats: Vec<String>,
    /// Assumptions, as text.
    pub assumptions: Vec<String>,
    /// FLOP formula behind the trainer's TFLOP/s, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_formula: Option<String>,
    /// The first line that could not be read, in words, with its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_problem: Option<String>,
}

/// Shell commands for log uploads. A placeholder replaces the token if the server does not know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientCommands {
    /// Loop with sh and curl. It survives proxies and restarts.
    pub looped: String,
    /// Single streaming command.
    pub streamed: String,
    /// Command that finishes the run.
    pub finish: String,
}

impl ClientCommands {
    /// Returns the commands for a server at `origin`, for example "http://127.0.0.1:8080".
    pub fn new(origin: &str, run: &str, token: &str) -> Self {
        let log = format!("{origin}{}", crate::path::run_log(run));
        let finish = format!("{origin}{}", crate::path::run_finish(run));
        let bearer = format!("-H \"Authorization: Bearer {token}\"");
        // Each iteration requests the upload position and repeats the last kilobyte. A rotated or
        // rewritten file is shorter or differs there, and continues as the next file.
        Self {
            looped: format!(
                "LOG=train.log; U='{log}'; put() {{ head -c 4194304 | curl -sS {bearer} -T - \"$U?file=$1&offset=$2\"; }}; \
                 while :; do \
                 set -- $(curl -fsSI {bearer} \"$U\" | tr -d '\\r' | awk 'tolower($1)==\"upload-offset:\"{{o=$2}} \
                 tolower($1)==\"upload-file:\"{{f=$2}} END{{if(o!=\"\")print f, o}}'); \
                 if [ $# = 2 ] && [ -f \"$LOG\" ]; then A=$(($2 > 1024 ? $2 - 1024 : 0)); \
                 if [ $(wc -c <\"$LOG\") -lt $2 ]; then R=/problems/{DIVERGED}; \
                 else R=$(tail -c +$((A + 1)) \"$LOG\" | put $1 $A); fi; \
                 case \"$R\" in */problems/{DIVERGED}*) put $(($1 + 1)) 0 <\"$LOG\";; *) printf %s \"$R\" >&2;; esac; fi; \
                 sleep 5; done"
            ),
            // The server ends an upload without data after a timeout. Stored bytes are only
            // compared.
            streamed: format!(
                "while sleep 1; do tail -c +1 -F train.log | curl -sS {bearer} -T - '{log}?offset=0'; done"
            ),
            finish: format!(
                "curl -fsS {bearer} -H 'Content-Type: application/json' -d '{{\"exit_code\": 0}}' '{finish}'"
            ),
        }
    }
}
