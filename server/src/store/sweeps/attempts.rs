//! Planning attempts per sweep point. A point with a row has no entry.

use std::collections::BTreeMap;

use crate::store::{Reader, StoreError, Write, Writer};

impl Writer {
    /// Counts an attempt for each point.
    pub async fn begin_points(&self, id: &str, engine: &str, points: &[u32]) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        // The insert has no effect if the sweep was deleted in the meantime.
        sqlx::query(
            "INSERT INTO sweep_attempt (sweep_id, engine, point, attempts)
             SELECT sweep.id, ?2, begun.value, 1 FROM sweep, json_each(?3) AS begun
             WHERE sweep.id = ?1 AND sweep.deleted_at_ms IS NULL
             ON CONFLICT (sweep_id, engine, point) DO UPDATE SET attempts = attempts + 1",
        )
        .bind(id)
        .bind(engine)
        .bind(listed(points))
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Adds to the failure count and returns the total since the start.
    pub async fn count_given_up(&self, id: &str, points: u32) -> Result<u32, StoreError> {
        let mut write = self.begin().await?;
        let count: Option<u32> = sqlx::query_scalar(
            "UPDATE sweep SET points_given_up = points_given_up + ? WHERE id = ? RETURNING points_given_up",
        )
        .bind(points)
        .bind(id)
        .fetch_optional(&mut *write)
        .await?;
        write.commit().await?;
        Ok(count.unwrap_or(0))
    }

    /// Reverts [`Writer::begin_points`] for unplanned points.
    pub async fn release_points(&self, id: &str, engine: &str, points: &[u32]) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        // The order matters: entries that the update sets to 1 are earlier attempts and must not be
        // deleted.
        sqlx::query(
            "DELETE FROM sweep_attempt WHERE sweep_id = ?1 AND engine = ?2 AND attempts = 1
                 AND point IN (SELECT value FROM json_each(?3))",
        )
        .bind(id)
        .bind(engine)
        .bind(listed(points))
        .execute(&mut *write)
        .await?;
        sqlx::query(
            "UPDATE sweep_attempt SET attempts = attempts - 1 WHERE sweep_id = ?1 AND engine = ?2
                 AND point IN (SELECT value FROM json_each(?3))",
        )
        .bind(id)
        .bind(engine)
        .bind(listed(points))
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Cancels all unfinished planning jobs and sweeps. Returns both counts.
    pub async fn cancel_work(&self) -> Result<(u64, u64), StoreError> {
        let mut write = self.begin().await?;
        let jobs = sqlx::query("DELETE FROM job WHERE failure IS NULL").execute(&mut *write).await?.rows_affected();
        let sweeps = sqlx::query("UPDATE sweep SET wanted_at_ms = NULL WHERE wanted_at_ms IS NOT NULL")
            .execute(&mut *write)
            .await?
            .rows_affected();
        write.commit().await?;
        Ok((jobs, sweeps))
    }
}

impl Write {
    /// Deletes a point's attempts when its row is stored.
    pub(super) async fn strike_point(&mut self, id: &str, engine: &str, point: u32) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM sweep_attempt WHERE sweep_id = ? AND engine = ? AND point = ?")
            .bind(id)
            .bind(engine)
            .bind(point)
            .execute(&mut **self)
            .await?;
        Ok(())
    }
}

impl Reader {
    /// Returns points that were attempted and have no row, with the attempt count.
    pub async fn sweep_attempts(&self, id: &str, engine: &str) -> Result<BTreeMap<u32, u32>, StoreError> {
        let rows: Vec<(u32, u32)> =
            sqlx::query_as("SELECT point, attempts FROM sweep_attempt WHERE sweep_id = ? AND engine = ?")
                .bind(id)
                .bind(engine)
                .fetch_all(self.pool())
                .await?;
        Ok(rows.into_iter().collect())
    }
}

/// Returns point numbers as JSON for `json_each`.
fn listed(points: &[u32]) -> String {
    serde_json::json!(points).to_string()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use planner::sweep::Sweep;
    use serde_json::json;

    use crate::store::Store;

    #[tokio::test]
    async fn attempts_are_counted_for_each_point_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).await.unwrap();
        let scenario = json!({
            "schema": "scenario/1", "model": {"preset": "llama-2-7b"}, "cluster": {"preset": "a100-80gb", "nodes": 1},
            "workload": {"samples": {"kind": "drawn", "text_tokens": {"kind": "constant", "value": 512},
                "images": {"kind": "constant", "value": 0}}, "global_batch": 8, "context_length": 2048, "packing": "single"},
            "planners": ["1f1b"], "iterations": 1
        });
        let written =
            json!({"schema": "sweep/1", "scenario": scenario, "axes": [{"pointer": "/seed", "values": [1, 2, 3]}]});
        let sweep = Sweep::parse(&written.to_string()).unwrap();
        let id = sweep.id().to_string();
        let (writer, reader) = (store.writer(), store.reader());
        writer.store_sweep(&sweep, Timestamp::UNIX_EPOCH).await.unwrap();
        let attempts = async || reader.sweep_attempts(&id, "e").await.unwrap().into_iter().collect::<Vec<_>>();
        writer.begin_points(&id, "e", &[0, 1]).await.unwrap();
        writer.begin_points(&id, "e", &[1, 2]).await.unwrap();
        assert_eq!(attempts().await, [(0, 1), (1, 2), (2, 1)]);
        writer.release_points(&id, "e", &[1, 2]).await.unwrap();
        assert_eq!(attempts().await, [(0, 1), (1, 1)]);
        assert!(reader.sweep_attempts(&id, "another engine").await.unwrap().is_empty());
        // An unknown sweep has no attempts.
        writer.begin_points("nothing", "e", &[0]).await.unwrap();
        assert!(reader.sweep_attempts("nothing", "e").await.unwrap().is_empty());
        writer.mark_for_planning(&id, Some(Timestamp::UNIX_EPOCH)).await.unwrap();
        assert_eq!(writer.cancel_work().await.unwrap(), (0, 1));
        assert!(reader.wanted_sweeps().await.unwrap().is_empty());
    }
}
