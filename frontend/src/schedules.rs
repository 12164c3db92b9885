//! State of the schedules page: edited input, last response, view settings.
//!
//! The state outlives the page, so navigation loses no input. [`request`], [`values`], [`grid`],
//! [`link`] and [`figures`] have native tests; the other modules contain only views.

mod cards;
mod csv_download;
mod deadlock;
mod editor;
mod explain;
mod figures;
mod grid;
mod grid_view;
mod import;
mod input;
mod link;
mod memory_card;
mod ranking_table;
mod requests;
mod results;
mod selection;
mod table_card;
mod times;
mod values;

pub(crate) use editor::RequestEditor;
pub(crate) use import::open_pasted;
pub(crate) use results::ScheduleResults;

use std::collections::BTreeSet;
use std::sync::Arc;

use api::planner::schedule_comparison::{ScheduleEntry, ScheduleResponse};
use api::planner::timeline::Timeline;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::*;
use serde_json::Value;

use crate::client::RequestError;
use crate::field_errors::FieldErrors;
use crate::form::Form;
use crate::gantt::{Measure, Selection, TimeWindow, set_measure};
use crate::undo::History;

/// Request state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AskState {
    Idle,
    /// Waiting for the response.
    Asking,
    /// Response displayed.
    Done,
    /// Nothing to request: no schedule is selected.
    Empty,
    Failed(RequestError),
}

/// Last response.
#[derive(Debug, Clone)]
pub(crate) struct DisplayedSchedules {
    /// All schedules without timelines.
    pub(crate) response: ScheduleResponse,
    /// Timelines by key, in response order.
    pub(crate) timelines: Vec<(String, Arc<Timeline>)>,
}

impl DisplayedSchedules {
    fn from_response(mut response: ScheduleResponse) -> Self {
        let mut timelines = Vec::new();
        for entry in &mut response.entries {
            let key = figures::entry_key(entry);
            if let api::planner::schedule_comparison::EntryOutcome::Run(report) = &mut entry.outcome {
                timelines.push((key, Arc::new(std::mem::take(&mut report.timeline))));
            }
        }
        Self { response, timelines }
    }

    fn entry(&self, key: &str) -> Option<&ScheduleEntry> {
        self.response.entries.iter().find(|entry| figures::entry_key(entry) == key)
    }

    fn timeline(&self, key: &str) -> Option<Arc<Timeline>> {
        self.timelines.iter().find(|timeline| timeline.0 == key).map(|timeline| Arc::clone(&timeline.1))
    }

    /// Sets the global time and memory units to the units of this response. Other pages use seconds
    /// and bytes.
    fn measure(&self) {
        set_measure(Measure::Units {
            unit_ns: self.response.unit_ns as f64,
            activation_bytes: self.response.activation_bytes as f64,
        });
    }

    fn extent_ns(&self) -> u64 {
        self.timelines.iter().map(|(_, timeline)| timeline.makespan_ns).max().unwrap_or(0)
    }
}

/// State of the schedules page.
#[derive(Clone, Copy)]
pub(crate) struct Schedules {
    /// Edited input. Null before the first visit.
    pub(crate) request: RwSignal<Value>,
    /// Validation errors from the server.
    pub(crate) errors: RwSignal<FieldErrors>,
    /// Fields without a valid number, detected in the browser.
    pub(crate) unreadable: RwSignal<FieldErrors>,
    /// Pointers of the fields on the page.
    pub(crate) fields: RwSignal<BTreeSet<String>>,
    /// Availability of undo and redo.
    pub(crate) undoable: RwSignal<(bool, bool)>,
    /// Last response. It stays visible during the next request.
    pub(crate) displayed: RwSignal<Option<Arc<DisplayedSchedules>>>,
    pub(crate) state: RwSignal<AskState>,
    /// Baseline and sort order.
    pub(crate) view: RwSignal<link::View>,
    /// Visible time range.
    pub(crate) window: RwSignal<TimeWindow>,
    /// Selected span.
    pub(crate) selection: RwSignal<Option<Selection>>,
    /// Span under the pointer.
    pub(crate) hover: RwSignal<Option<Selection>>,
    /// Error message for input that could not be opened.
    pub(crate) open_error: RwSignal<Option<String>>,
    /// Key of the table whose editor expands automatically.
    pub(crate) fresh: RwSignal<Option<String>>,
    /// Number of tables too long for a link.
    pub(crate) unlinked: RwSignal<usize>,
    /// True while the schedules page is displayed.
    pub(crate) on_page: RwSignal<bool>,
    history: StoredValue<History<Value>>,
    generation: StoredValue<u64>,
    abort: StoredValue<Option<web_sys::AbortController>, LocalStorage>,
    timer: StoredValue<Option<TimeoutHandle>>,
    url_timer: StoredValue<Option<TimeoutHandle>>,
}

impl Schedules {
    pub(crate) fn new() -> Self {
        Self {
            request: RwSignal::new(Value::Null),
            errors: RwSignal::default(),
            unreadable: RwSignal::default(),
            fields: RwSignal::default(),
            undoable: RwSignal::new((false, false)),
            displayed: RwSignal::new(None),
            state: RwSignal::new(AskState::Idle),
            view: RwSignal::default(),
            window: RwSignal::new(TimeWindow { start_ns: 0.0, end_ns: 0.0 }),
            selection: RwSignal::new(None),
            hover: RwSignal::new(None),
            open_error: RwSignal::new(None),
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

    /// Marks the page as displayed and sets the units of the last response.
    pub(crate) fn enter(self) {
        set_measure(Measure::Units { unit_ns: 1e6, activation_bytes: 1e6 });
        self.displayed
            .with_untracked(|content| content.iter().for_each(|schedules_content| schedules_content.measure()));
        self.on_page.set(true);
    }

    /// Returns the input as a form.
    pub(crate) fn form(self) -> Form {
        let change = Callback::new(move |(field_pointer, value): (String, Option<Value>)| {
            self.edit(&field_pointer, |json| input::change(json, &field_pointer, value));
        });
        let Self { request, errors, unreadable, fields, .. } = self;
        Form { document: request, errors, unreadable, fields, change }
    }

    /// Applies an edit, records it for undo under the name of the field, and sends a new request.
    pub(crate) fn edit(self, field_pointer: &str, change: impl FnOnce(&mut Value)) {
        let before = self.request.get_untracked();
        let mut after = before.clone();
        change(&mut after);
        if after != before {
            self.history.update_value(|history| history.edited(before, field_pointer, js_sys::Date::now()));
            self.replace(after);
        }
    }

    pub(crate) fn undo(self) {
        self.step(History::undo);
    }

    pub(crate) fn redo(self) {
        self.step(History::redo);
    }

    fn step(self, step: impl FnOnce(&mut History<Value>, Value) -> Option<Value>) {
        let present = self.request.get_untracked();
        if let Some(Some(previous)) = self.history.try_update_value(|history| step(history, present)) {
            self.replace(previous);
        }
    }

    /// Resets the input to the default. This can be undone.
    pub(crate) fn start_afresh(self) {
        self.view.set(link::View::default());
        self.edit("", |json| *json = input::first());
    }

    /// Adds a table.
    pub(crate) fn open_table(self, name: &str, csv: String) {
        let mut added = String::new();
        self.edit("/imported", |json| added = input::add_table(json, name, csv));
        self.open_error.set(None);
        self.fresh.set(Some(figures::table_key(&added)));
    }

    fn replace(self, request: Value) {
        self.request.set(request);
        self.undoable.set(self.history.with_value(|history| (history.can_undo(), history.can_redo())));
        self.request_soon();
    }

    fn entries(self) -> Vec<ScheduleEntry> {
        self.displayed
            .with(|content| content.as_ref().map(|current| current.response.entries.clone()).unwrap_or_default())
    }

    fn baseline(self) -> Option<String> {
        let selected = self.view.with(|view| view.baseline.clone());
        self.displayed.with(|content| figures::baseline_key(&content.as_ref()?.response.entries, selected.as_deref()))
    }
}

/// Returns the state of the schedules page from the context.
pub(crate) fn use_schedules() -> Schedules {
    expect_context()
}
