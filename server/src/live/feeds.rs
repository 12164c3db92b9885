//! Readings that are at hand, by run, and whoever waits for news of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{MutexGuard, watch};
use tokio::time::Instant;

use super::reading::Reading;

/// What is at hand of one run.
#[derive(Debug)]
pub(super) struct Feed {
    /// Held by whoever writes; empty where the log has to be read anew.
    reading: tokio::sync::Mutex<Option<Reading>>,
    news: watch::Sender<u64>,
}

impl Feed {
    /// The reading, for whoever writes; others wait.
    pub(super) async fn reading(&self) -> MutexGuard<'_, Option<Reading>> {
        self.reading.lock().await
    }

    /// Changes whenever there is news.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Tells that there is news.
    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count = count.wrapping_add(1));
    }
}

/// The feeds that are at hand. Those that nobody holds go after a while, or when there are too many.
#[derive(Debug)]
pub(super) struct Feeds {
    table: Mutex<HashMap<String, (Arc<Feed>, Instant)>>,
    most: usize,
    idle: Duration,
}

impl Feeds {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { table: Mutex::default(), most: most.max(1), idle }
    }

    /// The feed of a run.
    pub(super) fn get(&self, run: &str) -> Arc<Feed> {
        let now = Instant::now();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((feed, used)) = table.get_mut(run) {
            *used = now;
            return Arc::clone(feed);
        }
        // Only the table holds what nobody uses, and only under this lock is it handed out again.
        let unused = |feed: &Arc<Feed>| Arc::strong_count(feed) == 1;
        table.retain(|_, (feed, used)| !unused(feed) || now.duration_since(*used) < self.idle);
        if table.len() >= self.most {
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
    async fn what_is_held_stays_and_what_is_not_makes_room() {
        let feeds = Feeds::new(2, Duration::from_mins(1));
        let held = feeds.get("a");
        let unheld = Arc::downgrade(&feeds.get("b"));
        assert!(Arc::ptr_eq(&held, &feeds.get("a")));
        feeds.get("c");
        assert!(unheld.upgrade().is_none());
        assert!(Arc::ptr_eq(&held, &feeds.get("a")));
    }
}
