//! The OpenAPI document.

use api::problem::Problem;
use utoipa::openapi::path::{Operation, PathItem};
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

/// Adds the common responses: errors are problem documents, and each request can be refused by the
/// guard or fail with an internal error.
pub(crate) fn finish(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let mut schemas = Vec::new();
    Problem::schemas(&mut schemas);
    let components = document.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    components.schemas.extend(schemas);
    for item in document.paths.paths.values_mut() {
        for (operation, is_change) in operations(item) {
            everywhere(operation, is_change);
        }
    }
    document
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&mut Operation, bool)> {
    let reading = item.get.iter_mut().map(|operation| (operation, false));
    let heads = item.head.iter_mut().map(|operation| (operation, false));
    let changing = item.put.iter_mut().chain(&mut item.post).chain(&mut item.patch).chain(&mut item.delete);
    reading.chain(heads).chain(changing.map(|operation| (operation, true)))
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
