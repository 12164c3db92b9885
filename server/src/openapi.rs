//! The OpenAPI document.

use std::collections::BTreeMap;

use api::problem::Problem;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{OpenApi, PartialSchema, ToSchema};

/// Title and description.
#[derive(Debug, OpenApi)]
#[openapi(
    info(
        title = "Planscope",
        description = "Plans the training of large multimodal models: upload lengths, store a scenario, plan it, read the timelines.",
        license(name = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "datasets", description = "Length files"),
        (name = "scenarios", description = "Scenarios, immutable and addressed by content"),
        (name = "checks", description = "Checks of training configurations: fit, time, and what to change"),
        (name = "jobs", description = "Planning"),
        (name = "outcomes", description = "Results of planning, by scenario and engine version"),
        (name = "runs", description = "Observed training jobs: live logs and the values read from them"),
        (name = "studies", description = "Analyses of a scenario, computed on request"),
        (name = "sweeps", description = "Grids of scenarios, planned point by point"),
        (name = "schedules", description = "Pipeline schedules without a model"),
        (name = "traces", description = "Profiler traces of observed jobs, and comparisons with plans"),
        (name = "catalogue", description = "Presets and examples"),
        (name = "accuracy", description = "Predictions compared with published measurements, and published figures compared with plans"),
        (name = "access", description = "Sessions, tokens with roles, and the list of changes"),
        (name = "server", description = "Health and metrics of the server"),
    )
)]
struct Front;

/// The document without paths.
pub(crate) fn front() -> utoipa::openapi::OpenApi {
    Front::openapi()
}

/// Example bodies of requests by method and path.
const EXAMPLES: &str = include_str!("openapi/examples.json");
/// Name of the token in the document.
const TOKEN: &str = "token";

/// Adds the common responses: errors are problem documents, and each request can be refused by the
/// guard or fail with an internal error. Adds the token, examples of bodies, and names of operations.
pub(crate) fn finish(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let mut schemas = Vec::new();
    Problem::schemas(&mut schemas);
    let components = document.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    components.schemas.extend(schemas);
    let token =
        Http::builder().scheme(HttpAuthScheme::Bearer).description(Some("A token of `planscope token`")).build();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(token));
    // A server without tokens needs none.
    let needed = SecurityRequirement::new(TOKEN, [""; 0]);
    document.security = Some(vec![SecurityRequirement::default(), needed]);
    let examples: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(EXAMPLES).expect("the examples are an object");
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            everywhere(operation, !matches!(method, "GET" | "HEAD"));
            operation.operation_id = Some(operation_id(method, path));
            if let Some(example) = examples.get(&format!("{method} {path}"))
                && let Some(body) = operation.request_body.as_mut()
                && let Some(content) = body.content.get_mut("application/json")
            {
                content.example = Some(example.clone());
            }
        }
    }
    document
}

/// Returns the operations of a path with their methods.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, head, put, post, patch, delete, .. } = item;
    let all = [("GET", get), ("HEAD", head), ("PUT", put), ("POST", post), ("PATCH", patch), ("DELETE", delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Names an operation by its method and path: `get_scenarios_id_rank` for `GET /api/v1/scenarios/{id}/rank`. Generators of
/// clients need different names.
fn operation_id(method: &str, path: &str) -> String {
    let path = path.trim_start_matches('/').trim_start_matches("api/v1/");
    let words = path.split(['/', '-', '.', '{', '}']).filter(|word| !word.is_empty());
    [method.to_lowercase().as_str()].into_iter().chain(words).collect::<Vec<_>>().join("_")
}

fn everywhere(operation: &mut Operation, is_change: bool) {
    let responses = &mut operation.responses.responses;
    let mut add = |status: &str, description: &str| {
        let response = ResponseBuilder::new().description(description).build();
        responses.entry(status.to_owned()).or_insert(RefOr::T(response));
    };
    add("401", "A token is needed");
    add("403", "The request comes from another site, or the role of the token is too small");
    add("421", "The request names another host");
    add("429", "Too many wrong tokens from this address");
    add("500", "Internal error");
    add("503", "The database is busy");
    if is_change {
        add("408", "The body arrived too slowly");
        add("507", "The server's disk is full, or its storage limit is reached");
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if !status.starts_with('2') {
            describe_as_problem(response);
        }
    }
}

fn describe_as_problem(response: &mut Response) {
    let schema = Ref::from_schema_name(Problem::name());
    let content = ContentBuilder::new().schema(Some(schema)).build();
    response.content.insert(api::path::PROBLEM_MEDIA_TYPE.to_owned(), content);
}
