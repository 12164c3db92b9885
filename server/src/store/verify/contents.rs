//! Checks that contents can be parsed and match the addresses and counts.

use api::profile::ProfileSource;
use api::run::RunPoint;
use futures::TryStreamExt;
use planner::outcome::Outcome;
use planner::scenario::Scenario;
use planner::sweep::Sweep;
use serde::de::DeserializeOwned;
use sqlx::sqlite::SqliteConnection;

use super::VerifyReport;
use crate::dataset_id;
use crate::store::{ProfileContent, ProfileFile, StoreError};
use crate::traces::overview::Overview;
use crate::traces::packed;

const ANOTHER_ADDRESS: &str = "its content belongs to another address";

/// Checks all stored contents. An error in one kind does not stop the other kinds.
pub(super) async fn verify(connection: &mut SqliteConnection, report: &mut VerifyReport) {
    macro_rules! look {
        ($($kind:literal: $check:expr),+ $(,)?) => {$(
            match $check(&mut *connection, &mut *report).await {
                Ok(count) => report.checked.push(($kind, count)),
                Err(error) => report.fault($kind, error.to_string()),
            }
        )+};
    }
    look! {
        "scenarios": scenarios,
        "datasets": datasets,
        "sweeps": sweeps,
        "outcomes": outcomes,
        "timelines": timelines,
        "profiles": profiles,
        "runs": runs,
        "points": points,
        "traces": traces,
        "parts of traces": parts,
    }
}

async fn scenarios(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, String)>(
        "SELECT id, scenario_json FROM scenario WHERE scenario_json IS NOT NULL
         UNION ALL SELECT id, scenario_json FROM deleted_scenario",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((id, json)) = rows.try_next().await? {
        count += 1;
        match serde_json::from_str::<Scenario>(&json) {
            Ok(scenario) if scenario.id().as_str() == id => {}
            Ok(_) => report.fault(format!("scenario {id}"), ANOTHER_ADDRESS),
            Err(error) => report.fault(format!("scenario {id}"), error.to_string()),
        }
    }
    Ok(count)
}

async fn datasets(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, Vec<u8>, bool)>(
        "SELECT id, content_json, bytes = length(content_json) FROM dataset WHERE content_json IS NOT NULL
         UNION ALL SELECT id, content_json, 1 FROM deleted_dataset",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((id, content, is_counted)) = rows.try_next().await? {
        count += 1;
        if dataset_id::from_content(&content) != id {
            report.fault(format!("dataset {id}"), ANOTHER_ADDRESS);
        }
        if !is_counted {
            report.fault(format!("dataset {id}"), "its bytes are counted wrongly");
        }
    }
    Ok(count)
}

async fn sweeps(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, String, bool)>(
        "SELECT id, sweep_json, bytes = length(CAST(sweep_json AS BLOB)) + coalesce((
                 SELECT sum(length(CAST(row_json AS BLOB))) FROM sweep_point WHERE sweep_id = sweep.id), 0)
             FROM sweep WHERE sweep_json IS NOT NULL",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((id, json, is_counted)) = rows.try_next().await? {
        count += 1;
        if !is_counted {
            report.fault(format!("sweep {id}"), "its bytes are counted wrongly");
        }
        match Sweep::parse(&json) {
            Ok(sweep) if sweep.id().as_str() == id => {}
            Ok(_) => report.fault(format!("sweep {id}"), ANOTHER_ADDRESS),
            Err(errors) => {
                let detail =
                    errors.first().map_or_else(String::new, |error| format!("{}: {}", error.pointer, error.detail));
                report.fault(format!("sweep {id}"), detail);
            }
        }
    }
    Ok(count)
}

async fn outcomes(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, String, String, bool)>(
        "SELECT scenario_id, engine, outcome_json, bytes = length(CAST(outcome_json AS BLOB)) + coalesce((
             SELECT sum(length(encoded)) FROM timeline
             WHERE timeline.scenario_id = outcome.scenario_id AND timeline.engine = outcome.engine), 0)
         FROM outcome",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((scenario, engine, json, is_counted)) = rows.try_next().await? {
        count += 1;
        let location = format!("outcome of scenario {scenario} by engine {engine}");
        match serde_json::from_str::<Outcome>(&json) {
            Ok(outcome) if outcome.scenario == scenario && outcome.engine == engine => {}
            Ok(_) => report.fault(&location, "it answers another question"),
            Err(error) => report.fault(&location, error.to_string()),
        }
        if !is_counted {
            report.fault(location, "its bytes are counted wrongly");
        }
    }
    Ok(count)
}

async fn timelines(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, String, i64, Vec<u8>)>(
        "SELECT scenario_id, planner, iteration, encoded FROM timeline",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((scenario, planner, iteration, encoded)) = rows.try_next().await? {
        count += 1;
        if let Err(error) = api::timeline::decode(&encoded) {
            let location = format!("timeline of scenario {scenario}, {planner}, iteration {iteration}");
            report.fault(location, error.to_string());
        }
    }
    Ok(count)
}

/// Identifier, source, base, content, and whether the byte count is correct.
type ProfileRow = (String, String, Option<String>, String, bool);

async fn profiles(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    // Profiles are few and small, so files are loaded one by one.
    let rows: Vec<ProfileRow> = sqlx::query_as(
        "SELECT id, source_json, base_json, content_json, bytes = length(CAST(content_json AS BLOB)) + coalesce((
             SELECT sum(length(content)) FROM profile_file WHERE profile_id = profile.id), 0)
         FROM profile WHERE content_json IS NOT NULL",
    )
    .fetch_all(&mut *connection)
    .await?;
    let count = rows.len() as u64;
    for (id, source, base, content, is_counted) in rows {
        let files: Vec<(String, Option<u32>, Vec<u8>)> =
            sqlx::query_as("SELECT name, ranks, content FROM profile_file WHERE profile_id = ? ORDER BY position")
                .bind(&id)
                .fetch_all(&mut *connection)
                .await?;
        let files: Vec<ProfileFile> =
            files.into_iter().map(|(name, ranks, content)| ProfileFile { name, ranks, content }).collect();
        let location = format!("profile {id}");
        let source = read::<ProfileSource>(&source, &location, report);
        let content = read::<ProfileContent>(&content, &location, report);
        if let (Some(source), Some(content)) = (source, content)
            && crate::store::profile_address(&source, &content.effect, base.as_deref(), &files) != id
        {
            report.fault(&location, ANOTHER_ADDRESS);
        }
        if !is_counted {
            report.fault(location, "its bytes are counted wrongly");
        }
    }
    Ok(count)
}

fn read<T: DeserializeOwned>(json: &str, location: &str, report: &mut VerifyReport) -> Option<T> {
    serde_json::from_str(json).map_err(|error| report.fault(location, error.to_string())).ok()
}

/// Checks that logs have no gaps and that all points exist. Runs with an empty name are skipped,
/// because they are being purged.
async fn runs(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let wrong = [
        (
            "its bytes are counted wrongly",
            "SELECT id FROM run
             WHERE name <> '' AND bytes <> coalesce((SELECT sum(bytes) FROM run_file WHERE run_id = run.id), 0)",
        ),
        (
            "bytes of its log are missing",
            "SELECT run.id FROM run JOIN run_file ON run_id = run.id
             WHERE name <> '' AND run_file.bytes <> coalesce((
                 SELECT sum(bytes) FROM run_chunk WHERE run_chunk.run_id = run.id AND run_chunk.file = run_file.file), 0)",
        ),
        (
            "the pieces of its log do not join",
            "SELECT run.id FROM run JOIN (
                 SELECT run_id, start - lag(start + bytes, 1, 0) OVER (PARTITION BY run_id, file ORDER BY start) AS gap
                 FROM run_chunk) ON run_id = run.id
             WHERE name <> '' AND gap <> 0",
        ),
        (
            "points of it are missing",
            "SELECT id FROM run LEFT JOIN (SELECT run_id, count(*) AS rows, max(row) AS last FROM run_point GROUP BY run_id)
                 ON run_id = id
             WHERE name <> '' AND (points <> coalesce(rows, 0) OR points <> coalesce(last, 0))",
        ),
    ];
    for (detail, query) in wrong {
        let ids: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut *connection).await?;
        for id in ids {
            report.fault(format!("run {id}"), detail);
        }
    }
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM run").fetch_one(connection).await?;
    Ok(count.unsigned_abs())
}

async fn points(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows =
        sqlx::query_as::<_, (String, i64, String)>("SELECT run_id, row, point_json FROM run_point").fetch(connection);
    let mut count = 0;
    while let Some((run, row, json)) = rows.try_next().await? {
        count += 1;
        match serde_json::from_str::<RunPoint>(&json) {
            Ok(point) if point.row == row.unsigned_abs() => {}
            Ok(_) => report.fault(format!("run {run}"), format!("the point of row {row} is another one's")),
            Err(error) => report.fault(format!("run {run}"), format!("row {row}: {error}")),
        }
    }
    Ok(count)
}

/// Checks the summary rows of traces. The address is a hash of the uploaded file, which is not
/// stored, so only parsing is checked.
async fn traces(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, Vec<u8>, i64, i64)>(
        "SELECT id, overview, slices, coalesce((
             SELECT sum(slices) FROM trace_chunk WHERE trace_id = trace.id AND tier % 2 = 0), 0)
         FROM trace WHERE overview IS NOT NULL",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((id, overview, slices, stored)) = rows.try_next().await? {
        count += 1;
        if let Err(error) = packed::unpack_json::<Overview>(&overview) {
            report.fault(format!("trace {id}"), error.to_string());
        }
        if slices != stored {
            report.fault(format!("trace {id}"), format!("{stored} of its {slices} slices are there"));
        }
    }
    Ok(count)
}

async fn parts(connection: &mut SqliteConnection, report: &mut VerifyReport) -> Result<u64, StoreError> {
    let mut rows = sqlx::query_as::<_, (String, i64, i64, i64, Vec<u8>)>(
        "SELECT trace_id, tier, part, spans, columns FROM trace_chunk",
    )
    .fetch(connection);
    let mut count = 0;
    while let Some((id, tier, part, spans, columns)) = rows.try_next().await? {
        count += 1;
        let location = || format!("trace {id}, tier {tier}, part {part}");
        match packed::unpack_spans(&columns) {
            Ok(read) if read.len() as u64 == spans.unsigned_abs() => {}
            Ok(read) => report.fault(location(), format!("{} of its {spans} spans are there", read.len())),
            Err(error) => report.fault(location(), error.to_string()),
        }
    }
    Ok(count)
}
