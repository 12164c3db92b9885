//! State of the check page: the configuration, its result, changes and plans. It survives visits of other pages.

mod file_name;
mod saved;

use std::sync::Arc;

use api::check::{Check, CheckChanges, CheckRequest, Edit, NamedText, RISK, apply_to_files};
use api::path;
use api::planner::outcome::{PlanOutcome, Planned};
use api::planner::scenario::Scenario;
use api::planner::timeline::Timeline;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::de::DeserializeOwned;

use crate::client::{self, Abort, Body, RequestError};
use crate::gantt::TimeWindow;
use crate::picked_files::read_text;
use saved::SavedInput;

/// Content that is requested from the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Loaded<T> {
    /// Not requested.
    Absent,
    Waiting,
    Here(Arc<T>),
    Failed(RequestError),
}

impl<T> Loaded<T> {
    /// Returns the content, if it is here.
    pub(crate) fn here(&self) -> Option<Arc<T>> {
        match self {
            Self::Here(content) => Some(Arc::clone(content)),
            _ => None,
        }
    }

    /// Returns the content of a response.
    pub(crate) fn new(response: Result<T, RequestError>) -> Self {
        response.map_or_else(Self::Failed, |content| Self::Here(Arc::new(content)))
    }
}

/// A checked configuration and its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    pub(crate) request: CheckRequest,
    pub(crate) check: Check,
}

impl Checked {
    /// Stores the scenario of the configuration with its planner only.
    pub(crate) async fn store_own_scenario(&self) -> Result<StoredScenario, RequestError> {
        let body = serde_json::to_string(&own_scenario(&self.check));
        let body = body.map_err(|error| RequestError::Unreadable(error.to_string()))?;
        client::send("PUT", path::SCENARIOS, Body::Json(body)).await
    }
}

fn own_scenario(check: &Check) -> Scenario {
    Scenario { planners: vec![check.fit.planner], iterations: 1, ..check.scenario.clone() }
}

/// A plan with its timeline. `None` if nothing fits.
pub(crate) type DrawnPlan = Option<(Planned, Arc<Timeline>)>;

/// Maximum number of devices of a job. The server has the same limit.
const MAX_DEVICES: u32 = 131_072;

/// Reads the number of devices. `None` for an empty field.
///
/// # Errors
/// Returns the message for the field.
fn device_count(text: &str) -> Result<Option<u32>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let count = text.parse().ok().filter(|count| (1..=MAX_DEVICES).contains(count));
    count
        .map(Some)
        .ok_or_else(|| format!("Enter a whole number from 1 to {}.", crate::format::count(MAX_DEVICES.into())))
}

/// State of the check page.
#[derive(Clone, Copy)]
pub(crate) struct CheckState {
    /// Text of the configuration. It stays in this tab.
    pub(crate) text: RwSignal<String>,
    pub(crate) file_name: RwSignal<String>,
    /// Further files of the same job.
    pub(crate) further: RwSignal<Vec<NamedText>>,
    /// Number of devices; empty if the file states it.
    pub(crate) devices: RwSignal<String>,
    /// Cluster preset; empty if the file states it.
    pub(crate) device: RwSignal<String>,
    pub(crate) result: RwSignal<Loaded<Checked>>,
    pub(crate) changes: RwSignal<Loaded<CheckChanges>>,
    /// Plan of the configuration, for the chart.
    pub(crate) own: RwSignal<Loaded<DrawnPlan>>,
    /// Best plan with free layout and settings.
    pub(crate) best: RwSignal<Loaded<DrawnPlan>>,
    /// Highest risk of running out of memory of the best plan. `None`: no limit.
    pub(crate) max_risk: RwSignal<Option<f64>>,
    /// Visible time range of both charts.
    pub(crate) window: RwSignal<TimeWindow>,
    /// Texts of the files before the applied changes, newest last.
    earlier: RwSignal<Vec<Vec<String>>>,
    /// Number of the check, to discard late responses.
    number: StoredValue<u64>,
    abort: StoredValue<Option<Abort>, LocalStorage>,
}

impl CheckState {
    /// Creates the state with the input that this tab had before a reload.
    pub(crate) fn new() -> Self {
        let SavedInput { files, devices, device } = SavedInput::read().unwrap_or_default();
        let mut files = files.into_iter();
        let (name, text) = files.next().map(|file| (file.name, file.text)).unwrap_or_default();
        Self {
            text: RwSignal::new(text),
            file_name: RwSignal::new(name),
            further: RwSignal::new(files.collect()),
            devices: RwSignal::new(devices),
            device: RwSignal::new(device),
            result: RwSignal::new(Loaded::Absent),
            changes: RwSignal::new(Loaded::Absent),
            own: RwSignal::new(Loaded::Absent),
            best: RwSignal::new(Loaded::Absent),
            max_risk: RwSignal::new(Some(RISK)),
            window: RwSignal::new(TimeWindow::fit(1)),
            earlier: RwSignal::new(Vec::new()),
            number: StoredValue::new(0),
            abort: StoredValue::new_local(None),
        }
    }

    /// Saves the input of each check for this tab.
    fn save(self, request: &CheckRequest) {
        let first = NamedText { name: request.name.clone(), text: request.text.clone() };
        let files = std::iter::once(first).chain(request.further.iter().cloned()).collect();
        let (devices, device) = (self.devices.get_untracked(), self.device.get_untracked());
        SavedInput { files, devices, device }.write();
    }

    /// Opens the files of another configuration and checks it. The text area shows the first file.
    pub(crate) fn open(self, mut files: Vec<NamedText>) {
        if files.is_empty() {
            return;
        }
        let NamedText { name, text } = files.remove(0);
        self.file_name.set(name);
        self.text.set(text);
        self.further.set(files);
        self.earlier.set(Vec::new());
        self.run();
    }

    /// Returns the texts of all files with edits. If the texts have changed since the check, the edits may not match.
    pub(crate) fn edited(self, edits: &[Edit]) -> Option<Vec<String>> {
        let texts = self.texts();
        apply_to_files(&texts.iter().map(String::as_str).collect::<Vec<_>>(), edits)
    }

    /// Applies edits to the files and checks the result.
    pub(crate) fn apply(self, edits: &[Edit]) {
        if let Some(after) = self.edited(edits) {
            self.earlier.update(|earlier| earlier.push(self.texts()));
            self.set_texts(after);
            self.run();
        }
    }

    /// Returns the name of a file.
    pub(crate) fn name(self, file: u32) -> Option<String> {
        match (file as usize).checked_sub(1) {
            None => Some(self.file_name.get_untracked()),
            Some(index) => self.further.with_untracked(|files| files.get(index).map(|file| file.name.clone())),
        }
    }

    /// Returns the file name of a pasted text.
    pub(crate) fn default_file_name(self) -> String {
        let format = self.result.with_untracked(|result| match result {
            Loaded::Here(checked) => checked.check.format,
            _ => None,
        });
        self.text.with_untracked(|text| format!("configuration.{}", file_name::extension(format, text)))
    }

    fn texts(self) -> Vec<String> {
        let further = self.further.get_untracked().into_iter().map(|file| file.text);
        std::iter::once(self.text.get_untracked()).chain(further).collect()
    }

    fn set_texts(self, texts: Vec<String>) {
        let mut texts = texts.into_iter();
        self.text.set(texts.next().unwrap_or_default());
        // A signal that does not change must not notify.
        if self.further.with_untracked(|files| !files.is_empty()) {
            self.further.update(|files| files.iter_mut().zip(texts).for_each(|(file, text)| file.text = text));
        }
    }

    /// True if a change was applied.
    pub(crate) fn can_undo(self) -> bool {
        self.earlier.with(|earlier| !earlier.is_empty())
    }

    /// Restores the texts before the last applied change, and checks it.
    pub(crate) fn undo(self) {
        if let Some(Some(before)) = self.earlier.try_update(Vec::pop) {
            self.set_texts(before);
            self.run();
        }
    }

    /// Returns the error of the number of devices.
    pub(crate) fn devices_error(self) -> Option<String> {
        self.devices.with(|devices| device_count(devices).err())
    }

    /// True if the text or the devices differ from the checked ones.
    pub(crate) fn is_outdated(self) -> bool {
        if self.devices_error().is_some() {
            return self.result.with(|result| matches!(result, Loaded::Here(_)));
        }
        let request = self.request();
        self.result.with(|result| matches!(result, Loaded::Here(checked) if checked.request != request))
    }

    /// Removes the configuration and its result.
    pub(crate) fn clear(self) {
        self.cancel();
        self.text.set(String::new());
        self.file_name.set(String::new());
        self.further.set(Vec::new());
        self.earlier.set(Vec::new());
        SavedInput::default().write();
    }

    /// Cancels a check.
    pub(crate) fn cancel(self) {
        self.begin();
        for reset in [self.own, self.best] {
            reset.set(Loaded::Absent);
        }
        self.changes.set(Loaded::Absent);
        self.result.set(Loaded::Absent);
    }

    fn request(self) -> CheckRequest {
        CheckRequest {
            text: self.text.get(),
            name: self.file_name.get(),
            further: self.further.get(),
            devices: self.devices.with(|devices| device_count(devices).ok().flatten()),
            device: Some(self.device.get()).filter(|device| !device.is_empty()),
            budget: None,
        }
    }

    /// Checks the configuration. Changes and plans follow. An invalid number of devices is not checked: the field has
    /// the error.
    pub(crate) fn run(self) {
        if untrack(|| self.devices_error()).is_some() {
            return;
        }
        let request = untrack(|| self.request());
        self.save(&request);
        let number = self.begin();
        let abort = self.abort.with_value(Clone::clone);
        self.result.set(Loaded::Waiting);
        for reset in [self.own, self.best] {
            reset.set(Loaded::Absent);
        }
        self.changes.set(Loaded::Absent);
        let body = serde_json::to_string(&request).expect("a request is made of texts and numbers");
        spawn_local(async move {
            let response = send::<Check>(path::CHECKS, body.clone(), abort.as_ref()).await;
            if !self.is_current(number) {
                return;
            }
            let result = Loaded::new(response.map(|check| Checked { request, check }));
            let checked = result.here();
            self.result.set(result);
            let Some(checked) = checked else { return };
            self.follow(number, body, &checked.check, abort);
        });
    }

    /// Requests changes and plans, one after the other: each uses all search threads of the server.
    fn follow(self, number: u64, body: String, check: &Check, abort: Option<Abort>) {
        let own = check.plan.is_some().then(|| own_scenario(check));
        let best = check.shown_best_scenario();
        self.changes.set(Loaded::Waiting);
        self.best.set(Loaded::Waiting);
        spawn_local(async move {
            if let Some(own) = own {
                self.own.set(Loaded::Waiting);
                let plan = drawn_plan(&own, abort.as_ref()).await;
                if !self.is_current(number) {
                    return;
                }
                self.own.set(Loaded::new(plan));
                self.window.set(TimeWindow::fit(self.extent_ns()));
            }
            let changes = send(path::CHECK_CHANGES, body, abort.as_ref()).await;
            if !self.is_current(number) {
                return;
            }
            self.changes.set(Loaded::new(changes));
            self.search_best(number, best, abort).await;
        });
    }

    /// Requests the best plan within the highest risk. A result for an earlier choice of the risk is discarded.
    async fn search_best(self, number: u64, scenario: Scenario, abort: Option<Abort>) {
        let max_memory_risk = self.max_risk.get_untracked();
        let plan = drawn_plan(&Scenario { max_memory_risk, ..scenario }, abort.as_ref()).await;
        if self.is_current(number) && self.max_risk.get_untracked() == max_memory_risk {
            self.best.set(Loaded::new(plan));
            self.window.set(TimeWindow::fit(self.extent_ns()));
        }
    }

    /// Searches the best plan again with another highest risk.
    pub(crate) fn set_max_risk(self, max_risk: Option<f64>) {
        self.max_risk.set(max_risk);
        let Some(checked) = untrack(|| self.result.get().here()) else { return };
        // A check that waits for its changes searches afterwards.
        if untrack(|| matches!(self.changes.get(), Loaded::Waiting)) {
            return;
        }
        let (number, abort) = (self.number.get_value(), self.abort.with_value(Clone::clone));
        self.best.set(Loaded::Waiting);
        spawn_local(self.search_best(number, checked.check.shown_best_scenario(), abort));
    }

    /// Longest makespan of both charts in ns.
    pub(crate) fn extent_ns(self) -> u64 {
        let makespan = |plan: &Loaded<DrawnPlan>| {
            plan.here().and_then(|plan| plan.as_ref().as_ref().map(|(_, timeline)| timeline.makespan_ns))
        };
        [self.own, self.best].into_iter().filter_map(|plan| plan.with(makespan)).max().unwrap_or(1)
    }

    /// Aborts the current check and returns the number of the next one.
    fn begin(self) -> u64 {
        if let Some(Some(abort)) = self.abort.try_update_value(Option::take) {
            abort.abort();
        }
        self.abort.set_value(Abort::new());
        self.number.update_value(|number| *number += 1);
        self.number.get_value()
    }

    fn is_current(self, number: u64) -> bool {
        self.number.try_get_value() == Some(number)
    }
}

/// Returns the state of the page.
pub(crate) fn use_check() -> CheckState {
    expect_context::<CheckState>()
}

async fn send<T: DeserializeOwned>(url: &str, body: String, abort: Option<&Abort>) -> Result<T, RequestError> {
    client::send_until("POST", url, Body::Json(body), abort.map(Abort::signal)).await
}

/// Plans a scenario with one planner.
async fn drawn_plan(scenario: &Scenario, abort: Option<&Abort>) -> Result<DrawnPlan, RequestError> {
    let unreadable = |error: &dyn std::fmt::Display| RequestError::Unreadable(error.to_string());
    let Some(abort) = abort else { return Err(RequestError::Offline) };
    let body = serde_json::to_string(scenario).map_err(|error| unreadable(&error))?;
    let bytes =
        client::post_for_bytes(&path::plan_preview(0), body, path::PLAN_PREVIEW_MEDIA_TYPE, &abort.signal()).await?;
    let preview = api::what_if::decode(&bytes).map_err(|error| unreadable(&error))?;
    let outcome = preview.outcome.read().map_err(|error| unreadable(&error))?;
    let result = outcome.outcome.results.into_iter().next();
    let timeline = preview.timelines.into_iter().next().map(|(_, timeline)| Arc::new(timeline));
    Ok(match (result.map(|result| result.answer), timeline) {
        (Some(PlanOutcome::Planned(planned)), Some(timeline)) => Some((*planned, timeline)),
        _ => None,
    })
}

/// Reads files of at most 1 MiB as text. The server has the same limit.
pub(crate) async fn read_files(files: Vec<web_sys::File>) -> Result<Vec<NamedText>, String> {
    let mut read = Vec::new();
    for file in files {
        read.push(NamedText { name: file.name(), text: read_text(&file, 1).await? });
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_whole_numbers() {
        assert_eq!(device_count(" "), Ok(None));
        assert_eq!(device_count(" 64 "), Ok(Some(64)));
        for wrong in ["12.5", "-8", "0", "131073", "8 GPUs"] {
            assert_eq!(device_count(wrong).unwrap_err(), "Enter a whole number from 1 to 131,072.", "{wrong}");
        }
    }
}
