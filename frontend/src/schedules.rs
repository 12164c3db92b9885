//! The state of the page of schedules: the question being edited, the last answer, and what of it is looked at.
//!
//! It outlives the page, so that a look elsewhere loses nothing. [`question`], [`values`], [`grid`], [`link`] and
//! [`figures`] are native and tested; the rest only shows them.

mod asking;
mod cards;
mod csv_download;
mod deadlock;
mod editor;
mod explain;
mod figures;
mod grid;
mod grid_view;
mod import;
mod link;
mod memory_card;
mod question;
mod ranking_table;
mod results;
mod selection;
mod table_card;
mod times;
mod values;

pub(crate) use editor::QuestionEditor;
pub(crate) use import::open_pasted;
pub(crate) use results::ScheduleResults;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::planner::schedule_comparison::{ScheduleEntry, ScheduleResponse};
use api::planner::timeline::Timeline;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use serde_json::Value;

use crate::client::Failure;
use crate::field_errors::FieldErrors;
use crate::form::Form;
use crate::gantt::{Measure, Selection, TimeWindow, set_measure};
use crate::undo::History;

/// Where the answer stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AskState {
    /// Nothing was asked yet.
    Idle,
    /// The answer is on its way.
    Asking,
    /// It is shown.
    Done,
    /// Nothing is left to ask.
    Empty,
    /// Something went wrong.
    Failed(Failure),
}

/// The last answer.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    /// Every schedule, timelines left out.
    pub(crate) answer: ScheduleResponse,
    /// Timelines by key, in the order of the answer.
    pub(crate) timelines: Vec<(String, Arc<Timeline>)>,
}

impl Shown {
    fn of(mut answer: ScheduleResponse) -> Self {
        let mut timelines = Vec::new();
        for entry in &mut answer.entries {
            let key = figures::key_of(entry);
            if let api::planner::schedule_comparison::EntryOutcome::Run(report) = &mut entry.outcome {
                timelines.push((key, Arc::new(std::mem::take(&mut report.timeline))));
            }
        }
        Self { answer, timelines }
    }

    fn entry(&self, key: &str) -> Option<&ScheduleEntry> {
        self.answer.entries.iter().find(|entry| figures::key_of(entry) == key)
    }

    fn timeline(&self, key: &str) -> Option<Arc<Timeline>> {
        self.timelines.iter().find(|timeline| timeline.0 == key).map(|timeline| Arc::clone(&timeline.1))
    }

    /// What the units of this answer are, for the page that shows it: another page's charts are in seconds and bytes.
    fn measure(&self) {
        set_measure(Measure::Units {
            unit_ns: self.answer.unit_ns as f64,
            activation_bytes: self.answer.activation_bytes as f64,
        });
    }

    fn extent_ns(&self) -> u64 {
        self.timelines.iter().map(|(_, timeline)| timeline.makespan_ns).max().unwrap_or(0)
    }
}

/// The state of the page of schedules.
#[derive(Clone, Copy)]
pub(crate) struct Schedules {
    /// The question as it is edited; null before the page was opened.
    pub(crate) question: RwSignal<Value>,
    /// What the server finds wrong with it.
    pub(crate) errors: RwSignal<FieldErrors>,
    /// What is no number at all, found here.
    pub(crate) unreadable: RwSignal<FieldErrors>,
    /// Fields on the page.
    pub(crate) fields: RwSignal<BTreeSet<String>>,
    /// Whether an edit can be undone, and redone.
    pub(crate) undoable: RwSignal<(bool, bool)>,
    /// The last answer; it stays while the next one is on its way.
    pub(crate) shown: RwSignal<Option<Arc<Shown>>>,
    /// Where the answer stands.
    pub(crate) state: RwSignal<AskState>,
    /// Baseline and order.
    pub(crate) view: RwSignal<link::View>,
    /// Shown range of the time axis.
    pub(crate) window: RwSignal<TimeWindow>,
    /// Span that is selected.
    pub(crate) selection: RwSignal<Option<Selection>>,
    /// Span under the pointer.
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// What could not be opened, and why.
    pub(crate) unopened: RwSignal<Option<String>>,
    /// Key of the table whose editor opens by itself.
    pub(crate) fresh: RwSignal<Option<String>>,
    /// Tables that are too long for a link.
    pub(crate) unlinked: RwSignal<usize>,
    /// Whether this page is the one that is shown.
    pub(crate) on_page: RwSignal<bool>,
    history: StoredValue<History<Value>>,
    generation: StoredValue<u64>,
    abort: StoredValue<Option<web_sys::AbortController>, LocalStorage>,
    timer: StoredValue<Option<TimeoutHandle>>,
    url_timer: StoredValue<Option<TimeoutHandle>>,
}

impl Schedules {
    /// An empty page.
    pub(crate) fn new() -> Self {
        Self {
            question: RwSignal::new(Value::Null),
            errors: RwSignal::default(),
            unreadable: RwSignal::default(),
            fields: RwSignal::default(),
            undoable: RwSignal::new((false, false)),
            shown: RwSignal::new(None),
            state: RwSignal::new(AskState::Idle),
            view: RwSignal::default(),
            window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
            selection: RwSignal::new(None),
            hover: RwSignal::new(None),
            unopened: RwSignal::new(None),
            fresh: RwSignal::new(None),
            unlinked: RwSignal::new(0),
            on_page: RwSignal::new(false),
            history: StoredValue::new(History::default()),
            generation: StoredValue::new(0),
            abort: StoredValue::new_local(None),
            timer: StoredValue::new(None),
            url_timer: StoredValue::new(None),
        }
    }

    /// The page is shown from now on, with times in the units of the last answer.
    pub(crate) fn enter(self) {
        set_measure(Measure::Units { unit_ns: 1e6, activation_bytes: 1e6 });
        self.shown.with_untracked(|shown| shown.iter().for_each(|shown| shown.measure()));
        self.on_page.set(true);
    }

    /// The question as a form.
    pub(crate) fn form(self) -> Form {
        let change = Callback::new(move |(place, value): (String, Option<Value>)| {
            self.edit(&place, |json| question::change(json, &place, value));
        });
        let Self { question, errors, unreadable, fields, .. } = self;
        Form { document: question, errors, unreadable, fields, change }
    }

    /// Changes the question under the name of the edited place, for undo, and asks again.
    pub(crate) fn edit(self, place: &str, change: impl FnOnce(&mut Value)) {
        let before = self.question.get_untracked();
        let mut after = before.clone();
        change(&mut after);
        if after != before {
            self.history.update_value(|history| history.edited(before, place, js_sys::Date::now()));
            self.replace(after);
        }
    }

    /// Takes the last edit back.
    pub(crate) fn undo(self) {
        self.step(History::undo);
    }

    /// Makes the edit again that was taken back.
    pub(crate) fn redo(self) {
        self.step(History::redo);
    }

    fn step(self, step: impl FnOnce(&mut History<Value>, Value) -> Option<Value>) {
        let present = self.question.get_untracked();
        if let Some(Some(question)) = self.history.try_update_value(|history| step(history, present)) {
            self.replace(question);
        }
    }

    /// Throws the question away and begins with the first one; this can be undone.
    pub(crate) fn start_afresh(self) {
        self.view.set(link::View::default());
        self.edit("", |json| *json = question::first());
    }

    /// Opens a table beside the others.
    pub(crate) fn open_table(self, name: &str, csv: String) {
        let mut added = String::new();
        self.edit("/imported", |json| added = question::add_table(json, name, csv));
        self.unopened.set(None);
        self.fresh.set(Some(figures::table_key(&added)));
    }

    fn replace(self, question: Value) {
        self.question.set(question);
        self.undoable.set(self.history.with_value(|history| (history.can_undo(), history.can_redo())));
        self.ask_soon();
    }

    fn entries(self) -> Vec<ScheduleEntry> {
        self.shown.with(|shown| shown.as_ref().map(|shown| shown.answer.entries.clone()).unwrap_or_default())
    }

    fn baseline(self) -> Option<String> {
        let chosen = self.view.with(|view| view.baseline.clone());
        self.shown.with(|shown| figures::baseline_of(&shown.as_ref()?.answer.entries, chosen.as_deref()))
    }
}

/// The state of the page of schedules.
pub(crate) fn use_schedules() -> Schedules {
    expect_context()
}
