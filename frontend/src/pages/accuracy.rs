//! Accuracy page: errors of the predictions relative to published measurements.

mod choices;
mod detail;
mod filters;
mod summary;

use std::sync::Arc;

use api::accuracy::{Accuracy, AccuracySet};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_query_map;

use crate::client::{self, RequestError};
use crate::notice::ErrorNotice;
use detail::Detail;
use summary::Summary;

/// Minimum visible height of the chart in px. Below this height the page scrolls to the chart.
const SEEN_PX: f64 = 200.0;

/// URL of the page that shows a set.
fn link(id: &str) -> String {
    format!("/accuracy?set={}", client::encode(id))
}

/// Returns the requested set, or the first set if the URL names none. Returns `None` if the
/// requested set does not exist.
fn select_set(sets: &[Arc<AccuracySet>], wanted: Option<&str>) -> Option<Arc<AccuracySet>> {
    match wanted {
        Some(id) => sets.iter().find(|set| set.id == id).cloned(),
        None => sets.first().cloned(),
    }
}

#[component]
pub(crate) fn AccuracyPage() -> impl IntoView {
    document().set_title("Accuracy · Planscope");
    let response = RwSignal::new(None::<Result<Accuracy, RequestError>>);
    let fetch = move || {
        response.set(None);
        spawn_local(async move { response.set(Some(client::get(path::ACCURACY).await)) });
    };
    fetch();
    let body = move || {
        match response.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(accuracy)) if accuracy.sets.is_empty() => view! {
            <div class="empty">
                <p>"This server was built without measurements."</p>
                <p><code>"cargo xtask accuracy"</code>" compares the simulator with published tables; a server built after it shows them here."</p>
            </div>
        }
        .into_any(),
        Some(Ok(Accuracy { engine, sets })) => {
            view! { <Sets engine=engine sets=sets.into_iter().map(Arc::new).collect() /> }.into_any()
        }
    }
    };
    view! {
        <main id="main" class="page accuracy" tabindex="-1">
            <h1>"Accuracy"</h1>
            <p class="lead">
                "Figures of devices are fitted to published timings of single operators and collectives. The step times and memory sizes below are not used in fits. Rows that were used in a fit are excluded. The errors show how far predictions are from what others measured."
            </p>
            {body}
        </main>
    }
}

#[component]
fn Sets(engine: String, sets: Vec<Arc<AccuracySet>>) -> impl IntoView {
    let query = use_query_map();
    let wanted = Memo::new(move |_| query.with(|query| query.get("set")));
    let all = StoredValue::new(sets);
    let set = Memo::new(move |_| all.with_value(|sets| select_set(sets, wanted.get().as_deref())));
    let id = Memo::new(move |_| set.with(|set| set.as_ref().map(|set| set.id.clone())));
    Effect::new(move |before: Option<Option<String>>| {
        let now = id.get();
        if before.is_some_and(|before| before != now) {
            request_animation_frame(show_detail);
        }
        now
    });
    let detail = move || set.get().map(|set| view! { <Detail set=set /> });
    // Above the table, where it is visible without scrolling.
    let unknown = move || {
        set.with(Option::is_none).then(|| {
            view! {
                <div class="notice bad" role="alert">
                    <b>"This set does not exist"</b>
                    <p>{format!("No set has the name \"{}\". Choose a set from the table.", wanted.get().unwrap_or_default())}</p>
                </div>
            }
        })
    };
    view! {
        {unknown}
        <Summary sets=all.get_value() selected=id />
        <p class="hint">{format!("Predicted by {engine}. Errors are in per cent of the measured value; a positive bias predicts too much.")}</p>
        {detail}
    }
}

/// Scrolls to the chart if less than [`SEEN_PX`] is visible. Otherwise a click in the table has no
/// visible effect.
fn show_detail() {
    let height = window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(0.0);
    if let Ok(Some(detail)) = document().query_selector("[data-testid=accuracy-detail]")
        && detail.get_bounding_client_rect().top() > height - SEEN_PX
    {
        detail.scroll_into_view();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use api::accuracy::{AccuracyErrors, AccuracyGoal};

    use super::*;

    /// Returns a set with this identifier and no points.
    pub(in crate::pages::accuracy) fn set(id: &str) -> AccuracySet {
        AccuracySet {
            id: id.to_owned(),
            title: String::new(),
            source: String::new(),
            unit: "s".to_owned(),
            goal: AccuracyGoal { mean: 3.0, largest: Some(6.0) },
            peer: String::new(),
            statistics: AccuracyErrors {
                count: 8,
                mean_abs_pct: 2.093,
                median_abs_pct: 0.9,
                p90_abs_pct: 6.0,
                max_abs_pct: 6.431,
                bias_pct: -1.337,
                spearman: Some(0.97),
            },
            variants: vec![],
            assumptions: vec![],
            findings: vec![],
            remarks: String::new(),
            properties: vec![],
            choices: vec![],
            points: vec![],
        }
    }

    #[test]
    fn default_is_first_set_and_unknown_id_selects_none() {
        let sets = [Arc::new(set("a")), Arc::new(set("b"))];
        assert_eq!(select_set(&sets, None).unwrap().id, "a");
        assert_eq!(select_set(&sets, Some("b")).unwrap().id, "b");
        assert_eq!(select_set(&sets, Some("c")), None);
        assert_eq!(select_set(&[], None), None);
    }
}
