//! The route table.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::CompressionLevel;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::classify::ServerErrorsFailureClass;
use tower_http::compression::CompressionLayer;
use tower_http::trace::TraceLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access;
use crate::app::App;
use crate::arrival;
use crate::endpoint::datasets::uploads::MAX_UPLOAD;
use crate::endpoint::runs::files::MAX_LOG;
use crate::endpoint::runs::log::MAX_END_KIB;
use crate::endpoint::scenarios::{MAX_DOCUMENT, MAX_SCENARIO};
use crate::endpoint::{
    accuracy, audit, checks, corrections, datasets, execution_plans, exports, gallery, health, job_configs, jobs, mcp,
    metrics, observations, outcomes, pages, papers, presets, profiles, runs, scenarios, schedules, sessions, studies,
    sweeps, tokens, traces, what_if,
};
use crate::error::{ApiError, as_problem};
use crate::openapi;

const KIBIBYTE: usize = 1 << 10;
const MEBIBYTE: usize = 1 << 20;

/// Returns the API routes and their OpenAPI document.
#[expect(clippy::too_many_lines, reason = "a table of routes")]
fn api() -> (Router<Arc<App>>, utoipa::openapi::OpenApi) {
    let uploads = OpenApiRouter::new()
        .routes(routes!(datasets::ranges::footer))
        .routes(routes!(datasets::tokenizers::hold))
        .routes(routes!(profiles::list, profiles::upload))
        .layer(DefaultBodyLimit::max(MAX_UPLOAD * MEBIBYTE));
    let questions = OpenApiRouter::new()
        .routes(routes!(scenarios::list, scenarios::store))
        .routes(routes!(scenarios::identity))
        .routes(routes!(what_if::plan_preview))
        .routes(routes!(sweeps::list, sweeps::store))
        .layer(DefaultBodyLimit::max(MAX_SCENARIO * MEBIBYTE));
    let logs =
        OpenApiRouter::new().routes(routes!(runs::files::import)).layer(DefaultBodyLimit::max(MAX_LOG * MEBIBYTE));
    let ends =
        OpenApiRouter::new().routes(routes!(runs::log::finish)).layer(DefaultBodyLimit::max(MAX_END_KIB * KIBIBYTE));
    // Traces and datasets are limited while streaming. At most the maximum upload size of a dataset
    // is buffered.
    let streams = OpenApiRouter::new()
        .routes(routes!(traces::list, traces::upload))
        .routes(routes!(datasets::list, datasets::uploads::upload))
        .layer(DefaultBodyLimit::disable());
    let (router, document) = OpenApiRouter::with_openapi(openapi::front())
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .routes(routes!(sessions::who, sessions::end))
        .routes(routes!(tokens::list, tokens::make))
        .routes(routes!(tokens::revoke))
        .routes(routes!(audit::changes))
        .routes(routes!(presets::presets))
        .routes(routes!(gallery::gallery))
        .routes(routes!(gallery::front))
        .routes(routes!(accuracy::accuracy))
        .routes(routes!(papers::papers))
        .routes(routes!(datasets::get, datasets::change, datasets::delete))
        .routes(routes!(datasets::restore))
        .routes(routes!(datasets::previews::store))
        .routes(routes!(datasets::previews::merge))
        .routes(routes!(scenarios::get, scenarios::change, scenarios::delete))
        .routes(routes!(scenarios::restore))
        .routes(routes!(scenarios::plans))
        .routes(routes!(scenarios::keep, scenarios::unkeep))
        .routes(routes!(scenarios::plan))
        .routes(routes!(papers::scenario_papers))
        .routes(routes!(outcomes::engines))
        .routes(routes!(outcomes::outcome))
        .routes(routes!(outcomes::timeline))
        .routes(routes!(outcomes::overview))
        .routes(routes!(outcomes::schedule))
        .routes(routes!(exports::trace))
        .routes(routes!(exports::megatron_arguments))
        .routes(routes!(exports::torchtitan_job))
        .routes(routes!(exports::outcome_table))
        .routes(routes!(execution_plans::rank_plan))
        .routes(routes!(execution_plans::file))
        .routes(routes!(studies::search))
        .routes(routes!(studies::sizes))
        .routes(routes!(studies::layouts))
        .routes(routes!(studies::fit))
        .routes(routes!(studies::fewest_devices))
        .routes(routes!(studies::layout))
        .routes(routes!(studies::stages))
        .routes(routes!(studies::correction))
        .routes(routes!(profiles::get, profiles::change, profiles::delete))
        .routes(routes!(profiles::restore))
        .routes(routes!(observations::comparison))
        .routes(routes!(observations::calibration))
        .routes(routes!(corrections::correction))
        .routes(routes!(observations::check))
        .routes(routes!(profiles::apply_to))
        .routes(routes!(schedules::kinds, schedules::compare))
        .routes(routes!(job_configs::read))
        .routes(routes!(checks::check))
        .routes(routes!(checks::changes))
        .routes(routes!(checks::slowness))
        .routes(routes!(checks::log))
        .routes(routes!(jobs::get, jobs::cancel))
        .routes(routes!(jobs::events))
        .routes(routes!(runs::list, runs::open))
        .routes(routes!(runs::events::several))
        .routes(routes!(runs::replays::start))
        .routes(routes!(runs::get, runs::change, runs::delete))
        .routes(routes!(runs::restore))
        .routes(routes!(runs::token))
        .routes(routes!(runs::log::end, runs::log::append, runs::log::bytes))
        .routes(routes!(runs::events::get))
        .routes(routes!(runs::points::page))
        .routes(routes!(runs::points::export))
        .routes(routes!(sweeps::get, sweeps::change, sweeps::delete))
        .routes(routes!(sweeps::restore))
        .routes(routes!(sweeps::start))
        .routes(routes!(sweeps::cancel))
        .routes(routes!(sweeps::events))
        .routes(routes!(sweeps::points, sweeps::gather))
        .routes(routes!(sweeps::file))
        .routes(routes!(sweeps::pictures::picture))
        .routes(routes!(sweeps::pictures::front))
        .routes(routes!(sweeps::scenario))
        .routes(routes!(sweeps::scenario_sweeps))
        .routes(routes!(traces::get, traces::change, traces::delete))
        .routes(routes!(traces::restore))
        .routes(routes!(traces::looking::view))
        .routes(routes!(traces::looking::slice))
        .routes(routes!(traces::looking::search))
        .routes(routes!(traces::looking::counters))
        .routes(routes!(traces::planned::time_breakdown))
        .routes(routes!(traces::planned::actions))
        .routes(routes!(traces::planned::timeline))
        .routes(routes!(traces::planned::alignment))
        .routes(routes!(traces::planned::prediction))
        .routes(routes!(traces::compared::times))
        .routes(routes!(traces::compared::difference))
        .routes(routes!(traces::compared::ranks))
        .routes(routes!(traces::compared::axis))
        .layer(DefaultBodyLimit::max(MAX_DOCUMENT * MEBIBYTE))
        .merge(questions)
        .merge(uploads)
        .merge(logs)
        .merge(ends)
        .merge(streams)
        .split_for_parts();
    (router, openapi::finish(document))
}

/// Returns the complete document.
pub fn document() -> utoipa::openapi::OpenApi {
    api().1
}

/// Returns the router with all routes and middleware.
pub fn router(app: Arc<App>) -> Router {
    let (api, document) = api();
    let document = document.to_json().unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()));
    let document = axum::body::Bytes::from(document);
    api.route("/api/v1/openapi.json", get(move || async move { ([CONTENT_TYPE_JSON], document) }))
        .route(api::path::MCP, post(mcp::serve).layer(DefaultBodyLimit::max(MAX_DOCUMENT * MEBIBYTE)))
        // Page paths. The fallback serves all other build files.
        .route("/", get(pages::page))
        .route("/check", get(pages::page))
        .route("/new", get(pages::page))
        .route("/s/{id}", get(pages::page))
        .route("/c", get(pages::page))
        .route("/c/", get(pages::page))
        .route("/scenarios", get(pages::page))
        .route("/plans", get(pages::page))
        .route("/datasets", get(pages::page))
        .route("/runs", get(pages::page))
        .route("/runs/{id}", get(pages::page))
        .route("/profiles", get(pages::page))
        .route("/profiles/{id}", get(pages::page))
        .route("/schedules", get(pages::page))
        .route("/traces", get(pages::page))
        .route("/traces/{id}", get(pages::page))
        .route("/sweeps", get(pages::page))
        .route("/sweeps/{id}", get(pages::page))
        .route("/papers", get(pages::page))
        .route("/papers/{id}", get(pages::page))
        .route("/accuracy", get(pages::page))
        .route("/access", get(pages::page))
        .fallback(pages::file)
        // Layers in order from innermost to outermost: convert panics and refusals to problem
        // documents, compress responses, abort slow bodies, apply the guard, record metrics and
        // traces.
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(problems_only))
        .layer(CompressionLayer::new().quality(CompressionLevel::Fastest))
        .layer(middleware::from_fn(fresh_answers))
        .layer(middleware::from_fn_with_state(Arc::clone(&app.bodies), arrival::in_time))
        .layer(middleware::from_fn_with_state(Arc::clone(&app.access), access::guard))
        // Must enclose all layers that can refuse a request, so refusals are counted.
        .layer(middleware::from_fn_with_state(Arc::clone(&app), metrics::count))
        .layer(TraceLayer::new_for_http().make_span_with(span).on_failure(broken_off))
        .with_state(app)
}

const CONTENT_TYPE_JSON: (axum::http::HeaderName, &str) = (axum::http::header::CONTENT_TYPE, "application/json");

/// Creates the log span for a request. Logs only the path, because a query can contain a token.
fn span(request: &Request) -> tracing::Span {
    tracing::debug_span!("request", method = %request.method(), path = request.uri().path())
}

/// Logs responses that ended before completion. Other errors are logged at their source, and
/// refusals due to capacity are not failures.
fn broken_off(class: ServerErrorsFailureClass, _: Duration, _: &tracing::Span) {
    if let ServerErrorsFailureClass::Error(error) = class {
        tracing::error!(error, "an answer broke off");
    }
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic hook has already logged location and message.
    ApiError::Fault("a handler stopped unexpectedly".to_owned()).into_response()
}

/// Converts plain-text refusals from the router and the extractors to problem documents.
async fn problems_only(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    as_problem(&method, next.run(request).await)
}

/// Disables browser caching for API responses unless the handler sets Cache-Control.
async fn fresh_answers(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = next.run(request).await;
    if is_api {
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Mutex;

    use axum::body::Body;

    use super::*;

    /// Log output.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn log_contains_no_token_from_an_address() {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || writer.clone());
        tracing::subscriber::with_default(log.finish(), || {
            for address in ["/runs?token=0123456789abcdef", "/runs?a=b&%74oken=0123456789abcdef"] {
                let request = Request::get(address).body(Body::empty()).unwrap();
                span(&request).in_scope(|| tracing::debug!("begun"));
            }
        });
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.matches("/runs").count(), 2, "{log}");
        assert!(!log.contains("0123456789abcdef") && !log.contains('?'), "{log}");
    }
}
