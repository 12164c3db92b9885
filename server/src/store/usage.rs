//! Database size and size limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::sqlite::SqliteConnection;

use super::{Reader, StoreError, Write};

/// Database size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Used bytes. Free pages from purged data are not included; new content reuses them.
    pub used: u64,
    /// File size in bytes.
    pub file: u64,
}

/// Size limit, shared by writer and reader.
#[derive(Debug, Clone)]
pub(super) struct Quota {
    limit: Option<u64>,
    /// Size in bytes of the largest rejected content that still does not fit.
    missed: Arc<AtomicU64>,
}

impl Quota {
    /// Creates a size limit in bytes; `None` means no limit.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit, missed: Arc::default() }
    }

    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }

    /// Rejects content beyond the limit. The rejection is remembered as long as content of that
    /// size does not fit.
    fn admit(&self, used: u64, bytes: u64) -> Result<(), StoreError> {
        let Some(quota) = self.limit.filter(|quota| used.saturating_add(bytes) > *quota) else {
            self.forget_missed_up_to(bytes);
            return Ok(());
        };
        // Content larger than the limit can never fit, so it is not remembered.
        if bytes <= quota {
            self.missed.fetch_max(bytes, Ordering::Relaxed);
        }
        Err(StoreError::Quota { used, quota })
    }

    /// Returns true if the limit is reached, or if the rejected content still does not fit. Clears
    /// the rejection when the content fits.
    fn is_reached(&self, used: u64) -> bool {
        let Some(quota) = self.limit else { return false };
        let missed = self.missed.load(Ordering::Relaxed);
        if used.saturating_add(missed) > quota {
            return true;
        }
        self.forget_missed_up_to(missed);
        false
    }

    fn forget_missed_up_to(&self, bytes: u64) {
        let missed = self.missed.load(Ordering::Relaxed);
        if missed <= bytes {
            // A rejection recorded by a concurrent call is preserved.
            let _ = self.missed.compare_exchange(missed, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// Computes used bytes and file size from the page counts and the page size.
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
    /// Rejects new content beyond the size limit. A rejection rolls the transaction back.
    pub(super) async fn check_capacity(&mut self, bytes: usize) -> Result<(), StoreError> {
        let used = self.used().await?;
        self.check_quota(used, bytes).await
    }

    /// Returns the used bytes, or 0 if there is no limit.
    pub(super) async fn used(&mut self) -> Result<u64, StoreError> {
        if self.quota().limit().is_none() { Ok(0) } else { Ok(usage(self).await?.used) }
    }

    /// Rejects content that the transaction has already inserted. `used` is the size before the
    /// transaction.
    pub(super) async fn check_quota(&mut self, used: u64, bytes: usize) -> Result<(), StoreError> {
        let admitted = self.quota().admit(used, bytes as u64);
        if admitted.is_err() {
            self.abandon().await?;
        }
        admitted
    }
}

impl Reader {
    /// Returns the database size.
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        usage(&mut *self.pool().acquire().await?).await
    }

    /// Returns true if the limit is reached or rejected content still does not fit.
    ///
    /// # Errors
    /// The size is unavailable; in this case it is unknown whether the database is full.
    pub(crate) async fn is_full(&self) -> Result<bool, StoreError> {
        Ok(self.quota().is_some() && self.limit().is_reached(self.usage().await?.used))
    }

    /// Rejects content of unknown size if the database exceeds the limit.
    pub async fn check_space(&self) -> Result<(), StoreError> {
        if self.quota().is_none() {
            return Ok(());
        }
        self.limit().admit(self.usage().await?.used, 0)
    }
}
