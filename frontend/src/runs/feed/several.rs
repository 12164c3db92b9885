//! Shared event stream for compared runs. Browsers limit the number of open streams per server.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use api::path;
use api::run::{RunEvent, RunUpdate};
use js_sys::Promise;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use wasm_bindgen_futures::JsFuture;
use web_sys::EventSource;

use super::{BREAKS, Batch, Feed, FeedMode, Points, Stream, listener};
use crate::client::pause;

/// Wait interval in ms until the stored points are loaded. The stream starts after them.
const WAIT_MS: i32 = 100;
const WAITS: u32 = 100;

/// Event stream for several runs. Runs without a stream are polled.
#[derive(Clone, Copy)]
pub(crate) struct Several {
    stream: StoredValue<Option<Stream>, LocalStorage>,
    /// Incremented with each new set of runs.
    turn: StoredValue<u32>,
}

impl Several {
    /// Creates a stream without runs. It closes when the user leaves the page.
    pub(crate) fn new() -> Self {
        let this = Self { stream: StoredValue::new_local(None), turn: StoredValue::new(0) };
        on_cleanup(move || this.close());
        this
    }

    /// Replaces the set of runs.
    pub(crate) fn follow(self, feeds: Vec<Feed>) {
        let Some(turn) = self.turn.try_update_value(|turn| {
            *turn += 1;
            *turn
        }) else {
            return;
        };
        self.close();
        if feeds.is_empty() {
            return;
        }
        spawn_local(async move {
            for _ in 0..WAITS {
                if !feeds.iter().any(|feed| feed.is_alive() && feed.mode.get_untracked() == FeedMode::Loading) {
                    break;
                }
                pause(WAIT_MS).await;
                if self.turn.try_get_value() != Some(turn) {
                    return;
                }
            }
            // Skip runs that failed to load; their feeds report the error.
            let there = |feed: &Feed| feed.is_alive() && feed.mode.get_untracked() != FeedMode::Loading;
            let feeds: Vec<Feed> = feeds.into_iter().filter(there).collect();
            if self.turn.try_get_value() == Some(turn) && !feeds.is_empty() {
                self.receive(&feeds).await;
                for feed in feeds.iter().filter(|feed| feed.is_alive()) {
                    feed.mode.set(if feed.is_over() { FeedMode::Over } else { FeedMode::Polling });
                }
            }
        });
    }

    /// Reads the stream until it ends.
    async fn receive(self, feeds: &[Feed]) {
        let ids: Vec<String> = feeds.iter().map(Feed::id).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let after: Vec<u64> = feeds.iter().map(|feed| feed.points.with_value(Points::last_row)).collect();
        let Ok(source) = EventSource::new(&path::runs_events(&ids, &after)) else { return };
        let batches: BTreeMap<String, Batch> = feeds.iter().map(|feed| (feed.id(), Batch::new(*feed))).collect();
        let breaks = Rc::new(Cell::new(0));
        let healthy = Rc::clone(&breaks);
        let on_update = listener(move |update: RunUpdate| {
            healthy.set(0);
            let Some(batch) = batches.get(&update.run).filter(|batch| batch.feed.is_alive()) else { return };
            match update.event {
                RunEvent::Point(point) => batch.put(*point),
                RunEvent::Gap(gap) => batch.feed.fill(gap),
                RunEvent::State(state) => batch.feed.set_state(state),
            }
        });
        for name in ["point", "gap", "state"] {
            // Adding a listener for a valid event name cannot fail.
            drop(source.add_event_listener_with_callback(name, on_update.as_ref().unchecked_ref()));
        }
        let opened = Rc::clone(&breaks);
        let carried = feeds.to_vec();
        let on_open = Closure::<dyn Fn()>::new(move || {
            opened.set(0);
            carried.iter().filter(|feed| feed.is_alive()).for_each(|feed| feed.begin_streaming());
        });
        let broken = Rc::clone(&breaks);
        let stream_source = source.clone();
        let on_error = Closure::<dyn Fn()>::new(move || {
            broken.set(broken.get() + 1);
            // Browsers do not reconnect a rejected stream.
            if broken.get() >= BREAKS || stream_source.ready_state() == EventSource::CLOSED {
                self.close();
            }
        });
        source.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        let ended = Promise::new(&mut |resolve, _| {
            self.stream.set_value(Some(Stream { source: source.clone(), ended: resolve }));
        });
        // The promise never rejects.
        drop(JsFuture::from(ended).await);
    }

    fn close(self) {
        if let Some(Some(stream)) = self.stream.try_update_value(Option::take) {
            stream.close();
        }
    }
}
