//! State of the run page: live data, compared plans, compared runs, view settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::path;
use api::planner::scenario::PlannerKind;
use api::run::{Comparison, Corrected, RunChange, RunDetail, RunSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen::JsValue;

use super::feed::{Feed, Several};
use super::view::RunView;
use crate::client::{self, Body, RequestError};

/// Minimum interval in ms between two comparison requests while points arrive.
const COMPARE_MS: u64 = 4_000;
/// The same before the first step time is compared.
const FIRST_COMPARE_MS: u64 = 1_000;

/// Compared run.
#[derive(Clone, Copy)]
pub(crate) struct OtherRun {
    pub(crate) feed: Feed,
}

/// State of the run page.
#[derive(Clone, Copy)]
pub(crate) struct RunMonitor {
    pub(crate) feed: Feed,
    /// Comparison with the plan. `None` until the response arrives, or without a scenario.
    pub(crate) comparison: RwSignal<Option<Arc<Comparison>>>,
    /// Reason for a missing comparison.
    pub(crate) refusal: RwSignal<Option<RequestError>>,
    /// Comparisons with plans from other planners for the same scenario.
    pub(crate) plans: RwSignal<BTreeMap<PlannerKind, Arc<Comparison>>>,
    /// Compared runs.
    pub(crate) others: RwSignal<Vec<OtherRun>>,
    /// View settings.
    pub(crate) view: RwSignal<RunView>,
    /// True while the comparison is older than the points.
    pub(crate) is_outdated: RwSignal<bool>,
    several: Several,
    asks: StoredValue<bool>,
    owner: StoredValue<Owner>,
}

impl RunMonitor {
    pub(crate) fn new(id: String, view: RunView) -> Self {
        let this = Self {
            feed: Feed::follow(id),
            comparison: RwSignal::new(None),
            refusal: RwSignal::new(None),
            plans: RwSignal::default(),
            others: RwSignal::default(),
            view: RwSignal::new(view),
            is_outdated: RwSignal::new(false),
            several: Several::new(),
            asks: StoredValue::new(false),
            owner: StoredValue::new(Owner::current().unwrap_or_default()),
        };
        this.synchronize();
        this
    }

    /// Returns the run summary.
    pub(crate) fn summary(&self) -> Option<RunSummary> {
        self.feed.detail.with(|detail| detail.as_ref().map(|detail| detail.summary.clone()))
    }

    /// Returns scenario and planner of the compared plan.
    pub(crate) fn comparison_target(&self) -> Option<(String, Option<PlannerKind>)> {
        self.feed.detail.with(|detail| {
            let summary = &detail.as_ref()?.summary;
            Some((summary.scenario.clone()?, summary.plan))
        })
    }

    /// Creates a corrected scenario that describes the job of this run, and attaches it. The server
    /// plans it.
    pub(crate) async fn correct(self) -> Result<(), RequestError> {
        let url = path::run_correction(&self.feed.id());
        client::send::<Corrected>("POST", &url, Body::Empty).await?;
        self.feed.refresh().await
    }

    /// Applies a change to the run. Returns an error if the server rejects it.
    pub(crate) async fn change(self, change: RunChange) -> Result<(), RequestError> {
        let body = serde_json::to_string(&change).map_err(|error| RequestError::Unreadable(error.to_string()))?;
        client::submit("PATCH", &path::run(&self.feed.id()), Body::Json(body)).await?;
        self.feed.refresh().await
    }

    /// Adds or removes a run in the charts.
    pub(crate) fn toggle_run(self, id: &str) {
        self.view.update(|view| match view.runs.iter().position(|known| known == id) {
            Some(index) => drop(view.runs.remove(index)),
            None => view.runs.push(id.to_owned()),
        });
    }

    /// Adds or removes the prediction of another planner.
    pub(crate) fn toggle_plan(self, planner: PlannerKind) {
        self.view.update(|view| match view.plans.iter().position(|known| *known == planner) {
            Some(plan_index) => drop(view.plans.remove(plan_index)),
            None => view.plans.push(planner),
        });
    }

    fn synchronize(self) {
        let against = Memo::new(move |_| self.comparison_target());
        let scenario = Memo::new(move |_| against.get().map(|(scenario, _)| scenario));
        // Clear old comparisons when the scenario changes. Otherwise they appear under the wrong
        // name.
        Effect::new(move |_| {
            scenario.track();
            self.comparison.set(None);
            self.refusal.set(None);
            self.plans.set(BTreeMap::new());
        });
        Effect::new(move |_| {
            against.track();
            self.compare();
        });
        Effect::new(move |_| {
            self.view.with(|view| view.plans.clone());
            self.compare();
        });
        Effect::new(move |before: Option<u32>| {
            let version = self.feed.version();
            if before.is_some_and(|before| before != version) {
                self.is_outdated.set(true);
                self.compare_soon();
            }
            version
        });
        Effect::new(move |_| {
            let wanted = self.view.with(|view| view.runs.clone());
            self.show_others(&wanted);
        });
        Effect::new(move |before: Option<()>| {
            let query = self.view.with(RunView::write);
            if before.is_some() {
                write_address(&self.feed.id(), &query);
            }
        });
    }

    fn show_others(self, wanted: &[String]) {
        let known = self.others.get_untracked();
        let is_wanted = |other: &OtherRun| wanted.contains(&other.feed.id());
        known.iter().filter(|other| !is_wanted(other)).for_each(|other| other.feed.stop());
        // Feeds belong to the owner of the page, not to the effect that creates them.
        let owner = self.owner.get_value();
        let others = wanted.iter().map(|id| {
            let found = known.iter().find(|other| other.feed.id() == *id).copied();
            found.unwrap_or_else(|| OtherRun { feed: owner.with(|| Feed::poll(id.clone())) })
        });
        let others: Vec<OtherRun> = others.collect();
        if others.iter().map(|other| other.feed.id()).ne(known.iter().map(|other| other.feed.id())) {
            self.several.follow(others.iter().map(|other| other.feed).collect());
        }
        self.others.set(others);
    }

    fn compare_soon(self) {
        // The first steps of a run are compared soon.
        let has_step_time = self.comparison.with_untracked(|known| {
            let step = known.as_ref().and_then(|comparison| comparison.predictions.first());
            step.is_some_and(|step| step.measured.is_some())
        });
        let wait_ms = if has_step_time { COMPARE_MS } else { FIRST_COMPARE_MS };
        if self.asks.try_update_value(|asks| std::mem::replace(asks, true)) == Some(false) {
            set_timeout(
                move || {
                    if self.asks.try_set_value(false).is_none() {
                        self.compare();
                    }
                },
                std::time::Duration::from_millis(wait_ms),
            );
        }
    }

    /// Requests all comparisons again. Old comparisons stay until the responses arrive.
    pub(crate) fn compare(self) {
        let Some(against) = untrack(|| self.comparison_target()) else { return };
        let id = self.feed.id();
        let version = untrack(|| self.feed.version());
        let plans = self.view.with_untracked(|view| view.plans.clone());
        spawn_local(async move {
            let response = client::get::<Comparison>(&path::run_comparison(&id, None)).await;
            let is_still = || {
                untrack(|| self.feed.detail.try_with(Option::is_some)) == Some(true)
                    && untrack(|| self.comparison_target()).as_ref() == Some(&against)
            };
            if !is_still() {
                // The detail can be of an earlier moment while it is loaded again. Its target then returns without a new request.
                if untrack(|| self.feed.detail.try_with(|_| ())).is_some() {
                    self.compare_soon();
                }
                return;
            }
            // Points that arrived meanwhile are not compared yet.
            if untrack(|| self.feed.version()) == version {
                self.is_outdated.set(false);
            }
            match response {
                Ok(comparison) => {
                    self.refusal.set(None);
                    if self.comparison.with_untracked(|known| known.as_deref() != Some(&comparison)) {
                        self.comparison.set(Some(Arc::new(comparison)));
                    }
                }
                Err(error) => {
                    self.comparison.set(None);
                    self.refusal.set(Some(error));
                }
            }
            for planner in plans {
                let plan_response = client::get::<Comparison>(&path::run_comparison(&id, Some(planner.id()))).await;
                if !is_still() {
                    return;
                }
                // The planner may have no plan for this scenario.
                self.plans.update(|plans| match plan_response {
                    Ok(comparison) => drop(plans.insert(planner, Arc::new(comparison))),
                    Err(_) => drop(plans.remove(&planner)),
                });
            }
        });
    }
}

/// Returns the state of the run page from the context.
pub(crate) fn use_run_monitor() -> RunMonitor {
    expect_context()
}

/// Reads a value from the run detail, if it is loaded.
pub(crate) fn read_detail<T>(monitor: RunMonitor, read: impl FnOnce(&RunDetail) -> T) -> Option<T> {
    monitor.feed.detail.with(|detail| detail.as_deref().map(read))
}

/// Writes the view to the address bar without a new history entry.
fn write_address(id: &str, query: &str) {
    let page = path::run_page(id);
    let mark = if query.is_empty() { "" } else { "?" };
    // The user may have left the page.
    if window().location().pathname().is_ok_and(|here| here == page)
        && let Ok(history) = window().history()
    {
        // If the browser refuses, the old URL stays. The next change writes again.
        drop(history.replace_state_with_url(&JsValue::NULL, "", Some(&format!("{page}{mark}{query}"))));
    }
}
