//! Maps errors to problem type, status and title.

use axum::http::StatusCode;
use ingest::dataset::ImportError;
use ingest::job_config::JobConfigError;
use ingest::log::LogError;
use ingest::trace::TraceError;
use planner::analysis::AnalysisError;

use super::ApiError;
use crate::live::LogRefusal;
use crate::profiles::ProfileError;
use crate::store::StoreError;

impl ApiError {
    /// Problem type, status and title.
    pub(super) fn kind(&self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::InvalidScenario(_) => ("invalid-scenario", S::UNPROCESSABLE_ENTITY, "The scenario is not valid"),
            Self::InvalidRequest(_) => ("invalid-question", S::UNPROCESSABLE_ENTITY, "The input is not valid"),
            Self::InvalidDataset(error) => dataset(error),
            Self::InvalidJobConfig(JobConfigError::TooLarge | JobConfigError::TooManyKeys)
            | Self::InvalidTrace(TraceError::TooLarge { .. })
            | Self::TraceTooLarge(_)
            | Self::InvalidProfile(ProfileError::TooMuch(..))
            | Self::InvalidLog(LogError::TooLarge { .. })
            | Self::LargeRequest(_)
            | Self::TooLarge(_)
            | Self::DatasetTooLarge(_)
            | Self::SmallTooLarge(_) => ("too-large", S::PAYLOAD_TOO_LARGE, "The upload is too large"),
            Self::InvalidJobConfig(_) => {
                ("invalid-job-config", S::UNPROCESSABLE_ENTITY, "The configuration file cannot be read")
            }
            Self::Observation(error) if error.is_cut() => {
                ("planning-too-long", S::SERVICE_UNAVAILABLE, "Planning the scenario again took too long")
            }
            Self::Observation(_) => {
                ("no-comparison", S::UNPROCESSABLE_ENTITY, "The run cannot be compared with a plan")
            }
            Self::InvalidProfile(ProfileError::OtherDevice { .. } | ProfileError::Implausible(_)) => {
                (api::profile::OTHER_DEVICE, S::UNPROCESSABLE_ENTITY, "The profile may be of another device")
            }
            Self::InvalidProfile(_) => ("invalid-profile", S::UNPROCESSABLE_ENTITY, "The profile cannot be used"),
            Self::InvalidAnnotations(_) => ("invalid-words", S::UNPROCESSABLE_ENTITY, "The change is not valid"),
            Self::InvalidRun(_) => ("invalid-run", S::UNPROCESSABLE_ENTITY, "The run is not valid"),
            Self::InvalidLog(_) => ("invalid-log", S::UNPROCESSABLE_ENTITY, "The file is not a training log"),
            Self::Log(refusal) => log(refusal),
            Self::KeyReused => ("key-reused", S::UNPROCESSABLE_ENTITY, "The key is another request's"),
            Self::WrongRunToken => ("wrong-token", S::FORBIDDEN, "The token is not good here"),
            Self::UploadsFull(_) => ("uploads-full", S::TOO_MANY_REQUESTS, "Too many logs are being sent"),
            Self::Limit(limit) => limit.kind(),
            Self::StreamsFull(_) => ("streams-full", S::SERVICE_UNAVAILABLE, "Too many streams are open"),
            Self::InvalidTrace(TraceError::NotATrace { .. }) => {
                ("not-a-trace", S::UNSUPPORTED_MEDIA_TYPE, "The file is not a trace")
            }
            Self::InvalidTrace(_) => ("invalid-trace", S::UNPROCESSABLE_ENTITY, "The trace is not valid"),
            Self::NoActions => ("no-actions", S::UNPROCESSABLE_ENTITY, "There are no actions"),
            Self::TraceComparison(_) => ("not-comparable", S::UNPROCESSABLE_ENTITY, "The traces cannot be compared"),
            Self::NoTracePlan | Self::NoPlanAtAll => ("no-plan", S::CONFLICT, "There is no plan to compare with"),
            Self::Malformed(_) | Self::MalformedRanges(_) | Self::BrokenBody(_) => {
                ("malformed-request", S::BAD_REQUEST, "The request is malformed")
            }
            Self::Ambiguous { .. } => ("ambiguous-prefix", S::MULTIPLE_CHOICES, "The prefix is ambiguous"),
            Self::NoPreview(_)
            | Self::NoTokenizer(_)
            | Self::NoSuchJob(_)
            | Self::NoSuchPlanner(_)
            | Self::NoPlannerPlan(_)
            | Self::NoSuchRank { .. }
            | Self::NoSuchIteration { .. }
            | Self::NoSlice { .. }
            | Self::NoRoute(_)
            | Self::NoAnalysis(
                AnalysisError::Iteration(..) | AnalysisError::Replica(..) | AnalysisError::NoSuchLayout(_),
            )
            | Self::Store(StoreError::Unknown { .. }) => ("not-found", S::NOT_FOUND, "Not found"),
            Self::Store(StoreError::Gone { .. }) => ("deleted", S::GONE, "Deleted"),
            Self::Store(StoreError::Sqlite(error)) => storage(error),
            Self::Store(StoreError::File(_)) => {
                ("database-gone", S::SERVICE_UNAVAILABLE, "The file of the database is not in its place")
            }
            Self::Store(StoreError::Quota { .. }) => {
                ("quota-reached", S::INSUFFICIENT_STORAGE, "The server holds as much as it may")
            }
            Self::Store(StoreError::Drafts { .. }) => {
                ("drafts-full", S::INSUFFICIENT_STORAGE, "The server holds as many drafts as it may")
            }
            Self::DiskFull => ("disk-full", S::INSUFFICIENT_STORAGE, "The server's disk is full"),
            Self::NotReady(_) => ("not-ready", S::SERVICE_UNAVAILABLE, "The server takes no new content"),
            Self::Store(_) | Self::Fault(_) => INTERNAL,
            Self::Method(_) => ("method-not-allowed", S::METHOD_NOT_ALLOWED, "Method not allowed"),
            Self::NoPipeline => ("no-pipeline", S::UNPROCESSABLE_ENTITY, "The plan is no pipeline"),
            Self::NotExportable(_) => ("not-exportable", S::UNPROCESSABLE_ENTITY, "The plan has no such form"),
            Self::NoAnalysis(_) => ("no-study", S::UNPROCESSABLE_ENTITY, "There is nothing to study"),
            Self::NotPlanned => ("not-planned", S::CONFLICT, "The scenario is not planned yet"),
            Self::StudiesFull(_) => ("studies-full", S::SERVICE_UNAVAILABLE, "Too many studies are under way"),
            Self::ReplaysFull(_) => ("replays-full", S::SERVICE_UNAVAILABLE, "Too many replays"),
            Self::ImportsFull(_) => ("imports-full", S::SERVICE_UNAVAILABLE, "Too many imports"),
            Self::WithoutWork => ("without-work", S::SERVICE_UNAVAILABLE, "The server plans nothing"),
            Self::TooLong(_) => ("too-long", S::UNPROCESSABLE_ENTITY, "The computation takes too long"),
            Self::Stopping => ("stopping", S::SERVICE_UNAVAILABLE, "The server is stopping"),
            Self::QueueFull(_) => ("queue-full", S::SERVICE_UNAVAILABLE, "The planning queue is full"),
            Self::Unauthorised | Self::InvalidToken | Self::NoRunToken => {
                ("token-needed", S::UNAUTHORIZED, "A token is needed")
            }
            Self::WrongTokens => ("wrong-tokens", S::TOO_MANY_REQUESTS, "Too many wrong tokens"),
            Self::NotAllowed { .. } => ("not-allowed", S::FORBIDDEN, "The token may not do this"),
            Self::TokenExists(_) => ("token-exists", S::CONFLICT, "There is a token of that name"),
            Self::Range(_) => ("range-not-satisfiable", S::RANGE_NOT_SATISFIABLE, "The file is shorter"),
            Self::ForeignOrigin(_) => ("foreign-origin", S::FORBIDDEN, "The request comes from another site"),
            Self::ForeignHost(_) => ("foreign-host", S::MISDIRECTED_REQUEST, "The request names another host"),
            Self::NoPages => ("no-pages", S::SERVICE_UNAVAILABLE, "The pages are not built"),
        }
    }

    /// True if the error is a deliberate refusal with a 5xx status, not a failure.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Observation(error) => error.is_cut(),
            Self::QueueFull(_)
            | Self::StudiesFull(_)
            | Self::ImportsFull(_)
            | Self::ReplaysFull(_)
            | Self::StreamsFull(_)
            | Self::Limit(_)
            | Self::Stopping
            | Self::WithoutWork
            | Self::NoPages
            | Self::NotReady(_)
            | Self::Store(StoreError::Quota { .. } | StoreError::Drafts { .. } | StoreError::File(_)) => true,
            _ => false,
        }
    }
}

/// Problem type, status and title of a dataset error.
const fn dataset(error: &ImportError) -> (&'static str, StatusCode, &'static str) {
    use StatusCode as S;
    match error {
        ImportError::Binary { .. } => ("not-a-length-file", S::UNSUPPORTED_MEDIA_TYPE, "The file is not a length file"),
        ImportError::TooManyRows => ("too-large", S::PAYLOAD_TOO_LARGE, "The upload is too large"),
        ImportError::Unclear { .. } => {
            ("column-unclear", S::UNPROCESSABLE_ENTITY, "Choose the column with the lengths")
        }
        ImportError::Tokenizer { .. } => ("invalid-tokenizer", S::UNPROCESSABLE_ENTITY, "The tokenizer is not valid"),
        _ => ("invalid-dataset", S::UNPROCESSABLE_ENTITY, "The length file is not valid"),
    }
}

/// Problem type, status and title of a refused log upload.
fn log(refusal: &LogRefusal) -> (&'static str, StatusCode, &'static str) {
    match refusal {
        LogRefusal::Gap { .. } => ("gap", StatusCode::CONFLICT, "Bytes before these are missing"),
        // The sender reacts to both in the same way: it opens the next file.
        LogRefusal::Diverged { .. } | LogRefusal::Closed { .. } => {
            (api::run::DIVERGED, StatusCode::CONFLICT, "The file is another one than before")
        }
        LogRefusal::Replaced { .. } => ("upload-replaced", StatusCode::CONFLICT, "Newer uploads of this log took over"),
        LogRefusal::Compressed => ("compressed-log", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The log is compressed"),
        LogRefusal::Imported => ("not-live", StatusCode::CONFLICT, "The log takes no more bytes"),
        LogRefusal::Full { .. } | LogRefusal::Files { .. } => {
            ("log-full", StatusCode::PAYLOAD_TOO_LARGE, "The log is full")
        }
        LogRefusal::Store(_) | LogRefusal::Panicked(_) => INTERNAL,
    }
}

const INTERNAL: (&str, StatusCode, &str) = ("internal", StatusCode::INTERNAL_SERVER_ERROR, "The server failed");

/// SQLite extended codes for failed reads, short reads, and failures after locking.
const READING: [u32; 3] = [266, 522, 2570];

/// Problem type, status and title of a SQLite error.
fn storage(error: &sqlx::Error) -> (&'static str, StatusCode, &'static str) {
    let code = match error {
        sqlx::Error::Database(error) => error.code().and_then(|code| code.parse::<u32>().ok()),
        sqlx::Error::PoolTimedOut => Some(5),
        _ => None,
    };
    // The low byte of an extended result code is the primary code: 5 busy, 6 locked, 8 read-only,
    // 10 I/O error, 13 full, 14 an auxiliary file next to the database cannot be created. Failed
    // reads indicate damage, which is an internal error.
    match code.filter(|code| !READING.contains(code)).map(|code| code & 0xff) {
        Some(13) => ("disk-full", StatusCode::INSUFFICIENT_STORAGE, "The server's disk is full"),
        Some(5 | 6) => ("database-busy", StatusCode::SERVICE_UNAVAILABLE, "The database is busy"),
        Some(8) => ("database-read-only", StatusCode::SERVICE_UNAVAILABLE, "The database cannot be written"),
        Some(10 | 14) => ("database-unwritable", StatusCode::SERVICE_UNAVAILABLE, "The database cannot be written"),
        _ => INTERNAL,
    }
}
