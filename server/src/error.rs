//! How requests end: the only place that knows HTTP statuses.
//!
//! Every failure is an RFC 9457 problem document. Faults of ours are logged here, once.

mod answered;
mod kind;
mod limits;
mod origins;
mod responses;
#[cfg(test)]
mod tests;

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
use planner::analysis::NoStudy;
use planner::scenario::{FieldError, PlannerKind};

use crate::imports::candidate_column;
use crate::live::{LogEnd, LogRefusal};
use crate::observation::ObservationError;
use crate::profiles::ProfileError;
use crate::shares::Busy;
use crate::store::StoreError;
use answered::log_end;

pub use answered::{Answer, Deleted, LogEndsAt, LogStored, LoggedIn, LoggedOut, Prepared, Unchanged};
pub use limits::LimitError;
pub(crate) use responses::{as_problem, class, no_such_page, pages_missing, succeeded, unsatisfiable};

/// Largest document of any other kind, in MiB.
pub(crate) const LARGEST_DOCUMENT: usize = 16;

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Fields of a scenario are wrong.
    #[error("{}", summary(.0))]
    InvalidScenario(Vec<FieldError>),
    /// Fields of a question to the schedule bench, or of a sweep, are wrong.
    #[error("{}", summary(.0))]
    InvalidQuestion(Vec<FieldError>),
    /// A configuration file of a training job is refused.
    #[error("{0}")]
    InvalidJobConfig(#[from] JobConfigError),
    /// A length file is refused.
    #[error("{0}")]
    InvalidDataset(#[from] ImportError),
    /// A preview is not held, or not any more.
    #[error(
        "there is no preview {0:?}: it was stored or merged already, or it is older than 15 minutes. Choose the file again"
    )]
    NoPreview(String),
    /// Parts of a file are not in the form of [`api::dataset::RANGES_MEDIA_TYPE`].
    #[error("the parts of the file are malformed: {0}")]
    MalformedRanges(&'static str),
    /// A tokenizer is not held, or not any more.
    #[error(
        "there is no tokenizer {0:?}; tokenizers are removed when others are sent: choose the tokenizer.json again"
    )]
    NoTokenizer(String),
    /// A trace is refused.
    #[error("{0}")]
    InvalidTrace(#[from] TraceError),
    /// A trace is larger than accepted.
    #[error(
        "the file is larger than {0} MiB; record fewer steps, pack it with gzip, or start the server with --trace-mib"
    )]
    TraceTooLarge(u64),
    /// The trace does not name actions of a pipeline schedule.
    #[error("neither this trace nor another of its run names actions of a pipeline schedule, such as PP:0F3")]
    NoActions,
    /// There are fewer iterations.
    #[error("there is no iteration {asked}: the traces show {there}, numbered from 0")]
    NoSuchIteration {
        /// Asked for.
        asked: u32,
        /// Of the traces.
        there: usize,
    },
    /// The trace is held against nothing.
    #[error("the trace is not compared with a scenario: choose one")]
    NoPlanOfTrace,
    /// There is no slice.
    #[error("there is no slice on row {row} of lane {lane} at {at_ns} ns")]
    NoSlice {
        /// Lane.
        lane: u32,
        /// Row.
        row: u32,
        /// Time.
        at_ns: u64,
    },
    /// Measurements are refused, or cannot be used.
    #[error("{0}")]
    InvalidProfile(#[from] ProfileError),
    /// A run cannot be held against a plan.
    #[error("{0}")]
    Observation(ObservationError),
    /// The request itself is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The database did not do it.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A prefix stands for several scenarios.
    #[error("{prefix} is the beginning of several identifiers: {}", names(candidates))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// What it may stand for.
        candidates: Vec<ScenarioCandidate>,
    },
    /// A plan has no such form.
    #[error("{0}")]
    NotExportable(&'static str),
    /// What people say of a thing is wrong.
    #[error("{}", summary(.0))]
    InvalidWords(Vec<FieldError>),
    /// There is no such job (any more).
    #[error("there is no job {0}; finished jobs are forgotten after a while, the outcome stays with the scenario")]
    NoSuchJob(String),
    /// There is no such planner.
    #[error("there is no planner {0:?}")]
    NoSuchPlanner(String),
    /// A planner found no plan, or was not asked.
    #[error("{} has no plan of this scenario", .0.title())]
    NoPlanOf(PlannerKind),
    /// No planner found one.
    #[error("no planner found a plan of this scenario; its outcome says why")]
    NoPlanAtAll,
    /// The pipeline has fewer ranks.
    #[error("there is no rank {rank}: the pipeline has {ranks}, numbered from 0")]
    NoSuchRank {
        /// Asked for.
        rank: u32,
        /// Of the pipeline.
        ranks: u32,
    },
    /// Ranks that share sequences in groups hand nothing on.
    #[error("the ranks of this plan work in groups and hand nothing to each other: there is no pipeline")]
    NoPipeline,
    /// No route has that path.
    #[error("there is nothing at {0}")]
    NoRoute(String),
    /// The path exists, not for this method.
    #[error("this path does not answer {0}")]
    Method(String),
    /// The body is larger than accepted.
    #[error("the body is larger than {0} MiB")]
    TooLarge(usize),
    /// The same of a dataset, which can be smaller and say as much.
    #[error(
        "the file is larger than {0} MiB; only JSON lines, CSV and plain numbers can be larger, and Parquet files on the page. Convert it, \
         or upload a random sample of its rows or a histogram"
    )]
    DatasetTooLarge(usize),
    /// The same of one that is small.
    #[error("the body is larger than {0} KiB")]
    SmallTooLarge(usize),
    /// The body did not arrive.
    #[error("the body did not arrive: {0}")]
    BrokenBody(String),
    /// Too much is waiting.
    #[error("{0} planning jobs are waiting already; try again in a few seconds")]
    QueueFull(usize),
    /// Too many studies are under way.
    #[error("{0} studies are under way already; try again in a few seconds")]
    StudiesFull(usize),
    /// Too many imports.
    #[error("{0}")]
    ImportsFull(#[from] Busy),
    /// The maximum number of replays is running.
    #[error("{0} replays are running already; try again when one has ended")]
    ReplaysFull(usize),
    /// There is no plan of this engine yet.
    #[error("this engine has not planned the scenario yet: plan it first")]
    NotPlanned,
    /// There is nothing to study.
    #[error("{0}")]
    NoStudy(#[from] NoStudy),
    /// The server plans nothing.
    #[error(
        "this server was started with --without-work: it answers what is stored and plans nothing; start it without that flag to plan"
    )]
    WithoutWork,
    /// A computation that somebody waits for takes too long.
    #[error("{0}")]
    TooLong(String),
    /// The server is going.
    #[error("the server is stopping")]
    Stopping,
    /// A token is needed.
    #[error("a token is needed: open the page with ?token=... once, or send Authorization: Bearer")]
    Unauthorised,
    /// As many wrong tokens as may wait for their answer came from one address.
    #[error("too many wrong tokens come from this address; try again in a few seconds")]
    WrongTokens,
    /// The role of a token is too small.
    #[error("{actor} has the role {}: {}", role.id(), needs(*needed))]
    NotAllowed {
        /// Name of the token.
        actor: String,
        /// Its role.
        role: Role,
        /// The least role that may do it.
        needed: Role,
    },
    /// There is a token of that name.
    #[error(
        "there is a token {0:?} already, or there was one; take another name, so that the audit names one holder only"
    )]
    TokenExists(String),
    /// A page of another site sends a request.
    #[error("requests are accepted from this server's own pages only, not from {0}")]
    ForeignOrigin(String),
    /// The name is not this server's.
    #[error("this server does not answer to the name {0:?}; add it with --host if it should")]
    ForeignHost(String),
    /// Fields of a run are wrong.
    #[error("{}", summary(.0))]
    InvalidRun(Vec<FieldError>),
    /// A file is no log.
    #[error("{0}")]
    InvalidLog(LogError),
    /// Bytes are not taken into a log.
    #[error("{0}")]
    Log(LogRefusal),
    /// A request says that it is too large.
    #[error(
        "one request carries at most {0} MiB of a log; send it in parts with ?offset=, or as a stream (curl -T - with the file on \
         standard input)"
    )]
    LargeRequest(u64),
    /// Another request came with the same key.
    #[error("this Idempotency-Key came with another request before; take a new one")]
    KeyReused,
    /// The token of a run is needed.
    #[error("the log of a run is written with its token: send Authorization: Bearer TOKEN")]
    NoRunToken,
    /// The token is not good for this run, whether or not there is one.
    #[error("the token is not good for this run")]
    WrongRunToken,
    /// Too many logs are being sent.
    #[error("{0} logs are being sent already; try again in a few seconds")]
    UploadsFull(usize),
    /// Too many watch.
    #[error("{0} streams of events are open already; ask for pages of points in their place")]
    StreamsFull(usize),
    /// The request meets a limit of the server.
    #[error("{0}")]
    Limit(#[from] LimitError),
    /// None of the bytes that are asked for are there.
    #[error("the file at {0} has none of the bytes that Range asks for")]
    Range(String),
    /// The pages were not built.
    #[error("the pages are not built")]
    NoPages,
    /// There is no room for a file on its way.
    #[error("the disk of the server is full: there is no room for the file on its way")]
    DiskFull,
    /// The server answers, and cannot take anything new.
    #[error("{}", summary(.0))]
    NotReady(Vec<FieldError>),
    /// A fault of ours.
    #[error("{0}")]
    Fault(String),
}

impl ApiError {
    /// A body that did not arrive, where at most `mebibytes` were accepted.
    pub fn body(rejection: &BytesRejection, mebibytes: usize) -> Self {
        Self::too_large_or_broken(rejection, Self::TooLarge(mebibytes))
    }

    /// The file of a dataset that did not arrive.
    pub fn dataset(rejection: &BytesRejection, mebibytes: usize) -> Self {
        Self::too_large_or_broken(rejection, Self::DatasetTooLarge(mebibytes))
    }

    /// A small body that did not arrive, where at most `kibibytes` were accepted.
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

    /// A small document that did not arrive, or is none.
    pub fn document(rejection: &JsonRejection) -> Self {
        match rejection {
            JsonRejection::BytesRejection(bytes) => Self::body(bytes, LARGEST_DOCUMENT),
            other => Self::Malformed(other.body_text()),
        }
    }

    /// The problem document.
    fn problem(&self) -> Problem {
        let (kind, status, title) = self.kind();
        let errors = match self {
            Self::InvalidScenario(errors)
            | Self::InvalidQuestion(errors)
            | Self::InvalidRun(errors)
            | Self::NotReady(errors)
            | Self::InvalidWords(errors) => errors
                .iter()
                .map(|error| FieldProblem { pointer: error.pointer.clone(), detail: error.detail.clone() })
                .collect(),
            _ => Vec::new(),
        };
        // What exactly failed inside is for the log, not for whoever asks.
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

/// Identifiers of candidates.
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
        let is_busy = matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS);
        // Waiting builds no pages, and makes no plan smaller.
        if is_busy && !matches!(self, Self::NoPages | Self::WithoutWork) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        match self {
            Self::Log(
                LogRefusal::Gap { file, stored }
                | LogRefusal::Diverged { file, stored }
                | LogRefusal::Closed { file, stored, .. }
                | LogRefusal::Replaced { file, stored },
            ) => headers.extend(log_end(LogEnd { file, stored })),
            Self::Unauthorised | Self::NoRunToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"planscope\""));
            }
            _ => {}
        }
        response
    }
}

/// Who may do what needs a role.
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
