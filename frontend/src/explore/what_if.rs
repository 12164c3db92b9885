//! Planning while a slider is dragged: one question under way, the newest next, the last answer on screen meanwhile.
//!
//! Nothing of it is stored. When the edits pause, the scenario is stored and planned by its own road ([`super::planning`]), which finds
//! its answer here already. Planners that search for long are asked for a sketch, and then their whole answer takes its place.

use std::sync::Arc;

use api::path;
use api::planner::scenario::Scenario;
use api::what_if::Unread;
use js_sys::Promise;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;

use super::{Explore, PlanState, Shown};
use crate::client::{self, Abort, Failure};
use crate::field_errors::FieldErrors;

/// A question that is under way for longer than this gives way to a newer one; a quicker one may end, so that the charts keep
/// moving with the slider. Where answers take longer, so does the patience: charts that follow late are better than none.
pub(super) const PATIENCE_MS: f64 = 250.0;
/// The patience with planners that take longest; beyond it the charts wait until the hand rests.
const MAX_PATIENCE_MS: f64 = 4_000.0;

/// Where answers come faster than words and figures follow them, these are shown with the charts after so long.
const AHEAD_MS: f64 = 120.0;

/// A question under way.
pub(super) struct Asking {
    abort: Abort,
    since: f64,
    /// Whether the scenario was changed meanwhile.
    stale: bool,
}

/// The patience after a question that took so long, or was given up after so long.
fn patience_after(took_ms: f64) -> f64 {
    (2.0 * took_ms).clamp(PATIENCE_MS, MAX_PATIENCE_MS)
}

/// Whether a scenario is answered with a sketch while it is edited. One that only the server can read, with presets, is not edited.
fn is_sketched(scenario: &str) -> bool {
    serde_json::from_str::<Scenario>(scenario).is_ok_and(|scenario| scenario.sketch().is_some())
}

impl Explore {
    /// Asks what the scenario as it stands now would give, unless a question is under way that may end first.
    pub(super) fn ask_what_if(self) {
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

    /// Ends the question under way: the scenario is planned by the road that stores.
    pub(super) fn abandon_what_if(self) {
        self.asking.update_value(|asking| {
            if let Some(asking) = asking {
                asking.stale = false;
                asking.abort.abort();
            }
        });
    }

    /// The same where it asks for what the job is to find. A sketch may end: it is there long before the whole answer.
    pub(super) fn abandon_whole_what_if(self, scenario: &str) {
        if !is_sketched(scenario) {
            self.abandon_what_if();
        }
    }

    fn ask(self) {
        let Some(abort) = Abort::new() else { return };
        let signal = abort.signal();
        self.asking.set_value(Some(Asking { abort, since: js_sys::Date::now(), stale: false }));
        let (body, generation) = (self.scenario.with_untracked(ToString::to_string), self.generation.get_value());
        let iteration = self.view.with_untracked(|view| view.iteration.unwrap_or(0));
        spawn_local(async move {
            let answer = client::ask_bytes(&path::sketch(iteration), body, path::WHAT_IF_MEDIA_TYPE, &signal).await;
            let Some(asking) = self.asking.try_update_value(Option::take).flatten() else { return };
            self.stall_timeout_ms.set_value(patience_after(js_sys::Date::now() - asking.since));
            // Where another scenario was opened, or this one is being planned, nobody waits for the answer any more.
            let wanted = self.is_tried(generation);
            // The next question is on its way while the page takes this answer up.
            if asking.stale && self.is_trying() {
                self.ask();
            }
            if wanted {
                self.try_on(answer);
            }
        });
    }

    /// Whether edits are under way that are not sent yet.
    fn is_trying(self) -> bool {
        self.state.with_untracked(|state| matches!(state, PlanState::Sending))
    }

    /// Whether the answer to a question of that generation, or one of the edits after it, may be shown: until the whole answer is there.
    fn is_tried(self, generation: u64) -> bool {
        let waits = self.state.with_untracked(|state| {
            matches!(state, PlanState::Sending | PlanState::Queued | PlanState::Running { .. })
        });
        waits && generation <= self.generation.get_value() && self.opened.get_value() <= generation
    }

    /// Shows an answer, the charts a frame before words and figures, which take longer to read and to lay out; what is wrong with the fields is shown at the fields, anything else is left to the road that stores.
    fn try_on(self, answer: Result<Vec<u8>, Failure>) {
        let answer = answer
            .and_then(|bytes| api::what_if::decode(&bytes).map_err(|error| Failure::Unreadable(error.to_string())));
        match answer {
            Ok(answer) => {
                self.errors.set(FieldErrors::default());
                let timelines = answer.timelines.into_iter().map(|(planner, it)| (planner, Arc::new(it)));
                let timelines = timelines.collect::<Vec<_>>();
                let shown = Shown {
                    iteration: answer.iteration,
                    planners: timelines.iter().map(|(planner, _)| *planner).collect(),
                    timelines,
                    overviews: Vec::new(),
                };
                self.selection.set(None);
                self.hover.set(None);
                self.refit(shown.extent_ns());
                self.charted.set(shown.clone());
                self.tried.set(true);
                self.tell(shown, answer.outcome);
            }
            Err(Failure::Problem(problem)) if !problem.errors.is_empty() => {
                self.errors.set(FieldErrors::of(&problem.errors));
            }
            Err(_) => {}
        }
    }

    /// Shows the words and figures of an answer once its charts are on screen, unless others are by then.
    fn tell(self, shown: Shown, outcome: Unread) {
        let now = js_sys::Date::now();
        let since = self.ahead_since.get_value().unwrap_or(now);
        self.ahead_since.set_value(Some(since));
        let follows = !shown.timelines.is_empty() && now - since < AHEAD_MS;
        spawn_local(async move {
            if follows {
                painted().await;
                if !self.charted.with_untracked(|charted| charted.is_same(&shown)) {
                    return;
                }
            }
            // What cannot be read is left to the road that stores.
            if let Ok(outcome) = outcome.read() {
                self.shown.set(shown);
                self.ahead_since.set_value(None);
                self.result.set(Some(Arc::new(outcome)));
            }
        });
    }
}

/// Waits until what was asked to be drawn is on screen: one frame draws it, the next begins when it is seen. A page in the background
/// has no frames.
async fn painted() {
    for _ in 0..2 {
        if document().hidden() {
            return;
        }
        let frame = Promise::new(&mut |resolve, _| {
            // A window without frames could not have come this far.
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
    fn patience_follows_what_answers_take() {
        assert!((patience_after(60.0) - PATIENCE_MS).abs() < f64::EPSILON);
        assert!((patience_after(700.0) - 1_400.0).abs() < f64::EPSILON);
        // Given up after the patience, the next question has twice as long.
        assert!((patience_after(patience_after(0.0)) - 2.0 * PATIENCE_MS).abs() < f64::EPSILON);
        assert!((patience_after(60_000.0) - MAX_PATIENCE_MS).abs() < f64::EPSILON);
    }
}
