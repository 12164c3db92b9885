//! Conversions from errors in other modules.

use axum::extract::rejection::QueryRejection;
use planner::engine::PlanError;
use planner::run_comparison::ReplanError;

use super::{ApiError, LimitError};
use crate::jobs::{NotPlanned, NotStarted};
use crate::live::{ImportError as RunImportError, LogRefusal, NoStream};
use crate::observation::ObservationError;
use crate::studies::AnalysisRunError;

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::Malformed(rejection.body_text())
    }
}

impl From<LogRefusal> for ApiError {
    fn from(refusal: LogRefusal) -> Self {
        match refusal {
            LogRefusal::Store(error) => Self::Store(error),
            LogRefusal::Panicked(_) => Self::Fault(refusal.to_string()),
            refusal => Self::Log(refusal),
        }
    }
}

impl From<NoStream> for ApiError {
    fn from(error: NoStream) -> Self {
        match error {
            NoStream::Server(limit) => Self::StreamsFull(limit),
            NoStream::Client(limit) => LimitError::ClientStreams(limit).into(),
        }
    }
}

impl From<RunImportError> for ApiError {
    fn from(error: RunImportError) -> Self {
        match error {
            RunImportError::Log(error) => Self::InvalidLog(error),
            RunImportError::Store(error) => Self::Store(error),
            RunImportError::Panicked(_) => Self::Fault(error.to_string()),
        }
    }
}

impl From<ObservationError> for ApiError {
    fn from(error: ObservationError) -> Self {
        match error {
            ObservationError::Replan(ReplanError::Plan(PlanError::Rejected { .. })) => Self::Fault(error.to_string()),
            error => Self::Observation(error),
        }
    }
}

impl From<NotPlanned> for ApiError {
    fn from(error: NotPlanned) -> Self {
        match error {
            NotPlanned::Full(limit) => Self::QueueFull(limit),
            NotPlanned::WithoutWork => Self::WithoutWork,
            NotPlanned::TooLong(_) => Self::TooLong(error.to_string()),
            NotPlanned::TooLarge(error) => Self::InvalidScenario(vec![error]),
            NotPlanned::Fault(detail) => Self::Fault(detail),
        }
    }
}

impl From<NotStarted> for ApiError {
    fn from(error: NotStarted) -> Self {
        match error {
            NotStarted::Full(limit) => Self::QueueFull(limit),
            NotStarted::Store(error) => Self::Store(error),
            NotStarted::Closing => Self::Stopping,
            NotStarted::TooLarge(error) => Self::InvalidScenario(vec![error]),
            NotStarted::WithoutWork => Self::WithoutWork,
        }
    }
}

impl From<AnalysisRunError> for ApiError {
    fn from(error: AnalysisRunError) -> Self {
        match error {
            AnalysisRunError::Full(limit) => Self::StudiesFull(limit),
            AnalysisRunError::None(none) => Self::NoAnalysis(none),
            AnalysisRunError::Panicked => Self::Fault(error.to_string()),
        }
    }
}
