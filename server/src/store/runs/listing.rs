//! Runs as they are read: lists, one whole, and what a stream looks at.

use api::run::{LogFile, LogReport, RunDetail, RunList, RunOrigin, RunState, RunSummary};
use jiff::Timestamp;
use planner::scenario::PlannerKind;

use super::{WHAT, gone};
use crate::clock::rfc3339;
use crate::store::{Reader, StoreError};

/// Where a run stands at the time ?1. A run is live until its last step is longer ago than its patience; 130 is what shells
/// say of a program that somebody ended.
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
                 deleted_at_ms, bytes, points, last_step, total_steps, median_step_s, report_json, ",
            state!(),
            " AS state, (SELECT json_group_array(tag ORDER BY tag) FROM run_tag WHERE run_id = run.id) AS tags_json,
                 (SELECT count(*) FROM trace WHERE run_id = run.id AND trace.deleted_at_ms IS NULL) AS traces
             FROM run "
        )
    };
}

/// Which runs a list has: ?1 is the time, ?2 to ?7 the question.
macro_rules! wanted {
    () => {
        concat!(
            "WHERE deleted_at_ms IS NULL
               AND (?2 IS NULL OR name LIKE ?2 ESCAPE '\\' OR note LIKE ?2 ESCAPE '\\' OR id LIKE ?2 ESCAPE '\\'
                    OR EXISTS (SELECT 1 FROM run_tag WHERE run_id = run.id AND tag LIKE ?2 ESCAPE '\\'))
               AND (?3 IS NULL OR EXISTS (SELECT 1 FROM run_tag WHERE run_id = run.id AND tag = ?3))
               AND (?4 IS NULL OR origin = ?4)
               AND (?5 IS NULL OR scenario_id = ?5)
               AND (?6 IS NULL OR ?6 = ",
            state!(),
            ") "
        )
    };
}

/// Which runs a list is to have.
#[derive(Debug, Clone, Default)]
pub struct RunQuestion {
    /// Text in name, note, identifier or tags.
    pub search: Option<String>,
    /// One of the tags.
    pub tag: Option<String>,
    /// How the log came.
    pub origin: Option<RunOrigin>,
    /// Scenario that they are held against, whole identifier.
    pub scenario: Option<String>,
    /// Where they stand.
    pub state: Option<RunState>,
    /// The last run of the list before this one.
    pub after: Option<String>,
    /// Most runs.
    pub limit: u32,
}

/// What a stream of events looks at.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPulse {
    /// Last row.
    pub points: u64,
    /// How often rows were read anew.
    pub retakes: u64,
    /// From which row on, the last time.
    pub retaken_row: u64,
    /// The point of the latest step while lines may still add to it, JSON.
    pub open: Option<String>,
    /// Where it stands.
    pub state: RunState,
    /// When it stalls if no step comes, in ms since 1970.
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
        let damaged = |detail: &str| StoreError::Damaged { what: WHAT, detail: detail.to_owned() };
        let summary = RunSummary {
            id: self.id,
            name: self.name,
            note: self.note,
            tags: serde_json::from_str(&self.tags_json).map_err(|error| StoreError::damaged(WHAT, &error))?,
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
        };
        Ok((summary, self.report_json))
    }
}

impl Reader {
    /// Runs, newest first.
    pub async fn runs(
        &self,
        question: &RunQuestion,
        retention_days: u32,
        now: Timestamp,
    ) -> Result<RunList, StoreError> {
        let like = question.search.as_deref().map(|text| {
            let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            format!("%{escaped}%")
        });
        let limit = i64::from(question.limit);
        let mut rows: Vec<SummaryRow> = sqlx::query_as(concat!(
            summary!(),
            wanted!(),
            "AND (?7 IS NULL OR (created_at_ms, id) < (SELECT created_at_ms, id FROM run AS last WHERE last.id = ?7))
             ORDER BY created_at_ms DESC, id DESC LIMIT ?8"
        ))
        .bind(now.as_millisecond())
        .bind(like.as_deref())
        .bind(question.tag.as_deref())
        .bind(question.origin.map(RunOrigin::id))
        .bind(question.scenario.as_deref())
        .bind(question.state.map(RunState::id))
        .bind(question.after.as_deref())
        .bind(limit + 1)
        .fetch_all(self.pool())
        .await?;
        let total: i64 = sqlx::query_scalar(concat!("SELECT count(*) FROM run ", wanted!()))
            .bind(now.as_millisecond())
            .bind(like.as_deref())
            .bind(question.tag.as_deref())
            .bind(question.origin.map(RunOrigin::id))
            .bind(question.scenario.as_deref())
            .bind(question.state.map(RunState::id))
            .fetch_one(self.pool())
            .await?;
        let tags = sqlx::query_scalar(
            "SELECT DISTINCT tag FROM run_tag JOIN run ON run.id = run_id WHERE deleted_at_ms IS NULL ORDER BY tag",
        )
        .fetch_all(self.pool())
        .await?;
        let stored: i64 = sqlx::query_scalar("SELECT coalesce(sum(bytes), 0) FROM run").fetch_one(self.pool()).await?;
        let more = rows.len() as u64 > u64::from(question.limit);
        rows.truncate(question.limit as usize);
        let next = rows.last().filter(|_| more).map(|row| row.id.clone());
        let runs = rows.into_iter().map(|row| row.summary().map(|(summary, _)| summary)).collect::<Result<_, _>>()?;
        Ok(RunList {
            runs,
            total: total.unsigned_abs(),
            tags,
            stored_bytes: stored.unsigned_abs(),
            retention_days,
            next,
        })
    }

    /// One run, whole.
    pub async fn run(&self, id: &str, now: Timestamp) -> Result<RunDetail, StoreError> {
        let row: SummaryRow = sqlx::query_as(concat!(summary!(), "WHERE id = ?2"))
            .bind(now.as_millisecond())
            .bind(id)
            .fetch_optional(self.pool())
            .await?
            .ok_or_else(|| StoreError::missed(WHAT, id))?;
        if let Some(at) = row.deleted_at_ms {
            return Err(gone(id, at));
        }
        let (summary, report) = row.summary()?;
        let report: LogReport = if report == "{}" {
            LogReport::default()
        } else {
            serde_json::from_str(&report).map_err(|error| StoreError::damaged(WHAT, &error))?
        };
        let files: Vec<(u32, i64)> = sqlx::query_as("SELECT file, bytes FROM run_file WHERE run_id = ? ORDER BY file")
            .bind(id)
            .fetch_all(self.pool())
            .await?;
        let files = files.into_iter().map(|(file, bytes)| LogFile { file, bytes: bytes.unsigned_abs() }).collect();
        Ok(RunDetail { summary, files, report })
    }

    /// What a stream of a run looks at.
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
        let (deleted, points, retakes, retaken_row, open, state, stalls_at_ms) =
            row.ok_or_else(|| StoreError::missed(WHAT, id))?;
        if let Some(at) = deleted {
            return Err(gone(id, at));
        }
        let state = RunState::from_id(&state)
            .ok_or_else(|| StoreError::Damaged { what: WHAT, detail: "an unknown state".to_owned() })?;
        Ok(RunPulse {
            points: points.unsigned_abs(),
            retakes: retakes.unsigned_abs(),
            retaken_row: retaken_row.unsigned_abs(),
            open,
            state,
            stalls_at_ms: stalls_at_ms.filter(|_| state == RunState::Live),
        })
    }

    /// Whether a token is good for a run, whether or not that is deleted. Hashes are compared, so the time that it takes
    /// says nothing about tokens.
    pub async fn run_admits(&self, id: &str, token: &[u8; 32]) -> Result<bool, StoreError> {
        let good: Option<i64> = sqlx::query_scalar("SELECT 1 FROM run_token WHERE run_id = ? AND token_hash = ?")
            .bind(id)
            .bind(&token[..])
            .fetch_optional(self.pool())
            .await?;
        Ok(good.is_some())
    }
}
