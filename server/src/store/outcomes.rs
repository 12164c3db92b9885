//! Outcomes and timelines, keyed by scenario and engine.

use api::job::{EngineOutcome, PlanningTime, StoredOutcome};
use jiff::Timestamp;
use planner::outcome::{ENGINE, Outcome, PlanOutcome, PlannedTimeline, Planning};
use planner::scenario::PlannerKind;

use super::{Reader, StoreError, Writer, hashes};
use crate::clock::rfc3339;

const KIND: &str = "outcome";

/// A packed outcome. Packing happens before the write transaction, because a transaction blocks all
/// writers.
#[derive(Debug, Clone)]
pub struct NewOutcome {
    scenario: String,
    engine: String,
    /// Planners with a plan and the mean iteration time in s, in ascending order.
    plans: Vec<(PlannerKind, f64)>,
    planning_ms_json: String,
    outcome_json: String,
    sha256: Vec<u8>,
    timelines: Vec<PackedTimeline>,
}

/// Planner, iteration, packed timeline and hash.
type PackedTimeline = (PlannerKind, u32, Vec<u8>, Vec<u8>);

impl NewOutcome {
    /// Packs an outcome with timelines. May take long for large outcomes.
    pub fn pack(planning: Planning, planning_ms: &[PlanningTime]) -> Self {
        let Planning { outcome, timelines } = planning;
        // Consumes each timeline when it is packed, to avoid two copies of all timelines in memory.
        let pack = |planned: PlannedTimeline| {
            let packed = api::timeline::encode(&planned.timeline);
            let hash = hashes::hash_content(&packed);
            (planned.planner, planned.iteration, packed, hash)
        };
        let (outcome_json, planning_ms_json) = (json(&outcome), json(planning_ms));
        Self {
            plans: plans(&outcome),
            sha256: hashes::hash_contents(&[Some(outcome_json.as_bytes()), Some(planning_ms_json.as_bytes())]),
            planning_ms_json,
            outcome_json,
            timelines: timelines.into_iter().map(pack).collect(),
            scenario: outcome.scenario,
            engine: outcome.engine,
        }
    }
}

impl Writer {
    /// Stores an outcome with timelines in one transaction.
    pub async fn store_outcome(&self, outcome: &NewOutcome, now: Timestamp) -> Result<(), StoreError> {
        let best = outcome.plans.first();
        let mut write = self.begin().await?;
        // The same engine produces the same bytes. Replacing the row keeps both tables consistent.
        sqlx::query("DELETE FROM outcome WHERE scenario_id = ? AND engine = ?")
            .bind(&outcome.scenario)
            .bind(&outcome.engine)
            .execute(&mut *write)
            .await?;
        let stored = sqlx::query(
            "INSERT INTO outcome (scenario_id, engine, created_at_ms, best_planner, best_iteration_s,
                                  planning_ms_json, outcome_json, bytes, sha256)
             SELECT id, ?2, ?3, ?4, ?5, ?6, ?7, length(CAST(?7 AS BLOB)), ?8 FROM scenario WHERE id = ?1 AND deleted_at_ms IS NULL",
        )
        .bind(&outcome.scenario)
        .bind(&outcome.engine)
        .bind(now.as_millisecond())
        .bind(best.map(|(planner, _)| planner.id()))
        .bind(best.map(|(_, iteration_s)| *iteration_s))
        .bind(&outcome.planning_ms_json)
        .bind(&outcome.outcome_json)
        .bind(&outcome.sha256)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if stored != 1 {
            return Err(StoreError::missed("scenario", &outcome.scenario));
        }
        for (planner, iteration_s) in &outcome.plans {
            sqlx::query("INSERT INTO plan (scenario_id, engine, planner, iteration_s) VALUES (?, ?, ?, ?)")
                .bind(&outcome.scenario)
                .bind(&outcome.engine)
                .bind(planner.id())
                .bind(iteration_s)
                .execute(&mut *write)
                .await?;
        }
        for (planner, iteration, packed, hash) in &outcome.timelines {
            sqlx::query(
                "INSERT INTO timeline (scenario_id, engine, planner, iteration, encoded, sha256) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(&outcome.scenario)
            .bind(&outcome.engine)
            .bind(planner.id())
            .bind(iteration)
            .bind(packed)
            .bind(hash)
            .execute(&mut *write)
            .await?;
        }
        sqlx::query(
            "UPDATE outcome SET bytes = bytes + coalesce((
                 SELECT sum(length(encoded)) FROM timeline WHERE scenario_id = ?1 AND engine = ?2), 0)
             WHERE scenario_id = ?1 AND engine = ?2",
        )
        .bind(&outcome.scenario)
        .bind(&outcome.engine)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }
}

impl Reader {
    /// Returns true if an outcome of this engine is stored for the scenario.
    pub async fn is_answered(&self, scenario: &str) -> Result<bool, StoreError> {
        let answered: Option<i64> = sqlx::query_scalar("SELECT 1 FROM outcome WHERE scenario_id = ? AND engine = ?")
            .bind(scenario)
            .bind(ENGINE)
            .fetch_optional(self.pool())
            .await?;
        Ok(answered.is_some())
    }

    /// Returns the engines with an outcome for the scenario, latest first.
    pub async fn engine_answers(&self, scenario: &str) -> Result<Vec<EngineOutcome>, StoreError> {
        let rows: Vec<(String, i64)> = sqlx::query_as(
            "SELECT engine, created_at_ms FROM outcome WHERE scenario_id = ? ORDER BY created_at_ms DESC, engine DESC",
        )
        .bind(scenario)
        .fetch_all(self.pool())
        .await?;
        let outcome = |(engine, at_ms)| EngineOutcome { engine, created_at: rfc3339(at_ms) };
        Ok(rows.into_iter().map(outcome).collect())
    }

    /// Returns the outcome of this engine, or the latest outcome of a different engine.
    pub async fn outcome(&self, scenario: &str) -> Result<StoredOutcome, StoreError> {
        self.engine_outcome(scenario, None).await
    }

    /// Returns the outcome of the given engine. The default is the result of [`Reader::outcome`].
    pub async fn engine_outcome(&self, scenario: &str, engine: Option<&str>) -> Result<StoredOutcome, StoreError> {
        let row: Option<(String, String, i64)> = sqlx::query_as(
            "SELECT outcome_json, planning_ms_json, created_at_ms FROM outcome
             WHERE scenario_id = ?1 AND (?3 IS NULL OR engine = ?3)
             ORDER BY engine = ?2 DESC, created_at_ms DESC LIMIT 1",
        )
        .bind(scenario)
        .bind(ENGINE)
        .bind(engine)
        .fetch_optional(self.pool())
        .await?;
        let (outcome, planning_ms, created_at_ms) = row.ok_or_else(|| StoreError::missed(KIND, scenario))?;
        Ok(StoredOutcome {
            outcome: serde_json::from_str(&outcome).map_err(|error| StoreError::damaged(KIND, &error))?,
            planning_ms: serde_json::from_str(&planning_ms).map_err(|error| StoreError::damaged(KIND, &error))?,
            created_at: rfc3339(created_at_ms),
            current_engine: ENGINE.to_owned(),
            is_sketch: false,
        })
    }

    /// Returns a packed timeline of the outcome that [`Reader::outcome`] returns.
    pub async fn timeline(&self, scenario: &str, planner: PlannerKind, iteration: u32) -> Result<Vec<u8>, StoreError> {
        self.engine_timeline(scenario, None, planner, iteration).await
    }

    /// Returns a packed timeline of the outcome that [`Reader::engine_outcome`] returns.
    pub async fn engine_timeline(
        &self,
        scenario: &str,
        engine: Option<&str>,
        planner: PlannerKind,
        iteration: u32,
    ) -> Result<Vec<u8>, StoreError> {
        let encoded: Option<Vec<u8>> = sqlx::query_scalar(
            "SELECT encoded FROM timeline WHERE scenario_id = ?1 AND planner = ?2 AND iteration = ?3 AND engine = (
                 SELECT engine FROM outcome WHERE scenario_id = ?1 AND (?5 IS NULL OR engine = ?5)
                 ORDER BY engine = ?4 DESC, created_at_ms DESC LIMIT 1)",
        )
        .bind(scenario)
        .bind(planner.id())
        .bind(iteration)
        .bind(ENGINE)
        .bind(engine)
        .fetch_optional(self.pool())
        .await?;
        encoded.ok_or_else(|| StoreError::missed("timeline", &format!("{}/{iteration}", planner.id())))
    }
}

/// Returns planners with a plan and the mean iteration time in s, in ascending order.
fn plans(outcome: &Outcome) -> Vec<(PlannerKind, f64)> {
    let plans = outcome.results.iter().filter_map(|result| match &result.answer {
        PlanOutcome::Planned(planned) => Some((result.planner, planned.metrics.iteration_s)),
        PlanOutcome::Infeasible { .. } => None,
    });
    plans.collect()
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("outcomes have only text keys")
}
