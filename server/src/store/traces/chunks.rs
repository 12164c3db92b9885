//! Packed columns of traces.

use super::{TRACE, signed};
use crate::store::{Reader, StoreError, Write, hashes};
use crate::traces::import::Prepared;

/// Selects chunks of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkQuery {
    /// Minimum tier of unmerged slices, an even number. All higher even tiers are included.
    pub(crate) from_tier: u32,
    /// Additional tier of merged spans.
    pub(crate) merged_tier: Option<u32>,
    /// Start of the window in ns.
    pub(crate) from_ns: u64,
    /// End of the window in ns.
    pub(crate) to_ns: u64,
    /// First and last lane.
    pub(crate) lanes: (u32, u32),
}

/// Stores the columns of a trace. The row must exist.
pub(super) async fn store(write: &mut Write, id: &str, prepared: &Prepared) -> Result<(), StoreError> {
    let mut parts = std::collections::BTreeMap::<u32, i64>::new();
    for chunk in &prepared.chunks {
        let part = parts.entry(chunk.tier).or_default();
        sqlx::query(
            "INSERT INTO trace_chunk (trace_id, tier, part, first_lane, last_lane, start_ns, end_ns, spans, slices,
                                      columns, details, sha256)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(id)
        .bind(chunk.tier)
        .bind(*part)
        .bind(chunk.lanes.0)
        .bind(chunk.lanes.1)
        .bind(signed(chunk.start_ns))
        .bind(signed(chunk.end_ns))
        .bind(chunk.spans)
        .bind(signed(chunk.slices))
        .bind(&chunk.columns)
        .bind(chunk.details.as_deref())
        .bind(hashes::hash_contents(&[Some(&chunk.columns), chunk.details.as_deref()]))
        .execute(&mut **write)
        .await?;
        *part += 1;
    }
    for (block, names) in prepared.names.iter().enumerate() {
        sqlx::query("INSERT INTO trace_names (trace_id, block, names, sha256) VALUES (?, ?, ?, ?)")
            .bind(id)
            .bind(signed(block as u64))
            .bind(names)
            .bind(hashes::hash_content(names))
            .execute(&mut **write)
            .await?;
    }
    Ok(())
}

impl Reader {
    /// Returns packed processes, lanes, steps and totals.
    pub(crate) async fn trace_overview(&self, id: &str) -> Result<Vec<u8>, StoreError> {
        self.trace_column(sqlx::query_scalar("SELECT overview FROM trace WHERE id = ?"), id)
            .await?
            .ok_or_else(|| TRACE.missed(id))
    }

    /// Returns packed annotated actions, if the trace contains any.
    pub(crate) async fn trace_actions(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.trace_column(sqlx::query_scalar("SELECT action_columns FROM trace WHERE id = ?"), id).await
    }

    /// Returns packed counters, if the trace contains any.
    pub(crate) async fn trace_counters(&self, id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.trace_column(sqlx::query_scalar("SELECT counter_columns FROM trace WHERE id = ?"), id).await
    }

    async fn trace_column(
        &self,
        query: sqlx::query::QueryScalar<'_, sqlx::Sqlite, Option<Vec<u8>>, sqlx::sqlite::SqliteArguments>,
        id: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let column = query.bind(id.to_owned()).fetch_optional(self.pool()).await?;
        column.ok_or_else(|| TRACE.missed(id))
    }

    /// Returns packed spans from all chunks that overlap the window.
    pub(crate) async fn trace_chunks(&self, id: &str, query: &ChunkQuery) -> Result<Vec<Vec<u8>>, StoreError> {
        let columns = sqlx::query_scalar(
            "SELECT columns FROM trace_chunk
             WHERE trace_id = ?1 AND ((tier >= ?2 AND tier % 2 = 0) OR tier = ?3)
               AND start_ns < ?5 AND end_ns >= ?4 AND first_lane <= ?7 AND last_lane >= ?6
             ORDER BY tier, part",
        )
        .bind(id)
        .bind(query.from_tier)
        .bind(query.merged_tier)
        .bind(signed(query.from_ns))
        .bind(signed(query.to_ns))
        .bind(query.lanes.0)
        .bind(query.lanes.1)
        .fetch_all(self.pool())
        .await?;
        Ok(columns)
    }

    /// Returns packed spans and details from all chunks with unmerged slices that overlap the
    /// window.
    pub(crate) async fn trace_chunks_with_details(
        &self,
        id: &str,
        query: &ChunkQuery,
    ) -> Result<Vec<(Vec<u8>, Option<Vec<u8>>)>, StoreError> {
        let columns = sqlx::query_as(
            "SELECT columns, details FROM trace_chunk
             WHERE trace_id = ?1 AND tier % 2 = 0 AND start_ns < ?3 AND end_ns >= ?2 AND first_lane <= ?5 AND last_lane >= ?4
             ORDER BY tier, part",
        )
        .bind(id)
        .bind(signed(query.from_ns))
        .bind(signed(query.to_ns))
        .bind(query.lanes.0)
        .bind(query.lanes.1)
        .fetch_all(self.pool())
        .await?;
        Ok(columns)
    }

    /// Returns tier, part and first start for all chunks with unmerged slices that end after the
    /// given time, sorted by start.
    pub(crate) async fn trace_parts(&self, id: &str, from_ns: u64) -> Result<Vec<(u32, i64, i64)>, StoreError> {
        let places = sqlx::query_as(
            "SELECT tier, part, start_ns FROM trace_chunk WHERE trace_id = ? AND tier % 2 = 0 AND end_ns >= ?
             ORDER BY start_ns, tier, part",
        )
        .bind(id)
        .bind(signed(from_ns))
        .fetch_all(self.pool())
        .await?;
        Ok(places)
    }

    /// Returns the packed spans in a chunk.
    pub(crate) async fn trace_part(&self, id: &str, tier: u32, part: i64) -> Result<Vec<u8>, StoreError> {
        let columns =
            sqlx::query_scalar("SELECT columns FROM trace_chunk WHERE trace_id = ? AND tier = ? AND part = ?")
                .bind(id)
                .bind(tier)
                .bind(part)
                .fetch_optional(self.pool())
                .await?;
        columns.ok_or_else(|| TRACE.missed(id))
    }

    /// Returns the packed names in a block.
    pub(crate) async fn trace_names(&self, id: &str, block: u32) -> Result<Vec<u8>, StoreError> {
        let names = sqlx::query_scalar("SELECT names FROM trace_names WHERE trace_id = ? AND block = ?")
            .bind(id)
            .bind(block)
            .fetch_optional(self.pool())
            .await?;
        names.ok_or_else(|| TRACE.missed(id))
    }

    /// Returns all name blocks in order.
    pub(crate) async fn all_trace_names(&self, id: &str) -> Result<Vec<Vec<u8>>, StoreError> {
        let names = sqlx::query_scalar("SELECT names FROM trace_names WHERE trace_id = ? ORDER BY block")
            .bind(id)
            .fetch_all(self.pool())
            .await?;
        Ok(names)
    }
}
