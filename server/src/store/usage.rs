//! How much room a database takes, and how much it may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// How much a database may hold; one for the side that writes and the side that reads.
#[derive(Debug, Clone)]
pub(super) struct Quota {
    most: Option<u64>,
    /// Bytes of the largest content that was refused and still has no room.
    missed: Arc<AtomicU64>,
}

impl Quota {
    /// So many bytes, or what the disk has.
    pub(super) fn of(most: Option<u64>) -> Self {
        Self { most, missed: Arc::default() }
    }

    /// Bytes that the database may hold.
    pub(super) fn most(&self) -> Option<u64> {
        self.most
    }

    /// Refuses so many bytes beside those that are there, and remembers it until as many find room.
    fn admit(&self, used: u64, bytes: u64) -> Result<(), StoreError> {
        let Some(quota) = self.most.filter(|quota| used.saturating_add(bytes) > *quota) else {
            self.forget_missed_up_to(bytes);
            return Ok(());
        };
        // For what is larger than all that may be held no room can be made.
        if bytes <= quota {
            self.missed.fetch_max(bytes, Ordering::Relaxed);
        }
        Err(StoreError::Quota { used, quota })
    }

    /// Whether there is no room, or none for what was refused before. A refusal is forgotten when it would be none any more.
    fn is_reached(&self, used: u64) -> bool {
        let Some(quota) = self.most else { return false };
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
            // Where something else is refused at this moment, that is remembered.
            let _ = self.missed.compare_exchange(missed, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
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
        let used = self.used().await?;
        self.room_beside(used, bytes).await
    }

    /// Bytes that the database holds, where it may not hold any number of them.
    pub(super) async fn used(&mut self) -> Result<u64, StoreError> {
        if self.quota().most().is_none() { Ok(0) } else { Ok(usage(self).await?.used) }
    }

    /// Refuses content that the transaction has written already, beside what the database held before.
    pub(super) async fn room_beside(&mut self, used: u64, bytes: usize) -> Result<(), StoreError> {
        let admitted = self.quota().admit(used, bytes as u64);
        if admitted.is_err() {
            self.abandon().await?;
        }
        admitted
    }
}

impl Reader {
    /// Room that the database takes.
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        usage(&mut *self.pool().acquire().await?).await
    }

    /// Whether it holds as much as it may, or so much that there is no room for what was refused.
    ///
    /// # Errors
    /// That cannot be read, which says nothing of how full it is.
    pub(crate) async fn is_full(&self) -> Result<bool, StoreError> {
        Ok(self.quota().is_some() && self.limit().is_reached(self.usage().await?.used))
    }

    /// Refuses content whose bytes are not known yet, where the database holds more than it may.
    pub async fn has_room(&self) -> Result<(), StoreError> {
        if self.quota().is_none() {
            return Ok(());
        }
        self.limit().admit(self.usage().await?.used, 0)
    }
}
