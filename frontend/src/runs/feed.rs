//! Live data of a run. The feed loads stored points page by page, then subscribes to server-sent
//! events. Without a working stream it polls.

mod several;

pub(crate) use several::Several;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::path;
use api::run::{PointPage, RunDetail, RunGap, RunPoint, RunState};
use js_sys::{Date, Function, Promise};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::de::DeserializeOwned;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{EventSource, MessageEvent};

use super::points::Points;
use crate::client::{self, RequestError, pause};

/// Points per request.
const PAGE: u32 = 5_000;
/// Number of consecutive stream errors before the feed switches to polling.
const BREAKS: u32 = 3;
/// Poll interval without a stream in ms.
const POLL_MS: i32 = 2_000;
/// Poll interval in ms for a finished run, and for a compared run without a stream.
const SLOW_POLL_MS: i32 = 10_000;
/// Interval in ms between two requests for run statistics while points arrive. The last points have a request, too.
const DETAIL_MS: i32 = 2_000;
/// Number of points that add 1 ms to the minimum time between two redraws.
const POINTS_PER_MS: usize = 40;

/// Transport of new points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedMode {
    /// Loading stored points.
    Loading,
    /// Server-sent events.
    Streaming,
    Polling,
    /// The run is finished. It is polled slowly because it may continue.
    Over,
}

/// Live data of a run.
#[derive(Clone, Copy)]
pub(crate) struct Feed {
    id: StoredValue<String>,
    /// Summary and parse report.
    pub(crate) detail: RwSignal<Option<Arc<RunDetail>>>,
    pub(crate) state: RwSignal<Option<RunState>>,
    pub(crate) mode: RwSignal<FeedMode>,
    /// Last request error.
    pub(crate) last_error: RwSignal<Option<RequestError>>,
    /// Points. They are not in a signal because copies are large.
    points: StoredValue<Points>,
    /// Incremented whenever the points change.
    version: RwSignal<u32>,
    pace: StoredValue<Pace>,
    alive: StoredValue<Arc<AtomicBool>>,
    stream: StoredValue<Option<Stream>, LocalStorage>,
}

/// Time of the last redraw, pending redraw flag, pending statistics request flag.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    announced_ms: f64,
    announces: bool,
    refreshes: bool,
}

/// Open event stream, and the function that resolves the promise for its end.
struct Stream {
    source: EventSource,
    ended: Function,
}

impl Stream {
    fn close(&self) {
        for set in [EventSource::set_onerror, EventSource::set_onopen] {
            set(&self.source, None);
        }
        self.source.close();
        // Resolving a promise cannot throw.
        drop(self.ended.call0(&JsValue::UNDEFINED));
    }
}

impl Feed {
    /// Subscribes to a run until the user leaves the page.
    pub(crate) fn follow(id: String) -> Self {
        let feed = Self::new(id);
        spawn_local(feed.run());
        feed
    }

    /// Polls a run slowly until the user leaves the page. A stream of [`Several`] replaces the
    /// polling.
    pub(crate) fn poll(id: String) -> Self {
        let feed = Self::new(id);
        spawn_local(feed.watch());
        feed
    }

    fn new(id: String) -> Self {
        let alive = Arc::new(AtomicBool::new(true));
        let feed = Self {
            id: StoredValue::new(id),
            detail: RwSignal::new(None),
            state: RwSignal::new(None),
            mode: RwSignal::new(FeedMode::Loading),
            last_error: RwSignal::new(None),
            points: StoredValue::default(),
            version: RwSignal::new(0),
            pace: StoredValue::default(),
            alive: StoredValue::new(Arc::clone(&alive)),
            stream: StoredValue::new_local(None),
        };
        let stream = feed.stream;
        on_cleanup(move || {
            alive.store(false, Ordering::Relaxed);
            if let Some(Some(stream)) = stream.try_update_value(Option::take) {
                stream.close();
            }
        });
        feed
    }

    pub(crate) fn id(&self) -> String {
        self.id.get_value()
    }

    /// Passes the points to `look`. Effects that call this function run again when points change.
    pub(crate) fn with_points<T>(&self, look: impl FnOnce(&Points) -> T) -> T {
        self.version.track();
        self.points.with_value(look)
    }

    /// Returns the version number of the points.
    pub(crate) fn version(&self) -> u32 {
        self.version.get()
    }

    /// Stops the feed before the user leaves the page.
    pub(crate) fn stop(&self) {
        self.alive.with_value(|alive| alive.store(false, Ordering::Relaxed));
        self.stream.update_value(|stream| {
            if let Some(stream) = stream.take() {
                stream.close();
            }
        });
    }

    /// Requests the run statistics.
    pub(crate) async fn refresh(self) -> Result<(), RequestError> {
        let Some(url) = self.id.try_with_value(|id| path::run(id)) else { return Ok(()) };
        let response = client::get::<RunDetail>(&url).await;
        if !self.is_alive() {
            return Ok(());
        }
        let detail = response?;
        self.enter(detail.summary.state);
        if self.detail.with_untracked(|known| known.as_deref() != Some(&detail)) {
            self.detail.set(Some(Arc::new(detail)));
        }
        Ok(())
    }

    fn is_alive(&self) -> bool {
        self.alive.try_with_value(|alive| alive.load(Ordering::Relaxed)) == Some(true)
    }

    fn is_over(&self) -> bool {
        matches!(self.state.get_untracked(), Some(RunState::Ended | RunState::Crashed))
    }

    fn enter(&self, state: RunState) {
        if self.state.get_untracked() != Some(state) {
            self.state.set(Some(state));
        }
    }

    fn note(&self, result: Result<(), RequestError>) -> bool {
        let error = result.err();
        let done = error.is_none();
        if self.is_alive() && self.last_error.with_untracked(|known| *known != error) {
            self.last_error.set(error);
        }
        done
    }

    /// Loads all stored points and retries after errors. Returns false if the user left the page or
    /// the error is permanent.
    async fn load(self) -> bool {
        loop {
            let done = self.note(
                async {
                    self.refresh().await?;
                    self.fetch_missing(0, None).await
                }
                .await,
            );
            if !self.is_alive() {
                return false;
            }
            if done {
                return true;
            }
            if self.last_error.with_untracked(|current_error| {
                current_error.as_ref().and_then(RequestError::status).is_some_and(is_lasting)
            }) {
                return false;
            }
            pause(POLL_MS).await;
        }
    }

    async fn run(self) {
        if !self.load().await {
            return;
        }
        while self.is_alive() {
            if !self.is_over() && !self.stream().await {
                self.poll_while_live().await;
            }
            if self.is_alive() && self.is_over() {
                self.mode.set(FeedMode::Over);
                pause(SLOW_POLL_MS).await;
                self.poll_once().await;
            }
        }
    }

    async fn watch(self) {
        if !self.load().await {
            return;
        }
        self.mode.set(if self.is_over() { FeedMode::Over } else { FeedMode::Polling });
        while self.is_alive() {
            pause(SLOW_POLL_MS).await;
            if self.is_alive() && self.mode.get_untracked() != FeedMode::Streaming {
                self.mode.set(if self.is_over() { FeedMode::Over } else { FeedMode::Polling });
                self.poll_once().await;
            }
        }
    }

    async fn poll_while_live(self) {
        while self.is_alive() && !self.is_over() {
            self.mode.set(FeedMode::Polling);
            pause(POLL_MS).await;
            self.poll_once().await;
        }
    }

    async fn poll_once(self) {
        if !self.is_alive() {
            return;
        }
        let before = self.points.with_value(Points::last_row);
        let result = async {
            self.refresh().await?;
            self.fetch_missing(before, None).await
        }
        .await;
        self.note(result);
    }

    /// Fetches pages after a row, until row `before` or the end.
    async fn fetch_missing(self, mut after: u64, before: Option<u64>) -> Result<(), RequestError> {
        loop {
            let Some(url) = self.id.try_with_value(|id| path::run_points(id, after, PAGE)) else { return Ok(()) };
            let page = client::get::<PointPage>(&url).await;
            if !self.is_alive() {
                return Ok(());
            }
            let PointPage { mut points, next, open } = page?;
            points.extend(open);
            self.add(&points);
            match next {
                Some(next) if next > after && before.is_none_or(|before| next + 1 < before) => after = next,
                _ => return Ok(()),
            }
        }
    }

    /// Reads an event stream until it ends. Returns false after too many consecutive errors.
    async fn stream(self) -> bool {
        let url = self.id.with_value(|id| path::run_events(id));
        let after = self.points.with_value(Points::last_row);
        let Ok(source) = EventSource::new(&format!("{url}?after={after}")) else { return false };
        let breaks = Rc::new(Cell::new(0));
        let batch = Batch::new(self);
        let healthy = Rc::clone(&breaks);
        let on_point = listener(move |point: RunPoint| {
            healthy.set(0);
            batch.put(point);
        });
        let on_gap = listener(move |gap: RunGap| self.fill(gap));
        let on_state = listener(move |state: RunState| {
            self.set_state(state);
            if self.is_over() {
                self.close_soon();
            }
        });
        for (name, listener) in [("point", &on_point), ("gap", &on_gap), ("state", &on_state)] {
            // Adding a listener for a valid event name cannot fail.
            drop(source.add_event_listener_with_callback(name, listener.as_ref().unchecked_ref()));
        }
        let opened = Rc::clone(&breaks);
        let on_open = Closure::<dyn Fn()>::new(move || {
            opened.set(0);
            if self.is_alive() {
                self.begin_streaming();
            }
        });
        let broken = Rc::clone(&breaks);
        let stream_source = source.clone();
        let on_error = Closure::<dyn Fn()>::new(move || {
            broken.set(broken.get() + 1);
            // Browsers do not reconnect a rejected stream.
            if broken.get() >= BREAKS || stream_source.ready_state() == EventSource::CLOSED {
                broken.set(BREAKS);
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
        breaks.get() < BREAKS
    }

    fn close(&self) {
        if let Some(Some(stream)) = self.stream.try_update_value(Option::take) {
            stream.close();
        }
    }

    /// Called when a stream opens. Fetches points between the last page and the stream.
    fn begin_streaming(self) {
        self.mode.set(FeedMode::Streaming);
        self.last_error.set(None);
        let after = self.points.with_value(Points::last_row);
        spawn_local(async move {
            self.note(self.fetch_missing(after, None).await);
        });
    }

    /// Fetches points that the stream skipped.
    fn fill(self, gap: RunGap) {
        spawn_local(async move {
            self.note(self.fetch_missing(gap.after, Some(gap.before)).await);
        });
    }

    /// Updates the state and requests new statistics.
    fn set_state(self, state: RunState) {
        self.enter(state);
        spawn_local(async move {
            self.note(self.refresh().await);
        });
    }

    /// Delay the close, because points sent before the end may still arrive.
    fn close_soon(self) {
        set_timeout(
            move || {
                if self.is_alive() && self.is_over() {
                    self.close();
                }
            },
            std::time::Duration::from_millis(500),
        );
    }

    fn add(&self, points: &[RunPoint]) {
        if self.points.try_update_value(|known| known.add(points)) == Some(true) {
            self.publish();
        }
    }

    /// Notifies the charts at a limited rate.
    fn publish(self) {
        let now = Date::now();
        let min_interval_ms = (self.points.with_value(Points::len) / POINTS_PER_MS) as f64;
        let wait = self.pace.try_update_value(|pace| {
            let wait = pace.announced_ms + min_interval_ms - now;
            if wait <= 0.0 {
                pace.announced_ms = now;
                return Some(None);
            }
            (!std::mem::replace(&mut pace.announces, true)).then_some(Some(wait))
        });
        match wait.flatten() {
            Some(None) => self.version.update(|version| *version = version.wrapping_add(1)),
            Some(Some(wait)) => set_timeout(
                move || {
                    if self.is_alive() {
                        self.pace.update_value(|pace| {
                            pace.announces = false;
                            pace.announced_ms = Date::now();
                        });
                        self.version.update(|version| *version = version.wrapping_add(1));
                    }
                },
                std::time::Duration::from_millis(wait as u64),
            ),
            None => {}
        }
        self.refresh_soon();
    }

    fn refresh_soon(self) {
        let due = self.pace.try_update_value(|pace| {
            self.mode.get_untracked() == FeedMode::Streaming && !std::mem::replace(&mut pace.refreshes, true)
        });
        if due == Some(true) {
            spawn_local(async move {
                pause(DETAIL_MS).await;
                if self.pace.try_update_value(|pace| pace.refreshes = false).is_some() {
                    self.note(self.refresh().await);
                }
            });
        }
    }
}

/// True for permanent errors: the run is unknown, deleted, or not accessible.
const fn is_lasting(status: u16) -> bool {
    matches!(status, 400 | 401 | 403 | 404 | 410)
}

/// Collects stream points until the next animation frame.
#[derive(Clone)]
struct Batch {
    feed: Feed,
    points: Rc<RefCell<Vec<RunPoint>>>,
    due: Rc<Cell<bool>>,
}

impl Batch {
    fn new(feed: Feed) -> Self {
        Self { feed, points: Rc::default(), due: Rc::default() }
    }

    fn put(&self, point: RunPoint) {
        self.points.borrow_mut().push(point);
        if !self.due.replace(true) {
            let this = self.clone();
            request_animation_frame(move || {
                this.due.set(false);
                let points = this.points.take();
                if this.feed.is_alive() {
                    this.feed.add(&points);
                }
            });
        }
    }
}

/// Decodes event data. Events that fail to decode are ignored; polling fetches their points later.
fn listener<T: DeserializeOwned + 'static>(on_data: impl Fn(T) + 'static) -> Closure<dyn Fn(MessageEvent)> {
    Closure::new(move |event: MessageEvent| {
        if let Ok(data) = serde_json::from_str::<T>(&event.data().as_string().unwrap_or_default()) {
            on_data(data);
        }
    })
}
