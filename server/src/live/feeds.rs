//! Cache of parser states per run, with update notifications.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, watch};
use tokio::time::Instant;

use super::reading::Reading;

/// Parser state and notifications of one run.
#[derive(Debug)]
pub(super) struct Feed {
    /// Locked by the writer. `None` if the stored log must be parsed.
    reading: tokio::sync::Mutex<Option<Reading>>,
    news: watch::Sender<u64>,
}

impl Feed {
    /// Locks the parser state for a writer.
    pub(super) async fn reading(&self) -> MutexGuard<'_, Option<Reading>> {
        self.reading.lock().await
    }

    /// Returns a receiver that changes with each update.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Notifies subscribers of an update.
    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// Cache of feeds. Unused feeds are evicted when they are idle for too long or the limit is
/// reached.
#[derive(Debug)]
pub(super) struct Feeds {
    table: Mutex<HashMap<String, (Arc<Feed>, Instant)>>,
    capacity: usize,
    idle: Duration,
}

impl Feeds {
    pub(super) fn new(capacity: usize, idle: Duration) -> Self {
        Self { table: Mutex::default(), capacity: capacity.max(1), idle }
    }

    /// Returns the feed of a run and creates it if necessary.
    pub(super) fn get(&self, run: &str) -> Arc<Feed> {
        let now = Instant::now();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((feed, used)) = table.get_mut(run) {
            *used = now;
            return Arc::clone(feed);
        }
        // A count of 1 means that only the table has a reference. New references are created only
        // under this lock.
        let unused = |feed: &Arc<Feed>| Arc::strong_count(feed) == 1;
        table.retain(|_, (feed, used)| !unused(feed) || now.duration_since(*used) < self.idle);
        if table.len() >= self.capacity {
            let oldest = table.iter().filter(|(_, (feed, _))| unused(feed)).min_by_key(|(_, (_, used))| *used);
            if let Some(run) = oldest.map(|(run, _)| run.clone()) {
                table.remove(&run);
            }
        }
        let feed = Arc::new(Feed { reading: tokio::sync::Mutex::default(), news: watch::Sender::new(0) });
        table.insert(run.to_owned(), (Arc::clone(&feed), now));
        feed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn used_feeds_stay_and_unused_feeds_are_evicted() {
        let feeds = Feeds::new(2, Duration::from_mins(1));
        let feed = feeds.get("a");
        let unheld = Arc::downgrade(&feeds.get("b"));
        assert!(Arc::ptr_eq(&feed, &feeds.get("a")));
        feeds.get("c");
        assert!(unheld.upgrade().is_none());
        assert!(Arc::ptr_eq(&feed, &feeds.get("a")));
    }
}
