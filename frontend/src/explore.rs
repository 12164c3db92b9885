//! The state of the explore page: the scenario being edited, the last answer, and what of it is looked at.
//!
//! It outlives the page, so that a look at the datasets loses nothing.

mod answer;
mod chart_number;
pub(crate) mod modalities;
pub(crate) mod opening;
mod planning;
mod resting;
mod watching;
mod what_if;

use std::sync::Arc;

use api::job::StoredOutcome;
use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use api::planner::timeline::levels::Overview;
use api::scenario::StoredScenario;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use serde_json::Value;

pub(crate) use self::answer::{Plan, Results};
pub(crate) use self::chart_number::{chart_of, planner_of};
use crate::client::Failure;
use crate::field_errors::FieldErrors;
use crate::form::Form;
use crate::fragment::View;
use crate::gantt::{Selection, TimeWindow};
use crate::storage;
use crate::undo::History;

/// Where planning stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PlanState {
    /// Nothing is planned.
    Idle,
    /// A scenario is being opened.
    Opening,
    /// An edit is on its way to the server.
    Sending,
    /// Waiting for a worker.
    Queued,
    /// A planner is at work.
    Running {
        /// Title of the planner.
        planner: &'static str,
        /// What it does.
        phase: String,
        /// Steps done.
        done: u32,
        /// Steps in all.
        total: u32,
    },
    /// The answer is shown.
    Done,
    /// The answer is shown: no planner found a plan.
    Infeasible,
    /// Ended by the user.
    Cancelled,
    /// Something went wrong.
    Failed(Failure),
}

impl PlanState {
    /// Whether an answer is still to come.
    pub(crate) const fn is_busy(&self) -> bool {
        matches!(self, Self::Opening | Self::Sending | Self::Queued | Self::Running { .. })
    }
}

/// Timelines of one iteration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shown {
    /// The iteration.
    pub(crate) iteration: u32,
    /// Planners with a plan, in the order of the results.
    pub(crate) planners: Vec<PlannerKind>,
    /// Timelines by planner, those that are there.
    pub(crate) timelines: Vec<(PlannerKind, Arc<Timeline>)>,
    /// First looks at the large ones.
    pub(crate) overviews: Vec<(PlannerKind, Arc<Overview>)>,
}

impl Shown {
    /// The timeline of a planner.
    pub(crate) fn timeline(&self, planner: PlannerKind) -> Option<Arc<Timeline>> {
        self.timelines.iter().find(|(kind, _)| *kind == planner).map(|(_, timeline)| Arc::clone(timeline))
    }

    /// The first look at the timeline of a planner.
    pub(crate) fn overview(&self, planner: PlannerKind) -> Option<Arc<Overview>> {
        self.overviews.iter().find(|(kind, _)| *kind == planner).map(|(_, overview)| Arc::clone(overview))
    }

    /// Whether the timelines of all these planners are there.
    fn has_all(&self, mut planners: impl Iterator<Item = PlannerKind>) -> bool {
        planners.all(|planner| self.timelines.iter().any(|(kind, _)| *kind == planner))
    }

    /// Whether these are the very timelines of the other.
    fn is_same(&self, other: &Self) -> bool {
        let pairs = self.timelines.iter().zip(&other.timelines);
        self.timelines.len() == other.timelines.len()
            && pairs.into_iter().all(|((_, one), (_, two))| Arc::ptr_eq(one, two))
    }

    /// The largest makespan.
    pub(crate) fn extent_ns(&self) -> u64 {
        let whole = self.timelines.iter().map(|(_, timeline)| timeline.makespan_ns);
        whole.chain(self.overviews.iter().map(|(_, overview)| overview.makespan_ns)).max().unwrap_or(0)
    }
}

/// The state of the explore page.
#[derive(Clone, Copy)]
pub(crate) struct Explore {
    /// The scenario as it is edited; null before one is there.
    pub(crate) scenario: RwSignal<Value>,
    /// What the server finds wrong with it.
    pub(crate) errors: RwSignal<FieldErrors>,
    /// What is no number at all, found here.
    pub(crate) unreadable: RwSignal<FieldErrors>,
    /// Fields on the page, by pointer; errors of others are shown at their section.
    pub(crate) fields: RwSignal<std::collections::BTreeSet<String>>,
    /// Whether an edit can be undone, and redone.
    pub(crate) undoable: RwSignal<(bool, bool)>,
    /// The scenario as the server stored it last.
    pub(crate) stored: RwSignal<Option<StoredScenario>>,
    /// The last answer; it stays while the next one is computed.
    pub(crate) result: RwSignal<Option<Arc<StoredOutcome>>>,
    /// Whether the last answer is one that was tried out, and is stored nowhere.
    tried: RwSignal<bool>,
    /// Where planning stands.
    pub(crate) state: RwSignal<PlanState>,
    /// What is looked at.
    pub(crate) view: RwSignal<View>,
    /// Timelines of the shown iteration.
    pub(crate) shown: RwSignal<Shown>,
    /// The same as the Gantt charts draw them: while a slider is dragged, a frame ahead of words and figures.
    pub(crate) charted: RwSignal<Shown>,
    /// Shown range of the time axis.
    pub(crate) window: RwSignal<TimeWindow>,
    /// Span that is selected.
    pub(crate) selection: RwSignal<Option<Selection>>,
    /// Span under the pointer.
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// What of the link could not be read, in words.
    pub(crate) link_words: RwSignal<Option<String>>,
    /// The fragment of the link that the scenario came in whole, while it is stored nowhere else.
    pub(crate) unsaved: RwSignal<Option<String>>,
    /// The self-contained link that was copied last.
    pub(crate) contained_link: RwSignal<Option<String>>,
    /// Pages of this room that are mounted; only where one is may the address bar be written. From one of its routes to another the
    /// new page comes before the old one goes, so for a moment there are two.
    mounted: RwSignal<u32>,
    history: StoredValue<History<Value>>,
    /// Counts questions; an answer to an older question is dropped.
    generation: StoredValue<u64>,
    /// The fragment of the link that leads here, until it is read.
    pub(crate) arrived: StoredValue<Option<String>>,
    /// The generation with which the present scenario was opened.
    opened: StoredValue<u64>,
    /// The identifier or prefix by which it was opened; empty where it was started.
    named: StoredValue<String>,
    /// The question that is tried out at the moment.
    asking: StoredValue<Option<what_if::Asking>, LocalStorage>,
    /// How long a question may be under way before it gives way to a newer one, ms.
    stall_timeout_ms: StoredValue<f64>,
    /// Since when charts are ahead of words and figures, ms of the clock.
    ahead_since: StoredValue<Option<f64>>,
    job: StoredValue<Option<String>>,
    timer: StoredValue<Option<TimeoutHandle>>,
    url_timer: StoredValue<Option<TimeoutHandle>>,
}

/// Edits closer together than this are stored once; what they would give is on screen long before.
const DEBOUNCE: std::time::Duration = std::time::Duration::from_millis(350);

impl Explore {
    /// An empty page.
    pub(crate) fn new() -> Self {
        Self {
            scenario: RwSignal::new(Value::Null),
            errors: RwSignal::default(),
            unreadable: RwSignal::default(),
            fields: RwSignal::default(),
            undoable: RwSignal::new((false, false)),
            stored: RwSignal::new(None),
            result: RwSignal::new(None),
            tried: RwSignal::new(false),
            state: RwSignal::new(PlanState::Idle),
            view: RwSignal::default(),
            shown: RwSignal::default(),
            charted: RwSignal::default(),
            window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
            selection: RwSignal::new(None),
            hover: RwSignal::new(None),
            link_words: RwSignal::new(None),
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

    /// The scenario as a form.
    pub(crate) fn form(self) -> Form {
        let change = Callback::new(move |(pointer, value): (String, Option<Value>)| match value {
            Some(value) => self.set(&pointer, value),
            None => self.remove(&pointer),
        });
        let Self { scenario, errors, unreadable, fields, .. } = self;
        Form { document: scenario, errors, unreadable, fields, change }
    }

    /// Puts a value at a place of the scenario and plans again.
    pub(crate) fn set(&self, pointer: &str, value: Value) {
        self.edit(pointer, |scenario| crate::pointer::set(scenario, pointer, value));
    }

    /// Takes a field of the scenario away and plans again.
    pub(crate) fn remove(&self, pointer: &str) {
        self.edit(pointer, |scenario| crate::pointer::remove(scenario, pointer));
    }

    /// Changes the scenario under the name of the edited place, for undo, and plans again.
    pub(crate) fn edit(&self, place: &str, change: impl FnOnce(&mut Value)) {
        let before = self.scenario.get_untracked();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        self.history.update_value(|history| history.edited(before, place, js_sys::Date::now()));
        self.replace(after);
    }

    /// Takes the last edit back.
    pub(crate) fn undo(&self) {
        self.step(History::undo);
    }

    /// Makes the edit again that was taken back.
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
        let asks_the_same = self.scenario.with_untracked(|before| asks_the_same(before, &scenario));
        self.scenario.set(scenario);
        self.undoable.set(self.history.with_value(|history| (history.can_undo(), history.can_redo())));
        if !asks_the_same {
            self.plan_soon();
            self.ask_what_if();
        }
    }

    fn plan_soon(&self) {
        let this = *self;
        let generation = self.next_generation();
        // Nobody asks that question any more, and its worker is wanted for this one.
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
            // A window without timers could not have come this far.
            *slot = timer.ok();
        });
    }

    /// Shows timelines, in the charts and wherever they are spoken of.
    fn set_shown(&self, shown: Shown) {
        self.charted.set(shown.clone());
        self.shown.set(shown);
        self.ahead_since.set_value(None);
    }

    fn next_generation(&self) -> u64 {
        self.generation.update_value(|generation| *generation += 1);
        self.generation.get_value()
    }

    fn is_current(&self, generation: u64) -> bool {
        self.generation.get_value() == generation
    }

    /// Takes note that a page of this room is there, until its owner goes.
    pub(crate) fn mount(self) {
        self.mounted.update(|mounted| *mounted += 1);
        on_cleanup(move || self.mounted.update(|mounted| *mounted = mounted.saturating_sub(1)));
    }

    /// Whether the explore page is the one that is shown.
    pub(crate) fn on_page(&self) -> bool {
        self.mounted.get() > 0
    }

    /// The results in order, fastest first.
    pub(crate) fn results(&self) -> Results {
        Results(self.result.get())
    }

    /// Identifier of the scenario whose answer is shown and stored; nothing while an answer is only tried out, for the server
    /// knows nothing more of that.
    pub(crate) fn kept_scenario(&self) -> Option<String> {
        if self.tried.get() {
            return None;
        }
        self.result.with(|result| Some(result.as_ref()?.outcome.scenario.clone()))
    }

    /// The judged plan of a planner.
    pub(crate) fn planned(&self, planner: PlannerKind) -> Option<Plan> {
        self.results().of(planner)?.plan()
    }
}

/// Whether two scenarios differ in their titles at most: a title is no part of the question, and nothing is planned again for it.
fn asks_the_same(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    let question = |scenario: &serde_json::Map<String, Value>| scenario.keys().filter(|key| *key != "title").count();
    question(one) == question(other)
        && one.iter().filter(|(key, _)| *key != "title").all(|(key, value)| other.get(key) == Some(value))
}

/// The state of the explore page.
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
        let shown = Shown { timelines, ..Shown::default() };
        assert!(shown.has_all(both.into_iter()));
        assert!(!Shown::default().has_all(both.into_iter()));
        assert!(Shown::default().has_all(std::iter::empty()), "nobody has a plan");
    }

    #[test]
    fn a_title_is_no_part_of_the_question() {
        let scenario = json!({"schema": "scenario/1", "title": "One", "seed": 1});
        assert!(asks_the_same(&scenario, &json!({"schema": "scenario/1", "title": "Two", "seed": 1})));
        assert!(asks_the_same(&scenario, &json!({"schema": "scenario/1", "seed": 1})));
        assert!(!asks_the_same(&scenario, &json!({"schema": "scenario/1", "title": "One", "seed": 2})));
        assert!(!asks_the_same(&scenario, &json!({"schema": "scenario/1", "title": "One"})));
        assert!(!asks_the_same(&Value::Null, &Value::Null));
    }
}
