//! Unfinished planning jobs, which continue after a restart.

use jiff::Timestamp;

use super::{Reader, StoreError, Writer};

/// An unfinished job of an earlier server.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UnfinishedJob {
    /// Identifier.
    pub id: String,
    /// Scenario to plan.
    #[sqlx(rename = "scenario_id")]
    pub scenario: String,
    /// Number of times a server started to plan it.
    pub attempts: u32,
}

/// A job that failed permanently.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FailedJob {
    /// Identifier.
    pub id: String,
    /// Scenario of the job.
    #[sqlx(rename = "scenario_id")]
    pub scenario: String,
    /// Error message.
    #[sqlx(rename = "failure")]
    pub detail: String,
}

impl Writer {
    /// Stores a job for a scenario and replaces an earlier job for the same scenario.
    ///
    /// # Errors
    /// The scenario was deleted, or the database is full.
    pub async fn enter_job(&self, id: &str, scenario: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        write.check_capacity(0).await?;
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

    /// Counts an attempt, so that a job that crashes the server fails at the attempt limit.
    pub async fn begin_job(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        // The row of a cancelled or replaced job was deleted.
        sqlx::query("UPDATE job SET attempts = attempts + 1 WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Stores the error of a job. The next job for the scenario replaces it.
    pub async fn fail_job(&self, id: &str, detail: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("UPDATE job SET failure = ? WHERE id = ?").bind(detail).bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Deletes a finished job.
    pub async fn delete_job(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("DELETE FROM job WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }
}

impl Reader {
    /// Returns unfinished jobs, oldest first.
    pub async fn left_jobs(&self) -> Result<Vec<UnfinishedJob>, StoreError> {
        let jobs = sqlx::query_as(
            "SELECT id, scenario_id, attempts FROM job WHERE failure IS NULL ORDER BY created_at_ms, rowid",
        )
        .fetch_all(self.pool())
        .await?;
        Ok(jobs)
    }

    /// Returns failed jobs, oldest first.
    pub async fn failed_jobs(&self) -> Result<Vec<FailedJob>, StoreError> {
        let jobs = sqlx::query_as(
            "SELECT id, scenario_id, failure FROM job WHERE failure IS NOT NULL ORDER BY created_at_ms, rowid",
        )
        .fetch_all(self.pool())
        .await?;
        Ok(jobs)
    }
}
