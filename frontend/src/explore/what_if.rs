//! Preview planning during slider drags. One request runs at a time, followed by a request for the
//! latest scenario. The last outcome remains visible.
//!
//! The server does not store previews. After the last edit, [`super::planning`] stores and plans
//! the scenario, and the server reuses the preview result. For slow planners, the preview is a
//! sketch, and the complete outcome replaces it later.

use std::sync::Arc;

use api::path;
use api::planner::scenario::Scenario;
use api::what_if::Unread;
use js_sys::Promise;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;

use super::{DisplayedIteration, Explore, PlanState};
use crate::client::{self, Abort, RequestError};
use crate::field_errors::FieldErrors;

/// Minimum timeout after which a newer request replaces the running one. Faster requests complete,
/// so that the charts follow the slider. The timeout grows with the response time, because late
/// updates are better than none.
pub(super) const PATIENCE_MS: f64 = 250.0;
/// Maximum timeout. For slower planners, the charts update only after the drag.
const MAX_PATIENCE_MS: f64 = 4_000.0;

/// If previews arrive faster than text and numbers can follow, text and numbers update after this
/// interval in ms.
const AHEAD_MS: f64 = 120.0;

/// Preview request in progress.
pub(super) struct Asking {
    abort: Abort,
    since: f64,
    /// True if the scenario changed after the request started.
    stale: bool,
}

/// Timeout after a request with this duration, completed or cancelled.
fn patience_after(took_ms: f64) -> f64 {
    (2.0 * took_ms).clamp(PATIENCE_MS, MAX_PATIENCE_MS)
}

/// Returns true if the preview of a scenario is a sketch. Returns false for scenarios with preset
/// names, which only the server resolves.
fn is_sketched(scenario: &str) -> bool {
    serde_json::from_str::<Scenario>(scenario).is_ok_and(|scenario| scenario.sketch().is_some())
}

impl Explore {
    /// Requests a preview of the current scenario. If a request is running, marks it as stale and
    /// cancels it after the timeout.
    pub(super) fn request_preview(self) {
        let waits = self.asking.try_update_value(|asking| match asking {
            Some(asking) => {
                asking.stale = true;
                if js_sys::Date::now() - asking.since > self.stall_timeout_ms.get_value() {
                    asking.abort.abort();
                }
                true
            }
            None => false,
        });
        if waits == Some(false) {
            self.ask();
        }
    }

    /// Cancels the running preview request, because the scenario is stored and planned.
    pub(super) fn cancel_preview(self) {
        self.asking.update_value(|asking| {
            if let Some(asking) = asking {
                asking.stale = false;
                asking.abort.abort();
            }
        });
    }

    /// Cancels the running preview request if it computes the same outcome as the job. A sketch
    /// request continues, because it completes much earlier than the job.
    pub(super) fn cancel_full_preview(self, scenario: &str) {
        if !is_sketched(scenario) {
            self.cancel_preview();
        }
    }

    fn ask(self) {
        let Some(abort) = Abort::new() else { return };
        let signal = abort.signal();
        self.asking.set_value(Some(Asking { abort, since: js_sys::Date::now(), stale: false }));
        let (body, generation) = (self.scenario.with_untracked(ToString::to_string), self.generation.get_value());
        let iteration = self.view.with_untracked(|view| view.iteration.unwrap_or(0));
        spawn_local(async move {
            let response =
                client::post_for_bytes(&path::sketch(iteration), body, path::PLAN_PREVIEW_MEDIA_TYPE, &signal).await;
            let Some(asking) = self.asking.try_update_value(Option::take).flatten() else { return };
            self.stall_timeout_ms.set_value(patience_after(js_sys::Date::now() - asking.since));
            // The response is obsolete if another scenario was opened or the current outcome is
            // complete.
            let wanted = self.is_preview_valid(generation);
            // The next request runs while the page renders this response.
            if asking.stale && self.is_trying() {
                self.ask();
            }
            if wanted {
                self.try_on(response);
            }
        });
    }

    /// Returns true if edits are not yet stored.
    fn is_trying(self) -> bool {
        self.state.with_untracked(|state| matches!(state, PlanState::Sending))
    }

    /// Returns true if a preview from this generation or later may be shown. The complete outcome
    /// ends the preview phase.
    fn is_preview_valid(self, generation: u64) -> bool {
        let waits = self.state.with_untracked(|state| {
            matches!(state, PlanState::Sending | PlanState::Queued | PlanState::Running { .. })
        });
        waits && generation <= self.generation.get_value() && self.opened.get_value() <= generation
    }

    /// Shows a preview. The charts update one frame before text and numbers, which take longer to
    /// parse and lay out. Validation errors appear at the fields; the planning request reports all
    /// other errors.
    fn try_on(self, response: Result<Vec<u8>, RequestError>) {
        let decoded = response.and_then(|bytes| {
            api::what_if::decode(&bytes).map_err(|error| RequestError::Unreadable(error.to_string()))
        });
        match decoded {
            Ok(preview) => {
                self.errors.set(FieldErrors::default());
                let timelines = preview.timelines.into_iter().map(|(planner, it)| (planner, Arc::new(it)));
                let timelines = timelines.collect::<Vec<_>>();
                let content = DisplayedIteration {
                    iteration: preview.iteration,
                    planners: timelines.iter().map(|(planner, _)| *planner).collect(),
                    timelines,
                    overviews: Vec::new(),
                };
                self.selection.set(None);
                self.hover.set(None);
                self.refit(content.extent_ns());
                self.charted.set(content.clone());
                self.is_preview.set(true);
                self.tell(content, preview.outcome);
            }
            Err(RequestError::Problem(problem)) if !problem.errors.is_empty() => {
                self.errors.set(FieldErrors::from_problems(&problem.errors));
            }
            Err(_) => {}
        }
    }

    /// Updates text and numbers after the charts are painted, unless newer charts are visible by
    /// then.
    fn tell(self, content: DisplayedIteration, outcome: Unread) {
        let now = js_sys::Date::now();
        let since = self.ahead_since.get_value().unwrap_or(now);
        self.ahead_since.set_value(Some(since));
        let follows = !content.timelines.is_empty() && now - since < AHEAD_MS;
        spawn_local(async move {
            if follows {
                painted().await;
                if !self.charted.with_untracked(|charted| charted.is_same(&content)) {
                    return;
                }
            }
            // The planning request reports parse errors.
            if let Ok(outcome) = outcome.read() {
                self.displayed.set(content);
                self.ahead_since.set_value(None);
                self.result.set(Some(Arc::new(outcome)));
            }
        });
    }
}

/// Waits until the browser has painted: the first frame draws, and the second frame starts after
/// the paint. Returns immediately for a hidden page, which has no frames.
async fn painted() {
    for _ in 0..2 {
        if document().hidden() {
            return;
        }
        let frame = Promise::new(&mut |resolve, _| {
            // `request_animation_frame` does not fail in a browser window.
            drop(window().request_animation_frame(&resolve));
        });
        drop(JsFuture::from(frame).await);
    }
    client::pause(0).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_sketched_where_they_search() {
        let example = include_str!("../../../examples/vlm-s-image-heavy.json");
        let mut scenario = api::planner::scenario::parse(example).unwrap();
        let sketched = |scenario: &Scenario| is_sketched(&serde_json::to_string(scenario).unwrap());
        assert!(sketched(&scenario));
        scenario.search.rollouts = 0;
        assert!(!sketched(&scenario), "nothing is left out of it");
        assert!(!is_sketched("{}"));
    }

    #[test]
    fn timeout_follows_response_time() {
        assert!((patience_after(60.0) - PATIENCE_MS).abs() < f64::EPSILON);
        assert!((patience_after(700.0) - 1_400.0).abs() < f64::EPSILON);
        // After a cancelled request, the timeout doubles.
        assert!((patience_after(patience_after(0.0)) - 2.0 * PATIENCE_MS).abs() < f64::EPSILON);
        assert!((patience_after(60_000.0) - MAX_PATIENCE_MS).abs() < f64::EPSILON);
    }
}
