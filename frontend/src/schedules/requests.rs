//! Sends requests after edits and updates the address bar.

use std::sync::Arc;
use std::time::Duration;

use api::path;
use api::planner::schedule_comparison::ScheduleResponse;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsValue;

use super::{AskState, DisplayedSchedules, Schedules, input, link};
use crate::client::{self, RequestError};
use crate::field_errors::FieldErrors;
use crate::gantt::TimeWindow;
use crate::storage;

/// Debounce interval between edits and the request.
const DEBOUNCE: Duration = Duration::from_millis(120);
/// Minimum interval between address bar updates. Browsers reject hundreds of updates within a few
/// seconds.
const URL_PAUSE: Duration = Duration::from_millis(250);

impl Schedules {
    /// Opens the input from a URL fragment. Without a fragment, opens the last input.
    pub(crate) fn open(self, fragment: &str) {
        let says = fragment.trim_start_matches('#');
        if says.is_empty() && self.request.with_untracked(|request| !request.is_null()) {
            // Delay the update: the address bar may still contain the previous page.
            self.write_address_soon();
            return;
        }
        let draft = if says.is_empty() { storage::read(storage::SCHEDULES) } else { None };
        let (request, view) = link::parse(draft.as_deref().unwrap_or(says));
        // A displayed response is not fitted again, so use its extent here.
        let extent = self.displayed.with_untracked(|content| content.as_ref().map_or(0, |current| current.extent_ns()));
        let (start, end) = view.window_ns.unwrap_or((0, extent));
        self.window.set(TimeWindow { start_ns: start as f64, end_ns: end as f64 });
        self.view.set(view);
        if self.request.with_untracked(|before| *before != request) || self.displayed.with_untracked(Option::is_none) {
            self.request.set(request);
            self.request_now();
        }
    }

    pub(super) fn request_soon(self) {
        self.next_generation();
        self.state.set(AskState::Asking);
        let timer = set_timeout_with_handle(move || self.request_now(), DEBOUNCE);
        self.timer.update_value(|slot| {
            if let Some(old) = slot.take() {
                old.clear();
            }
            // If the timer cannot be created, the slot stays empty.
            *slot = timer.ok();
        });
    }

    /// Sends a request for the current input and cancels older requests.
    pub(crate) fn request_now(self) {
        let generation = self.next_generation();
        let json = self.request.get_untracked();
        if input::kinds(&json).is_empty() && input::tables(&json).is_empty() {
            self.errors.set(FieldErrors::default());
            self.displayed.set(None);
            self.state.set(AskState::Empty);
            return;
        }
        self.state.set(AskState::Asking);
        // Without an abort controller, an outdated response is discarded on arrival.
        let Ok(controller) = web_sys::AbortController::new() else { return };
        let signal = controller.signal();
        self.abort.set_value(Some(controller));
        spawn_local(async move {
            let response = client::post_abortable::<ScheduleResponse>(path::SCHEDULES, json.to_string(), &signal).await;
            if self.generation.get_value() == generation {
                self.show(response);
            }
        });
    }

    fn show(self, result: Result<ScheduleResponse, RequestError>) {
        match result {
            Ok(response) => {
                self.errors.set(FieldErrors::default());
                let before = self.displayed.with_untracked(|previous| {
                    previous.as_ref().map_or(0, |previous_content| previous_content.extent_ns())
                });
                let content = DisplayedSchedules::from_response(response);
                self.selection.set(None);
                self.hover.set(None);
                self.window.set(refitted(self.window.get_untracked(), before as f64, content.extent_ns() as f64));
                // Set the units before painting: charts use the units of the response.
                if self.on_page.get_untracked() {
                    content.measure();
                }
                self.displayed.set(Some(Arc::new(content)));
                self.state.set(AskState::Done);
            }
            Err(error) => {
                if let RequestError::Problem(problem) = &error {
                    self.errors.set(FieldErrors::from_problems(&problem.errors));
                }
                self.state.set(AskState::Failed(error));
            }
        }
    }

    fn next_generation(self) -> u64 {
        if let Some(Some(controller)) = self.abort.try_update_value(Option::take) {
            controller.abort();
        }
        self.generation.update_value(|generation| *generation += 1);
        self.generation.get_value()
    }

    /// Returns the URL fragment for the current input and view.
    pub(crate) fn fragment(self) -> String {
        let window = self.window.get();
        let extent = self.displayed.with(|content| content.as_ref().map_or(0, |current| current.extent_ns())) as f64;
        let is_full = window.start_ns <= 0.0 && window.end_ns >= extent;
        let window_ns = (!is_full && window.end_ns > window.start_ns)
            .then(|| (window.start_ns.max(0.0).round() as u64, window.end_ns.round() as u64));
        let view = link::View { window_ns, ..self.view.get() };
        let (fragment, unlinked) = self.request.with(|request| link::write(request, &view));
        if self.unlinked.get_untracked() != unlinked {
            self.unlinked.set(unlinked);
        }
        fragment
    }

    fn write_address(self) {
        if !self.on_page.get_untracked() || self.request.with_untracked(serde_json::Value::is_null) {
            return;
        }
        let fragment = untrack(|| self.fragment());
        storage::write(storage::SCHEDULES, &fragment);
        if let Ok(history) = window().history() {
            // If the browser refuses, the old URL stays. The next change writes again.
            drop(history.replace_state_with_url(&JsValue::NULL, "", Some(&format!("/schedules#{fragment}"))));
        }
    }

    /// Schedules an address bar update. Several changes share an update.
    pub(crate) fn write_address_soon(self) {
        let timer = set_timeout_with_handle(move || self.write_address(), URL_PAUSE);
        self.url_timer.update_value(|slot| {
            if let Some(old) = slot.take() {
                old.clear();
            }
            *slot = timer.ok();
        });
    }
}

/// Fits a time range to a new extent. A full range stays full. A range that starts past the new end
/// becomes full; a range that ends past it is shortened.
fn refitted(window: TimeWindow, before: f64, extent: f64) -> TimeWindow {
    let was_full = before > 0.0 && window.start_ns <= 0.0 && window.end_ns >= before;
    if was_full || window.end_ns <= window.start_ns || window.start_ns >= extent {
        TimeWindow { start_ns: 0.0, end_ns: extent }
    } else {
        TimeWindow { start_ns: window.start_ns, end_ns: window.end_ns.min(extent) }
    }
}
