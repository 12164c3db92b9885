//! Synchronizes the view with the address bar.

use api::planner::scenario::PlannerKind;
use leptos::prelude::*;
use wasm_bindgen::JsValue;

use super::Explore;
use super::planner_at_chart;
use crate::fragment::{ActionName, ScenarioPrefix, View};
use crate::gantt::{Selection, TimeWindow};

/// Minimum interval between address bar writes. Browsers reject hundreds of writes within a few
/// seconds.
const URL_PAUSE: std::time::Duration = std::time::Duration::from_millis(250);

impl Explore {
    /// Current view for a link, including the time range.
    pub(crate) fn view_now(&self) -> View {
        let window = self.window.get();
        let extent = self.charted.with(super::DisplayedIteration::extent_ns);
        let is_full = window.start_ns <= 0.0 && window.end_ns >= extent as f64;
        let window_ns = (!is_full && window.end_ns > window.start_ns)
            .then(|| (window.start_ns.max(0.0).round() as u64, window.end_ns.round() as u64));
        let view = self.view.get();
        let action = self.selection.get().and_then(|selection| {
            let planner = planner_at_chart(selection.chart)?;
            let timeline = self.displayed.with(|content| content.timeline(planner))?;
            ActionName::from_span(
                &timeline,
                selection.span,
                Some(planner).filter(|planner| view.planner != Some(*planner)),
            )
        });
        View { window_ns, action, ..view }
    }

    /// Selects the action from the link, in the plan that the link specifies.
    pub(crate) fn select_named(&self) {
        let Some(action) = self.view.with_untracked(|view| view.action) else { return };
        // Applied only once; later selections come from the user.
        self.view.update(|view| view.action = None);
        let planners = self
            .displayed
            .with_untracked(|content| content.timelines.iter().map(|(planner, _)| *planner).collect::<Vec<_>>());
        let wanted = action.planner.or(self.view.with_untracked(|view| view.planner));
        let planner = wanted.or(planners.first().copied());
        let found = planner.and_then(|planner| {
            let timeline = self.displayed.with_untracked(|content| content.timeline(planner))?;
            let chart = PlannerKind::ALL.iter().position(|kind| *kind == planner)?;
            Some(Selection { chart, span: action.find(&timeline)? })
        });
        if found.is_none() {
            self.link_error.set(Some("The action that this link selects is not in this plan.".to_owned()));
        }
        self.selection.set(found);
    }

    /// Path and fragment of a link to the current view.
    pub(crate) fn link(&self) -> Option<String> {
        let short = self.stored.with(|stored| stored.as_ref().map(|stored| stored.short.clone()))?;
        let fragment = self.view_now().write();
        let mark = if fragment.is_empty() { "" } else { "#" };
        Some(format!("{}{mark}{fragment}", api::path::share(&short)))
    }

    /// Reads the view from the address bar.
    pub(crate) fn read_address(&self) {
        // The router reports a link before the address bar changes.
        let arrived = self.arrived.try_update_value(Option::take).flatten();
        let hash = arrived.unwrap_or_else(|| window().location().hash().unwrap_or_default());
        // A self-contained link does not encode a view.
        let fragment = if hash.trim_start_matches('#').starts_with(api::contained::FIRST_FORM) { "" } else { &hash };
        let (mut view, message) = View::parse_with_warning(fragment);
        // The pinned scenario remains the comparison unless the link specifies another one.
        if view.compared.is_none() {
            view.compared = untrack(crate::recent::pinned).and_then(|pinned| ScenarioPrefix::parse(&pinned.id));
        }
        self.link_error.set(message);
        if let Some((start, end)) = view.window_ns {
            self.window.set(TimeWindow { start_ns: start as f64, end_ns: end as f64 });
        } else {
            let extent = self.displayed.with_untracked(super::DisplayedIteration::extent_ns);
            self.window.set(TimeWindow { start_ns: 0.0, end_ns: extent as f64 });
        }
        self.view.set(view);
    }

    /// Writes the link to the address bar without a new history entry.
    pub(crate) fn write_address(&self) {
        if !untrack(|| self.on_page()) {
            return;
        }
        let Some(link) = untrack(|| self.link()) else { return };
        if let Ok(history) = window().history() {
            // If the browser rejects the write, the old address stays until the next change.
            drop(history.replace_state_with_url(&JsValue::NULL, "", Some(&link)));
        }
    }

    /// Opens another stored scenario from the current page and adds a history entry. The router
    /// does not know the addresses that this module writes. It may have the same location already
    /// and would then ignore the link.
    pub(crate) fn open_linked(self, id: &str, link: &str) {
        self.write_address();
        if let Ok(history) = window().history() {
            // If the browser rejects the write, the old address stays until the next change.
            drop(history.push_state_with_url(&JsValue::NULL, "", Some(link)));
        }
        self.arrived.set_value(None);
        self.open(id.to_owned());
    }

    /// Schedules a write to the address bar and combines rapid changes.
    pub(crate) fn write_address_soon(&self) {
        let this = *self;
        let timer = set_timeout_with_handle(move || this.write_address(), URL_PAUSE);
        self.url_timer.update_value(|slot| {
            if let Some(old) = slot.take() {
                old.clear();
            }
            // `set_timeout` does not fail in a browser window.
            *slot = timer.ok();
        });
    }

    /// Fits the visible range to a new extent. A full range remains a full range.
    pub(super) fn refit(&self, extent_ns: u64) {
        let before = self.charted.with_untracked(super::DisplayedIteration::extent_ns) as f64;
        let window = self.window.get_untracked();
        let extent = extent_ns as f64;
        self.window.set(refitted(window, before, extent));
    }
}

fn refitted(window: TimeWindow, before: f64, extent: f64) -> TimeWindow {
    let was_full = before > 0.0 && window.start_ns <= 0.0 && window.end_ns >= before;
    let empty = window.end_ns <= window.start_ns;
    if was_full || empty || window.start_ns >= extent {
        TimeWindow { start_ns: 0.0, end_ns: extent }
    } else {
        TimeWindow { start_ns: window.start_ns, end_ns: window.end_ns.min(extent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(window: TimeWindow) -> (f64, f64) {
        (window.start_ns, window.end_ns)
    }

    #[test]
    fn zoomed_window_is_stable_and_full_window_stays_full() {
        let window = |start_ns, end_ns| TimeWindow { start_ns, end_ns };
        assert_eq!(ends(refitted(window(0.0, 100.0), 100.0, 250.0)), (0.0, 250.0));
        assert_eq!(ends(refitted(window(20.0, 40.0), 100.0, 250.0)), (20.0, 40.0));
        assert_eq!(ends(refitted(window(20.0, 90.0), 100.0, 50.0)), (20.0, 50.0));
        assert_eq!(ends(refitted(window(60.0, 90.0), 100.0, 50.0)), (0.0, 50.0));
        assert_eq!(ends(refitted(window(0.0, 0.0), 0.0, 50.0)), (0.0, 50.0));
        assert_eq!(ends(refitted(window(5.0, 9.0), 0.0, 50.0)), (5.0, 9.0), "a link's range");
    }
}
