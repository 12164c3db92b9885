//! Planning jobs that are not over, for the next server to take up.

use jiff::Timestamp;

use super::{Reader, StoreError, Writer};

/// A job that a server before did not end.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LeftJob {
    /// Identifier.
    pub id: String,
    /// Scenario to be planned.
    #[sqlx(rename = "scenario_id")]
    pub scenario: String,
    /// How often a server began to plan it.
    pub attempts: u32,
}

/// A job that was given up.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FailedJob {
    /// Identifier.
    pub id: String,
    /// Scenario that was to be planned.
    #[sqlx(rename = "scenario_id")]
    pub scenario: String,
    /// Why it was given up.
    #[sqlx(rename = "failure")]
    pub detail: String,
}

impl Writer {
    /// Notes that a scenario is to be planned, in place of an earlier job of it.
    ///
    /// # Errors
    /// The scenario went, or there is no room for what comes of it.
    pub async fn enter_job(&self, id: &str, scenario: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        write.room_for(0).await?;
        let entered = sqlx::query(
            "INSERT OR REPLACE INTO job (id, scenario_id, created_at_ms)
             SELECT ?1, id, ?3 FROM scenario WHERE id = ?2 AND deleted_at_ms IS NULL",
        )
        .bind(id)
        .bind(scenario)
        .bind(now.as_millisecond())
        .execute(&mut *write)
        .await?
        .rows_affected();
        if entered != 1 {
            return Err(StoreError::missed("scenario", scenario));
        }
        write.commit().await
    }

    /// Notes that a job is begun, so that one that ends every server with it is given up some time.
    pub async fn begin_job(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        // A job that was cancelled meanwhile has no row, and a job before the latest of its scenario neither.
        sqlx::query("UPDATE job SET attempts = attempts + 1 WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Notes why a job was given up. The reason stays until its scenario is planned again.
    pub async fn fail_job(&self, id: &str, detail: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("UPDATE job SET failure = ? WHERE id = ?").bind(detail).bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Notes that a job is over.
    pub async fn strike_job(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("DELETE FROM job WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }
}

impl Reader {
    /// Jobs that are not over, oldest first.
    pub async fn left_jobs(&self) -> Result<Vec<LeftJob>, StoreError> {
        let jobs = sqlx::query_as(
            "SELECT id, scenario_id, attempts FROM job WHERE failure IS NULL ORDER BY created_at_ms, rowid",
        )
        .fetch_all(self.pool())
        .await?;
        Ok(jobs)
    }

    /// Jobs that were given up, oldest first.
    pub async fn failed_jobs(&self) -> Result<Vec<FailedJob>, StoreError> {
        let jobs = sqlx::query_as(
            "SELECT id, scenario_id, failure FROM job WHERE failure IS NOT NULL ORDER BY created_at_ms, rowid",
        )
        .fetch_all(self.pool())
        .await?;
        Ok(jobs)
    }
}
