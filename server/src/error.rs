//! How requests end: the only place that knows HTTP statuses.
//!
//! Every failure is an RFC 9457 problem document. Faults of ours are logged here, once.

mod origins;

use api::problem::{Candidate, Deletion, FieldProblem, Problem};
use axum::Json;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::http::header::{ALLOW, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use ingest::dataset::ImportError;
use ingest::log::LogError;
use ingest::trace::TraceError;
use planner::scenario::FieldError;
use planner::study::NoStudy;

use crate::live::{LogEnd, LogRefusal};
use crate::observation::ObservationError;
use crate::profiles::ProfileError;
use crate::store::StoreError;

/// How a request succeeds where it is not plainly with a document.
#[derive(Debug)]
pub enum Answer<T> {
    /// It was there already.
    Present(T),
    /// It was made, and stands at this path.
    Created(String, T),
    /// It is being made; its progress stands at this path.
    Accepted(String, T),
}

impl<T: serde::Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let (status, location, body) = match self {
            Self::Present(body) => return Json(body).into_response(),
            Self::Created(location, body) => (StatusCode::CREATED, location, body),
            Self::Accepted(location, body) => (StatusCode::ACCEPTED, location, body),
        };
        (status, [(LOCATION, location)], Json(body)).into_response()
    }
}

/// It was deleted; there is nothing more to say.
#[derive(Debug)]
pub struct Deleted;

impl IntoResponse for Deleted {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// Bytes of a log are stored, up to this end.
#[derive(Debug)]
pub struct LogStored(pub LogEnd);

impl IntoResponse for LogStored {
    fn into_response(self) -> Response {
        (StatusCode::NO_CONTENT, log_end(self.0)).into_response()
    }
}

/// The end of what is stored of a log.
#[derive(Debug)]
pub struct LogEndsAt(pub LogEnd);

impl IntoResponse for LogEndsAt {
    fn into_response(self) -> Response {
        (StatusCode::OK, log_end(self.0)).into_response()
    }
}

fn log_end(end: LogEnd) -> [(HeaderName, HeaderValue); 2] {
    [
        (HeaderName::from_static(api::run::UPLOAD_OFFSET), HeaderValue::from(end.stored)),
        (HeaderName::from_static(api::run::UPLOAD_FILE), HeaderValue::from(end.file)),
    ]
}

/// The asker's copy is the present one.
#[derive(Debug)]
pub struct Unchanged;

impl IntoResponse for Unchanged {
    fn into_response(self) -> Response {
        StatusCode::NOT_MODIFIED.into_response()
    }
}

/// The login was good: the cookie, and the page without the token in its address.
#[derive(Debug)]
pub struct LoggedIn {
    /// Value of the cookie header.
    pub cookie: String,
    /// The page.
    pub page: String,
}

impl IntoResponse for LoggedIn {
    fn into_response(self) -> Response {
        let headers = [(axum::http::header::SET_COOKIE, self.cookie), (LOCATION, self.page)];
        (StatusCode::SEE_OTHER, headers).into_response()
    }
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Fields of a scenario are wrong.
    #[error("{}", summary(.0))]
    InvalidScenario(Vec<FieldError>),
    /// Fields of a question to the schedule bench are wrong.
    #[error("{}", summary(.0))]
    InvalidQuestion(Vec<FieldError>),
    /// A length file is refused.
    #[error("{0}")]
    InvalidDataset(#[from] ImportError),
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
    #[error("the trace is not held against a scenario: choose one")]
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
    Observation(#[from] ObservationError),
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
        candidates: Vec<Candidate>,
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
    #[error("the body is larger than {0} MiB; for a dataset upload a random sample or a histogram")]
    TooLarge(usize),
    /// The body did not arrive.
    #[error("the body did not arrive: {0}")]
    BrokenBody(String),
    /// Too much is waiting.
    #[error("{0} planning jobs are waiting already; try again in a few seconds")]
    QueueFull(usize),
    /// Too many studies are under way.
    #[error("{0} studies are under way already; try again in a few seconds")]
    StudiesFull(usize),
    /// Too many rehearsals are at work.
    #[error("{0} rehearsal is at work already; try again when it has ended")]
    RehearsalsFull(usize),
    /// The plan cannot be rehearsed here.
    #[error("{0}")]
    NotRehearsable(String),
    /// No rehearsal of that run is at work.
    #[error("no rehearsal of the run {0:?} is at work")]
    NoSuchRehearsal(String),
    /// There is no plan of this engine yet.
    #[error("this engine has not planned the scenario yet: plan it first")]
    NotPlanned,
    /// There is nothing to study.
    #[error("{0}")]
    NoStudy(#[from] NoStudy),
    /// The server is going.
    #[error("the server is stopping")]
    Stopping,
    /// A token is needed.
    #[error("a token is needed: open the page with ?token=... once, or send Authorization: Bearer")]
    Unauthorised,
    /// A page of another site asks for a change.
    #[error("changes are accepted from this server's own pages only, not from {0}")]
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
    /// A request that says its size is larger than is taken at once.
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
        if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Self::TooLarge(mebibytes)
        } else {
            Self::BrokenBody(rejection.body_text())
        }
    }

    /// A small document that did not arrive, or is none.
    pub fn document(rejection: &JsonRejection) -> Self {
        match rejection {
            JsonRejection::BytesRejection(bytes) => Self::body(bytes, crate::endpoint::scenarios::LARGEST_SCENARIO),
            other => Self::Malformed(other.body_text()),
        }
    }

    /// Kind, status and title; the same for every problem of the kind.
    fn kind(&self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::InvalidScenario(_) => ("invalid-scenario", S::UNPROCESSABLE_ENTITY, "The scenario is not valid"),
            Self::InvalidQuestion(_) => ("invalid-question", S::UNPROCESSABLE_ENTITY, "The question is not valid"),
            Self::InvalidDataset(ImportError::Binary { .. }) => {
                ("not-a-length-file", S::UNSUPPORTED_MEDIA_TYPE, "The file is not a length file")
            }
            Self::InvalidDataset(ImportError::TooManyRows)
            | Self::InvalidTrace(TraceError::TooLarge { .. })
            | Self::TraceTooLarge(_)
            | Self::InvalidProfile(ProfileError::TooMuch(..))
            | Self::InvalidLog(LogError::TooLarge { .. })
            | Self::LargeRequest(_)
            | Self::TooLarge(_) => ("too-large", S::PAYLOAD_TOO_LARGE, "The upload is too large"),
            Self::InvalidDataset(_) => ("invalid-dataset", S::UNPROCESSABLE_ENTITY, "The length file is not valid"),
            Self::Observation(error) if error.is_cut() => {
                ("planning-too-long", S::SERVICE_UNAVAILABLE, "Planning the scenario again took too long")
            }
            Self::Observation(_) => ("no-comparison", S::UNPROCESSABLE_ENTITY, "The run cannot be held against a plan"),
            Self::InvalidProfile(_) => ("invalid-profile", S::UNPROCESSABLE_ENTITY, "The profile cannot be used"),
            Self::InvalidWords(_) => ("invalid-words", S::UNPROCESSABLE_ENTITY, "The change is not valid"),
            Self::InvalidRun(_) => ("invalid-run", S::UNPROCESSABLE_ENTITY, "The run is not valid"),
            Self::InvalidLog(_) => ("invalid-log", S::UNPROCESSABLE_ENTITY, "The file is not a training log"),
            Self::Log(refusal) => log(refusal),
            Self::KeyReused => ("key-reused", S::UNPROCESSABLE_ENTITY, "The key is another request's"),
            Self::WrongRunToken => ("wrong-token", S::FORBIDDEN, "The token is not good here"),
            Self::UploadsFull(_) => ("uploads-full", S::TOO_MANY_REQUESTS, "Too many logs are being sent"),
            Self::StreamsFull(_) => ("streams-full", S::SERVICE_UNAVAILABLE, "Too many streams are open"),
            Self::InvalidTrace(TraceError::NotATrace { .. }) => {
                ("not-a-trace", S::UNSUPPORTED_MEDIA_TYPE, "The file is not a trace")
            }
            Self::InvalidTrace(_) => ("invalid-trace", S::UNPROCESSABLE_ENTITY, "The trace is not valid"),
            Self::NoActions => ("no-actions", S::UNPROCESSABLE_ENTITY, "There are no actions"),
            Self::NoPlanOfTrace => ("no-plan", S::CONFLICT, "There is no plan to compare with"),
            Self::Malformed(_) | Self::BrokenBody(_) => {
                ("malformed-request", S::BAD_REQUEST, "The request is malformed")
            }
            Self::Ambiguous { .. } => ("ambiguous-prefix", S::MULTIPLE_CHOICES, "The prefix is ambiguous"),
            Self::NoSuchJob(_)
            | Self::NoSuchPlanner(_)
            | Self::NoSuchRehearsal(_)
            | Self::NoSuchRank { .. }
            | Self::NoSuchIteration { .. }
            | Self::NoSlice { .. }
            | Self::NoRoute(_)
            | Self::NoStudy(NoStudy::Iteration(..) | NoStudy::Replica(..) | NoStudy::NoSuchLayout(_))
            | Self::Store(StoreError::Unknown { .. }) => ("not-found", S::NOT_FOUND, "Not found"),
            Self::Store(StoreError::Gone { .. }) => ("deleted", S::GONE, "Deleted"),
            Self::Store(StoreError::Sqlite(error)) => storage(error),
            Self::Store(StoreError::Quota { .. }) => {
                ("quota-reached", S::INSUFFICIENT_STORAGE, "The server holds as much as it may")
            }
            Self::DiskFull => ("disk-full", S::INSUFFICIENT_STORAGE, "The server's disk is full"),
            Self::NotReady(_) => ("not-ready", S::SERVICE_UNAVAILABLE, "The server takes no new content"),
            Self::Store(_) | Self::Fault(_) => INTERNAL,
            Self::Method(_) => ("method-not-allowed", S::METHOD_NOT_ALLOWED, "Method not allowed"),
            Self::NoPipeline => ("no-pipeline", S::UNPROCESSABLE_ENTITY, "The plan is no pipeline"),
            Self::NotExportable(_) => ("not-exportable", S::UNPROCESSABLE_ENTITY, "The plan has no such form"),
            Self::NoStudy(_) => ("no-study", S::UNPROCESSABLE_ENTITY, "There is nothing to study"),
            Self::NotPlanned => ("not-planned", S::CONFLICT, "The scenario is not planned yet"),
            Self::RehearsalsFull(_) => ("rehearsals-full", S::SERVICE_UNAVAILABLE, "Another rehearsal is at work"),
            Self::NotRehearsable(_) => ("not-rehearsable", S::UNPROCESSABLE_ENTITY, "The plan cannot be rehearsed"),
            Self::StudiesFull(_) => ("studies-full", S::SERVICE_UNAVAILABLE, "Too many studies are under way"),
            Self::Stopping => ("stopping", S::SERVICE_UNAVAILABLE, "The server is stopping"),
            Self::QueueFull(_) => ("queue-full", S::SERVICE_UNAVAILABLE, "The planning queue is full"),
            Self::Unauthorised | Self::NoRunToken => ("token-needed", S::UNAUTHORIZED, "A token is needed"),
            Self::ForeignOrigin(_) => ("foreign-origin", S::FORBIDDEN, "The request comes from another site"),
            Self::ForeignHost(_) => ("foreign-host", S::MISDIRECTED_REQUEST, "The server has another name"),
            Self::NoPages => ("no-pages", S::SERVICE_UNAVAILABLE, "The pages are not built"),
        }
    }

    /// Whether nothing failed, though the status is one of the server's.
    fn is_refusal(&self) -> bool {
        match self {
            Self::Observation(error) => error.is_cut(),
            Self::QueueFull(_)
            | Self::StudiesFull(_)
            | Self::RehearsalsFull(_)
            | Self::StreamsFull(_)
            | Self::Stopping
            | Self::NoPages
            | Self::NotReady(_)
            | Self::Store(StoreError::Quota { .. }) => true,
            _ => false,
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
            Self::Ambiguous { candidates, .. } => candidates.clone(),
            _ => Vec::new(),
        };
        let deleted = match self {
            Self::Store(StoreError::Gone { what, id, at, can_return }) => {
                let restore = match *what {
                    "scenario" => Some(api::path::scenario_restore(id)),
                    "dataset" => Some(api::path::dataset_restore(id)),
                    _ => None,
                };
                Some(Deletion { at: at.clone(), restore: restore.filter(|_| *can_return) })
            }
            _ => None,
        };
        let kind = format!("/problems/{kind}");
        Problem { kind, title: title.to_owned(), status: status.as_u16(), detail, errors, candidates, deleted }
    }
}

#[cfg(test)]
mod tests;

/// Identifiers of candidates.
fn names(candidates: &[Candidate]) -> String {
    candidates.iter().map(|candidate| candidate.id.as_str()).collect::<Vec<_>>().join(", ")
}

const INTERNAL: (&str, StatusCode, &str) = ("internal", StatusCode::INTERNAL_SERVER_ERROR, "The server failed");

/// Codes of SQLite for reading that failed, in part, or after the lock was had.
const READING: [u32; 3] = [266, 522, 2570];

/// What SQLite's refusals mean to whoever asks.
fn storage(error: &sqlx::Error) -> (&'static str, StatusCode, &'static str) {
    let code = match error {
        sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<u32>().ok()),
        sqlx::Error::PoolTimedOut => Some(5),
        _ => None,
    };
    // The low byte of an extended result code is the primary one: 5 busy, 6 locked, 8 read-only, 10 input or output failed,
    // 13 full, 14 a file beside the database cannot be made. Input that fails is damage, which is ours to explain.
    match code.filter(|code| !READING.contains(code)).map(|code| code & 0xff) {
        Some(13) => ("disk-full", StatusCode::INSUFFICIENT_STORAGE, "The server's disk is full"),
        Some(5 | 6) => ("database-busy", StatusCode::SERVICE_UNAVAILABLE, "The database is busy"),
        Some(8) => ("database-read-only", StatusCode::SERVICE_UNAVAILABLE, "The database cannot be written"),
        Some(10 | 14) => ("database-unwritable", StatusCode::SERVICE_UNAVAILABLE, "The database cannot be written"),
        _ => INTERNAL,
    }
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
        // Waiting builds no pages.
        if is_busy && !matches!(self, Self::NoPages) {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        match self {
            Self::Log(
                LogRefusal::Gap { file, stored }
                | LogRefusal::Diverged { file, stored }
                | LogRefusal::Closed { file, stored, .. },
            ) => headers.extend(log_end(LogEnd { file, stored })),
            Self::Unauthorised | Self::NoRunToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"planscope\""));
            }
            _ => {}
        }
        response
    }
}

/// What each refusal of a log is.
fn log(refusal: &LogRefusal) -> (&'static str, StatusCode, &'static str) {
    match refusal {
        LogRefusal::Gap { .. } => ("gap", StatusCode::CONFLICT, "Bytes before these are missing"),
        // Whoever sends does the same about both: he opens the next file.
        LogRefusal::Diverged { .. } | LogRefusal::Closed { .. } => {
            (api::run::DIVERGED, StatusCode::CONFLICT, "The file is another one than before")
        }
        LogRefusal::Whole => ("not-live", StatusCode::CONFLICT, "The log takes no more bytes"),
        LogRefusal::Full { .. } | LogRefusal::Files { .. } => {
            ("log-full", StatusCode::PAYLOAD_TOO_LARGE, "The log is full")
        }
        LogRefusal::Store(_) | LogRefusal::Panicked(_) => INTERNAL,
    }
}

/// Gives a refusal of the router or of an extractor the form of every other one.
pub(crate) fn as_problem(method: &Method, response: Response) -> Response {
    let status = response.status();
    let has_document =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| !kind.as_bytes().starts_with(b"text/plain"));
    if has_document || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let error = match status {
        StatusCode::METHOD_NOT_ALLOWED => ApiError::Method(method.to_string()),
        _ if status.is_client_error() => ApiError::Malformed("the path or the query is malformed".to_owned()),
        _ => ApiError::Fault(format!("a handler answered {status}")),
    };
    let mut problem = error.into_response();
    if let Some(allowed) = response.headers().get(ALLOW) {
        problem.headers_mut().insert(ALLOW, allowed.clone());
    }
    problem
}

/// The page that says how to build the pages.
pub(crate) fn pages_missing() -> Response {
    const PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Planscope</title>\
        <h1>The pages are not built yet</h1>\
        <p>The server runs, its API answers under <a href=\"/api/v1/health\">/api/v1</a>, but the folder of the \
        built pages is not there.</p>\
        <p>Build and serve everything with <code>cargo xtask serve</code>, or say where the built pages are with \
        <code>PLANSCOPE_WEB</code>.</p></html>";
    (StatusCode::SERVICE_UNAVAILABLE, axum::response::Html(PAGE)).into_response()
}

/// The one page, where it has to say that there is no such page.
pub(crate) fn no_such_page(mut page: Response) -> Response {
    if page.status().is_success() {
        *page.status_mut() = StatusCode::NOT_FOUND;
    }
    page
}

/// Class of a response's status, as metrics have it.
pub(crate) fn class(response: &Response) -> &'static str {
    match response.status().as_u16() {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        _ => "5xx",
    }
}

/// Whether a response is a plain success.
pub(crate) fn succeeded(response: &Response) -> bool {
    response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED
}

fn summary(errors: &[FieldError]) -> String {
    match errors {
        [] => "a field is not valid".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
