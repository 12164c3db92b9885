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
        (name = "scenarios", description = "Questions, immutable and addressed by content"),
        (name = "checks", description = "Checks of training configurations: fit, time, and what to change"),
        (name = "jobs", description = "Planning"),
        (name = "outcomes", description = "Answers, keyed by scenario and engine"),
        (name = "runs", description = "Observed training jobs: their logs as they grow, and what is read from them"),
        (name = "studies", description = "What lies behind a plan, computed while you wait"),
        (name = "sweeps", description = "Grids of scenarios, planned point by point"),
        (name = "schedules", description = "Schedules by themselves, with no model"),
        (name = "traces", description = "What observed jobs ran, from when to when, and beside a plan"),
        (name = "catalogue", description = "What pickers offer"),
        (name = "accuracy", description = "Predictions against published measurements, and papers beside our plans"),
        (name = "access", description = "Sessions, tokens with roles, and who changed what"),
        (name = "server", description = "The server itself"),
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
    add("421", "The server has another name");
    add("429", "Too many wrong tokens come from the address");
    add("500", "A fault of ours");
    add("503", "The database is busy");
    if is_change {
        add("408", "The body came too slowly");
        add("507", "The server's disk is full, or it holds as much as it may");
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
