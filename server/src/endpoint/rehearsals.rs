//! Rehearsals: plans that are walked through on the server's machine.

use api::rehearsal::{NewRehearsal, StartedRehearsal};
use api::run::RunOrigin;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use planner::outcome::{Answer as Planned, Outcome};
use planner::scenario::PlannerKind;

use super::outcomes::decode;
use super::scenarios::{LARGEST_DOCUMENT, find};
use crate::app::Shared;
use crate::error::{Answer, ApiError, Deleted};
use crate::live::{Token, run_id};
use crate::rehearsal::{Rehearsal, Score, Settings, movement};
use crate::rehearsals::{LONGEST, MOST_RANKS, NoPlace};
use crate::store::RunRow;

/// Walks through a stored plan on the server's machine, a process for every rank, and opens a run for its log.
///
/// One at a time, of at most 64 ranks and 10 minutes.
#[utoipa::path(
    post, path = "/api/v1/scenarios/{id}/rehearsals", tag = "runs", request_body = NewRehearsal,
    params(("id" = String, Path, description = "Identifier, or unique prefix of at least ten characters")),
    responses(
        (status = 202, body = StartedRehearsal, description = "It has begun; its run shows it"),
        (status = 300, description = "The prefix is ambiguous; the candidates are named"),
        (status = 400, description = "Too short, not an identifier, or the body is not such a document"),
        (status = 404, description = "Unknown, not planned yet, or no plan of that planner"),
        (status = 410, description = "Deleted"),
        (status = 413, description = "The body is too large"),
        (status = 422, description = "The plan is no pipeline, has too many ranks, or would take too long"),
        (status = 503, description = "Another one is at work; try again in a few seconds"),
    )
)]
pub(crate) async fn start(
    State(app): Shared,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Answer<StartedRehearsal>, ApiError> {
    let body = body.map_err(|rejection| ApiError::body(&rejection, LARGEST_DOCUMENT))?;
    let text = if body.is_empty() { &b"{}"[..] } else { &body };
    let asked: NewRehearsal =
        serde_json::from_slice(text).map_err(|error| ApiError::Malformed(format!("the body is wrong: {error}")))?;
    let scenario = find(&app, &id).await?;
    let place = app.rehearsals.place().map_err(|none| match none {
        NoPlace::Full(limit) => ApiError::RehearsalsFull(limit),
        NoPlace::Unreachable => ApiError::NotRehearsable("this server listens at no address".to_owned()),
    })?;
    let outcome = app.store.reader().outcome(&scenario.id).await?.outcome;
    let (planner, iterations) = planned(&outcome, asked.planner)?;
    let iterations = asked.iterations.map_or(iterations, |asked| (asked as usize).min(iterations)).max(1);
    let mut stored = Vec::with_capacity(iterations);
    for iteration in 0..iterations {
        let encoded = app.store.reader().timeline(&scenario.id, planner, iteration as u32).await?;
        stored.push((encoded, outcome.batches.get(iteration).map(|batch| batch.samples)));
    }
    let (score, speed) = tokio::task::spawn_blocking(move || prepared(stored, asked.speed))
        .await
        .unwrap_or_else(|_| Err(ApiError::Fault("preparing a rehearsal stopped unexpectedly".to_owned())))?;
    let (token, run) = (Token::draw(), run_id());
    let row = RunRow {
        id: run.clone(),
        name: format!("Rehearsal of {}, {}", planner.title(), scenario.short),
        origin: RunOrigin::Rehearsal,
        scenario: Some(scenario.id),
        planner: Some(planner),
        token: token.hash(),
        key: None,
        log_table: None,
    };
    app.store.writer().open_run(&row, None, app.clock.now()).await?;
    let started = app.rehearsals.start(place, &score, speed, &run, &token, app.clone());
    started.map_err(|error| ApiError::Fault(format!("a rehearsal could not be started: {error}")))?;
    let ranks = score.ranks() as u32;
    let url = api::path::run_page(&run);
    Ok(Answer::Accepted(api::path::run(&run), StartedRehearsal { run, url, ranks, speed }))
}

/// Ends a rehearsal; its run stays.
#[utoipa::path(
    delete, path = "/api/v1/rehearsals/{run}", tag = "runs",
    params(("run" = String, Path, description = "Identifier of its run")),
    responses((status = 204, description = "Ended"), (status = 404, description = "No rehearsal of that run is at work"))
)]
pub(crate) async fn end(State(app): Shared, Path(run): Path<String>) -> Result<Deleted, ApiError> {
    if app.rehearsals.end(&run) { Ok(Deleted) } else { Err(ApiError::NoSuchRehearsal(run)) }
}

/// The planner whose plan is rehearsed, and its iterations.
fn planned(outcome: &Outcome, asked: Option<PlannerKind>) -> Result<(PlannerKind, usize), ApiError> {
    let mut results = outcome.results.iter().filter(|result| asked.is_none_or(|asked| result.planner == asked));
    match results.next() {
        None => Err(ApiError::NoSuchPlanner(asked.map_or("any", PlannerKind::id).to_owned())),
        Some(result) => match &result.answer {
            Planned::Planned(plan) => Ok((result.planner, plan.iterations.len())),
            Planned::Infeasible { binding, .. } => {
                Err(ApiError::NotRehearsable(format!("there is no plan: {binding}")))
            }
        },
    }
}

/// The execution plans of stored timelines, and the speed at which they are rehearsed.
fn prepared(stored: Vec<(Vec<u8>, Option<u32>)>, speed: Option<f64>) -> Result<(Score, f64), ApiError> {
    let refused = |error: &dyn std::fmt::Display| ApiError::NotRehearsable(error.to_string());
    let mut movements = Vec::with_capacity(stored.len());
    for (encoded, samples) in stored {
        movements.push(movement(&decode(&encoded)?, samples).map_err(|error| refused(&error))?);
    }
    let score = Score::new(movements).map_err(|error| refused(&error))?;
    if score.ranks() > MOST_RANKS {
        return Err(refused(&format!("the plan has {} ranks; at most {MOST_RANKS} are started here", score.ranks())));
    }
    let settings = Settings { program: std::path::PathBuf::new(), speed, patience: None, message_bytes: 0 };
    let rehearsal = Rehearsal::prepare(&score, settings).map_err(|error| refused(&error))?;
    if let Some(refusal) = rehearsal.tempo().refusal().filter(|_| speed.is_some()) {
        return Err(refused(&refusal));
    }
    let speed = rehearsal.tempo().speed;
    let planned_ns: f64 = score.movements().iter().map(|movement| movement.plan.iteration_ns() as f64).sum();
    let seconds = planned_ns / 1e9 / speed;
    if seconds > LONGEST.as_secs_f64() {
        let minutes = LONGEST.as_secs() / 60;
        return Err(refused(&format!(
            "at speed {speed:.4} it would take {seconds:.0} s, and {minutes} minutes are allowed: ask for fewer iterations \
             or a higher speed"
        )));
    }
    drop(rehearsal);
    Ok((score, speed))
}
