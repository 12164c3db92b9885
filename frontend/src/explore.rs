//! State of the explore page: edited scenario, planning outcome and view.
//!
//! The state persists when the user navigates to other pages and back.

mod address;
mod chart_number;
pub(crate) mod modalities;
pub(crate) mod open;
mod planning;
mod results;
mod settled;
mod what_if;

use std::sync::Arc;

use api::job::StoredOutcome;
use api::planner::observer::BestSoFar;
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use api::scenario::StoredScenario;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use serde_json::Value;

pub(crate) use self::chart_number::{chart_index, planner_at_chart};
pub(crate) use self::results::{Plan, Results};
use crate::client::RequestError;
use crate::field_errors::FieldErrors;
use crate::form::Form;
use crate::fragment::View;
use crate::gantt::{Selection, TimeWindow};
use crate::storage;
use crate::undo::History;

/// State of the planning request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PlanState {
    Idle,
    /// The page loads a scenario.
    Opening,
    /// An edit is not yet stored on the server.
    Sending,
    /// The job waits for a worker.
    Queued,
    /// The job runs.
    Running {
        planner: &'static str,
        /// Phase of the planner.
        phase: String,
        /// Completed steps.
        done: u32,
        /// Total steps.
        total: u32,
        /// Fastest plan of `best` so far.
        best: Option<BestSoFar>,
    },
    /// The outcome is shown.
    Done,
    /// The outcome is shown, and no planner found a plan.
    Infeasible,
    /// Cancelled by the user.
    Cancelled,
    Failed(RequestError),
}

impl PlanState {
    /// True while the page waits for an outcome.
    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self, Self::Opening | Self::Sending | Self::Queued | Self::Running { .. })
    }
}

/// Timelines of an iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct DisplayedIteration {
    pub(crate) iteration: u32,
    /// Planners with a plan, in result order.
    pub(crate) planners: Vec<PlannerKind>,
    /// Loaded timelines by planner.
    pub(crate) timelines: Vec<(PlannerKind, Arc<Timeline>)>,
    /// Overviews of large timelines.
    pub(crate) overviews: Vec<(PlannerKind, Arc<Overview>)>,
}

impl DisplayedIteration {
    /// Returns the timeline of a planner.
    pub(crate) fn timeline(&self, planner: PlannerKind) -> Option<Arc<Timeline>> {
        self.timelines.iter().find(|(kind, _)| *kind == planner).map(|(_, timeline)| Arc::clone(timeline))
    }

    /// Returns the overview of a planner's timeline.
    pub(crate) fn overview(&self, planner: PlannerKind) -> Option<Arc<Overview>> {
        self.overviews.iter().find(|(kind, _)| *kind == planner).map(|(_, overview)| Arc::clone(overview))
    }

    /// Returns true if the timelines of all given planners are loaded.
    fn has_all(&self, mut planners: impl Iterator<Item = PlannerKind>) -> bool {
        planners.all(|planner| self.timelines.iter().any(|(kind, _)| *kind == planner))
    }

    /// Compares the timelines by pointer.
    fn is_same(&self, other: &Self) -> bool {
        let pairs = self.timelines.iter().zip(&other.timelines);
        self.timelines.len() == other.timelines.len()
            && pairs.into_iter().all(|((_, left), (_, two))| Arc::ptr_eq(left, two))
    }

    /// Maximum makespan.
    pub(crate) fn extent_ns(&self) -> u64 {
        let makespans = self.timelines.iter().map(|(_, timeline)| timeline.makespan_ns);
        makespans.chain(self.overviews.iter().map(|(_, overview)| overview.makespan_ns)).max().unwrap_or(0)
    }
}

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
    pub(crate) state: RwSignal<PlanState>,
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
    /// Request generation. Responses of older generations are discarded.
    generation: StoredValue<u64>,
    /// Fragment of the followed link, until it is parsed.
    pub(crate) arrived: StoredValue<Option<String>>,
    /// Generation in which the current scenario was opened.
    opened: StoredValue<u64>,
    /// Identifier or prefix of the opened scenario; empty for new scenarios.
    named: StoredValue<String>,
    /// Preview request in progress.
    asking: StoredValue<Option<what_if::Asking>, LocalStorage>,
    /// Timeout in ms after which a newer preview request replaces the running one.
    stall_timeout_ms: StoredValue<f64>,
    /// Time in ms since which the charts are newer than text and numbers.
    ahead_since: StoredValue<Option<f64>>,
    job: StoredValue<Option<String>>,
    timer: StoredValue<Option<TimeoutHandle>>,
    url_timer: StoredValue<Option<TimeoutHandle>>,
}

/// Debounce interval for storing edits. The preview appears earlier.
const DEBOUNCE: std::time::Duration = std::time::Duration::from_millis(350);

impl Explore {
    /// Creates the state of an empty page.
    pub(crate) fn new() -> Self {
        Self {
            scenario: RwSignal::new(Value::Null),
            errors: RwSignal::default(),
            unreadable: RwSignal::default(),
            fields: RwSignal::default(),
            undoable: RwSignal::new((false, false)),
            stored: RwSignal::new(None),
            result: RwSignal::new(None),
            is_preview: RwSignal::new(false),
            state: RwSignal::new(PlanState::Idle),
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
            generation: StoredValue::new(0),
            arrived: StoredValue::new(None),
            opened: StoredValue::new(0),
            named: StoredValue::default(),
            asking: StoredValue::new_local(None),
            stall_timeout_ms: StoredValue::new(what_if::PATIENCE_MS),
            ahead_since: StoredValue::new(None),
            job: StoredValue::new(None),
            timer: StoredValue::new(None),
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
        let is_same_request = self.scenario.with_untracked(|before| is_same_request(before, &scenario));
        self.scenario.set(scenario);
        self.undoable.set(self.history.with_value(|history| (history.can_undo(), history.can_redo())));
        if !is_same_request {
            self.plan_soon();
            self.request_preview();
        }
    }

    fn plan_soon(&self) {
        let this = *self;
        let generation = self.next_generation();
        // The previous job is obsolete. Cancelling it frees the worker for the new request.
        self.abandon_job();
        self.state.set(PlanState::Sending);
        let timer = set_timeout_with_handle(
            move || {
                if this.is_current(generation) {
                    this.send(generation);
                }
            },
            DEBOUNCE,
        );
        self.timer.update_value(|slot| {
            if let Some(old) = slot.take() {
                old.clear();
            }
            // `set_timeout` does not fail in a browser window.
            *slot = timer.ok();
        });
    }

    /// Sets the timelines in the charts and in the text.
    fn set_displayed(&self, content: DisplayedIteration) {
        self.charted.set(content.clone());
        self.displayed.set(content);
        self.ahead_since.set_value(None);
    }

    fn next_generation(&self) -> u64 {
        self.generation.update_value(|generation| *generation += 1);
        self.generation.get_value()
    }

    fn is_current(&self, generation: u64) -> bool {
        self.generation.get_value() == generation
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
    fn timelines_that_did_not_come_are_missed() {
        let both = [PlannerKind::Gpipe, PlannerKind::OneFOneB];
        let timelines = both.map(|planner| (planner, Arc::new(crate::gantt::sample::lane(&[(0, 0, 1)])))).to_vec();
        let content = DisplayedIteration { timelines, ..DisplayedIteration::default() };
        assert!(content.has_all(both.into_iter()));
        assert!(!DisplayedIteration::default().has_all(both.into_iter()));
        assert!(DisplayedIteration::default().has_all(std::iter::empty()), "nobody has a plan");
    }

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
