//! Tests the headers and the log lines of error responses.

use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::response::IntoResponse;
use planner::engine::PlanError;
use planner::observer::Cancelled;
use planner::run_comparison::ReplanError;

use super::{ApiError, LimitError};
use crate::observation::ObservationError;
use crate::store::StoreError;

#[test]
fn retry_header_and_logging_follow_from_the_status() {
    let cut = ObservationError::Replan(ReplanError::Plan(PlanError::Cancelled(Cancelled)));
    let invalid_plan = PlanError::Rejected { planner: "1F1B", violation: "a bug".to_owned() };
    for (error, status, asks_again, is_fault) in [
        (ObservationError::from(ReplanError::Plan(invalid_plan)).into(), 500, false, true),
        (ApiError::QueueFull(1), 503, true, false),
        (ApiError::Stopping, 503, true, false),
        (ApiError::NotReady(Vec::new()), 503, true, false),
        (ApiError::Observation(cut), 503, true, false),
        (ApiError::NoPages, 503, false, false),
        (ApiError::WithoutWork, 503, false, false),
        (ApiError::TooLong("it takes longer".to_owned()), 422, false, false),
        (ApiError::UploadsFull(1), 429, true, false),
        (LimitError::BodySilent(Duration::from_secs(30)).into(), 408, false, false),
        (LimitError::BodiesFull.into(), 503, true, false),
        (LimitError::BodyOverBudget(512).into(), 413, false, false),
        (LimitError::ConnectionsFull.into(), 503, true, false),
        (LimitError::ClientStreams(64).into(), 429, true, false),
        (ApiError::Store(StoreError::Sqlite(sqlx::Error::PoolTimedOut)), 503, true, true),
        (ApiError::Observation(ObservationError::NoSteps), 422, false, false),
        (ApiError::DiskFull, 507, false, true),
        (ApiError::Fault("a bug".to_owned()), 500, false, true),
    ] {
        let message = error.to_string();
        assert_eq!(status >= 500 && !error.is_refusal(), is_fault, "{message}");
        let response = error.into_response();
        assert_eq!(
            (response.status().as_u16(), response.headers().contains_key(RETRY_AFTER)),
            (status, asks_again),
            "{message}"
        );
    }
}
