//! Metric and axes of the picture, also in the query string: `?x=1&y=0&at=0,0,2&metric=mfu&planner=1f1b`.
//!
//! All keys are optional. An invalid value is ignored and does not affect the other keys.

use api::sweep::{Metric, StoredSweep};
use leptos::prelude::*;
use wasm_bindgen::JsValue;

use crate::client;

/// Displayed metric and axes.
#[derive(Clone, Copy)]
pub(super) struct SweepView {
    /// Horizontal axis.
    pub(super) x: RwSignal<usize>,
    /// Vertical axis, another one than the horizontal axis. `None`: a line per planner.
    pub(super) y: RwSignal<Option<usize>>,
    /// Indices of the values of the other axes.
    pub(super) at: RwSignal<Vec<usize>>,
    pub(super) planner: RwSignal<String>,
    pub(super) metric: RwSignal<Metric>,
}

/// Parsed query values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parsed {
    x: usize,
    y: Option<usize>,
    at: Vec<usize>,
    planner: String,
    metric: Metric,
}

impl Parsed {
    fn new(sweep: &StoredSweep, value: impl Fn(&str) -> Option<String>) -> Self {
        let count = sweep.axes.len();
        let axis = |key: &str| value(key)?.parse::<usize>().ok().filter(|axis| *axis < count);
        let x = axis("x").unwrap_or_else(|| count.saturating_sub(1));
        let y = match value("y").as_deref() {
            Some("none") => None,
            _ => axis("y").filter(|y| *y != x).or_else(|| (0..count).rev().find(|y| *y != x)),
        };
        let written = value("at").unwrap_or_default();
        let mut places = written.split(',').map(|place| place.parse::<usize>().unwrap_or(0));
        let at = sweep.axes.iter().map(|axis| {
            let place = places.next().unwrap_or(0);
            if place < axis.labels.len() { place } else { 0 }
        });
        let metric = value("metric").and_then(|id| Metric::ALL.into_iter().find(|metric| metric.id() == id));
        let known = |id: &String| sweep.planners.iter().any(|entry| entry.planner.id() == id);
        let first = || sweep.planners.first().map(|entry| entry.planner.id().to_owned()).unwrap_or_default();
        Self {
            x,
            y,
            at: at.collect(),
            planner: value("planner").filter(known).unwrap_or_else(first),
            metric: metric.unwrap_or_default(),
        }
    }
}

impl SweepView {
    /// Reads the view from query values.
    pub(super) fn from_query(sweep: &StoredSweep, value: impl Fn(&str) -> Option<String>) -> Self {
        let Parsed { x, y, at, planner, metric } = Parsed::new(sweep, value);
        Self {
            x: RwSignal::new(x),
            y: RwSignal::new(y),
            at: RwSignal::new(at),
            planner: RwSignal::new(planner),
            metric: RwSignal::new(metric),
        }
    }

    /// Chooses the horizontal axis. If it is the vertical axis, both are exchanged.
    pub(super) fn choose_across(self, x: usize) {
        let before = self.x.get_untracked();
        if self.y.get_untracked() == Some(x) {
            self.y.set(Some(before));
        }
        self.x.set(x);
    }

    /// Chooses the vertical axis. If it is the horizontal axis, both are exchanged.
    pub(super) fn choose_down(self, y: Option<usize>) {
        if let (Some(before), true) = (self.y.get_untracked(), y == Some(self.x.get_untracked())) {
            self.x.set(before);
        } else if y == Some(self.x.get_untracked()) {
            // Without a vertical axis, another one becomes horizontal.
            let count = self.at.with_untracked(Vec::len);
            self.x.set((0..count).rev().find(|axis| Some(*axis) != y).unwrap_or_default());
        }
        self.y.set(y);
    }

    /// Query string for the picture request.
    pub(super) fn query(self) -> String {
        let at = self.places();
        let x = self.x.get();
        let metric = self.metric.get().id();
        match self.y.get() {
            Some(y) => format!("x={x}&y={y}&at={at}&metric={metric}&planner={}", self.planner.get()),
            None => format!("x={x}&at={at}&metric={metric}"),
        }
    }

    /// Query string for the address bar.
    pub(super) fn address(self) -> String {
        let y = self.y.get().map_or_else(|| "none".to_owned(), |y| y.to_string());
        let planner = client::encode(&self.planner.get());
        let (x, at, metric) = (self.x.get(), self.places(), self.metric.get().id());
        format!("x={x}&y={y}&at={at}&metric={metric}&planner={planner}")
    }

    fn places(self) -> String {
        self.at.with(|at| at.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

/// Writes the view to the address bar without a new history entry.
pub(super) fn write_address(page: &str, query: &str) {
    // The user may have left the page.
    if window().location().pathname().is_ok_and(|here| here == page)
        && let Ok(history) = window().history()
    {
        // If the browser refuses, the old URL stays. The next change writes again.
        drop(history.replace_state_with_url(&JsValue::NULL, "", Some(&format!("{page}?{query}"))));
    }
}

#[cfg(test)]
mod tests {
    use api::planner::scenario::PlannerKind;
    use api::sweep::{LabelledAxis, NamedPlanner, SweepProgress, SweepState};

    use super::*;

    fn sweep(values: &[usize]) -> StoredSweep {
        let axis = |count: &usize| LabelledAxis {
            pointer: "/seed".into(),
            title: "seed".into(),
            labels: vec![String::new(); *count],
            numbers: None,
        };
        let planner = |planner: PlannerKind| NamedPlanner { planner, title: String::new() };
        StoredSweep {
            id: "a".into(),
            title: String::new(),
            note: None,
            tags: Vec::new(),
            pinned: false,
            sweep: serde_json::Value::Null,
            axes: values.iter().map(axis).collect(),
            planners: vec![planner(PlannerKind::OneFOneB), planner(PlannerKind::Interleaved)],
            progress: SweepProgress {
                state: SweepState::Idle,
                points: 0,
                done: 0,
                without_plan: 0,
                points_per_s: None,
            },
            engine: String::new(),
            current_engine: String::new(),
            created_at: String::new(),
        }
    }

    fn parsed(values: &[usize], query: &str) -> Parsed {
        let value =
            |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(&format!("{key}="))).map(str::to_owned);
        Parsed::new(&sweep(values), value)
    }

    #[test]
    fn a_link_shows_the_same() {
        let view = parsed(&[2, 3, 4], "x=0&y=2&at=0,2,1&metric=mfu&planner=interleaved");
        let expected =
            Parsed { x: 0, y: Some(2), at: vec![0, 2, 1], planner: "interleaved".into(), metric: Metric::Mfu };
        assert_eq!(view, expected);
        assert_eq!(parsed(&[2, 3], "y=none").y, None);
    }

    #[test]
    fn invalid_values_are_ignored_and_the_axes_differ() {
        let view = parsed(&[2, 3], "x=9&y=1&at=5,x&metric=none&planner=none");
        let expected = Parsed { x: 1, y: Some(0), at: vec![0, 0], planner: "1f1b".into(), metric: Metric::default() };
        assert_eq!(view, expected);
        assert_eq!((parsed(&[2], "").x, parsed(&[2], "").y), (0, None));
    }

    #[test]
    fn a_choice_of_the_other_axis_exchanges_both() {
        let owner = Owner::new();
        owner.set();
        let view = SweepView::from_query(&sweep(&[2, 3, 4]), |_| None);
        assert_eq!((view.x.get_untracked(), view.y.get_untracked()), (2, Some(1)));
        view.choose_across(1);
        assert_eq!((view.x.get_untracked(), view.y.get_untracked()), (1, Some(2)));
        view.choose_down(Some(1));
        assert_eq!((view.x.get_untracked(), view.y.get_untracked()), (2, Some(1)));
        view.choose_down(None);
        view.choose_down(Some(2));
        assert_eq!((view.x.get_untracked(), view.y.get_untracked()), (1, Some(2)));
    }
}
