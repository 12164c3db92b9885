//! State of the explore page: edited scenario, planning outcome and view.
//!
//! The state persists when the user navigates to other pages and back.
//!
//! Pure state machines contain the logic and have native tests: [`request`] (planning request and
//! job), [`document`] (opening and creating a scenario), [`preview`] (what-if requests) and
//! [`timelines`] (timelines of an iteration). They return effects, which [`planning`], [`open`],
//! [`what_if`] and [`iterations`] execute.

mod address;
mod chart_number;
pub(crate) mod creation;
mod document;
mod iterations;
pub(crate) mod modalities;
mod open;
mod planning;
mod preview;
mod request;
mod results;
mod settled;
mod timelines;
mod what_if;

use std::sync::Arc;

use api::job::StoredOutcome;
use api::planner::scenario::PlannerKind;
use api::scenario::StoredScenario;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use serde_json::Value;

pub(crate) use self::chart_number::{chart_index, planner_at_chart};
use self::document::Document;
use self::preview::Previews;
use self::request::PlanRequest;
pub(crate) use self::request::PlanState;
pub(crate) use self::results::{Plan, Results};
pub(crate) use self::timelines::DisplayedIteration;
use self::timelines::TimelineLoader;
use crate::client::Abort;
use crate::field_errors::FieldErrors;
use crate::form::Form;
use crate::fragment::View;
use crate::gantt::{Selection, TimeWindow};
use crate::storage;
use crate::undo::History;

/// State of the explore page.
#[derive(Clone, Copy)]
pub(crate) struct Explore {
    /// Edited scenario; null before loading.
    pub(crate) scenario: RwSignal<Value>,
    /// Validation errors from the server.
    pub(crate) errors: RwSignal<FieldErrors>,
    /// Input that is not a number, detected in the browser.
    pub(crate) unreadable: RwSignal<FieldErrors>,
    /// Mounted fields, by JSON pointer. Errors of other fields appear at their section.
    pub(crate) fields: RwSignal<std::collections::BTreeSet<String>>,
    /// Whether undo and redo are available.
    pub(crate) undoable: RwSignal<(bool, bool)>,
    /// Last scenario stored on the server.
    pub(crate) stored: RwSignal<Option<StoredScenario>>,
    /// Current outcome. It remains visible while the next outcome is computed.
    pub(crate) result: RwSignal<Option<Arc<StoredOutcome>>>,
    /// True if the current outcome is a preview that is not stored on the server.
    is_preview: RwSignal<bool>,
    /// Planning request.
    request: RwSignal<PlanRequest>,
    /// State of the planning request, for display.
    pub(crate) state: Memo<PlanState>,
    pub(crate) view: RwSignal<View>,
    /// Timelines of the shown iteration.
    pub(crate) displayed: RwSignal<DisplayedIteration>,
    /// Timelines in the Gantt charts. During a slider drag they update one frame before text and
    /// numbers.
    pub(crate) charted: RwSignal<DisplayedIteration>,
    /// Visible time range.
    pub(crate) window: RwSignal<TimeWindow>,
    /// Selected span.
    pub(crate) selection: RwSignal<Option<Selection>>,
    /// Span under the pointer.
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// Error text for invalid parts of the link.
    pub(crate) link_error: RwSignal<Option<String>>,
    /// Fragment of a self-contained link, while the scenario is not stored on the server.
    pub(crate) unsaved: RwSignal<Option<String>>,
    /// Last copied self-contained link.
    pub(crate) contained_link: RwSignal<Option<String>>,
    /// Number of mounted explore pages. The page writes the address bar only if the number is
    /// positive. When the route changes, the new page mounts before the old one unmounts, so the
    /// number can be 2.
    mounted: RwSignal<u32>,
    history: StoredValue<History<Value>>,
    /// Fragment of the followed link, until it is parsed.
    pub(crate) arrived: StoredValue<Option<String>>,
    /// The open scenario.
    document: StoredValue<Document>,
    /// Loads the timelines of an iteration.
    loader: StoredValue<TimelineLoader>,
    /// Preview requests.
    previews: StoredValue<Previews>,
    /// Aborts the preview request in progress.
    preview_abort: StoredValue<Option<Abort>, LocalStorage>,
    url_timer: StoredValue<Option<TimeoutHandle>>,
}

impl Explore {
    /// Creates the state of an empty page.
    pub(crate) fn new() -> Self {
        let request = RwSignal::new(PlanRequest::default());
        Self {
            scenario: RwSignal::new(Value::Null),
            errors: RwSignal::default(),
            unreadable: RwSignal::default(),
            fields: RwSignal::default(),
            undoable: RwSignal::new((false, false)),
            stored: RwSignal::new(None),
            result: RwSignal::new(None),
            is_preview: RwSignal::new(false),
            request,
            state: Memo::new(move |_| request.with(PlanRequest::state)),
            view: RwSignal::default(),
            displayed: RwSignal::default(),
            charted: RwSignal::default(),
            window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
            selection: RwSignal::new(None),
            hover: RwSignal::new(None),
            link_error: RwSignal::new(None),
            unsaved: RwSignal::new(None),
            contained_link: RwSignal::new(None),
            mounted: RwSignal::new(0),
            history: StoredValue::new(History::default()),
            arrived: StoredValue::new(None),
            document: StoredValue::new(Document::default()),
            loader: StoredValue::new(TimelineLoader::default()),
            previews: StoredValue::new(Previews::default()),
            preview_abort: StoredValue::new_local(None),
            url_timer: StoredValue::new(None),
        }
    }

    /// Returns the scenario as a form.
    pub(crate) fn form(self) -> Form {
        let change = Callback::new(move |(pointer, value): (String, Option<Value>)| match value {
            Some(value) => self.set(&pointer, value),
            None => self.remove(&pointer),
        });
        let Self { scenario, errors, unreadable, fields, .. } = self;
        Form { document: scenario, errors, unreadable, fields, change }
    }

    /// Sets a scenario value and plans again.
    pub(crate) fn set(&self, pointer: &str, value: Value) {
        self.edit(pointer, |scenario| crate::pointer::set(scenario, pointer, value));
    }

    /// Removes a scenario field and plans again.
    pub(crate) fn remove(&self, pointer: &str) {
        self.edit(pointer, |scenario| crate::pointer::remove(scenario, pointer));
    }

    /// Applies an edit and plans again. `place` identifies the edited field in the undo history.
    pub(crate) fn edit(&self, field_pointer: &str, change: impl FnOnce(&mut Value)) {
        let before = self.scenario.get_untracked();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        self.history.update_value(|history| history.edited(before, field_pointer, js_sys::Date::now()));
        self.replace(after);
    }

    /// Reverts the last edit.
    pub(crate) fn undo(&self) {
        self.step(History::undo);
    }

    /// Reapplies the last reverted edit.
    pub(crate) fn redo(&self) {
        self.step(History::redo);
    }

    fn step(&self, step: impl FnOnce(&mut History<Value>, Value) -> Option<Value>) {
        let present = self.scenario.get_untracked();
        if let Some(Some(scenario)) = self.history.try_update_value(|history| step(history, present)) {
            self.replace(scenario);
        }
    }

    fn replace(&self, scenario: Value) {
        storage::write(storage::DRAFT, &scenario.to_string());
        let is_same = self.scenario.with_untracked(|before| is_same_request(before, &scenario));
        self.scenario.set(scenario);
        self.undoable.set(self.history.with_value(|history| (history.can_undo(), history.can_redo())));
        if !is_same {
            self.document_command(document::Command::Edit);
            self.plan_command(request::Command::Edit);
            self.request_preview();
        }
    }

    /// Registers a mounted page until its reactive owner is disposed.
    pub(crate) fn mount(self) {
        self.mounted.update(|mounted| *mounted += 1);
        on_cleanup(move || self.mounted.update(|mounted| *mounted = mounted.saturating_sub(1)));
    }

    /// Returns true if the explore page is visible.
    pub(crate) fn on_page(&self) -> bool {
        self.mounted.get() > 0
    }

    /// Results sorted by time, fastest first.
    pub(crate) fn results(&self) -> Results {
        Results(self.result.get())
    }

    /// Identifier of the scenario whose stored outcome is shown. Returns `None` for a preview,
    /// because the server does not store previews.
    pub(crate) fn stored_scenario_id(&self) -> Option<String> {
        if self.is_preview.get() {
            return None;
        }
        self.result.with(|result| Some(result.as_ref()?.outcome.scenario.clone()))
    }

    /// Returns the validated plan of a planner.
    pub(crate) fn planned(&self, planner: PlannerKind) -> Option<Plan> {
        self.results().find_planner(planner)?.plan()
    }
}

/// Compares two scenarios without their titles. A title does not affect the plan, so a title edit
/// does not trigger planning.
fn is_same_request(first: &Value, other: &Value) -> bool {
    let (Some(first_object), Some(other)) = (first.as_object(), other.as_object()) else { return false };
    let field_count = |scenario: &serde_json::Map<String, Value>| scenario.keys().filter(|key| *key != "title").count();
    field_count(first_object) == field_count(other)
        && first_object.iter().filter(|(key, _)| *key != "title").all(|(key, value)| other.get(key) == Some(value))
}

/// Returns the state of the explore page from the context.
pub(crate) fn use_explore() -> Explore {
    expect_context()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn title_edit_does_not_change_the_request() {
        let scenario = json!({"schema": "scenario/1", "title": "One", "seed": 1});
        assert!(is_same_request(&scenario, &json!({"schema": "scenario/1", "title": "Two", "seed": 1})));
        assert!(is_same_request(&scenario, &json!({"schema": "scenario/1", "seed": 1})));
        assert!(!is_same_request(&scenario, &json!({"schema": "scenario/1", "title": "One", "seed": 2})));
        assert!(!is_same_request(&scenario, &json!({"schema": "scenario/1", "title": "One"})));
        assert!(!is_same_request(&Value::Null, &Value::Null));
    }
}
