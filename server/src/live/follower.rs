//! What happens in a run, for someone who watches.
//!
//! A follower remembers one row and asks the database for what is behind it whenever there is news. Someone who reads
//! slowly therefore costs no memory: what piled up is read when he is ready, and where it is more than a page of rows he
//! is told which to ask for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use api::run::{RunGap, RunState};
use tokio::sync::watch;

use super::feeds::Feed;
use crate::clock::Clock;
use crate::store::{Reader, StoreError};

/// Rows read at once.
const ROWS_AT_ONCE: u32 = 500;
/// Most rows that the end of a log makes early: the open point, and one of a last line without an end. Those of a run that went on
/// after its end were made anew.
const MOST_EARLY_ROWS: u64 = 2;
/// How often the clock is looked at while nothing comes.
const TICK: Duration = Duration::from_secs(1);

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Row to go on from, where the event completes one.
    pub row: Option<u64>,
    /// Its name: point, gap or state.
    pub name: &'static str,
    /// Its data, JSON.
    pub data: String,
}

/// What happens in a run, for someone who watches.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    clock: Arc<dyn Clock>,
    run: String,
    /// Keeps the feed at hand.
    _feed: Arc<Feed>,
    news: watch::Receiver<u64>,
    row: u64,
    most_rows: u64,
    retakes: Option<u64>,
    state: Option<RunState>,
    stalls_at_ms: Option<i64>,
    open: Option<String>,
    behind: bool,
    waiting: VecDeque<Told>,
}

impl Follower {
    pub(super) fn new(
        reader: Reader,
        clock: Arc<dyn Clock>,
        feed: Arc<Feed>,
        run: &str,
        row: u64,
        most_rows: u64,
    ) -> Self {
        let news = feed.news();
        Self {
            reader,
            clock,
            run: run.to_owned(),
            _feed: feed,
            news,
            row,
            most_rows,
            retakes: None,
            state: None,
            stalls_at_ms: None,
            open: None,
            behind: true,
            waiting: VecDeque::new(),
        }
    }

    /// The next event; `None` where the run is gone. Dropped while it waits, it loses nothing.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.waiting.pop_front() {
                return Some(told);
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

    /// Reads what came.
    async fn look(&mut self) -> Result<(), StoreError> {
        let pulse = self.reader.run_pulse(&self.run, self.clock.now()).await?;
        let is_retaken = if let Some(retakes) = self.retakes {
            retakes != pulse.retakes
        } else {
            // Someone who comes back may have a row as it was before. Whoever has rows behind those had a stream when, or since, they
            // were made anew.
            let anew = pulse.retaken_row..pulse.retaken_row.saturating_add(MOST_EARLY_ROWS);
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
        if pulse.points - self.row > self.most_rows {
            let before = pulse.points - self.most_rows + 1;
            let gap = RunGap { after: self.row, before };
            let data = serde_json::to_string(&gap).expect("a gap is two numbers");
            self.row = before - 1;
            self.waiting.push_back(Told { row: Some(self.row), name: "gap", data });
        }
        let rows = self.reader.run_points_json(&self.run, self.row, ROWS_AT_ONCE).await?;
        for (row, data) in rows {
            self.row = row;
            self.waiting.push_back(Told { row: Some(row), name: "point", data });
        }
        self.behind = self.row < pulse.points;
        if !self.behind {
            if self.open != pulse.open && self.row == pulse.points {
                self.waiting.extend(pulse.open.clone().map(|data| Told { row: None, name: "point", data }));
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
        self.waiting.push_back(Told { row: None, name: "state", data });
    }
}
