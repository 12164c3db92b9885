//! Profile endpoints: upload and fit, list, change, delete, apply.

use api::listing::Annotations;
use api::listing::{ListQuery, MAX_PAGE};
use api::profile::{AppliedProfile, ApplyProfile, Profile, ProfileList};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, Path, Query, Request, State};
use serde::Deserialize;
use utoipa::IntoParams;

use super::lists;
use super::scenarios::{find, validate};
use crate::app::{App, Shared};
use crate::arrival::Reservation;
use crate::client::Client;
use crate::error::{ApiError, Deleted, DocumentResponse};
use crate::label;
use crate::profiles::{Base, ProfileError, apply, fit};
use crate::store::{PROFILES, ProfileFile, Replaced};
use crate::turns::Claimant;

/// Memory estimate in bytes for the tables of a fit. File contents count towards the body budget.
const FITTING: u64 = 64 << 20;
/// Maximum upload size in MiB.
const MAX_UPLOAD: usize = super::datasets::uploads::MAX_UPLOAD;
/// Options of an upload.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadOptions {
    /// File name. It supplies values that some formats omit, and is the default profile name.
    name: Option<String>,
    /// Name of the profile.
    title: Option<String>,
    /// Device preset to fit. Default: the only preset for the device in the file.
    device: Option<String>,
    /// `true`: fit the file even if it was measured on another device.
    confirm_device: Option<bool>,
    /// Scenario with the cluster to fit, instead of a preset, and with the modules for timed
    /// layers.
    scenario: Option<String>,
    /// Number of devices in collectives, for tables that do not specify it.
    ranks: Option<u32>,
    /// Tensor-parallel degree of timed layers. Default: the degree with the most timings.
    tensor: Option<u32>,
    /// Profile whose files are fitted together with the new file. The new profile replaces it. The
    /// old profile is deleted, but can be restored.
    onto: Option<String>,
}

/// Lists stored profiles, pinned first, then from newest to oldest. Additional sort keys are
/// `measurements`, `residual` and `size`.
#[utoipa::path(
    get, path = "/api/v1/profiles", tag = "profiles", params(ListQuery),
    responses((status = 200, body = ProfileList), (status = 400, description = "The query is malformed"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<ProfileList>, ApiError> {
    let Query(query) = query?;
    let wanted = lists::wanted(query, &PROFILES, MAX_PAGE)?;
    Ok(Json(app.store.reader().profiles(&wanted, app.live.limits().retention_days).await?))
}

/// Uploads measurements and fits them.
///
/// The request body is a single file. Its format is detected from the content. Measured kernels and
/// collectives (Vidur, vTrain, SimuMax, Galvatron, nccl-tests, all_reduce_bench, aiconfigurator,
/// the Planscope table, the output of `planscope measure`) fit the curves of `device` or the cluster
/// in `scenario`, like `planscope calibrate`. Timed layers (DFLOP, DynaPipe, Galvatron, or the Planscope table by sequence length
/// and scheme) replace times from the model. For several files, post each with `onto` set to the
/// previous profile. No scenario changes. The response is sent after the fit, which is queued with
/// the planning jobs.
///
/// A file from another device is refused with the problem `/problems/other-device`, which names
/// both devices, unless `confirm_device` is `true`.
#[utoipa::path(
    post, path = "/api/v1/profiles", tag = "profiles", params(UploadOptions),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = Profile, description = "Fitted and stored"),
        (status = 200, body = Profile, description = "The same measurements are already stored"),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "Unknown scenario or profile"),
        (status = 410, description = "The scenario or profile was deleted"),
        (status = 413, description = "More than 64 MiB"),
        (status = 422, description = "Not a profile, a profile of another device, or nothing can be fitted"),
        (status = 503, description = "Too many computations are running, or other files are being read; try again later"),
    )
)]
pub(crate) async fn upload(
    State(app): Shared,
    claimant: Claimant,
    options: Result<Query<UploadOptions>, QueryRejection>,
    request: Request,
) -> Result<DocumentResponse<Profile>, ApiError> {
    let Query(options) = options?;
    if options.ranks.is_some_and(|ranks| !(2..=65_536).contains(&ranks)) {
        return Err(ApiError::Malformed("ranks: 2 to 65536 devices take part in a collective".to_owned()));
    }
    let room = Reservation::from_extensions(request.extensions());
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejection| ApiError::body(&rejection, MAX_UPLOAD))?;
    let name = options.name.as_deref().and_then(label::file);
    let onto = options.onto.as_deref().filter(|id| !id.is_empty());
    let (mut base, mut files, old_name) = match onto {
        Some(id) => before(&app, id).await?,
        None => (Base::default(), Vec::new(), None),
    };
    let confirmed = base.confirmed || options.confirm_device == Some(true);
    if let Some(id) = options.device.as_deref().filter(|id| !id.is_empty()) {
        base = Base { model: base.model, tensor: base.tensor, ..Base::preset(id)? };
    }
    if let Some(id) = options.scenario.as_deref().filter(|id| !id.is_empty()) {
        let stored = find(&app, id).await?;
        let fits = Base {
            name: stored.scenario.cluster.name.clone(),
            cluster: Some(stored.scenario.cluster),
            model: Some(stored.scenario.model),
            tensor: base.tensor,
            confirmed: false,
        };
        base = if options.device.is_some() { Base { model: fits.model, ..base } } else { fits };
    }
    base.tensor = options.tensor.or(base.tensor);
    base.confirmed = confirmed;
    let file = ProfileFile {
        name: name.clone().unwrap_or_else(|| format!("file {}", files.len() + 1)),
        ranks: options.ranks,
        content: body.into(),
    };
    if !files.contains(&file) {
        files.push(file);
    }
    // The memory reservation must last until the file is stored. The work may outlast the
    // connection.
    let (profile, _room) = app.studies.run((&claimant, FITTING), 1, move |_| Ok((fit(&base, files), room))).await?;
    let mut profile = profile?;
    let title = options.title.as_deref().and_then(label::clean);
    profile.name = title.or(old_name).or(name).unwrap_or_else(|| "profile".to_owned());
    let is_new = app.store.writer().store_profile(&profile, Replaced { id: onto }, app.clock.now()).await?;
    let stored = app.store.reader().profile(&profile.id).await?;
    Ok(if is_new {
        DocumentResponse::Created(api::path::profile(&profile.id), stored)
    } else {
        DocumentResponse::Present(stored)
    })
}

/// Returns the fit base, files and name of an existing profile.
async fn before(app: &App, id: &str) -> Result<(Base, Vec<ProfileFile>, Option<String>), ApiError> {
    let old = app.store.reader().profile(id).await?;
    let (base, files) = app.store.reader().profile_files(id).await?;
    let base = base.as_deref().and_then(|base| serde_json::from_str(base).ok());
    match base.filter(|_| !files.is_empty()) {
        Some(base) => Ok((base, files, Some(old.summary.name))),
        None => Err(ProfileError::FromRun.into()),
    }
}

/// Returns a profile with its residuals.
#[utoipa::path(
    get, path = "/api/v1/profiles/{id}", tag = "profiles", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = Profile), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn get(State(app): Shared, Path(id): Path<String>) -> Result<Json<Profile>, ApiError> {
    Ok(Json(app.store.reader().profile(&id).await?))
}

/// Changes name, note and tags.
#[utoipa::path(
    patch, path = "/api/v1/profiles/{id}", tag = "profiles", request_body = Annotations,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = Profile), (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Invalid fields; all of them are listed"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Json<Annotations>, JsonRejection>,
) -> Result<Json<Profile>, ApiError> {
    let Json(words) = body.map_err(|rejection| ApiError::document(&rejection))?;
    app.store.reader().profile(&id).await?;
    app.store.writer().change_profile(&id, &lists::checked(words)?, app.clock.now()).await?;
    Ok(Json(app.store.reader().profile(&id).await?))
}

/// Deletes a profile. It can be restored during the retention period. Scenarios with this profile
/// do not change.
#[utoipa::path(
    delete, path = "/api/v1/profiles/{id}", tag = "profiles", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 204, description = "Deleted"), (status = 404, description = "Unknown"),
        (status = 410, description = "Already deleted"),
    )
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    app.store.writer().delete_profile(&id, app.clock.now()).await?;
    Ok(Deleted)
}

/// Restores a deleted profile.
#[utoipa::path(
    post, path = "/api/v1/profiles/{id}/restore", tag = "profiles",
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = Profile), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted, and the retention period is over"),
    )
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<Profile>, ApiError> {
    app.store.writer().forget_profiles(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_profile(&id).await?;
    Ok(Json(app.store.reader().profile(&id).await?))
}

/// Applies a profile to a scenario, stores the result as a draft, and returns its identifier.
///
/// A fitted cluster replaces the device and the links inside a node. Cluster size and inter-node
/// network do not change. Times from the profile are appended to the scenario's times and override
/// them. The new scenario lists the profile in `profiles`. The input scenario does not change.
#[utoipa::path(
    post, path = "/api/v1/profiles/{id}/apply", tag = "profiles", request_body = ApplyProfile,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 201, body = AppliedProfile, description = "Stored"),
        (status = 200, body = AppliedProfile, description = "The same scenario is already stored"),
        (status = 300, description = "The prefix is ambiguous; the candidates are listed"),
        (status = 400, description = "The body is not a document of this form"),
        (status = 404, description = "Unknown profile or scenario"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The scenario already uses the profile, or no part of it applies to the model"),
    )
)]
pub(crate) async fn apply_to(
    State(app): Shared,
    client: Client,
    Path(id): Path<String>,
    body: Result<Json<ApplyProfile>, JsonRejection>,
) -> Result<DocumentResponse<AppliedProfile>, ApiError> {
    let Json(asked) = body.map_err(|rejection| ApiError::document(&rejection))?;
    let profile = app.store.reader().profile(&id).await?;
    let stored = find(&app, &asked.scenario).await?;
    let applied = apply(&profile, &stored.scenario)?;
    let valid = validate(app.store.reader(), applied.scenario).await?;
    let is_new = app.store.writer().store_scenario(valid.id(), valid.scenario(), &client, app.clock.now()).await?;
    let answer = AppliedProfile { scenario: valid.id().to_string(), changes: applied.changes };
    Ok(if is_new {
        DocumentResponse::Created(api::path::scenario(&answer.scenario), answer)
    } else {
        DocumentResponse::Present(answer)
    })
}
