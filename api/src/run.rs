//! Observed training jobs: their log as it grows, the points read from it, and where they stand.

mod comparison;
mod point;

pub use comparison::{
    Comparison, Corrected, CorrectionQuery, Outlier, OutlierReason, PhaseResidual, Prediction, PredictionBand,
    Quantity, SegmentSummary,
};
pub use planner::run_comparison::{Agreement, Correction, FlopFormula, JobCheck, JobComparison, JobQuantity};
pub use point::{PhaseTime, PointPage, RunEvent, RunGap, RunPoint, RunUpdate, StepTimeOrigin};

use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::shelf::ListPage;

/// Header that says how many bytes of a file of a log are stored.
pub const UPLOAD_OFFSET: &str = "upload-offset";
/// Header that says which file of a log is spoken of; without `?file=` it is the latest.
pub const UPLOAD_FILE: &str = "upload-file";
/// Kind of the problem that says that the bytes sent differ from those stored: the file was rotated or written anew.
pub const DIVERGED: &str = "diverged";

/// A run to be opened.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct NewRun {
    /// Name to show; absent: the time of its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Scenario that it is held against, by identifier or unique prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner of that scenario whose plan is run; absent: the fastest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlannerKind>,
    /// Table of patterns for the lines of its log, as TOML or JSON of the form `log-table/1`, at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_table: Option<String>,
}

/// A run that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedRun {
    /// Identifier.
    pub run: String,
    /// Page that shows it.
    pub url: String,
    /// Token that its log must carry. It is shown once: the server keeps a hash.
    pub ingest_token: String,
}

/// What is to be changed of a run; what is absent stays.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunChange {
    /// Name to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Note beside it; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All its tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Scenario that it is held against; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner of that scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlannerKind>,
    /// Whether it stands in front of the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FinishRun {
    /// Exit code of the trainer; 0 is success, 130 that somebody ended it.
    pub exit_code: i32,
    /// Why, in words to show; at most 2,000 characters are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How a run's log came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunOrigin {
    /// Sent while the job runs.
    Live,
    /// A whole file.
    Imported,
    /// A plan that is walked through on this machine.
    Rehearsal,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// No step has arrived yet.
    Waiting,
    /// Steps arrive.
    Live,
    /// The last step is longer ago than five median intervals.
    Stalled,
    /// It said that it ended, or that somebody ended it.
    Ended,
    /// It said that it ended with a failure.
    Crashed,
}

impl RunOrigin {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Live, Self::Imported, Self::Rehearsal];

    /// Its name in addresses and in the database.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Imported => "imported",
            Self::Rehearsal => "rehearsal",
        }
    }

    /// The one of that name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.id() == id)
    }
}

impl RunState {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Live, Self::Stalled, Self::Ended, Self::Crashed];

    /// Its name in addresses.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Live => "live",
            Self::Stalled => "stalled",
            Self::Ended => "ended",
            Self::Crashed => "crashed",
        }
    }

    /// The one of that name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.id() == id)
    }
}

/// A run as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunSummary {
    /// Identifier.
    pub id: String,
    /// Name to show.
    pub name: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    /// How its log came.
    pub origin: RunOrigin,
    /// Where it stands.
    pub state: RunState,
    /// Scenario that it is held against, whole identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Planner of that scenario; absent: the fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlannerKind>,
    /// When it was opened, RFC 3339 in UTC.
    pub created_at: String,
    /// When its last bytes came, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// Exit code, where it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Why it ended, in words, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_reason: Option<String>,
    /// Bytes of its log.
    pub bytes: u64,
    /// Points read from it.
    pub points: u64,
    /// Last step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<u64>,
    /// Steps of the whole training, where the log says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// Median time of a step, in s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_step_s: Option<f64>,
    /// Traces of its ranks that are stored.
    #[serde(default)]
    pub traces: u32,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
    /// When it was deleted, RFC 3339 in UTC; it can come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
}

/// Stored runs, and what they take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    /// Pinned ones, then newest first, unless another order was asked for.
    pub runs: Vec<RunSummary>,
    /// Of the list.
    #[serde(flatten)]
    pub page: ListPage,
}

/// One run, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunDetail {
    /// As lists show it.
    pub summary: RunSummary,
    /// Files of its log: a log that was rotated, or written anew, has more than one.
    pub files: Vec<LogFile>,
    /// What was read from its log and what was not.
    pub report: LogReport,
}

/// One file of a run's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogFile {
    /// Number, from 0.
    pub file: u32,
    /// Bytes stored of it.
    pub bytes: u64,
}

/// What was read from a log and what was not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogReport {
    /// Lines.
    pub lines: u64,
    /// Lines that gave a figure.
    pub parsed: u64,
    /// Lines that were mended before they gave one.
    pub repaired: u64,
    /// Lines that speak of no step.
    pub passed_over: u64,
    /// Lines of a step that could not be read.
    pub skipped: u64,
    /// Formats that were recognised, in words.
    pub formats: Vec<String>,
    /// What was assumed, in words.
    pub assumptions: Vec<String>,
    /// How the trainer counts the operations of its TFLOP/s, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flop_formula: Option<String>,
    /// The first line that could not be read, in words, with its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_problem: Option<String>,
}

/// How a run's log can be sent, ready to paste; the token stands in for what the server does not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClientCommands {
    /// A loop of sh and curl, which survives proxies and restarts.
    pub looped: String,
    /// One line that streams.
    pub streamed: String,
    /// Says that the job ended.
    pub finish: String,
}

impl ClientCommands {
    /// For a server at `origin`, for example "http://127.0.0.1:8080".
    pub fn of(origin: &str, run: &str, token: &str) -> Self {
        let log = format!("{origin}{}", crate::path::run_log(run));
        let finish = format!("{origin}{}", crate::path::run_finish(run));
        let bearer = format!("-H \"Authorization: Bearer {token}\"");
        // Each turn asks where to go on, and sends the last kilobyte again: a file that was rotated or written anew is
        // shorter, or differs in it, and goes on as the next file.
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
            // An upload without a byte ends after a while; what is stored already is only compared.
            streamed: format!(
                "while sleep 1; do tail -c +1 -F train.log | curl -sS {bearer} -T - '{log}?offset=0'; done"
            ),
            finish: format!(
                "curl -fsS {bearer} -H 'Content-Type: application/json' -d '{{\"exit_code\": 0}}' '{finish}'"
            ),
        }
    }
}
