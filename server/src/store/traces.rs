//! Traces: summary rows. Module [`chunks`] stores the columns.

mod chunks;

pub(crate) use chunks::ChunkQuery;

use api::listing::Annotations;
use api::listing::ListPage;
use api::trace::{TracePlan, TraceReport, TraceSummary};
use jiff::Timestamp;
use planner::scenario::PlannerKind;

use super::forget::PurgeStatements;
use super::objects::ObjectTable;
use super::{Kind, ListDefinition, Order, Reader, StoreError, Wanted, Writer, hashes};
use crate::clock::rfc3339;
use crate::traces::import::Prepared;

const TRACE: ObjectTable =
    ObjectTable { kind: Kind::Trace, table: "trace", name: "name", restorable: "overview IS NOT NULL" };
/// Clears the summary row. Chunks and names are deleted later, in batches.
const FORGETTING: PurgeStatements = PurgeStatements {
    take: "UPDATE trace SET report_json = NULL, overview = NULL, action_columns = NULL, counter_columns = NULL, sha256 = NULL
         WHERE id = (
             SELECT id FROM trace WHERE deleted_at_ms < ? AND (overview IS NOT NULL OR stored_bytes > 0)
             ORDER BY deleted_at_ms LIMIT 1)
         RETURNING id",
    with_it: &[],
};
/// Chunks or name blocks deleted per transaction, so that other writers can run in between.
const PARTS_AT_ONCE: i64 = 256;

/// List of traces.
pub(crate) const TRACES: ListDefinition = ListDefinition {
    table: "trace",
    text: "name || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || format || ' ' || id",
    tags: "tags_json",
    listed: "1",
    can_return: TRACE.restorable,
    stored: "SELECT coalesce(sum(stored_bytes), 0) FROM trace WHERE deleted_at_ms IS NULL",
    deleted: "SELECT coalesce(sum(stored_bytes), 0) FROM trace WHERE deleted_at_ms IS NOT NULL",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "slices", key: "slices" },
        Order { name: "span", key: "span_ns" },
        Order { name: "size", key: "stored_bytes" },
    ],
};

/// Metadata from the sender of a trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    /// Display name.
    pub(crate) name: Option<String>,
    /// Run that the trace belongs to.
    pub(crate) run: Option<String>,
    /// Traced rank.
    pub(crate) rank: Option<u32>,
    /// Scenario for comparison.
    pub(crate) scenario: Option<String>,
    /// Planner in the scenario.
    pub(crate) planner: Option<PlannerKind>,
}

/// Changes to a trace. `None` means unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changed {
    /// Name, note, tags and pin.
    pub(crate) annotations: Annotations,
    /// Run. An empty text removes it.
    pub(crate) run: Option<String>,
    pub(crate) rank: Option<u32>,
    /// Scenario. An empty text removes it.
    pub(crate) scenario: Option<String>,
    pub(crate) planner: Option<PlannerKind>,
}

impl Writer {
    /// Stores a trace in one transaction.
    pub(crate) async fn store_trace(
        &self,
        id: &str,
        sent: &Sent,
        raw_bytes: u64,
        prepared: &Prepared,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let report = serde_json::to_string(&prepared.report).expect("reports have only text keys");
        let hash = hashes::hash_contents(&[
            Some(report.as_bytes()),
            Some(&prepared.overview),
            prepared.action_columns.as_deref(),
            prepared.counter_columns.as_deref(),
        ]);
        let mut write = self.begin().await?;
        write.check_capacity(usize::try_from(prepared.stored_bytes()).unwrap_or(usize::MAX)).await?;
        // Deletes the tombstone of a purged trace.
        sqlx::query("DELETE FROM trace WHERE id = ?").bind(id).execute(&mut *write).await?;
        let stored = sqlx::query(
            "INSERT INTO trace (id, name, tags_json, run_id, rank, scenario_id, planner, format, created_at_ms, raw_bytes,
                                stored_bytes, slices, span_ns, actions, report_json, overview, action_columns, counter_columns,
                                sha256)
             VALUES (?, ?, '[]', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(id)
        .bind(sent.name.as_deref().unwrap_or(TRACE.kind_name()))
        .bind(sent.run.as_deref())
        .bind(sent.rank.or(prepared.rank))
        .bind(sent.scenario.as_deref())
        .bind(sent.planner.map(PlannerKind::id))
        .bind(prepared.format)
        .bind(now.as_millisecond())
        .bind(signed(raw_bytes))
        .bind(signed(prepared.stored_bytes()))
        .bind(signed(prepared.slices))
        .bind(signed(prepared.span_ns))
        .bind(signed(prepared.actions))
        .bind(report)
        .bind(&prepared.overview)
        .bind(prepared.action_columns.as_deref())
        .bind(prepared.counter_columns.as_deref())
        .bind(hash)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if stored != 1 {
            return Err(TRACE.missed(id));
        }
        chunks::store(&mut write, id, prepared).await?;
        write.commit().await
    }

    /// Handles a repeated upload of known bytes: restores the trace if deleted and applies the new
    /// metadata. Returns false if the trace is unknown or purged.
    pub(crate) async fn send_trace_again(&self, id: &str, sent: &Sent) -> Result<bool, StoreError> {
        let mut write = self.begin().await?;
        let known = sqlx::query(
            "UPDATE trace SET deleted_at_ms = NULL, name = coalesce(?1, name), run_id = coalesce(?2, run_id),
                 rank = coalesce(?3, rank), scenario_id = coalesce(?4, scenario_id),
                 planner = iif(?4 IS NULL, coalesce(?5, planner), ?5)
             WHERE id = ?6 AND overview IS NOT NULL",
        )
        .bind(sent.name.as_deref())
        .bind(sent.run.as_deref())
        .bind(sent.rank)
        .bind(sent.scenario.as_deref())
        .bind(sent.planner.map(PlannerKind::id))
        .bind(id)
        .execute(&mut *write)
        .await?
        .rows_affected();
        write.commit().await?;
        Ok(known == 1)
    }

    /// Changes the metadata.
    pub(crate) async fn change_trace(&self, id: &str, changed: &Changed, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        TRACE.change(&mut write, id, &changed.annotations, now).await?;
        sqlx::query(
            "UPDATE trace SET run_id = iif(?1 IS NULL, run_id, nullif(?1, '')),
                 rank = coalesce(?2, rank),
                 scenario_id = iif(?3 IS NULL, scenario_id, nullif(?3, '')),
                 -- A scenario that is named settles both: without a planner it is the fastest.
                 planner = CASE WHEN ?3 IS NULL THEN coalesce(?4, planner) WHEN ?3 <> '' THEN ?4 END
             WHERE id = ?5",
        )
        .bind(changed.run.as_deref())
        .bind(changed.rank)
        .bind(changed.scenario.as_deref())
        .bind(changed.planner.map(PlannerKind::id))
        .bind(id)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Marks a trace as deleted. [`Writer::forget_traces`] deletes the content.
    pub(crate) async fn delete_trace(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        TRACE.delete(&mut write, id, now).await?;
        write.commit().await
    }

    /// Restores a deleted trace. Fails if it was purged. An active trace is unchanged.
    pub(crate) async fn restore_trace(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        TRACE.restore(&mut write, id, "").await?;
        write.commit().await
    }

    /// Purges traces deleted before the given time and leaves a tombstone. Returns the count.
    pub(crate) async fn forget_traces(&self, deleted_before: Timestamp) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        while let Some(id) = self.forget_next(&FORGETTING, deleted_before).await? {
            // If the same bytes were uploaded in the meantime, the chunks belong to the new trace,
            // and the old chunks were deleted with the old row.
            for statement in [
                "DELETE FROM trace_chunk WHERE rowid IN (
                     SELECT trace_chunk.rowid FROM trace JOIN trace_chunk ON trace_id = id
                     WHERE id = ?1 AND overview IS NULL LIMIT ?2)",
                "DELETE FROM trace_names WHERE rowid IN (
                     SELECT trace_names.rowid FROM trace JOIN trace_names ON trace_id = id
                     WHERE id = ?1 AND overview IS NULL LIMIT ?2)",
            ] {
                self.in_parts(statement, &id, PARTS_AT_ONCE).await?;
            }
            let mut write = self.begin().await?;
            // Matches no row in that case.
            sqlx::query("UPDATE trace SET stored_bytes = 0 WHERE id = ? AND overview IS NULL")
                .bind(&id)
                .execute(&mut *write)
                .await?;
            write.commit().await?;
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// A row excluding the packed columns.
#[derive(sqlx::FromRow)]
struct SummaryRow {
    id: String,
    name: String,
    note: Option<String>,
    tags_json: String,
    pinned_at_ms: Option<i64>,
    run_id: Option<String>,
    rank: Option<u32>,
    scenario_id: Option<String>,
    planner: Option<String>,
    format: String,
    created_at_ms: i64,
    deleted_at_ms: Option<i64>,
    raw_bytes: i64,
    stored_bytes: i64,
    slices: i64,
    span_ns: i64,
    actions: i64,
}

/// Columns of [`SummaryRow`].
macro_rules! summary {
    () => {
        "SELECT id, name, note, tags_json, pinned_at_ms, run_id, rank, scenario_id, planner, format, created_at_ms,
                deleted_at_ms, raw_bytes, stored_bytes, slices, span_ns, actions
         FROM trace "
    };
}

impl Reader {
    /// Returns a page of the stored traces.
    pub(crate) async fn traces(&self, wanted: &Wanted) -> Result<(Vec<TraceSummary>, ListPage), StoreError> {
        let found = self.page(&TRACES, wanted).await?;
        let rows: Vec<SummaryRow> = sqlx::query_as(concat!(summary!(), "WHERE id IN (SELECT value FROM json_each(?))"))
            .bind(found.json())
            .fetch_all(self.pool())
            .await?;
        let rows = found.in_order(rows, |row| &row.id);
        Ok((rows.into_iter().map(summary).collect::<Result<_, _>>()?, found.page))
    }

    /// Returns a run's traces, newest first.
    pub(crate) async fn run_traces(&self, run: &str) -> Result<Vec<TraceSummary>, StoreError> {
        let rows: Vec<SummaryRow> = sqlx::query_as(concat!(
            summary!(),
            "WHERE run_id = ? AND deleted_at_ms IS NULL ORDER BY created_at_ms DESC, id LIMIT 5000"
        ))
        .bind(run)
        .fetch_all(self.pool())
        .await?;
        rows.into_iter().map(summary).collect()
    }

    /// Returns a trace that is not deleted.
    pub(crate) async fn trace(&self, id: &str) -> Result<TraceSummary, StoreError> {
        let row: SummaryRow = sqlx::query_as(concat!(summary!(), "WHERE id = ?"))
            .bind(id)
            .fetch_optional(self.pool())
            .await?
            .ok_or_else(|| TRACE.missed(id))?;
        match row.deleted_at_ms {
            Some(at) => Err(TRACE.gone(self.pool(), id, at).await),
            None => summary(row),
        }
    }

    /// Returns the report on parsed and skipped events.
    pub(crate) async fn trace_report(&self, id: &str) -> Result<TraceReport, StoreError> {
        let json: Option<String> = sqlx::query_scalar("SELECT report_json FROM trace WHERE id = ?")
            .bind(id)
            .fetch_optional(self.pool())
            .await?
            .ok_or_else(|| TRACE.missed(id))?;
        serde_json::from_str(&json.unwrap_or_default()).map_err(|error| TRACE.damaged(&error))
    }
}

fn summary(row: SummaryRow) -> Result<TraceSummary, StoreError> {
    let planner = row.planner;
    Ok(TraceSummary {
        id: row.id,
        name: row.name,
        note: row.note,
        tags: serde_json::from_str(&row.tags_json).map_err(|error| TRACE.damaged(&error))?,
        run: row.run_id,
        rank: row.rank,
        plan: row
            .scenario_id
            .map(|scenario| TracePlan { scenario, planner: planner.as_deref().and_then(PlannerKind::from_id) }),
        format: row.format,
        created_at: rfc3339(row.created_at_ms),
        deleted_at: row.deleted_at_ms.map(rfc3339),
        raw_bytes: row.raw_bytes.unsigned_abs(),
        stored_bytes: row.stored_bytes.unsigned_abs(),
        slices: row.slices.unsigned_abs(),
        span_ns: row.span_ns.unsigned_abs(),
        actions: row.actions.unsigned_abs(),
        pinned: row.pinned_at_ms.is_some(),
    })
}

/// Converts to SQLite's integer type. Larger values are clamped and treated as infinite.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
