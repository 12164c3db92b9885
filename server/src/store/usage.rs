//! How much room a database takes, and how much it may take.

use sqlx::sqlite::SqliteConnection;

use super::{Reader, StoreError, Write};

/// Room that a database takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of what it holds. What was deleted for good leaves room in the file, which the next content takes.
    pub used: u64,
    /// Bytes of its file.
    pub file: u64,
}

/// Pages, free ones among them, and bytes of a page.
async fn usage(connection: &mut SqliteConnection) -> Result<Usage, StoreError> {
    let (pages, free, bytes): (i64, i64, i64) = sqlx::query_as(
        "SELECT page_count, freelist_count, page_size
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    )
    .fetch_one(connection)
    .await?;
    let bytes = bytes.unsigned_abs();
    Ok(Usage { used: (pages - free).unsigned_abs() * bytes, file: pages.unsigned_abs() * bytes })
}

impl Write {
    /// Refuses new content where the database would hold more than it may. What is refused changes nothing.
    pub(super) async fn room_for(&mut self, bytes: usize) -> Result<(), StoreError> {
        let Some(quota) = self.quota() else { return Ok(()) };
        let used = usage(self).await?.used;
        if used.saturating_add(bytes as u64) <= quota {
            return Ok(());
        }
        self.abandon().await?;
        Err(StoreError::Quota { used, quota })
    }
}

impl Reader {
    /// Room that the database takes.
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        usage(&mut *self.pool().acquire().await?).await
    }

    /// Whether it holds as much as it may.
    ///
    /// # Errors
    /// That cannot be read, which says nothing of how full it is.
    pub(crate) async fn is_full(&self) -> Result<bool, StoreError> {
        match self.room_for(0).await {
            Ok(()) => Ok(false),
            Err(StoreError::Quota { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Refuses content of so many bytes before it comes, as storing it would.
    pub async fn room_for(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(quota) = self.quota() else { return Ok(()) };
        let used = self.usage().await?.used;
        if used.saturating_add(bytes) <= quota { Ok(()) } else { Err(StoreError::Quota { used, quota }) }
    }
}
