//! Run page: state, metrics by step, comparison with a plan, calibration.

mod calibration;
mod charts;
mod figures;
mod headline;
mod log;
mod other_job;
mod other_runs;
mod phases;
mod plan_comparison;
mod title;
mod traces;

use leptos::prelude::*;
use leptos_router::hooks::{use_params_map, use_query_map};

use crate::resource_page::{Kind, ResourceErrorPage};
use crate::runs::{FeedMode, RunMonitor, RunView};

#[component]
pub(crate) fn RunPage() -> impl IntoView {
    let params = use_params_map();
    let query = use_query_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    // Rebuild the page for a different run, so that no state from the previous run remains.
    let run = move || {
        let view = query.with_untracked(|query| RunView::from_query(|key| query.get(key)));
        view! { <Run id=id.get() view=view /> }
    };
    view! { <main id="main" class="page run" tabindex="-1">{run}</main> }
}

#[component]
fn Run(id: String, view: RunView) -> impl IntoView {
    let monitor = RunMonitor::new(id, view);
    provide_context(monitor);
    let feed = monitor.feed;
    Effect::new(move |_| {
        let name = monitor.summary().map_or_else(|| "Run".to_owned(), |summary| summary.name);
        document().set_title(&format!("{name} · Planscope"));
    });
    let has_detail = Memo::new(move |_| feed.detail.with(Option::is_some));
    // The charts and what follows them appear together with the first stored points.
    let has_content = Memo::new(move |before: Option<&bool>| {
        let has_points =
            || feed.mode.get() != FeedMode::Loading || feed.with_points(|points| !points.samples().is_empty());
        before.is_some_and(|&before| before)
            || (has_detail.get() && (has_points() || feed.last_error.with(Option::is_some)))
    });
    let error_view = move || {
        feed.last_error.get().map(|error| {
            if has_detail.get() {
                return view! {
                    <p class="notice" role="status">{format!("{}. What is here stays; the server is asked again.", error.title())}</p>
                }
                .into_any();
            }
            // After a rejected request, reload the page.
            let again = |()| drop(window().location().reload());
            view! { <ResourceErrorPage kind=Kind { noun: "run", list: "/runs" } error=error on_retry=again /> }.into_any()
        })
    };
    let loading = move || {
        (!has_content.get() && feed.last_error.with(Option::is_none)).then(|| {
            view! {
                <h1 class="visually-hidden">"Run"</h1>
                <div class="skeleton run-title-skeleton" aria-hidden="true"></div>
                <div class="skeleton results-skeleton" aria-hidden="true"></div>
            }
        })
    };
    view! {
        {error_view}
        {loading}
        <Show when=move || has_content.get()>
            <title::RunTitle />
            <headline::Headline />
            <plan_comparison::PlanComparison />
            <charts::Charts />
            <figures::MetricsCard />
            <phases::Phases />
            <traces::TracesCard />
            <other_runs::OtherRuns />
            <calibration::Calibration />
            <log::Log />
        </Show>
        <p class="visually-hidden" data-testid="feed-mode" data-mode=move || mode_id(feed.mode.get())></p>
    }
}

const fn mode_id(mode: FeedMode) -> &'static str {
    match mode {
        FeedMode::Loading => "loading",
        FeedMode::Streaming => "streaming",
        FeedMode::Polling => "polling",
        FeedMode::Over => "over",
    }
}
