//! Content hashes for rows without a content address. Also computes missing hashes in rows from
//! earlier versions.

use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Store, StoreError};

/// Batch limits in bytes and rows. They keep transactions short.
const BYTES_AT_ONCE: usize = 4 << 20;
const ROWS_AT_ONCE: i64 = 256;

/// A table with a hash column `sha256` and an index `TABLE_unhashed` on rows that lack a hash.
pub(super) struct Hashed {
    pub(super) table: &'static str,
    /// Display name of a row.
    pub(super) label: &'static str,
    /// Key columns.
    pub(super) key: &'static [&'static str],
    /// Hashed columns, in order.
    pub(super) contents: &'static [&'static str],
    /// SQL condition: the row contains data.
    pub(super) condition: &'static str,
}

/// All tables with content hashes. Scenarios, datasets, sweeps and profile files use a hash as
/// address instead.
pub(super) const HASHED: [Hashed; 11] = [
    hashed("run_chunk", "log of run", &["run_id", "file", "start"], &["content"]),
    hashed("run_point", "point of run", &["run_id", "row"], &["point_json"]),
    hashed("run_log_table", "table of patterns of run", &["run_id"], &["content"]),
    hashed("outcome", "outcome of scenario", &["scenario_id", "engine"], &["outcome_json", "planning_ms_json"]),
    hashed("timeline", "timeline of scenario", &["scenario_id", "engine", "planner", "iteration"], &["encoded"]),
    Hashed {
        condition: "overview IS NOT NULL",
        ..hashed("trace", "trace", &["id"], &["report_json", "overview", "action_columns", "counter_columns"])
    },
    hashed("trace_chunk", "part of trace", &["trace_id", "tier", "part"], &["columns", "details"]),
    hashed("trace_names", "names of trace", &["trace_id", "block"], &["names"]),
    Hashed { condition: "content_json IS NOT NULL", ..hashed("profile", "profile", &["id"], &["content_json"]) },
    hashed("sweep_point", "row of sweep", &["sweep_id", "engine", "point"], &["row_json"]),
    hashed("dataset_report", "report of dataset", &["dataset_id"], &["report_json"]),
];

const fn hashed(
    table: &'static str,
    label: &'static str,
    key: &'static [&'static str],
    contents: &'static [&'static str],
) -> Hashed {
    Hashed { table, label, key, contents, condition: "1" }
}

/// Returns the hash of the contents. Each content is prefixed with the length, so bytes cannot move
/// between contents.
pub(super) fn hash_contents(contents: &[Option<&[u8]>]) -> Vec<u8> {
    let mut digest = Sha256::new();
    for content in contents {
        let length = content.map_or(u64::MAX, |content| content.len() as u64);
        digest.update(length.to_le_bytes());
        digest.update(content.unwrap_or_default());
    }
    digest.finalize().to_vec()
}

pub(super) fn hash_content(content: impl AsRef<[u8]>) -> Vec<u8> {
    hash_contents(&[Some(content.as_ref())])
}

impl Hashed {
    /// Returns SQL that selects key columns, hash and contents.
    pub(super) fn select(&self) -> String {
        let keys = self.key.iter().map(|column| format!("CAST({column} AS TEXT)"));
        let contents = self.contents.iter().map(|column| format!("CAST({column} AS BLOB)"));
        let columns: Vec<String> = keys.chain(["sha256".to_owned()]).chain(contents).collect();
        format!("SELECT {} FROM {}", columns.join(", "), self.table)
    }

    pub(super) fn key_values(&self, row: &SqliteRow) -> Result<Vec<String>, sqlx::Error> {
        (0..self.key.len()).map(|column| row.try_get(column)).collect()
    }

    /// Returns the stored hash.
    pub(super) fn stored(&self, row: &SqliteRow) -> Result<Option<Vec<u8>>, sqlx::Error> {
        row.try_get(self.key.len())
    }

    /// Returns the computed hash and the content size in bytes.
    pub(super) fn computed(&self, row: &SqliteRow) -> Result<(Vec<u8>, usize), sqlx::Error> {
        let first = self.key.len() + 1;
        let contents: Vec<Option<&[u8]>> =
            (first..first + self.contents.len()).map(|column| row.try_get(column)).collect::<Result<_, _>>()?;
        Ok((hash_contents(&contents), contents.iter().flatten().map(|content| content.len()).sum()))
    }

    /// Returns a description of a row for messages.
    pub(super) fn describe(&self, key: &[String]) -> String {
        let named = self.key.iter().zip(key).skip(1).map(|(column, value)| format!(", {column} {value}"));
        let first = key.first().map(String::as_str).unwrap_or_default();
        format!("{} {first}{}", self.label, named.collect::<Vec<_>>().concat())
    }
}

impl Store {
    /// Hashes one batch of rows from earlier versions. Returns the number of rows; 0 means that all
    /// hashes are present.
    pub async fn fill_hashes(&self) -> Result<u64, StoreError> {
        for hashed in &HASHED {
            let filled = self.fill(hashed).await?;
            if filled > 0 {
                return Ok(filled);
            }
        }
        Ok(0)
    }

    async fn fill(&self, hashed: &Hashed) -> Result<u64, StoreError> {
        let Hashed { table, key, condition, .. } = hashed;
        let select =
            format!("{} INDEXED BY {table}_unhashed WHERE sha256 IS NULL AND {condition} LIMIT ?", hashed.select());
        let mut found = Vec::new();
        {
            let mut rows = sqlx::query(sqlx::AssertSqlSafe(select)).bind(ROWS_AT_ONCE).fetch(self.reader.pool());
            let mut bytes = 0;
            while bytes < BYTES_AT_ONCE {
                let Some(row) = rows.try_next().await? else { break };
                let (hash, length) = hashed.computed(&row)?;
                bytes += length;
                found.push((hashed.key_values(&row)?, hash));
            }
        }
        if found.is_empty() {
            return Ok(0);
        }
        let keys: Vec<String> = key.iter().map(|column| format!("{column} = ?")).collect();
        // Rows stored in the meantime have a hash, and purged rows need none.
        let update =
            format!("UPDATE {table} SET sha256 = ? WHERE {} AND sha256 IS NULL AND {condition}", keys.join(" AND "));
        let mut write = self.writer.begin().await?;
        for (key, hash) in &found {
            let mut query = sqlx::query(sqlx::AssertSqlSafe(update.clone())).bind(hash);
            for value in key {
                query = query.bind(value);
            }
            query.execute(&mut *write).await?;
        }
        write.commit().await?;
        Ok(found.len() as u64)
    }
}

#[cfg(test)]
mod tests;
