//! Event source for subscribers of a run.
//!
//! A follower stores only a row number and loads newer rows from the database on each notification.
//! A slow client therefore uses no memory. If it lags by more than a page of rows, it receives a
//! gap event with the range to request.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use api::run::{RunGap, RunState};
use tokio::sync::watch;

use super::feeds::Feed;
use crate::clock::Clock;
use crate::store::{Reader, StoreError};

/// Number of rows per database read.
const ROWS_AT_ONCE: u32 = 500;
/// Maximum number of early rows, which exist only because the run ended: the open point, and
/// possibly a final line that lacks a newline. They are rebuilt if the run continues.
const MAX_EARLY_ROWS: u64 = 2;
/// Interval between time checks while idle.
const TICK: Duration = Duration::from_secs(1);

/// Event for a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedEvent {
    /// Row from which to continue, if the event completes a row.
    pub row: Option<u64>,
    /// Event name: `point`, `gap` or `state`.
    pub name: &'static str,
    /// JSON data.
    pub data: String,
}

/// Stream of events in a run.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    clock: Arc<dyn Clock>,
    run: String,
    /// Keeps the feed in the cache.
    _feed: Arc<Feed>,
    news: watch::Receiver<u64>,
    row: u64,
    max_rows: u64,
    retakes: Option<u64>,
    state: Option<RunState>,
    stalls_at_ms: Option<i64>,
    open: Option<String>,
    behind: bool,
    waiting: VecDeque<FeedEvent>,
}

impl Follower {
    pub(super) fn new(
        reader: Reader,
        clock: Arc<dyn Clock>,
        feed: Arc<Feed>,
        run: &str,
        row: u64,
        max_rows: u64,
    ) -> Self {
        let news = feed.news();
        Self {
            reader,
            clock,
            run: run.to_owned(),
            _feed: feed,
            news,
            row,
            max_rows,
            retakes: None,
            state: None,
            stalls_at_ms: None,
            open: None,
            behind: true,
            waiting: VecDeque::new(),
        }
    }

    /// Returns the following event, or `None` if the run was deleted. This method is cancel-safe.
    pub async fn next(&mut self) -> Option<FeedEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.behind {
                self.news.mark_unchanged();
                match self.look().await {
                    Ok(()) => continue,
                    Err(StoreError::Unknown { .. } | StoreError::Gone { .. }) => return None,
                    Err(error) => {
                        tracing::warn!(run = self.run, "a stream of events ends: {error}");
                        return None;
                    }
                }
            }
            tokio::select! {
                changed = self.news.changed() => {
                    changed.ok()?;
                    self.behind = true;
                }
                () = tokio::time::sleep(TICK) => {
                    let now = self.clock.now().as_millisecond();
                    self.behind = self.stalls_at_ms.is_some_and(|at| now > at);
                }
            }
        }
    }

    /// Loads new rows and state, and queues the events.
    async fn look(&mut self) -> Result<(), StoreError> {
        let pulse = self.reader.run_pulse(&self.run, self.clock.now()).await?;
        let is_retaken = if let Some(retakes) = self.retakes {
            retakes != pulse.retakes
        } else {
            // A client that reconnects may have an outdated version of a rebuilt row. A client with
            // later rows was connected during or after the rebuild.
            let anew = pulse.retaken_row..pulse.retaken_row.saturating_add(MAX_EARLY_ROWS);
            pulse.retakes > 0 && anew.contains(&self.row)
        };
        if is_retaken {
            self.row = self.row.min(pulse.retaken_row.saturating_sub(1));
        }
        self.retakes = Some(pulse.retakes);
        self.row = self.row.min(pulse.points);
        if self.state.is_none() {
            self.tell_state(pulse.state);
        }
        if pulse.points - self.row > self.max_rows {
            let before = pulse.points - self.max_rows + 1;
            let gap = RunGap { after: self.row, before };
            let data = serde_json::to_string(&gap).expect("a gap is two numbers");
            self.row = before - 1;
            self.waiting.push_back(FeedEvent { row: Some(self.row), name: "gap", data });
        }
        let rows = self.reader.run_points_json(&self.run, self.row, ROWS_AT_ONCE).await?;
        for (row, data) in rows {
            self.row = row;
            self.waiting.push_back(FeedEvent { row: Some(row), name: "point", data });
        }
        self.behind = self.row < pulse.points;
        if !self.behind {
            if self.open != pulse.open && self.row == pulse.points {
                self.waiting.extend(pulse.open.clone().map(|data| FeedEvent { row: None, name: "point", data }));
                self.open = pulse.open;
            }
            if self.state != Some(pulse.state) {
                self.tell_state(pulse.state);
            }
            self.stalls_at_ms = pulse.stalls_at_ms;
        }
        Ok(())
    }

    fn tell_state(&mut self, state: RunState) {
        self.state = Some(state);
        let data = serde_json::to_string(&state).expect("a state is a word");
        self.waiting.push_back(FeedEvent { row: None, name: "state", data });
    }
}
