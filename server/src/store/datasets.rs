//! Uploaded datasets.

use api::dataset::{DatasetList, DatasetSummary, ImportReport, ShapedColumns};
use api::listing::Annotations;
use jiff::Timestamp;
use planner::outcome::HistogramColumns;
use planner::workload::Dataset;
use serde::{Deserialize, Serialize};

use super::forget::PurgeStatements;
use super::objects::ObjectTable;
use super::{Kind, ListDefinition, Order, Reader, StoreError, Wanted, Writer, hashes};
use crate::clock::rfc3339;

const DATASET: ObjectTable = ObjectTable {
    kind: Kind::Dataset,
    table: "dataset",
    name: "name",
    restorable: "id IN (SELECT id FROM deleted_dataset)",
};
/// Purges all content in one transaction, because it is small.
const FORGETTING: PurgeStatements = PurgeStatements {
    take: "UPDATE dataset SET name = '', note = NULL, tags_json = '[]', pinned_at_ms = NULL, bytes = 0,
             text_tokens_json = '', images_json = NULL
         WHERE id = (
             SELECT id FROM dataset WHERE deleted_at_ms < ? AND (
                 id IN (SELECT id FROM deleted_dataset) OR bytes > 0 OR name <> '')
             LIMIT 1)
         RETURNING id",
    with_it: &["DELETE FROM deleted_dataset WHERE id = ?", "DELETE FROM dataset_report WHERE dataset_id = ?"],
};

/// List of datasets.
pub(crate) const DATASETS: ListDefinition = ListDefinition {
    table: "dataset",
    text: "name || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || id",
    tags: "tags_json",
    listed: "1",
    can_return: DATASET.restorable,
    stored: "SELECT coalesce(sum(bytes), 0) FROM dataset WHERE deleted_at_ms IS NULL",
    deleted: "SELECT coalesce(sum(bytes), 0) FROM dataset WHERE deleted_at_ms IS NOT NULL",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "samples", key: "samples" },
        Order { name: "size", key: "bytes" },
    ],
};

/// A dataset to be stored.
#[derive(Debug)]
pub struct NewDataset {
    /// Content address.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Number of samples.
    pub samples: u64,
    /// Distribution of text tokens.
    pub text_tokens: HistogramColumns,
    /// Distribution of images, if the file contains images.
    pub images: Option<HistogramColumns>,
    /// Backbone sequence lengths, if a rule converted media.
    pub shaped: Option<ShapedColumns>,
    /// Import report.
    pub report: ImportReport,
    /// Canonical form.
    pub content: Vec<u8>,
}

/// Image data in a single column. If no rule was used, the format is the plain histogram of earlier
/// versions.
#[derive(Serialize, Deserialize)]
struct Items {
    #[serde(flatten)]
    images: HistogramColumns,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shaped: Option<ShapedColumns>,
}

impl Writer {
    /// Stores a dataset and returns true if it is new. Existing content is unchanged.
    pub async fn store_dataset(&self, dataset: NewDataset, now: Timestamp) -> Result<bool, StoreError> {
        let text_tokens = json(&dataset.text_tokens);
        let report = json(&dataset.report);
        let shaped = dataset.shaped;
        let images = dataset.images.map(|images| json(&Items { images, shaped }));
        let mut write = self.begin().await?;
        let is_known: bool =
            sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM dataset WHERE id = ? AND deleted_at_ms IS NULL)")
                .bind(&dataset.id)
                .fetch_one(&mut *write)
                .await?;
        if !is_known {
            write.check_capacity(dataset.content.len()).await?;
        }
        let stored = sqlx::query(
            "INSERT INTO dataset (id, name, samples, text_tokens_json, images_json, created_at_ms, content_json, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, length(?7))
             ON CONFLICT (id) DO UPDATE SET
                 name = excluded.name, created_at_ms = excluded.created_at_ms,
                 deleted_at_ms = NULL, content_json = excluded.content_json, bytes = excluded.bytes,
                 text_tokens_json = excluded.text_tokens_json, images_json = excluded.images_json
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
        sqlx::query("DELETE FROM deleted_dataset WHERE id = ?").bind(&dataset.id).execute(&mut *write).await?;
        // The report of an existing dataset is immutable.
        sqlx::query(
            "INSERT INTO dataset_report (dataset_id, report_json, sha256) VALUES (?1, ?2, ?4)
             ON CONFLICT (dataset_id) DO UPDATE SET report_json = excluded.report_json, sha256 = excluded.sha256 WHERE ?3",
        )
        .bind(&dataset.id)
        .bind(&report)
        .bind(stored == 1)
        .bind(hashes::hash_content(&report))
        .execute(&mut *write)
        .await?;
        write.commit().await?;
        Ok(stored == 1)
    }

    /// Changes name, note, tags and pin of a dataset.
    pub async fn change_dataset(&self, id: &str, annotations: &Annotations, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        DATASET.change(&mut write, id, annotations, now).await?;
        write.commit().await
    }

    /// Restores a deleted dataset. An active dataset is unchanged.
    pub async fn restore_dataset(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let content =
            ", content_json = (SELECT content_json FROM deleted_dataset WHERE deleted_dataset.id = dataset.id)";
        DATASET.restore(&mut write, id, content).await?;
        sqlx::query("DELETE FROM deleted_dataset WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Purges datasets deleted before the given time. The identifier and the deletion time remain.
    /// Returns the number of purged datasets.
    pub async fn forget_datasets(&self, deleted_before: Timestamp) -> Result<u64, StoreError> {
        self.forget_all(&FORGETTING, deleted_before).await
    }

    /// Marks a dataset as deleted. [`Writer::forget_datasets`] makes this permanent.
    pub async fn delete_dataset(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        DATASET.present(&mut write, id).await?;
        sqlx::query(
            "INSERT OR REPLACE INTO deleted_dataset (id, content_json) SELECT id, content_json FROM dataset WHERE id = ?",
        )
        .bind(id)
        .execute(&mut *write)
        .await?;
        // Both changes are one statement: an active dataset must have content, and a deleted
        // dataset must have none.
        sqlx::query("UPDATE dataset SET deleted_at_ms = ?, content_json = NULL WHERE id = ?")
            .bind(now.as_millisecond())
            .bind(id)
            .execute(&mut *write)
            .await?;
        write.commit().await
    }
}

/// A row excluding content.
#[derive(sqlx::FromRow)]
struct SummaryRow {
    id: String,
    name: String,
    note: Option<String>,
    tags_json: String,
    pinned_at_ms: Option<i64>,
    samples: i64,
    text_tokens_json: String,
    images_json: Option<String>,
    report_json: Option<String>,
    created_at_ms: i64,
    deleted_at_ms: Option<i64>,
    bytes: i64,
}

/// Columns of [`SummaryRow`].
macro_rules! summary {
    () => {
        "SELECT id, name, note, tags_json, pinned_at_ms, samples, text_tokens_json, images_json, created_at_ms, deleted_at_ms,
                bytes, (SELECT report_json FROM dataset_report WHERE dataset_id = id) AS report_json
         FROM dataset "
    };
}

impl Reader {
    /// Returns a page of the stored datasets.
    pub(crate) async fn datasets(&self, wanted: &Wanted) -> Result<DatasetList, StoreError> {
        let found = self.page(&DATASETS, wanted).await?;
        let rows: Vec<SummaryRow> = sqlx::query_as(concat!(summary!(), "WHERE id IN (SELECT value FROM json_each(?))"))
            .bind(found.json())
            .fetch_all(self.pool())
            .await?;
        let rows = found.in_order(rows, |row| &row.id);
        Ok(DatasetList { datasets: rows.into_iter().map(summary).collect::<Result<_, _>>()?, page: found.page })
    }

    /// Returns the list entry of one dataset.
    pub async fn dataset(&self, id: &str) -> Result<DatasetSummary, StoreError> {
        let row: SummaryRow = sqlx::query_as(concat!(summary!(), "WHERE id = ?"))
            .bind(id)
            .fetch_optional(self.pool())
            .await?
            .ok_or_else(|| DATASET.missed(id))?;
        match row.deleted_at_ms {
            Some(at) => Err(DATASET.gone(self.pool(), id, at).await),
            None => summary(row),
        }
    }

    /// Returns the content of a dataset, or `None` if it is not stored.
    pub async fn dataset_content(&self, id: &str) -> Result<Option<Dataset>, StoreError> {
        let content: Option<Option<Vec<u8>>> = sqlx::query_scalar("SELECT content_json FROM dataset WHERE id = ?")
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        let Some(content) = content.flatten() else { return Ok(None) };
        serde_json::from_slice(&content).map(Some).map_err(|error| DATASET.damaged(&error))
    }
}

fn summary(row: SummaryRow) -> Result<DatasetSummary, StoreError> {
    let damaged = |error: serde_json::Error| DATASET.damaged(&error);
    let items: Option<Items> = row.images_json.as_deref().map(serde_json::from_str).transpose().map_err(damaged)?;
    let (images, shaped) = items.map_or((None, None), |items| (Some(items.images), items.shaped));
    Ok(DatasetSummary {
        id: row.id,
        name: row.name,
        samples: row.samples.unsigned_abs(),
        text_tokens: serde_json::from_str(&row.text_tokens_json).map_err(damaged)?,
        images,
        shaped,
        report: row.report_json.as_deref().map(serde_json::from_str).transpose().map_err(damaged)?,
        created_at: rfc3339(row.created_at_ms),
        note: row.note,
        tags: serde_json::from_str(&row.tags_json).map_err(damaged)?,
        pinned: row.pinned_at_ms.is_some(),
        deleted_at: row.deleted_at_ms.map(rfc3339),
        bytes: row.bytes.unsigned_abs(),
    })
}

fn json(columns: &impl Serialize) -> String {
    serde_json::to_string(columns).expect("histograms hold only numbers in lists")
}
