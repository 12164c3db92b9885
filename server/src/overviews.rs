//! First looks at large timelines, made before they are asked for and kept for the next who asks.
//!
//! A page asks for the outcome, then for the overviews of its large timelines. Making one means to read and decode the whole timeline,
//! so it begins with the question for the outcome; whoever comes meanwhile waits for the same one.

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

/// What is kept at most, in bytes; one of a thousand ranks has some 6 MB.
const ROOM: usize = 32 << 20;

/// Most overviews that are kept, those included that could not be made: what nobody has is asked for too.
const MOST: usize = 256;

/// Whose overview it is. An answer that is replaced has another time, so nothing old is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    scenario: String,
    engine: String,
    created_at: String,
    planner: PlannerKind,
    iteration: u32,
}

type Place = Arc<OnceCell<Bytes>>;

/// The overviews that were asked for last, encoded.
#[derive(Debug, Clone, Default)]
pub struct Overviews {
    kept: Arc<Mutex<VecDeque<(Key, Place)>>>,
}

impl Overviews {
    /// The overview of a timeline of the outcome that is shown, encoded.
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
            // It says what is missing, unless that has come meanwhile.
            return made(reader.timeline(scenario, planner, iteration).await?).await;
        };
        self.get(reader, Key { scenario: scenario.to_owned(), engine, created_at, planner, iteration }).await
    }

    /// Begins to make the overviews that a page asks for when it has this outcome.
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
                // Who asks is told of a failure when it happens again.
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

    /// The place of an overview, the newest from now on.
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

/// The overview of an encoded timeline, encoded.
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
        // Three of 12 MiB are more than 32.
        for iteration in 0..3 {
            let place = overviews.place(key(iteration));
            place.set(Bytes::from(vec![0; 12 << 20])).unwrap();
            if iteration == 1 {
                // Asked for again: now the second is the oldest.
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
