//! Sweeps and result rows, keyed by sweep, engine and point number.

mod attempts;

use std::collections::BTreeSet;

use api::sweep::{SweepLine, SweepList};
use jiff::Timestamp;
use planner::outcome::ENGINE;
use planner::scenario::PlannerKind;
use planner::sweep::{PointRow, Sweep};
use tokio::sync::Semaphore;

use super::forget::PurgeStatements;
use super::objects::ObjectTable;
use super::{Kind, ListDefinition, Order, Reader, StoreError, Wanted, Writer, hashes};
use crate::clock::rfc3339;

const SWEEP: ObjectTable =
    ObjectTable { kind: Kind::Sweep, table: "sweep", name: "title", restorable: "sweep_json IS NOT NULL" };
/// Clears the sweep definition. Rows are deleted later, in batches.
const FORGETTING: PurgeStatements = PurgeStatements {
    take: "UPDATE sweep SET sweep_json = NULL, note = NULL, tags_json = '[]', pinned_at_ms = NULL
         WHERE id = (SELECT id FROM sweep WHERE deleted_at_ms < ? AND (sweep_json IS NOT NULL OR bytes > 0) LIMIT 1)
         RETURNING id",
    with_it: &["DELETE FROM sweep_attempt WHERE sweep_id = ?"],
};
/// Limits concurrent parsing of stored sweeps on blocking threads.
static PARSED_AT_ONCE: Semaphore = Semaphore::const_new(2);
/// Rows deleted per transaction, so that other writers can run in between.
const ROWS_AT_ONCE: i64 = 1_000;

/// List of sweeps.
pub(crate) const SWEEPS: ListDefinition = ListDefinition {
    table: "sweep",
    text: "title || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || axes || ' ' || id",
    tags: "tags_json",
    listed: "1",
    can_return: SWEEP.restorable,
    stored: "SELECT coalesce(sum(bytes), 0) FROM sweep",
    deleted: "SELECT coalesce(sum(bytes), 0) FROM sweep WHERE deleted_at_ms IS NOT NULL",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(title)" },
        Order { name: "points", key: "points" },
    ],
};

/// A stored sweep.
#[derive(Debug, Clone)]
pub struct SweepRecord {
    /// Sweep definition.
    pub sweep: Sweep,
    /// Display title.
    pub title: String,
    /// Note.
    pub note: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Pinned at the top of the list.
    pub pinned: bool,
    /// Creation time.
    pub created_at: String,
}

/// Names model and device of the base scenario, and the axes: "Llama-3 8B on H100: nodes × context length".
fn default_title(sweep: &Sweep, axes: &str) -> String {
    let name = |pointer: &str| sweep.scenario().pointer(pointer).and_then(serde_json::Value::as_str);
    match (name("/model/name"), name("/cluster/name")) {
        (Some(model), Some(device)) => format!("{model} on {device}: {axes}"),
        (Some(only), None) | (None, Some(only)) => format!("{only}: {axes}"),
        (None, None) => axes.to_owned(),
    }
}

/// Plan metrics for Pareto fronts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlanPoint {
    /// Point number.
    pub point: u32,
    /// Planner.
    pub planner: PlannerKind,
    /// Mean iteration time in s.
    pub iteration_s: f64,
    /// Peak memory per rank in GiB, maximum over all ranks.
    pub peak_memory_gib: f64,
}

impl Writer {
    /// Stores a sweep and returns true if it is new. An existing sweep is unchanged; a deleted
    /// sweep is restored.
    pub async fn store_sweep(&self, sweep: &Sweep, now: Timestamp) -> Result<bool, StoreError> {
        let id = sweep.id();
        let axes: Vec<&str> = sweep.axes().iter().map(planner::sweep::Axis::name).collect();
        let axes = axes.join(" × ");
        let json = sweep.to_json();
        let mut write = self.begin().await?;
        let is_known: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sweep WHERE id = ? AND deleted_at_ms IS NULL)")
                .bind(id.as_str())
                .fetch_one(&mut *write)
                .await?;
        if !is_known {
            write.check_capacity(json.len()).await?;
        }
        let changed = sqlx::query(
            // Rows that are not purged yet are restored too.
            "INSERT INTO sweep (id, title, axes, points, created_at_ms, sweep_json, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, length(CAST(?6 AS BLOB)))
             ON CONFLICT (id) DO UPDATE SET deleted_at_ms = NULL, sweep_json = excluded.sweep_json,
                 bytes = excluded.bytes + coalesce((
                     SELECT sum(length(CAST(row_json AS BLOB))) FROM sweep_point WHERE sweep_id = excluded.id), 0)
             WHERE deleted_at_ms IS NOT NULL",
        )
        .bind(id.as_str())
        .bind(sweep.title().map_or_else(|| default_title(sweep, &axes), str::to_owned))
        .bind(&axes)
        .bind(sweep.points())
        .bind(now.as_millisecond())
        .bind(json)
        .execute(&mut *write)
        .await?
        .rows_affected();
        write.commit().await?;
        Ok(changed == 1)
    }

    /// Stores rows with the original text. Existing rows for the same point and engine are
    /// unchanged. Returns the number of new rows.
    pub async fn store_sweep_rows(&self, id: &str, rows: &[(PointRow, String)]) -> Result<u64, StoreError> {
        let mut write = self.begin().await?;
        let used = write.used().await?;
        let (mut added, mut bytes) = (0, 0_usize);
        for (row, text) in rows {
            write.strike_point(id, &row.engine, row.index).await?;
            let plans = row.planners().iter().filter(|planner| planner.metrics().is_some()).count();
            let stored = sqlx::query(
                "INSERT INTO sweep_point (sweep_id, engine, point, plans, row_json, sha256)
                 SELECT id, ?2, ?3, ?4, ?5, ?6 FROM sweep WHERE id = ?1 AND deleted_at_ms IS NULL
                 ON CONFLICT DO NOTHING",
            )
            .bind(id)
            .bind(&row.engine)
            .bind(row.index)
            .bind(i64::try_from(plans).unwrap_or(i64::MAX))
            .bind(text)
            .bind(hashes::hash_content(text))
            .execute(&mut *write)
            .await?
            .rows_affected();
            if stored == 0 {
                continue;
            }
            added += stored;
            bytes += text.len();
            for planner in row.planners() {
                let Some(metrics) = planner.metrics() else { continue };
                sqlx::query(
                    "INSERT INTO sweep_plan (sweep_id, engine, point, planner, iteration_s, peak_memory_gib)
                     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                )
                .bind(id)
                .bind(&row.engine)
                .bind(row.index)
                .bind(planner.planner().id())
                .bind(metrics.iteration_s)
                .bind(metrics.peak_memory_gib)
                .execute(&mut *write)
                .await?;
            }
        }
        if added > 0 {
            // Only now is it known which rows are new.
            write.check_quota(used, bytes).await?;
            let counted = sqlx::query("UPDATE sweep SET bytes = bytes + ? WHERE id = ?")
                .bind(i64::try_from(bytes).unwrap_or(i64::MAX))
                .bind(id)
                .execute(&mut *write)
                .await?
                .rows_affected();
            if counted != 1 {
                return Err(SWEEP.missed(id));
            }
        }
        write.commit().await?;
        Ok(added)
    }

    /// Marks a sweep for planning since the given time, or unmarks it if `since` is `None`.
    pub async fn mark_for_planning(&self, id: &str, since: Option<Timestamp>) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let changed = sqlx::query(
            // A new start clears the stored error. The failure count continues if a server resumes
            // the sweep.
            "UPDATE sweep SET wanted_at_ms = ?1, failure = CASE WHEN ?1 IS NULL THEN failure END,
                 points_given_up = CASE WHEN wanted_at_ms IS NULL THEN 0 ELSE points_given_up END
             WHERE id = ?2 AND deleted_at_ms IS NULL",
        )
        .bind(since.map(Timestamp::as_millisecond))
        .bind(id)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if changed != 1 {
            return Err(SWEEP.missed(id));
        }
        write.commit().await
    }

    /// Stores the sweep's error and stops planning.
    pub async fn fail_sweep(&self, id: &str, detail: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("UPDATE sweep SET wanted_at_ms = NULL, failure = ? WHERE id = ?")
            .bind(detail)
            .bind(id)
            .execute(&mut *write)
            .await?;
        write.commit().await
    }

    /// Changes name, note, tags and pin.
    pub async fn change_sweep(
        &self,
        id: &str,
        annotations: &api::listing::Annotations,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        SWEEP.change(&mut write, id, annotations, now).await?;
        write.commit().await
    }

    /// Marks a sweep as deleted. [`Writer::forget_sweeps`] deletes the rows.
    pub async fn delete_sweep(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        SWEEP.delete(&mut write, id, now).await?;
        sqlx::query("UPDATE sweep SET wanted_at_ms = NULL WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Restores a deleted sweep and the rows. An active sweep is unchanged.
    pub async fn restore_sweep(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        SWEEP.restore(&mut write, id, "").await?;
        write.commit().await
    }

    /// Purges sweeps deleted before the given time. Identifier and deletion time remain. Returns
    /// the count.
    pub async fn forget_sweeps(&self, deleted_before: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while let Some(id) = self.forget_next(&FORGETTING, deleted_before).await? {
            // If the sweep was stored a second time in the meantime, the remaining rows are valid
            // and must not be deleted.
            self.in_parts(
                "DELETE FROM sweep_point WHERE (sweep_id, engine, point) IN (
                     SELECT sweep_id, engine, point FROM sweep JOIN sweep_point ON sweep_id = id
                     WHERE id = ?1 AND sweep_json IS NULL LIMIT ?2)",
                &id,
                ROWS_AT_ONCE,
            )
            .await?;
            let mut write = self.begin().await?;
            // Matches no row in that case.
            sqlx::query("UPDATE sweep SET bytes = 0 WHERE id = ? AND sweep_json IS NULL")
                .bind(&id)
                .execute(&mut *write)
                .await?;
            write.commit().await?;
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// Parses a sweep. May take seconds, because sweeps from earlier versions have up to 16 MiB.
async fn parsed(json: String) -> Result<Sweep, StoreError> {
    let damaged = |detail: String| StoreError::Damaged { kind: SWEEP.kind_name(), detail };
    let turn = PARSED_AT_ONCE.acquire().await.map_err(|error| damaged(error.to_string()))?;
    let parsed = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        Sweep::parse(&json)
    });
    let parsed = parsed.await.map_err(|error| damaged(error.to_string()))?;
    parsed.map_err(|errors| damaged(errors.first().map(ToString::to_string).unwrap_or_default()))
}

#[derive(sqlx::FromRow)]
struct LineRow {
    id: String,
    title: String,
    axes: String,
    points: u32,
    done: u32,
    created_at_ms: i64,
    note: Option<String>,
    tags_json: String,
    pinned_at_ms: Option<i64>,
    deleted_at_ms: Option<i64>,
    bytes: i64,
    failure: Option<String>,
}

/// Sweep row: JSON, title, note, tags, pinned, creation and deletion.
type SweepRow = (Option<String>, String, Option<String>, String, Option<i64>, i64, Option<i64>);

impl Reader {
    /// Returns a stored sweep.
    pub async fn sweep(&self, id: &str) -> Result<SweepRecord, StoreError> {
        let row: Option<SweepRow> = sqlx::query_as(
            "SELECT sweep_json, title, note, tags_json, pinned_at_ms, created_at_ms, deleted_at_ms FROM sweep WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(self.pool())
        .await?;
        let (json, title, note, tags, pinned_at_ms, created_at_ms, deleted_at_ms) =
            row.ok_or_else(|| SWEEP.missed(id))?;
        if let Some(at) = deleted_at_ms {
            return Err(SWEEP.gone(self.pool(), id, at).await);
        }
        let sweep = parsed(json.unwrap_or_default()).await?;
        let tags = serde_json::from_str(&tags).map_err(|error| SWEEP.damaged(&error))?;
        let (pinned, created_at) = (pinned_at_ms.is_some(), rfc3339(created_at_ms));
        Ok(SweepRecord { sweep: sweep.titled(Some(title.clone())), title, note, tags, pinned, created_at })
    }

    /// Returns a page of sweeps.
    pub(crate) async fn sweeps(&self, wanted: &Wanted) -> Result<SweepList, StoreError> {
        let found = self.page(&SWEEPS, wanted).await?;
        let rows: Vec<LineRow> = sqlx::query_as(
            // The size column is stored behind the JSON column. The index avoids reading the JSON.
            "SELECT id, title, axes, points, created_at_ms, note, tags_json, pinned_at_ms, deleted_at_ms, failure,
                    (SELECT count(*) FROM sweep_point WHERE sweep_id = sweep.id AND engine = ?1) AS done,
                    (SELECT sized.bytes FROM sweep AS sized INDEXED BY sweep_by_size WHERE sized.id = sweep.id) AS bytes
             FROM sweep WHERE id IN (SELECT value FROM json_each(?2))",
        )
        .bind(ENGINE)
        .bind(found.json())
        .fetch_all(self.pool())
        .await?;
        let line = |row: LineRow| -> Result<SweepLine, StoreError> {
            Ok(SweepLine {
                tags: serde_json::from_str(&row.tags_json).map_err(|error| SWEEP.damaged(&error))?,
                id: row.id,
                title: row.title,
                axes: row.axes,
                points: row.points,
                done: row.done,
                created_at: rfc3339(row.created_at_ms),
                note: row.note,
                pinned: row.pinned_at_ms.is_some(),
                deleted_at: row.deleted_at_ms.map(rfc3339),
                bytes: row.bytes.unsigned_abs(),
                failure: row.failure,
            })
        };
        let rows = found.in_order(rows, |row| &row.id);
        Ok(SweepList { sweeps: rows.into_iter().map(line).collect::<Result<_, _>>()?, page: found.page })
    }

    /// Returns the stored error.
    pub async fn sweep_error(&self, id: &str) -> Result<Option<String>, StoreError> {
        let error = sqlx::query_scalar("SELECT failure FROM sweep WHERE id = ?").bind(id).fetch_optional(self.pool());
        Ok(error.await?.flatten())
    }

    /// Returns sweeps marked for planning, oldest first.
    pub async fn wanted_sweeps(&self) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT id FROM sweep WHERE wanted_at_ms IS NOT NULL AND deleted_at_ms IS NULL ORDER BY wanted_at_ms",
        )
        .fetch_all(self.pool())
        .await?)
    }

    /// Returns the engine to display: this engine if rows exist, otherwise the engine with the
    /// highest row count.
    pub async fn sweep_engine(&self, id: &str) -> Result<String, StoreError> {
        let engine: Option<String> = sqlx::query_scalar(
            "SELECT engine FROM sweep_point WHERE sweep_id = ?1 GROUP BY engine
             ORDER BY engine = ?2 DESC, count(*) DESC, engine LIMIT 1",
        )
        .bind(id)
        .bind(ENGINE)
        .fetch_optional(self.pool())
        .await?;
        Ok(engine.unwrap_or_else(|| ENGINE.to_owned()))
    }

    /// Returns the points with a row from the engine.
    pub async fn sweep_present(&self, id: &str, engine: &str) -> Result<BTreeSet<u32>, StoreError> {
        let points: Vec<u32> = sqlx::query_scalar("SELECT point FROM sweep_point WHERE sweep_id = ? AND engine = ?")
            .bind(id)
            .bind(engine)
            .fetch_all(self.pool())
            .await?;
        Ok(points.into_iter().collect())
    }

    /// Returns the number of rows from the engine, and the number of rows that contain no plan.
    pub async fn sweep_counts(&self, id: &str, engine: &str) -> Result<(u32, u32), StoreError> {
        Ok(sqlx::query_as(
            "SELECT count(*), coalesce(sum(plans = 0), 0) FROM sweep_point WHERE sweep_id = ? AND engine = ?",
        )
        .bind(id)
        .bind(engine)
        .fetch_one(self.pool())
        .await?)
    }

    /// Returns row texts, starting at point `from`.
    pub async fn sweep_rows(&self, id: &str, engine: &str, from: u32, limit: u32) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT row_json FROM sweep_point WHERE sweep_id = ? AND engine = ? AND point >= ? ORDER BY point LIMIT ?",
        )
        .bind(id)
        .bind(engine)
        .bind(from)
        .bind(limit)
        .fetch_all(self.pool())
        .await?)
    }

    /// Returns the row texts of the given points.
    pub async fn engine_sweep_rows(&self, id: &str, engine: &str, points: &[u32]) -> Result<Vec<String>, StoreError> {
        Ok(sqlx::query_scalar(
            "SELECT row_json FROM sweep_point WHERE sweep_id = ? AND engine = ?
             AND point IN (SELECT value FROM json_each(?))",
        )
        .bind(id)
        .bind(engine)
        .bind(serde_json::to_string(points).expect("numbers"))
        .fetch_all(self.pool())
        .await?)
    }

    /// Returns iteration time and peak memory for all plans, in ascending order.
    pub async fn sweep_plans(&self, id: &str, engine: &str) -> Result<Vec<PlanPoint>, StoreError> {
        let rows: Vec<(u32, String, f64, f64)> = sqlx::query_as(
            "SELECT point, planner, iteration_s, peak_memory_gib FROM sweep_plan WHERE sweep_id = ? AND engine = ?
             ORDER BY iteration_s, peak_memory_gib, point, planner",
        )
        .bind(id)
        .bind(engine)
        .fetch_all(self.pool())
        .await?;
        let plan_metrics = |(point, planner, iteration_s, peak_memory_gib): (u32, String, f64, f64)| {
            let planner = PlannerKind::from_id(&planner)?;
            Some(PlanPoint { point, planner, iteration_s, peak_memory_gib })
        };
        Ok(rows.into_iter().filter_map(plan_metrics).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sweep_without_a_name_names_model_and_device() {
        let scenario = json!({
            "schema": "scenario/1", "model": {"preset": "llama-2-7b"}, "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {"samples": {"kind": "drawn", "text_tokens": {"kind": "constant", "value": 512},
                "images": {"kind": "constant", "value": 0}}, "global_batch": 8, "context_length": 2048, "packing": "single"},
            "planners": ["1f1b"], "iterations": 1
        });
        let written =
            json!({"schema": "sweep/1", "scenario": scenario, "axes": [{"pointer": "/seed", "values": [1, 2]}]});
        let sweep = Sweep::parse(&written.to_string()).unwrap();
        assert_eq!(default_title(&sweep, "seed"), "Llama-2 7B on A100-80GB: seed");
    }
}
