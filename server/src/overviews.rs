//! A cache of overviews for large timelines, computed in advance.
//!
//! A page requests the outcome, then the overviews of its large timelines. An overview requires
//! decoding the complete timeline, so the computation starts with the outcome request. Concurrent
//! requests share it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use api::job::{EngineAnswer, StoredOutcome};
use api::timeline::overview;
use axum::body::Bytes;
use planner::outcome::{Answer, ENGINE};
use planner::scenario::PlannerKind;
use planner::timeline::levels::Overview;
use tokio::sync::OnceCell;

use crate::error::ApiError;
use crate::store::Reader;

/// Cache size limit in bytes. An overview with a thousand ranks has about 6 MB.
const ROOM: usize = 32 << 20;

/// Limit on cache entries. It includes failed overviews, because clients also request overviews
/// that do not exist.
const MOST: usize = 256;

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

type Place = Arc<OnceCell<Bytes>>;

/// LRU cache of encoded overviews.
#[derive(Debug, Clone, Default)]
pub struct Overviews {
    kept: Arc<Mutex<VecDeque<(Key, Place)>>>,
}

impl Overviews {
    /// Returns the encoded overview for a timeline in the displayed outcome.
    pub(crate) async fn of(
        &self,
        reader: &Reader,
        scenario: &str,
        planner: PlannerKind,
        iteration: u32,
    ) -> Result<Bytes, ApiError> {
        let answers = reader.engine_answers(scenario).await?;
        let shown = answers.iter().position(|answer| answer.engine == ENGINE).unwrap_or(0);
        let Some(EngineAnswer { engine, created_at }) = answers.into_iter().nth(shown) else {
            // The timeline request returns the specific error, or succeeds if the outcome was
            // stored in the meantime.
            return made(reader.timeline(scenario, planner, iteration).await?).await;
        };
        self.get(reader, Key { scenario: scenario.to_owned(), engine, created_at, planner, iteration }).await
    }

    /// Starts computing the overviews that a page will request for this outcome.
    pub(crate) fn make_ready(&self, reader: &Reader, stored: &StoredOutcome) {
        for result in &stored.outcome.results {
            let Answer::Planned(planned) = &result.answer else { continue };
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
        let kept = self.place(key);
        let make = || async { made(reader.timeline_of(&scenario, Some(&engine), planner, iteration).await?).await };
        let overview = kept.get_or_try_init(make).await?.clone();
        self.make_room();
        Ok(overview)
    }

    /// Returns the cache entry for a key and marks it as most recently used.
    fn place(&self, key: Key) -> Place {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().position(|(other, _)| *other == key).and_then(|at| kept.remove(at));
        let (key, place) = found.unwrap_or_else(|| (key, Place::default()));
        kept.push_back((key, Arc::clone(&place)));
        if kept.len() > MOST {
            kept.pop_front();
        }
        place
    }

    fn make_room(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let size = |(_, place): &(Key, Place)| place.get().map_or(0, Bytes::len);
        let mut bytes: usize = kept.iter().map(size).sum();
        while bytes > ROOM {
            bytes -= kept.pop_front().as_ref().map_or(bytes, size);
        }
    }
}

/// Computes and encodes the overview of an encoded timeline.
async fn made(encoded: Vec<u8>) -> Result<Bytes, ApiError> {
    let make = move || Ok(Bytes::from(overview::encode(&Overview::of(&decode(&encoded)?))));
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
    fn what_could_not_be_made_is_not_kept_for_ever() {
        let overviews = Overviews::default();
        for iteration in 0..1_000 {
            overviews.place(key(iteration));
        }
        assert_eq!(overviews.kept.lock().unwrap().len(), MOST);
    }

    #[test]
    fn the_oldest_make_room() {
        let overviews = Overviews::default();
        // Three entries with 12 MiB each exceed 32 MiB.
        for iteration in 0..3 {
            let place = overviews.place(key(iteration));
            place.set(Bytes::from(vec![0; 12 << 20])).unwrap();
            if iteration == 1 {
                // This access makes the second entry the oldest.
                overviews.place(key(0));
            }
            overviews.make_room();
        }
        let kept: Vec<u32> = overviews.kept.lock().unwrap().iter().map(|(key, _)| key.iteration).collect();
        assert_eq!(kept, [0, 2]);
        assert!(overviews.place(key(1)).get().is_none(), "made anew");
        assert!(overviews.place(key(0)).get().is_some());
    }
}
