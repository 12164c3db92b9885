//! A cache of overviews for large timelines, computed in advance.
//!
//! A page requests the outcome, then the overviews of its large timelines. An overview requires
//! decoding the complete timeline, so the computation starts with the outcome request. Concurrent
//! requests share it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use api::job::{EngineOutcome, StoredOutcome};
use api::timeline::overview;
use axum::body::Bytes;
use planner::outcome::{ENGINE, PlanOutcome};
use planner::scenario::PlannerKind;
use planner::timeline::levels::Overview;
use tokio::sync::OnceCell;

use crate::error::ApiError;
use crate::store::Reader;

/// Cache size limit in bytes. An overview with a thousand ranks has about 6 MB.
const MAX_BYTES: usize = 32 << 20;

/// Limit on cache entries. It includes failed overviews, because clients also request overviews
/// that do not exist.
const MAX_ENTRIES: usize = 256;

/// Cache key. A replaced outcome has a new creation time, so the cache never returns an outdated
/// overview.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    scenario: String,
    engine: String,
    created_at: String,
    planner: PlannerKind,
    iteration: u32,
}

type CacheCell = Arc<OnceCell<Bytes>>;

/// LRU cache of encoded overviews.
#[derive(Debug, Clone, Default)]
pub struct Overviews {
    entries: Arc<Mutex<VecDeque<(Key, CacheCell)>>>,
}

impl Overviews {
    /// Returns the encoded overview for a timeline in the displayed outcome.
    pub(crate) async fn load(
        &self,
        reader: &Reader,
        scenario: &str,
        planner: PlannerKind,
        iteration: u32,
    ) -> Result<Bytes, ApiError> {
        let answers = reader.engine_answers(scenario).await?;
        let index = answers.iter().position(|outcome| outcome.engine == ENGINE).unwrap_or(0);
        let Some(EngineOutcome { engine, created_at }) = answers.into_iter().nth(index) else {
            // The timeline request returns the specific error, or succeeds if the outcome was
            // stored in the meantime.
            return encode_overview(reader.timeline(scenario, planner, iteration).await?).await;
        };
        self.get(reader, Key { scenario: scenario.to_owned(), engine, created_at, planner, iteration }).await
    }

    /// Starts computing the overviews that a page will request for this outcome.
    pub(crate) fn make_ready(&self, reader: &Reader, stored: &StoredOutcome) {
        for result in &stored.outcome.results {
            let PlanOutcome::Planned(planned) = &result.answer else { continue };
            if !overview::is_looked_at_first(planned, 0) {
                continue;
            }
            let key = Key {
                scenario: stored.outcome.scenario.clone(),
                engine: stored.outcome.engine.clone(),
                created_at: stored.created_at.clone(),
                planner: result.planner,
                iteration: 0,
            };
            let (overviews, reader) = (self.clone(), reader.clone());
            tokio::spawn(async move {
                // The later request reports the failure.
                drop(overviews.get(&reader, key).await);
            });
        }
    }

    async fn get(&self, reader: &Reader, key: Key) -> Result<Bytes, ApiError> {
        let Key { scenario, engine, planner, iteration, .. } = key.clone();
        let cell = self.entry(key);
        let make = || async {
            encode_overview(reader.engine_timeline(&scenario, Some(&engine), planner, iteration).await?).await
        };
        let overview = cell.get_or_try_init(make).await?.clone();
        self.evict();
        Ok(overview)
    }

    /// Returns the cache entry for a key and marks it as most recently used.
    fn entry(&self, key: Key) -> CacheCell {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.iter().position(|(other, _)| *other == key).and_then(|at| entries.remove(at));
        let (key, cell) = found.unwrap_or_else(|| (key, CacheCell::default()));
        entries.push_back((key, Arc::clone(&cell)));
        if entries.len() > MAX_ENTRIES {
            entries.pop_front();
        }
        cell
    }

    fn evict(&self) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let size = |(_, cell): &(Key, CacheCell)| cell.get().map_or(0, Bytes::len);
        let mut bytes: usize = entries.iter().map(size).sum();
        while bytes > MAX_BYTES {
            bytes -= entries.pop_front().as_ref().map_or(bytes, size);
        }
    }
}

/// Computes and encodes the overview of an encoded timeline.
async fn encode_overview(encoded: Vec<u8>) -> Result<Bytes, ApiError> {
    let make = move || Ok(Bytes::from(overview::encode(&Overview::new(&decode(&encoded)?))));
    tokio::task::spawn_blocking(make)
        .await
        .map_err(|error| ApiError::Fault(format!("the overview stopped unexpectedly: {error}")))?
}

/// Decodes a stored timeline.
pub(crate) fn decode(encoded: &[u8]) -> Result<planner::timeline::Timeline, ApiError> {
    api::timeline::decode(encoded).map_err(|error| ApiError::Fault(format!("a stored timeline is damaged: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(iteration: u32) -> Key {
        let (scenario, engine, created_at) = ("a".to_owned(), "e".to_owned(), "now".to_owned());
        Key { scenario, engine, created_at, planner: PlannerKind::OneFOneB, iteration }
    }

    #[test]
    fn failed_overviews_are_not_cached() {
        let overviews = Overviews::default();
        for iteration in 0..1_000 {
            overviews.entry(key(iteration));
        }
        assert_eq!(overviews.entries.lock().unwrap().len(), MAX_ENTRIES);
    }

    #[test]
    fn oldest_overviews_are_evicted() {
        let overviews = Overviews::default();
        // Three entries with 12 MiB each exceed 32 MiB.
        for iteration in 0..3 {
            let cell = overviews.entry(key(iteration));
            cell.set(Bytes::from(vec![0; 12 << 20])).unwrap();
            if iteration == 1 {
                // This access makes the second entry the oldest.
                overviews.entry(key(0));
            }
            overviews.evict();
        }
        let remaining: Vec<u32> = overviews.entries.lock().unwrap().iter().map(|(key, _)| key.iteration).collect();
        assert_eq!(remaining, [0, 2]);
        assert!(overviews.entry(key(1)).get().is_none(), "made anew");
        assert!(overviews.entry(key(0)).get().is_some());
    }
}
