//! Shows previews during slider drags: executes the effects of [`super::preview`]. The last outcome
//! remains visible until a preview arrives.
//!
//! The server does not store previews. After the last edit, [`super::planning`] stores and plans
//! the scenario, and the server reuses the preview result. For slow planners, the preview is a
//! sketch, and the complete outcome replaces it later.

use std::sync::Arc;

use api::path;
use api::planner::scenario::Scenario;
use api::what_if::{Arrived, Unread};
use js_sys::{Date, Promise};
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;

use super::preview::{Effect, Event, Previews, TextUpdate};
use super::{DisplayedIteration, Explore};
use crate::client::{self, Abort, RequestError};
use crate::field_errors::FieldErrors;

/// Returns true if the preview of a scenario is a sketch. Returns false for scenarios with preset
/// names, which only the server resolves.
fn is_sketched(scenario: &str) -> bool {
    serde_json::from_str::<Scenario>(scenario).is_ok_and(|scenario| scenario.sketch().is_some())
}

impl Explore {
    /// Requests a preview of the current scenario, after the running request if there is one.
    pub(super) fn request_preview(self) {
        self.handle_preview(Event::Edited { now_ms: Date::now(), request: self.request_number() });
    }

    /// Cancels the running preview request, because the scenario is stored and planned.
    pub(super) fn cancel_preview(self) {
        self.handle_preview(Event::Cancelled);
    }

    /// Cancels the running preview request if it computes the same outcome as the job. A sketch
    /// request continues, because it completes much earlier than the job.
    pub(super) fn cancel_full_preview(self, scenario: &str) {
        if !is_sketched(scenario) {
            self.cancel_preview();
        }
    }

    fn handle_preview(self, event: Event) {
        match self.previews.try_update_value(|previews| previews.handle(event)).flatten() {
            Some(Effect::Send) => self.send_preview(),
            Some(Effect::Abort) => self.preview_abort.with_value(|abort| {
                if let Some(abort) = abort {
                    abort.abort();
                }
            }),
            None => {}
        }
    }

    fn send_preview(self) {
        let Some(abort) = Abort::new() else {
            // Previews need a browser that can abort requests.
            self.handle_preview(Event::Ended {
                now_ms: Date::now(),
                request: self.request_number(),
                is_storing: false,
            });
            return;
        };
        let signal = abort.signal();
        self.preview_abort.set_value(Some(abort));
        let body = self.scenario.with_untracked(ToString::to_string);
        let iteration = self.view.with_untracked(|view| view.iteration.unwrap_or(0));
        spawn_local(async move {
            let (url, media_type) = (path::sketch(iteration), path::PLAN_PREVIEW_MEDIA_TYPE);
            let response = client::post_for_bytes(&url, body, media_type, &signal).await;
            let Some(requested) = self.previews.try_with_value(Previews::request) else { return };
            // The response is obsolete if another scenario was opened or the current outcome is
            // complete.
            let (is_wanted, is_storing) = self.request.with_untracked(|request| {
                (requested.is_some_and(|number| request.accepts_preview(number)), request.is_storing())
            });
            // The next request runs while the page renders this response.
            self.handle_preview(Event::Ended { now_ms: Date::now(), request: self.request_number(), is_storing });
            if is_wanted {
                self.show_preview(response);
            }
        });
    }

    /// Shows a preview. Validation errors appear at the fields; the planning request reports all
    /// other errors.
    fn show_preview(self, response: Result<Vec<u8>, RequestError>) {
        let decoded = response.and_then(|bytes| {
            api::what_if::decode(&bytes).map_err(|error| RequestError::Unreadable(error.to_string()))
        });
        match decoded {
            Ok(preview) => self.show_preview_charts(preview),
            Err(RequestError::Problem(problem)) if !problem.errors.is_empty() => {
                self.errors.set(FieldErrors::from_problems(&problem.errors));
            }
            Err(_) => {}
        }
    }

    /// Shows the charts one frame before text and numbers, which take longer to parse and lay out.
    fn show_preview_charts(self, preview: Arrived) {
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
        let has_timelines = !content.timelines.is_empty();
        let update = self.previews.try_update_value(|previews| previews.shown(Date::now(), has_timelines));
        if let Some(update) = update {
            self.show_preview_text(content, preview.outcome, update);
        }
    }

    /// Updates text and numbers, unless newer charts are visible by then.
    fn show_preview_text(self, content: DisplayedIteration, outcome: Unread, update: TextUpdate) {
        spawn_local(async move {
            if update == TextUpdate::AfterPaint {
                painted().await;
                if !self.charted.with_untracked(|charted| charted.is_same(&content)) {
                    return;
                }
            }
            // The planning request reports parse errors.
            if let Ok(outcome) = outcome.read() {
                self.displayed.set(content);
                self.previews.update_value(Previews::text_updated);
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
    fn searches_are_sketched() {
        let example = include_str!("../../../examples/vlm-s-image-heavy.json");
        let mut scenario = api::planner::scenario::parse(example).unwrap();
        let sketched = |scenario: &Scenario| is_sketched(&serde_json::to_string(scenario).unwrap());
        assert!(sketched(&scenario));
        scenario.search.rollouts = 0;
        assert!(!sketched(&scenario), "without a search, the preview is complete");
        assert!(!is_sketched("{}"));
    }
}
