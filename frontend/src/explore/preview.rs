//! State machine of preview requests during slider drags. One request runs at a time, followed by
//! a request for the latest scenario.
//!
//! The machine has no side effects. [`super::what_if`] executes its effects.

/// Minimum timeout after which a newer request replaces the running one. Faster requests complete,
/// so that the charts follow the slider. The timeout grows with the response time, because late
/// updates are better than none.
const MIN_TIMEOUT_MS: f64 = 250.0;
/// Maximum timeout. For slower planners, the charts update only after the drag.
const MAX_TIMEOUT_MS: f64 = 4_000.0;
/// If previews arrive faster than text and numbers can follow, text and numbers update after this
/// interval in ms.
const MAX_TEXT_DELAY_MS: f64 = 120.0;

/// Request in progress.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Running {
    No,
    /// For the current scenario.
    Current {
        since_ms: f64,
        request: u64,
    },
    /// For an older scenario. A request for the current scenario follows.
    Outdated {
        since_ms: f64,
        request: u64,
    },
}

/// Event of the preview requests. Times are in ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Event {
    /// The scenario changed during planning request `request`.
    Edited { now_ms: f64, request: u64 },
    /// The preview is not needed, because the scenario is stored and planned.
    Cancelled,
    /// The response arrived or the request was aborted. `request` is the current planning request;
    /// `is_storing` is true while edits follow.
    Ended { now_ms: f64, request: u64, is_storing: bool },
}

/// Action that the page executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Requests a preview of the current scenario.
    Send,
    /// Aborts the running request.
    Abort,
}

/// Time at which text and numbers of a preview appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextUpdate {
    /// With the charts.
    Now,
    /// After the charts are painted, unless a newer preview arrives before.
    AfterPaint,
}

/// Preview requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Previews {
    running: Running,
    /// Timeout in ms after which a newer request replaces the running one.
    timeout_ms: f64,
    /// Time in ms since which the charts are newer than text and numbers.
    text_behind_since_ms: Option<f64>,
}

impl Default for Previews {
    fn default() -> Self {
        Self { running: Running::No, timeout_ms: MIN_TIMEOUT_MS, text_behind_since_ms: None }
    }
}

impl Previews {
    /// Handles an event.
    pub(super) fn handle(&mut self, event: Event) -> Option<Effect> {
        match (self.running, event) {
            (Running::No, Event::Edited { now_ms, request }) => {
                self.running = Running::Current { since_ms: now_ms, request };
                Some(Effect::Send)
            }
            (
                Running::Current { since_ms, request } | Running::Outdated { since_ms, request },
                Event::Edited { now_ms, .. },
            ) => {
                self.running = Running::Outdated { since_ms, request };
                (now_ms - since_ms > self.timeout_ms).then_some(Effect::Abort)
            }
            (Running::No, Event::Cancelled | Event::Ended { .. }) => None,
            (Running::Current { since_ms, request } | Running::Outdated { since_ms, request }, Event::Cancelled) => {
                self.running = Running::Current { since_ms, request };
                Some(Effect::Abort)
            }
            (Running::Current { since_ms, .. }, Event::Ended { now_ms, .. }) => {
                self.end(now_ms - since_ms);
                None
            }
            (Running::Outdated { since_ms, .. }, Event::Ended { now_ms, request, is_storing }) => {
                self.end(now_ms - since_ms);
                is_storing.then(|| {
                    self.running = Running::Current { since_ms: now_ms, request };
                    Effect::Send
                })
            }
        }
    }

    /// Planning request during which the running preview request started.
    pub(super) const fn request(&self) -> Option<u64> {
        match self.running {
            Running::No => None,
            Running::Current { request, .. } | Running::Outdated { request, .. } => Some(request),
        }
    }

    fn end(&mut self, took_ms: f64) {
        self.running = Running::No;
        self.timeout_ms = (2.0 * took_ms).clamp(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS);
    }

    /// Returns the time at which the text of a new preview appears.
    pub(super) fn shown(&mut self, now_ms: f64, has_timelines: bool) -> TextUpdate {
        let since_ms = *self.text_behind_since_ms.get_or_insert(now_ms);
        if has_timelines && now_ms - since_ms < MAX_TEXT_DELAY_MS { TextUpdate::AfterPaint } else { TextUpdate::Now }
    }

    /// Records that text and numbers belong to the charts.
    pub(super) const fn text_updated(&mut self) {
        self.text_behind_since_ms = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(now_ms: f64, request: u64) -> Event {
        Event::Edited { now_ms, request }
    }

    fn ended(now_ms: f64, is_storing: bool) -> Event {
        Event::Ended { now_ms, request: 9, is_storing }
    }

    #[test]
    fn one_request_runs_and_the_latest_scenario_follows() {
        let mut previews = Previews::default();
        assert_eq!(previews.handle(edited(0.0, 1)), Some(Effect::Send));
        assert_eq!(previews.request(), Some(1));
        assert_eq!(previews.handle(edited(50.0, 2)), None, "the running request is fast enough");
        assert_eq!(previews.handle(edited(90.0, 3)), None);
        assert_eq!(previews.request(), Some(1), "the response belongs to the first edit");
        assert_eq!(previews.handle(ended(100.0, true)), Some(Effect::Send));
        assert_eq!(previews.request(), Some(9));
        assert_eq!(previews.handle(ended(200.0, true)), None, "the scenario did not change since");
        assert_eq!(previews.request(), None);
    }

    #[test]
    fn no_preview_follows_once_the_scenario_is_stored() {
        let mut previews = Previews::default();
        previews.handle(edited(0.0, 1));
        previews.handle(edited(50.0, 2));
        assert_eq!(previews.handle(ended(100.0, false)), None);
        assert_eq!(previews.request(), None);
    }

    #[test]
    fn a_slow_request_is_aborted_by_a_later_edit() {
        let mut previews = Previews::default();
        previews.handle(edited(0.0, 1));
        assert_eq!(previews.handle(edited(MIN_TIMEOUT_MS, 2)), None);
        assert_eq!(previews.handle(edited(MIN_TIMEOUT_MS + 1.0, 3)), Some(Effect::Abort));
        assert_eq!(previews.handle(ended(300.0, true)), Some(Effect::Send));
        // The timeout doubles: 2 x 300 ms.
        assert_eq!(previews.handle(edited(850.0, 4)), None);
        assert_eq!(previews.handle(edited(901.0, 5)), Some(Effect::Abort));
    }

    #[test]
    fn cancelling_aborts_and_sends_no_further_request() {
        let mut previews = Previews::default();
        assert_eq!(previews.handle(Event::Cancelled), None);
        previews.handle(edited(0.0, 1));
        previews.handle(edited(10.0, 2));
        assert_eq!(previews.handle(Event::Cancelled), Some(Effect::Abort));
        assert_eq!(previews.handle(ended(20.0, true)), None);
        assert_eq!(previews.handle(ended(21.0, true)), None, "an unknown response changes nothing");
        // An edit between the abort and its response is not lost.
        previews.handle(edited(30.0, 3));
        previews.handle(Event::Cancelled);
        previews.handle(edited(40.0, 4));
        assert_eq!(previews.handle(ended(50.0, true)), Some(Effect::Send));
    }

    #[test]
    fn timeout_follows_response_time() {
        let timeout_after = |took_ms| {
            let mut previews = Previews::default();
            previews.end(took_ms);
            previews.timeout_ms
        };
        for (took_ms, expected) in [(60.0, MIN_TIMEOUT_MS), (700.0, 1_400.0), (60_000.0, MAX_TIMEOUT_MS)] {
            assert!((timeout_after(took_ms) - expected).abs() < f64::EPSILON, "{took_ms}");
        }
    }

    #[test]
    fn text_follows_the_charts_at_the_latest_after_the_limit() {
        let mut previews = Previews::default();
        assert_eq!(previews.shown(0.0, false), TextUpdate::Now, "there is no chart to paint first");
        previews.text_updated();
        assert_eq!(previews.shown(1_000.0, true), TextUpdate::AfterPaint);
        assert_eq!(previews.shown(1_060.0, true), TextUpdate::AfterPaint);
        assert_eq!(previews.shown(1_121.0, true), TextUpdate::Now, "the text is 121 ms old");
        previews.text_updated();
        assert_eq!(previews.shown(1_130.0, true), TextUpdate::AfterPaint);
    }
}
