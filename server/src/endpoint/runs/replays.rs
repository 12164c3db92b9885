//! Live runs that replay an example log.

use std::sync::Arc;

use api::run::{RunDetail, RunOrigin};
use axum::extract::State;
use planner::scenario::PlannerKind;

use crate::app::Shared;
use crate::client::Client;
use crate::endpoint::scenarios::{begin_plan, validate};
use crate::error::{ApiError, DocumentResponse};
use crate::replay;
use crate::store::RunRow;
use crate::token::Token;
use crate::token::run_id;
use crate::turns::Claimant;

/// Opens a live run that replays an example log, compared with the plan of its scenario.
///
/// The log is synthetic: a Megatron-LM log of GPT-3 175B on 64 A100, four steps per second. The scenario is stored as a draft
/// and planned. At most four replays run at the same time.
#[utoipa::path(
    post, path = "/api/v1/runs/replay", tag = "runs",
    responses(
        (status = 201, body = RunDetail, description = "The run; its log grows"),
        (status = 503, description = "Four replays are running, or the planning queue is full; try again later"),
    )
)]
pub(crate) async fn start(
    State(app): Shared,
    client: Client,
    claimant: Claimant,
) -> Result<DocumentResponse<RunDetail>, ApiError> {
    let permit = app.replays.reserve().map_err(ApiError::ReplaysFull)?;
    let scenario = planner::scenario::parse(replay::SCENARIO).map_err(ApiError::InvalidScenario)?;
    let valid = validate(app.store.reader(), scenario).await?;
    let now = app.clock.now();
    app.store.writer().store_scenario(valid.id(), valid.scenario(), &client, now).await?;
    let stored = app.store.reader().scenario(valid.id().as_str()).await?;
    begin_plan(&app, stored, claimant).await?;
    let run = RunRow {
        id: run_id(),
        name: "Replay of an example log".to_owned(),
        origin: RunOrigin::Live,
        scenario: Some(valid.id().as_str().to_owned()),
        planner: Some(PlannerKind::OneFOneB),
        token: Token::draw().hash(),
        key: None,
        log_table: None,
    };
    app.store.writer().open_run(&run, None, now).await?;
    let detail = app.store.reader().run(&run.id, now).await?;
    let background = Arc::clone(&app);
    tokio::spawn(async move {
        background.replays.run(&background.live, &run.id).await;
        drop(permit);
    });
    Ok(DocumentResponse::Created(api::path::run(&detail.summary.id), detail))
}
