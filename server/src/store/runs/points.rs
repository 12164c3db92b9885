//! Points of runs, by row.

use api::run::RunPoint;

use super::RUN;
use crate::store::{Reader, StoreError, Write, hashes};

impl Reader {
    /// Returns complete points after a row, in order, as row number and JSON.
    pub async fn run_points_json(&self, id: &str, after: u64, limit: u32) -> Result<Vec<(u64, String)>, StoreError> {
        let rows: Vec<(i64, String)> =
            sqlx::query_as("SELECT row, point_json FROM run_point WHERE run_id = ? AND row > ? ORDER BY row LIMIT ?")
                .bind(id)
                .bind(i64::try_from(after).unwrap_or(i64::MAX))
                .bind(limit)
                .fetch_all(self.pool())
                .await?;
        Ok(rows.into_iter().map(|(row, json)| (row.unsigned_abs(), json)).collect())
    }

    /// Returns complete points after a row, in order.
    pub async fn run_points(&self, id: &str, after: u64, limit: u32) -> Result<Vec<RunPoint>, StoreError> {
        let rows = self.run_points_json(id, after, limit).await?;
        let parse = |(_, json): (u64, String)| serde_json::from_str(&json);
        rows.into_iter().map(parse).collect::<Result<_, _>>().map_err(|error| RUN.damaged(&error))
    }

    /// Returns the timer names in all points, sorted.
    pub async fn run_phases(&self, id: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        let names = sqlx::query_scalar(
            "SELECT DISTINCT json_extract(value, '$.name') AS name
             FROM run_point, json_each(point_json, '$.phases') WHERE run_id = ? ORDER BY name LIMIT ?",
        )
        .bind(id)
        .bind(limit)
        .fetch_all(self.pool())
        .await?;
        Ok(names)
    }
}

/// Inserts points at their row numbers.
pub(super) async fn insert(write: &mut Write, id: &str, points: &[RunPoint]) -> Result<(), StoreError> {
    if points.is_empty() {
        return Ok(());
    }
    // One statement inserts all points. Each element contains a point's JSON text and hash.
    let hashed = |text: String| {
        let hash = data_encoding::HEXLOWER.encode(&hashes::hash_content(&text));
        [text, hash]
    };
    let texts: Vec<[String; 2]> = points.iter().map(json).map(hashed).collect();
    let first = points.first().map_or(1, |point| point.row);
    sqlx::query(
        "INSERT INTO run_point (run_id, row, point_json, sha256)
         SELECT ?1, ?2 + each.key, each.value ->> 0, unhex(each.value ->> 1) FROM json_each(?3) AS each",
    )
    .bind(id)
    .bind(i64::try_from(first).unwrap_or(i64::MAX))
    .bind(serde_json::to_string(&texts).expect("texts are JSON"))
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Returns a point's JSON text, as stored and sent.
pub(super) fn json(point: &RunPoint) -> String {
    serde_json::to_string(point).expect("points have only text keys")
}
