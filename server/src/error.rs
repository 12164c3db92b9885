//! Error responses. No other module sets HTTP error statuses.
//!
//! All errors are RFC 9457 problem documents. Internal errors are logged here, exactly once.

mod answered;
mod kind;
mod limits;
mod origins;
mod responses;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use api::access::Role;
use api::problem::{Candidate, Deletion, FieldProblem, Problem, ScenarioCandidate};
use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ingest::dataset::ImportError;
use ingest::job_config::JobConfigError;
use ingest::log::LogError;
use ingest::trace::TraceError;
use planner::analysis::AnalysisError;
use planner::scenario::{FieldError, PlannerKind};

use crate::imports::candidate_column;
use crate::live::{LogEnd, LogRefusal};
use crate::observation::ObservationError;
use crate::profiles::ProfileError;
use crate::shares::NoFreeSlot;
use crate::store::StoreError;
use answered::log_end;

pub use answered::{Deleted, DocumentResponse, LogEndsAt, LogStored, LoggedIn, LoggedOut, Prepared, Unchanged};
pub use limits::LimitError;
pub(crate) use responses::{as_problem, class, no_such_page, pages_missing, succeeded, unsatisfiable};

/// Maximum size of any other document in MiB.
pub(crate) const MAX_DOCUMENT: usize = 16;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Invalid fields in a scenario.
    #[error("{}", summary(.0))]
    InvalidScenario(Vec<FieldError>),
    /// Invalid fields in a schedule bench request or in a sweep.
    #[error("{}", summary(.0))]
    InvalidRequest(Vec<FieldError>),
    /// Invalid configuration file of a training job.
    #[error("{0}")]
    InvalidJobConfig(#[from] JobConfigError),
    /// Invalid length file.
    #[error("{0}")]
    InvalidDataset(#[from] ImportError),
    /// The preview does not exist, has expired or was evicted.
    #[error(
        "there is no preview {0:?}: it was stored or merged already, or it is older than 15 minutes. Choose the file again"
    )]
    NoPreview(String),
    /// The body is not valid [`api::dataset::RANGES_MEDIA_TYPE`].
    #[error("the parts of the file are malformed: {0}")]
    MalformedRanges(&'static str),
    /// The tokenizer does not exist or has been evicted.
    #[error(
        "there is no tokenizer {0:?}; tokenizers are removed when others are sent: choose the tokenizer.json again"
    )]
    NoTokenizer(String),
    /// Invalid trace.
    #[error("{0}")]
    InvalidTrace(#[from] TraceError),
    /// The trace exceeds the size limit, in MiB.
    #[error(
        "the file is larger than {0} MiB; record fewer steps, pack it with gzip, or start the server with --trace-mib"
    )]
    TraceTooLarge(u64),
    /// The trace contains no pipeline schedule actions.
    #[error("neither this trace nor another of its run names actions of a pipeline schedule, such as PP:0F3")]
    NoActions,
    /// The traces cannot be compared with each other.
    #[error("the traces cannot be compared: {0}")]
    TraceComparison(String),
    /// The iteration does not exist.
    #[error("there is no iteration {requested}: the traces show {there}, numbered from 0")]
    NoSuchIteration {
        /// Requested index.
        requested: u32,
        /// Number of iterations in the traces.
        there: usize,
    },
    /// No scenario is attached to the trace.
    #[error("the trace is not compared with a scenario: choose one")]
    NoTracePlan,
    /// No slice exists at the position.
    #[error("there is no slice on row {row} of lane {lane} at {at_ns} ns")]
    NoSlice {
        /// Lane.
        lane: u32,
        /// Row.
        row: u32,
        /// Time in ns.
        at_ns: u64,
    },
    /// Invalid measurements, or measurements that cannot be applied.
    #[error("{0}")]
    InvalidProfile(#[from] ProfileError),
    /// The run cannot be compared with a plan.
    #[error("{0}")]
    Observation(ObservationError),
    /// Malformed request.
    #[error("{0}")]
    Malformed(String),
    /// Database error.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The prefix matches several scenarios.
    #[error("{prefix} is the beginning of several identifiers: {}", names(candidates))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// Matching scenarios.
        candidates: Vec<ScenarioCandidate>,
    },
    /// The plan cannot be exported to the format.
    #[error("{0}")]
    NotExportable(&'static str),
    /// Invalid name, note or tags.
    #[error("{}", summary(.0))]
    InvalidAnnotations(Vec<FieldError>),
    /// The job does not exist or has expired.
    #[error("there is no job {0}; finished jobs are forgotten after a while, the outcome stays with the scenario")]
    NoSuchJob(String),
    /// Unknown planner.
    #[error("there is no planner {0:?}")]
    NoSuchPlanner(String),
    /// The planner has no plan for the scenario.
    #[error("{} has no plan of this scenario", .0.title())]
    NoPlannerPlan(PlannerKind),
    /// No planner has a plan for the scenario.
    #[error("no planner found a plan of this scenario; its outcome says why")]
    NoPlanAtAll,
    /// The rank does not exist.
    #[error("there is no rank {rank}: the pipeline has {ranks}, numbered from 0")]
    NoSuchRank {
        /// Requested rank.
        rank: u32,
        /// Number of pipeline ranks.
        ranks: u32,
    },
    /// The plan uses context-parallel groups, without a pipeline.
    #[error("the ranks of this plan work in groups and hand nothing to each other: there is no pipeline")]
    NoPipeline,
    /// Unknown path.
    #[error("there is nothing at {0}")]
    NoRoute(String),
    /// The path does not support the method.
    #[error("this path does not answer {0}")]
    Method(String),
    /// The body exceeds the size limit, in MiB.
    #[error("the body is larger than {0} MiB")]
    TooLarge(usize),
    /// The dataset exceeds the size limit, in MiB. The message suggests smaller formats.
    #[error(
        "the file is larger than {0} MiB; only JSON lines, CSV and plain numbers can be larger, and Parquet files on the page. Convert it, \
         or upload a random sample of its rows or a histogram"
    )]
    DatasetTooLarge(usize),
    /// The body exceeds the size limit, in KiB.
    #[error("the body is larger than {0} KiB")]
    SmallTooLarge(usize),
    /// The body was not received completely.
    #[error("the body did not arrive: {0}")]
    BrokenBody(String),
    /// The job queue is full.
    #[error("{0} planning jobs are waiting already; try again in a few seconds")]
    QueueFull(usize),
    /// Too many studies are in progress.
    #[error("{0} studies are under way already; try again in a few seconds")]
    StudiesFull(usize),
    /// Too many imports are in progress.
    #[error("{0}")]
    ImportsFull(#[from] NoFreeSlot),
    /// The maximum number of replays is running.
    #[error("{0} replays are running already; try again when one has ended")]
    ReplaysFull(usize),
    /// This engine has no plan for the scenario yet.
    #[error("this engine has not planned the scenario yet: plan it first")]
    NotPlanned,
    /// There is nothing to study.
    #[error("{0}")]
    NoAnalysis(#[from] AnalysisError),
    /// The server runs without planning.
    #[error(
        "this server was started with --without-work: it answers what is stored and plans nothing; start it without that flag to plan"
    )]
    WithoutWork,
    /// A synchronous computation exceeded the time limit.
    #[error("{0}")]
    TooLong(String),
    /// The server is shutting down.
    #[error("the server is stopping")]
    Stopping,
    /// A token is required.
    #[error("a token is needed: open the page with ?token=... once, or send Authorization: Bearer")]
    Unauthorised,
    /// The token is wrong or revoked.
    #[error("the token is not valid: it is wrong, or was revoked")]
    InvalidToken,
    /// Too many pending requests with invalid tokens from an address.
    #[error("too many wrong tokens come from this address; try again in a few seconds")]
    WrongTokens,
    /// The role of the token is insufficient.
    #[error("{actor} has the role {}: {}", role.id(), needs(*needed))]
    NotAllowed {
        /// Name of the token.
        actor: String,
        /// Role of the token.
        role: Role,
        /// Minimum role required.
        needed: Role,
    },
    /// The token name is already in use, or was used before.
    #[error(
        "there is a token {0:?} already, or there was one; take another name, so that the audit names one holder only"
    )]
    TokenExists(String),
    /// The request has a foreign origin.
    #[error("requests are accepted from this server's own pages only, not from {0}")]
    ForeignOrigin(String),
    /// The host name is not served.
    #[error("this server does not answer to the name {0:?}; add it with --host if it should")]
    ForeignHost(String),
    /// Invalid fields in a run.
    #[error("{}", summary(.0))]
    InvalidRun(Vec<FieldError>),
    /// The file is not a training log.
    #[error("{0}")]
    InvalidLog(LogError),
    /// The log upload is refused.
    #[error("{0}")]
    Log(LogRefusal),
    /// A log request exceeds the size limit, in MiB.
    #[error(
        "one request carries at most {0} MiB of a log; send it in parts with ?offset=, or as a stream (curl -T - with the file on \
         standard input)"
    )]
    LargeRequest(u64),
    /// The idempotency key was used with a different request.
    #[error("this Idempotency-Key came with another request before; take a new one")]
    KeyReused,
    /// The run token is required.
    #[error("the log of a run is written with its token: send Authorization: Bearer TOKEN")]
    NoRunToken,
    /// The token is not valid for the run. The error does not reveal whether the run exists.
    #[error("the token is not good for this run")]
    WrongRunToken,
    /// Too many log uploads are in progress.
    #[error("{0} logs are being sent already; try again in a few seconds")]
    UploadsFull(usize),
    /// Too many streams are open.
    #[error("{0} streams of events are open already; ask for pages of points in their place")]
    StreamsFull(usize),
    /// The request exceeds a server limit.
    #[error("{0}")]
    Limit(#[from] LimitError),
    /// The byte range is not satisfiable.
    #[error("the file at {0} has none of the bytes that Range asks for")]
    Range(String),
    /// The pages were not built.
    #[error("the pages are not built")]
    NoPages,
    /// No disk space for an upload.
    #[error("the disk of the server is full: there is no room for the file on its way")]
    DiskFull,
    /// The server is running, but does not accept new content.
    #[error("{}", summary(.0))]
    NotReady(Vec<FieldError>),
    /// Internal error.
    #[error("{0}")]
    Fault(String),
}

impl ApiError {
    /// Converts a body rejection. The size limit is `mebibytes`.
    pub fn body(rejection: &BytesRejection, mebibytes: usize) -> Self {
        Self::too_large_or_broken(rejection, Self::TooLarge(mebibytes))
    }

    /// Converts a body rejection for a dataset file.
    pub fn dataset(rejection: &BytesRejection, mebibytes: usize) -> Self {
        Self::too_large_or_broken(rejection, Self::DatasetTooLarge(mebibytes))
    }

    /// Converts a rejection for a small body. The size limit is `kibibytes`.
    pub fn small_body(rejection: &BytesRejection, kibibytes: usize) -> Self {
        Self::too_large_or_broken(rejection, Self::SmallTooLarge(kibibytes))
    }

    fn too_large_or_broken(rejection: &BytesRejection, too_large: Self) -> Self {
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            too_large
        } else {
            Self::BrokenBody(rejection.body_text())
        }
    }

    /// Converts a rejection for a JSON document.
    pub fn document(rejection: &JsonRejection) -> Self {
        match rejection {
            JsonRejection::BytesRejection(bytes) => Self::body(bytes, MAX_DOCUMENT),
            other => Self::Malformed(other.body_text()),
        }
    }

    /// Builds the problem document.
    fn problem(&self) -> Problem {
        let (kind, status, title) = self.kind();
        let errors = match self {
            Self::InvalidScenario(errors)
            | Self::InvalidRequest(errors)
            | Self::InvalidRun(errors)
            | Self::NotReady(errors)
            | Self::InvalidAnnotations(errors) => errors
                .iter()
                .map(|error| FieldProblem { pointer: error.pointer.clone(), detail: error.detail.clone() })
                .collect(),
            _ => Vec::new(),
        };
        // Details of internal errors are only logged, not returned.
        let detail = if status == StatusCode::INTERNAL_SERVER_ERROR {
            "The server failed at this request. Nothing was stored; the server's log says why.".to_owned()
        } else {
            match kind {
                "disk-full" => {
                    format!("{self}. Nothing was stored; make room on the disk of the server and try again.")
                }
                "database-read-only" | "database-unwritable" => {
                    format!(
                        "{self}. Nothing was stored; what is there can be read. The operator has to look at the file."
                    )
                }
                "malformed-request" => values::without_values(&self.to_string()),
                _ => self.to_string(),
            }
        };
        let candidates = match self {
            Self::Ambiguous { candidates, .. } => candidates.iter().cloned().map(Candidate::Scenario).collect(),
            Self::InvalidDataset(ImportError::Unclear { candidates }) => {
                candidates.iter().map(candidate_column).map(Candidate::Column).collect()
            }
            _ => Vec::new(),
        };
        let deleted = match self {
            Self::Store(StoreError::Gone { kind, id, at, can_return }) => {
                Some(Deletion { at: at.clone(), restore: can_return.then(|| kind.restore(id)) })
            }
            _ => None,
        };
        let kind = format!("/problems/{kind}");
        Problem { kind, title: title.to_owned(), status: status.as_u16(), detail, errors, candidates, deleted }
    }
}

/// Formats candidate identifiers.
fn names(candidates: &[ScenarioCandidate]) -> String {
    candidates.iter().map(|candidate| candidate.id.as_str()).collect::<Vec<_>>().join(", ")
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = self.problem();
        if problem.status >= 500 && !self.is_refusal() {
            tracing::error!(status = problem.status, "{self}");
        }
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(api::path::PROBLEM_MEDIA_TYPE));
        let is_overloaded = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        // A retry does not help for missing pages or a server without planning.
        if is_overloaded && !matches!(self, Self::NoPages | Self::WithoutWork) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        match self {
            Self::Log(
                LogRefusal::Gap { file, stored }
                | LogRefusal::Diverged { file, stored }
                | LogRefusal::Closed { file, stored, .. }
                | LogRefusal::Replaced { file, stored },
            ) => headers.extend(log_end(LogEnd { file, stored })),
            Self::Unauthorised | Self::InvalidToken | Self::NoRunToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"planscope\""));
            }
            _ => {}
        }
        response
    }
}

/// Explains which roles are permitted.
fn needs(role: Role) -> &'static str {
    match role {
        Role::Reader | Role::Editor => "it may read and change nothing; ask an admin for a token with the role editor",
        Role::Admin => "tokens and the audit are for the role admin",
    }
}

fn summary(errors: &[FieldError]) -> String {
    match errors {
        [] => "a field is not valid".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
