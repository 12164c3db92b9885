//! Uploaded datasets.

use api::dataset::DatasetSummary;
use jiff::Timestamp;
use planner::outcome::HistogramColumns;
use planner::workload::Dataset;

use super::{Reader, StoreError, Writer};
use crate::clock::rfc3339;

const WHAT: &str = "dataset";

/// A dataset to be stored.
#[derive(Debug)]
pub struct NewDataset {
    /// Content address.
    pub id: String,
    /// Name to show.
    pub name: String,
    /// Samples.
    pub samples: u64,
    /// Distribution of text tokens.
    pub text_tokens: HistogramColumns,
    /// Distribution of images, where the file has them.
    pub images: Option<HistogramColumns>,
    /// Canonical form.
    pub content: Vec<u8>,
}

impl Writer {
    /// Stores a dataset; the same content again changes nothing. Says whether it is new.
    pub async fn store_dataset(&self, dataset: NewDataset, now: Timestamp) -> Result<bool, StoreError> {
        let text_tokens = json(&dataset.text_tokens);
        let images = dataset.images.as_ref().map(json);
        let mut write = self.begin().await?;
        let stored = sqlx::query(
            "INSERT INTO dataset (id, name, samples, text_tokens_json, images_json, created_at_ms, content_json)
             VALUES (?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (id) DO UPDATE SET
                 name = excluded.name, created_at_ms = excluded.created_at_ms,
                 deleted_at_ms = NULL, content_json = excluded.content_json
             WHERE dataset.deleted_at_ms IS NOT NULL",
        )
        .bind(&dataset.id)
        .bind(&dataset.name)
        .bind(i64::try_from(dataset.samples).unwrap_or(i64::MAX))
        .bind(text_tokens)
        .bind(images)
        .bind(now.as_millisecond())
        .bind(dataset.content)
        .execute(&mut *write)
        .await?
        .rows_affected();
        write.commit().await?;
        Ok(stored == 1)
    }

    /// Deletes a dataset, leaving word of when.
    pub async fn delete_dataset(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let deleted_at: Option<Option<i64>> = sqlx::query_scalar("SELECT deleted_at_ms FROM dataset WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *write)
            .await?;
        match deleted_at {
            None => return Err(StoreError::missed(WHAT, id)),
            Some(Some(at)) => return Err(gone(id, at)),
            Some(None) => {}
        }
        let deleted = sqlx::query("UPDATE dataset SET deleted_at_ms = ?, content_json = NULL WHERE id = ?")
            .bind(now.as_millisecond())
            .bind(id)
            .execute(&mut *write)
            .await?
            .rows_affected();
        if deleted != 1 {
            return Err(StoreError::missed(WHAT, id));
        }
        write.commit().await
    }
}

/// Name, samples, two histograms, creation and deletion time of a row.
type SummaryRow = (String, String, i64, String, Option<String>, i64, Option<i64>);

impl Reader {
    /// Stored datasets, newest first.
    pub async fn datasets(&self) -> Result<Vec<DatasetSummary>, StoreError> {
        let rows: Vec<SummaryRow> = sqlx::query_as(
            "SELECT id, name, samples, text_tokens_json, images_json, created_at_ms, deleted_at_ms
             FROM dataset WHERE deleted_at_ms IS NULL ORDER BY created_at_ms DESC, id LIMIT 1000",
        )
        .fetch_all(self.pool())
        .await?;
        rows.into_iter().map(summary).collect()
    }

    /// One dataset, as lists show it.
    pub async fn dataset(&self, id: &str) -> Result<DatasetSummary, StoreError> {
        let row: SummaryRow = sqlx::query_as(
            "SELECT id, name, samples, text_tokens_json, images_json, created_at_ms, deleted_at_ms
             FROM dataset WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(self.pool())
        .await?
        .ok_or_else(|| StoreError::missed(WHAT, id))?;
        match row.6 {
            Some(at) => Err(gone(id, at)),
            None => summary(row),
        }
    }

    /// The content of a dataset, if it is stored.
    pub async fn dataset_content(&self, id: &str) -> Result<Option<Dataset>, StoreError> {
        let content: Option<Option<Vec<u8>>> = sqlx::query_scalar("SELECT content_json FROM dataset WHERE id = ?")
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        let Some(content) = content.flatten() else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(|error| StoreError::damaged(WHAT, &error))
    }
}

fn summary(row: SummaryRow) -> Result<DatasetSummary, StoreError> {
    let (id, name, samples, text_tokens, images, created_at_ms, _) = row;
    let columns = |json: &str| serde_json::from_str(json).map_err(|error| StoreError::damaged(WHAT, &error));
    Ok(DatasetSummary {
        id,
        name,
        samples: samples.unsigned_abs(),
        text_tokens: columns(&text_tokens)?,
        images: images.as_deref().map(columns).transpose()?,
        created_at: rfc3339(created_at_ms),
    })
}

fn gone(id: &str, at: i64) -> StoreError {
    StoreError::Gone { what: WHAT, id: id.to_owned(), at: rfc3339(at) }
}

fn json(columns: &HistogramColumns) -> String {
    serde_json::to_string(columns).expect("histograms hold only numbers in lists")
}
