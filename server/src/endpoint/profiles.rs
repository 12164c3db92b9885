//! Profiles: upload and fit, list, change, delete, use.

use api::profile::{AppliedProfile, ApplyProfile, Profile, ProfileList};
use api::shelf::Words;
use api::shelf::{LARGEST_PAGE, ListQuery};
use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, Path, Query, Request, State};
use serde::Deserialize;
use utoipa::IntoParams;

use super::lists;
use super::scenarios::{find, validate};
use crate::app::{App, Shared};
use crate::arrival::Room;
use crate::client::Client;
use crate::error::{Answer, ApiError, Deleted};
use crate::label;
use crate::profiles::{Base, ProfileError, apply, fit};
use crate::store::{PROFILES, ProfileFile, Replaced};
use crate::turns::Claimant;

/// Bytes of the tables of a fit; those of the files are counted as bodies.
const FITTING: u64 = 64 << 20;
/// Largest upload, in MiB.
const LARGEST_UPLOAD: usize = super::datasets::uploads::LARGEST_UPLOAD;
/// Options of an upload.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadOptions {
    /// Name of the file, which says what some formats leave out; the profile is called so too, unless `title` is given.
    name: Option<String>,
    /// Name of the profile.
    title: Option<String>,
    /// Device preset whose curves are fitted; absent: the only preset of the device that the file names.
    device: Option<String>,
    /// `true`: fit the file although it was measured on another device.
    confirm_device: Option<bool>,
    /// Scenario whose cluster is fitted in place of a preset, and whose modules timed layers are of.
    scenario: Option<String>,
    /// Devices that took part in collectives, for tables that do not say it.
    ranks: Option<u32>,
    /// Tensor-parallel degree of timed layers; absent: the one with the most timings.
    tensor: Option<u32>,
    /// Profile whose files are fitted together with this one. The new profile takes its place: the old one is deleted, and can be
    /// brought back.
    onto: Option<String>,
}

/// Stored profiles, pinned ones and then the newest first. Further orders are `measurements`, `residual` and `size`.
#[utoipa::path(
    get, path = "/api/v1/profiles", tag = "profiles", params(ListQuery),
    responses((status = 200, body = ProfileList), (status = 400, description = "A wrong query"))
)]
pub(crate) async fn list(
    State(app): Shared,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Json<ProfileList>, ApiError> {
    let Query(query) = query?;
    let wanted = lists::wanted(query, &PROFILES, LARGEST_PAGE)?;
    Ok(Json(app.store.reader().profiles(&wanted, app.live.limits().retention_days).await?))
}

/// Uploads measurements and fits them.
///
/// The body is one file, recognised by content. Measured kernels and collectives (Vidur, vTrain, SimuMax, Galvatron, nccl-tests,
/// all_reduce_bench, aiconfigurator, Planscope's own table) fit the curves of `device` or of the cluster of `scenario`, as
/// `planscope calibrate` does. Timed layers (DFLOP, DynaPipe, Galvatron, or Planscope's own table by sequence length and scheme)
/// become times in place of the model's. For several files, post each onto the profile of those before. No scenario changes. The
/// answer comes after the fit, which waits its turn among planning jobs.
///
/// A file that was measured on another device is refused with the problem `/problems/other-device`, which names both devices,
/// unless `confirm_device` is `true`.
#[utoipa::path(
    post, path = "/api/v1/profiles", tag = "profiles", params(UploadOptions),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 201, body = Profile, description = "Fitted and stored"),
        (status = 200, body = Profile, description = "The same measurements are stored already"),
        (status = 400, description = "The request is malformed"),
        (status = 404, description = "Unknown scenario or profile"),
        (status = 410, description = "The scenario or profile was deleted"),
        (status = 413, description = "More than 64 MiB"),
        (status = 422, description = "Not a profile, of another device, or nothing can be fitted"),
        (status = 503, description = "Too much is computed already, or other files are being read; try again after a while"),
    )
)]
pub(crate) async fn upload(
    State(app): Shared,
    claimant: Claimant,
    options: Result<Query<UploadOptions>, QueryRejection>,
    request: Request,
) -> Result<Answer<Profile>, ApiError> {
    let Query(options) = options?;
    if options.ranks.is_some_and(|ranks| !(2..=65_536).contains(&ranks)) {
        return Err(ApiError::Malformed("ranks: 2 to 65536 devices take part in a collective".to_owned()));
    }
    let room = Room::of(request.extensions());
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejection| ApiError::body(&rejection, LARGEST_UPLOAD))?;
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
    // The room goes with the file, through the work, which may outlast the sender, and until it is stored.
    let (profile, _room) = app.studies.run((&claimant, FITTING), 1, move |_| Ok((fit(&base, files), room))).await?;
    let mut profile = profile?;
    let title = options.title.as_deref().and_then(label::clean);
    profile.name = title.or(old_name).or(name).unwrap_or_else(|| "profile".to_owned());
    let is_new = app.store.writer().store_profile(&profile, Replaced { id: onto }, app.clock.now()).await?;
    let stored = app.store.reader().profile(&profile.id).await?;
    Ok(if is_new { Answer::Created(api::path::profile(&profile.id), stored) } else { Answer::Present(stored) })
}

/// What a profile was fitted from, and its name.
async fn before(app: &App, id: &str) -> Result<(Base, Vec<ProfileFile>, Option<String>), ApiError> {
    let old = app.store.reader().profile(id).await?;
    let (base, files) = app.store.reader().profile_files(id).await?;
    let base = base.as_deref().and_then(|base| serde_json::from_str(base).ok());
    match base.filter(|_| !files.is_empty()) {
        Some(base) => Ok((base, files, Some(old.summary.name))),
        None => Err(ProfileError::FromRun.into()),
    }
}

/// One profile with its residuals.
#[utoipa::path(
    get, path = "/api/v1/profiles/{id}", tag = "profiles", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = Profile), (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
    )
)]
pub(crate) async fn one(State(app): Shared, Path(id): Path<String>) -> Result<Json<Profile>, ApiError> {
    Ok(Json(app.store.reader().profile(&id).await?))
}

/// Changes name, note and tags.
#[utoipa::path(
    patch, path = "/api/v1/profiles/{id}", tag = "profiles", request_body = Words,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = Profile), (status = 400, description = "The body is not such a document"),
        (status = 404, description = "Unknown"), (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "Fields are wrong; every one is named"),
    )
)]
pub(crate) async fn change(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Json<Words>, JsonRejection>,
) -> Result<Json<Profile>, ApiError> {
    let Json(words) = body.map_err(|rejection| ApiError::document(&rejection))?;
    app.store.reader().profile(&id).await?;
    app.store.writer().change_profile(&id, &lists::checked(words)?, app.clock.now()).await?;
    Ok(Json(app.store.reader().profile(&id).await?))
}

/// Deletes a profile; it can be brought back for as long as deleted things are kept. Scenarios that use it stay as they are.
#[utoipa::path(
    delete, path = "/api/v1/profiles/{id}", tag = "profiles", params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 204, description = "Deleted"), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted before"),
    )
)]
pub(crate) async fn delete(State(app): Shared, Path(id): Path<String>) -> Result<Deleted, ApiError> {
    app.store.writer().delete_profile(&id, app.clock.now()).await?;
    Ok(Deleted)
}

/// Brings a deleted profile back.
#[utoipa::path(
    post, path = "/api/v1/profiles/{id}/restore", tag = "profiles",
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 200, body = Profile), (status = 404, description = "Unknown"),
        (status = 410, description = "Deleted longer ago than it is kept"),
    )
)]
pub(crate) async fn restore(State(app): Shared, Path(id): Path<String>) -> Result<Json<Profile>, ApiError> {
    app.store.writer().forget_profiles(app.live.limits().deleted_before(app.clock.now())).await?;
    app.store.writer().restore_profile(&id).await?;
    Ok(Json(app.store.reader().profile(&id).await?))
}

/// Stores a scenario as it is with the profile, as a draft, and answers its identifier.
///
/// A fitted cluster replaces the device and the links inside a node; the size and the network between nodes stay. Times stand behind the
/// scenario's own, and count. The new scenario names the profile in `profiles`; the one that was given does not change.
#[utoipa::path(
    post, path = "/api/v1/profiles/{id}/apply", tag = "profiles", request_body = ApplyProfile,
    params(("id" = String, Path, description = "Content address")),
    responses(
        (status = 201, body = AppliedProfile, description = "Stored"),
        (status = 200, body = AppliedProfile, description = "The same question is stored already"),
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "The body is not such a document"),
        (status = 404, description = "Unknown profile or scenario"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The scenario uses it already, or nothing of it is for its model"),
    )
)]
pub(crate) async fn apply_to(
    State(app): Shared,
    client: Client,
    Path(id): Path<String>,
    body: Result<Json<ApplyProfile>, JsonRejection>,
) -> Result<Answer<AppliedProfile>, ApiError> {
    let Json(asked) = body.map_err(|rejection| ApiError::document(&rejection))?;
    let profile = app.store.reader().profile(&id).await?;
    let stored = find(&app, &asked.scenario).await?;
    let applied = apply(&profile, &stored.scenario)?;
    let valid = validate(app.store.reader(), applied.scenario).await?;
    let is_new = app.store.writer().store_scenario(valid.id(), valid.scenario(), &client, app.clock.now()).await?;
    let answer = AppliedProfile { scenario: valid.id().to_string(), changes: applied.changes };
    Ok(if is_new { Answer::Created(api::path::scenario(&answer.scenario), answer) } else { Answer::Present(answer) })
}
