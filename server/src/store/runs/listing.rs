//! Read queries for runs: lists, details and stream state.

use api::run::{LogFile, LogReport, RunDetail, RunList, RunOrigin, RunState, RunSummary};
use jiff::Timestamp;
use planner::scenario::PlannerKind;

use super::RUN;
use crate::clock::rfc3339;
use crate::store::listing::Filter;
use crate::store::{ListDefinition, Order, Reader, StoreError, Wanted};

/// SQL expression for the run state at time `?1`. A run is live if the latest step is not older
/// than the stall timeout. Exit code 130 is the shell code for a program interrupted by the user.
macro_rules! state {
    () => {
        "CASE WHEN ended_at_ms IS NOT NULL THEN iif(coalesce(exit_code, 0) IN (0, 130), 'ended', 'crashed')
              WHEN step_at_ms IS NULL THEN 'waiting'
              WHEN ?1 - step_at_ms > patience_ms THEN 'stalled'
              ELSE 'live' END"
    };
}

/// Columns of [`SummaryRow`].
macro_rules! summary {
    () => {
        concat!(
            "SELECT id, name, note, origin, scenario_id, planner, created_at_ms, updated_at_ms, exit_code, end_reason,
                 deleted_at_ms, pinned_at_ms, bytes, points, last_step, total_steps, median_step_s, report_json, ",
            state!(),
            " AS state, (SELECT json_group_array(tag ORDER BY tag) FROM run_tag WHERE run_id = run.id) AS tags_json,
                 (SELECT count(*) FROM trace WHERE run_id = run.id AND trace.deleted_at_ms IS NULL) AS traces
             FROM run "
        )
    };
}

/// List of runs.
pub(crate) const RUNS: ListDefinition = ListDefinition {
    table: "run",
    text: "name || ' ' || coalesce(note, '') || ' ' || id || ' ' || coalesce((SELECT group_concat(tag, ' ') FROM run_tag WHERE run_id = run.id), '')",
    tags: "(SELECT json_group_array(tag) FROM run_tag WHERE run_id = run.id)",
    listed: "1",
    can_return: RUN.restorable,
    stored: "SELECT coalesce(sum(bytes), 0) FROM run",
    deleted: "SELECT coalesce(sum(bytes), 0) FROM run WHERE deleted_at_ms IS NOT NULL",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "size", key: "bytes" },
        Order { name: "points", key: "points" },
        // Runs with no step are sorted last.
        Order { name: "step", key: "coalesce(median_step_s, 1e300)" },
    ],
};

/// Returns a filter for runs with the given state at the given time.
pub(crate) fn state_filter(state: RunState, now: Timestamp) -> Filter {
    let current_state = state!().replace("?1", &now.as_millisecond().to_string());
    (format!("{current_state} = "), state.id().to_owned(), "")
}

/// Run state for event streams.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPulse {
    /// Latest row number.
    pub points: u64,
    /// Number of row rebuilds.
    pub retakes: u64,
    /// First row in the latest rebuild.
    pub retaken_row: u64,
    /// Incomplete point at the latest step, which later lines may extend, as JSON.
    pub open: Option<String>,
    /// Run state.
    pub state: RunState,
    /// Time at which the run stalls if no step arrives, in ms since 1970.
    pub stalls_at_ms: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct SummaryRow {
    id: String,
    name: String,
    note: Option<String>,
    origin: String,
    scenario_id: Option<String>,
    planner: Option<String>,
    created_at_ms: i64,
    updated_at_ms: Option<i64>,
    exit_code: Option<i32>,
    end_reason: Option<String>,
    deleted_at_ms: Option<i64>,
    pinned_at_ms: Option<i64>,
    bytes: i64,
    points: i64,
    last_step: Option<i64>,
    total_steps: Option<i64>,
    median_step_s: Option<f64>,
    report_json: String,
    state: String,
    tags_json: String,
    traces: i64,
}

impl SummaryRow {
    fn summary(self) -> Result<(RunSummary, String), StoreError> {
        let damaged = |detail: &str| StoreError::Damaged { kind: RUN.kind_name(), detail: detail.to_owned() };
        let summary = RunSummary {
            id: self.id,
            name: self.name,
            note: self.note,
            tags: serde_json::from_str(&self.tags_json).map_err(|error| RUN.damaged(&error))?,
            origin: RunOrigin::from_id(&self.origin).ok_or_else(|| damaged("an unknown origin"))?,
            state: RunState::from_id(&self.state).ok_or_else(|| damaged("an unknown state"))?,
            scenario: self.scenario_id,
            plan: self.planner.as_deref().and_then(PlannerKind::from_id),
            created_at: rfc3339(self.created_at_ms),
            updated_at: self.updated_at_ms.map(rfc3339),
            exit_code: self.exit_code,
            end_reason: self.end_reason,
            bytes: self.bytes.unsigned_abs(),
            points: self.points.unsigned_abs(),
            last_step: self.last_step.map(i64::unsigned_abs),
            total_steps: self.total_steps.map(i64::unsigned_abs),
            median_step_s: self.median_step_s,
            traces: u32::try_from(self.traces).unwrap_or(u32::MAX),
            pinned: self.pinned_at_ms.is_some(),
            deleted_at: self.deleted_at_ms.map(rfc3339),
        };
        Ok((summary, self.report_json))
    }
}

impl Reader {
    /// Returns the number of live runs at the given time.
    pub async fn live_runs(&self, now: Timestamp) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar(concat!(
            "SELECT count(*) FROM run WHERE deleted_at_ms IS NULL AND origin <> 'imported' AND ",
            state!(),
            " = 'live'"
        ))
        .bind(now.as_millisecond())
        .fetch_one(self.pool())
        .await?;
        Ok(count.unsigned_abs())
    }

    /// Returns rehearsals that have not ended.
    pub(crate) async fn open_rehearsals(&self) -> Result<Vec<String>, StoreError> {
        let open = sqlx::query_scalar(
            "SELECT id FROM run WHERE origin = 'rehearsal' AND ended_at_ms IS NULL AND deleted_at_ms IS NULL",
        );
        Ok(open.fetch_all(self.pool()).await?)
    }

    /// Returns a page of runs.
    pub(crate) async fn runs(&self, wanted: &Wanted, now: Timestamp) -> Result<RunList, StoreError> {
        let found = self.page(&RUNS, wanted).await?;
        let rows: Vec<SummaryRow> =
            sqlx::query_as(concat!(summary!(), "WHERE id IN (SELECT value FROM json_each(?2))"))
                .bind(now.as_millisecond())
                .bind(found.json())
                .fetch_all(self.pool())
                .await?;
        let rows = found.in_order(rows, |row| &row.id);
        let runs = rows.into_iter().map(|row| row.summary().map(|(summary, _)| summary)).collect::<Result<_, _>>()?;
        Ok(RunList { runs, page: found.page })
    }

    /// Returns a run with all details.
    pub async fn run(&self, id: &str, now: Timestamp) -> Result<RunDetail, StoreError> {
        let row: SummaryRow = sqlx::query_as(concat!(summary!(), "WHERE id = ?2"))
            .bind(now.as_millisecond())
            .bind(id)
            .fetch_optional(self.pool())
            .await?
            .ok_or_else(|| RUN.missed(id))?;
        if let Some(at) = row.deleted_at_ms {
            return Err(RUN.gone(self.pool(), id, at).await);
        }
        let (summary, report) = row.summary()?;
        let report: LogReport = if report == "{}" {
            LogReport::default()
        } else {
            serde_json::from_str(&report).map_err(|error| RUN.damaged(&error))?
        };
        let files: Vec<(u32, i64)> = sqlx::query_as("SELECT file, bytes FROM run_file WHERE run_id = ? ORDER BY file")
            .bind(id)
            .fetch_all(self.pool())
            .await?;
        let files = files.into_iter().map(|(file, bytes)| LogFile { file, bytes: bytes.unsigned_abs() }).collect();
        Ok(RunDetail { summary, files, report })
    }

    /// Returns the run state for event streams.
    pub async fn run_pulse(&self, id: &str, now: Timestamp) -> Result<RunPulse, StoreError> {
        type Row = (Option<i64>, i64, i64, i64, Option<String>, String, Option<i64>);
        let row: Option<Row> = sqlx::query_as(concat!(
            "SELECT deleted_at_ms, points, retakes, retaken_row, open_point_json, ",
            state!(),
            ", step_at_ms + patience_ms FROM run WHERE id = ?2"
        ))
        .bind(now.as_millisecond())
        .bind(id)
        .fetch_optional(self.pool())
        .await?;
        let (deleted, points, retakes, retaken_row, open, state, stalls_at_ms) = row.ok_or_else(|| RUN.missed(id))?;
        if let Some(at) = deleted {
            return Err(RUN.gone(self.pool(), id, at).await);
        }
        let state = RunState::from_id(&state)
            .ok_or_else(|| StoreError::Damaged { kind: RUN.kind_name(), detail: "an unknown state".to_owned() })?;
        Ok(RunPulse {
            points: points.unsigned_abs(),
            retakes: retakes.unsigned_abs(),
            retaken_row: retaken_row.unsigned_abs(),
            open,
            state,
            stalls_at_ms: stalls_at_ms.filter(|_| state == RunState::Live),
        })
    }

    /// Returns true if a token is valid for a run, even a deleted run. Compares hashes, so the
    /// response time reveals nothing about tokens.
    pub async fn run_admits(&self, id: &str, token: &[u8; 32]) -> Result<bool, StoreError> {
        let good: Option<i64> = sqlx::query_scalar("SELECT 1 FROM run_token WHERE run_id = ? AND token_hash = ?")
            .bind(id)
            .bind(&token[..])
            .fetch_optional(self.pool())
            .await?;
        Ok(good.is_some())
    }
}
