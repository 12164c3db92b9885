//! Hashes of stored contents whose address does not say what they are: which rows have one, and rows of earlier versions that get theirs.

use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Store, StoreError};

/// Bytes that are hashed at once, and rows: nobody waits long for the writer.
const BYTES_AT_ONCE: usize = 4 << 20;
const ROWS_AT_ONCE: i64 = 256;

/// A table whose rows have a hash in the column `sha256`, and an index `TABLE_unhashed` of those that have none.
pub(super) struct Hashed {
    pub(super) table: &'static str,
    /// What a row is to people.
    pub(super) one: &'static str,
    /// Columns that say which row it is.
    pub(super) key: &'static [&'static str],
    /// Columns that are hashed, in this order.
    pub(super) contents: &'static [&'static str],
    /// SQL: which rows have contents.
    pub(super) held: &'static str,
}

/// All such tables. Scenarios, datasets, sweeps and the files of profiles have addresses that are hashes.
pub(super) const HASHED: [Hashed; 11] = [
    hashed("run_chunk", "log of run", &["run_id", "file", "start"], &["content"]),
    hashed("run_point", "point of run", &["run_id", "row"], &["point_json"]),
    hashed("run_log_table", "table of patterns of run", &["run_id"], &["content"]),
    hashed("outcome", "outcome of scenario", &["scenario_id", "engine"], &["outcome_json", "planning_ms_json"]),
    hashed("timeline", "timeline of scenario", &["scenario_id", "engine", "planner", "iteration"], &["encoded"]),
    Hashed {
        held: "overview IS NOT NULL",
        ..hashed("trace", "trace", &["id"], &["report_json", "overview", "action_columns", "counter_columns"])
    },
    hashed("trace_chunk", "part of trace", &["trace_id", "tier", "part"], &["columns", "details"]),
    hashed("trace_names", "names of trace", &["trace_id", "block"], &["names"]),
    Hashed { held: "content_json IS NOT NULL", ..hashed("profile", "profile", &["id"], &["content_json"]) },
    hashed("sweep_point", "row of sweep", &["sweep_id", "engine", "point"], &["row_json"]),
    hashed("dataset_report", "report of dataset", &["dataset_id"], &["report_json"]),
];

const fn hashed(
    table: &'static str,
    one: &'static str,
    key: &'static [&'static str],
    contents: &'static [&'static str],
) -> Hashed {
    Hashed { table, one, key, contents, held: "1" }
}

/// The hash of contents, each with its length in front, so that none can hand bytes to the next.
pub(super) fn of(contents: &[Option<&[u8]>]) -> Vec<u8> {
    let mut digest = Sha256::new();
    for content in contents {
        let length = content.map_or(u64::MAX, |content| content.len() as u64);
        digest.update(length.to_le_bytes());
        digest.update(content.unwrap_or_default());
    }
    digest.finalize().to_vec()
}

/// The hash of a single content.
pub(super) fn of_one(content: impl AsRef<[u8]>) -> Vec<u8> {
    of(&[Some(content.as_ref())])
}

impl Hashed {
    /// SQL that reads rows: columns of the key, the hash, contents.
    pub(super) fn select(&self) -> String {
        let keys = self.key.iter().map(|column| format!("CAST({column} AS TEXT)"));
        let contents = self.contents.iter().map(|column| format!("CAST({column} AS BLOB)"));
        let columns: Vec<String> = keys.chain(["sha256".to_owned()]).chain(contents).collect();
        format!("SELECT {} FROM {}", columns.join(", "), self.table)
    }

    /// The key of such a row.
    pub(super) fn key_of(&self, row: &SqliteRow) -> Result<Vec<String>, sqlx::Error> {
        (0..self.key.len()).map(|column| row.try_get(column)).collect()
    }

    /// The hash that such a row has.
    pub(super) fn stored(&self, row: &SqliteRow) -> Result<Option<Vec<u8>>, sqlx::Error> {
        row.try_get(self.key.len())
    }

    /// The hash that such a row should have, and bytes of its contents.
    pub(super) fn computed(&self, row: &SqliteRow) -> Result<(Vec<u8>, usize), sqlx::Error> {
        let first = self.key.len() + 1;
        let contents: Vec<Option<&[u8]>> =
            (first..first + self.contents.len()).map(|column| row.try_get(column)).collect::<Result<_, _>>()?;
        Ok((of(&contents), contents.iter().flatten().map(|content| content.len()).sum()))
    }

    /// A row to people.
    pub(super) fn place(&self, key: &[String]) -> String {
        let named = self.key.iter().zip(key).skip(1).map(|(column, value)| format!(", {column} {value}"));
        let first = key.first().map(String::as_str).unwrap_or_default();
        format!("{} {first}{}", self.one, named.collect::<Vec<_>>().concat())
    }
}

impl Store {
    /// Hashes some of what an earlier version stored. Says how many rows; 0: all have their hash.
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
        let Hashed { table, key, held, .. } = hashed;
        let select = format!("{} INDEXED BY {table}_unhashed WHERE sha256 IS NULL AND {held} LIMIT ?", hashed.select());
        let mut found = Vec::new();
        {
            let mut rows = sqlx::query(sqlx::AssertSqlSafe(select)).bind(ROWS_AT_ONCE).fetch(self.reader.pool());
            let mut bytes = 0;
            while bytes < BYTES_AT_ONCE {
                let Some(row) = rows.try_next().await? else { break };
                let (hash, length) = hashed.computed(&row)?;
                bytes += length;
                found.push((hashed.key_of(&row)?, hash));
            }
        }
        if found.is_empty() {
            return Ok(0);
        }
        let keys: Vec<String> = key.iter().map(|column| format!("{column} = ?")).collect();
        // What was written meanwhile has its hash, and what was forgotten needs none.
        let update =
            format!("UPDATE {table} SET sha256 = ? WHERE {} AND sha256 IS NULL AND {held}", keys.join(" AND "));
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
