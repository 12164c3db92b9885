//! The page of one trace.

use std::sync::Arc;

use api::path;
use api::trace::{TraceDetail, TraceSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_params_map;

use crate::client::{self, Failure};
use crate::format;
use crate::gantt::{Measure, set_measure, time_text};
use crate::notice::FailureNotice;
use crate::traces::{AlignmentCard, BusyCard, CountersCard, TraceReportView, Viewer};

/// One trace: its chart, where the time went, and beside a plan.
#[component]
pub(crate) fn TracePage() -> impl IntoView {
    set_measure(Measure::Physical);
    let params = use_params_map();
    let id = Memo::new(move |_| params.with(|params| params.get("id")).unwrap_or_default());
    let detail = RwSignal::new(None::<Result<Arc<TraceDetail>, Failure>>);
    let fetch = move || {
        detail.set(None);
        let wanted = id.get_untracked();
        spawn_local(async move {
            let answer = client::get::<TraceDetail>(&path::trace(&wanted)).await.map(Arc::new);
            if id.try_get_untracked() == Some(wanted) {
                detail.set(Some(answer));
            }
        });
    };
    Effect::new(move |_| {
        id.track();
        fetch();
    });
    let body = move || match detail.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(failure)) => view! { <FailureNotice failure=failure on_retry=move |()| fetch() /> }.into_any(),
        Some(Ok(detail)) => {
            document().set_title(&format!("{} · Planscope", detail.trace.name));
            view! { <Whole detail=detail /> }.into_any()
        }
    };
    view! {
        <main id="main" class="page trace-page" tabindex="-1">
            <p><a href="/traces">"← Traces"</a></p>
            {body}
        </main>
    }
}

#[component]
fn Whole(detail: Arc<TraceDetail>) -> impl IntoView {
    let trace = detail.trace.clone();
    let id = trace.id.clone();
    let alignment = (trace.actions > 0).then(|| view! { <AlignmentCard trace=trace.clone() /> });
    let counters = (detail.counters > 0).then(|| view! { <CountersCard id=id.clone() span_ns=trace.span_ns /> });
    view! {
        <h1 class="trace-name">{trace.name.clone()}</h1>
        <p class="lead">{facts(&trace)}</p>
        {trace.note.clone().map(|note| view! { <p>{note}</p> })}
        <Viewer detail=Arc::clone(&detail) />
        {alignment}
        <BusyCard id=id />
        {counters}
        <section class="card">
            <header class="card-title"><h2>"Import"</h2></header>
            <TraceReportView report=detail.report.clone() />
        </section>
    }
}

/// A trace in a line.
fn facts(trace: &TraceSummary) -> String {
    let rank = trace.rank.map_or_else(String::new, |rank| format!(" · rank {rank}"));
    let run = trace.run.as_ref().map_or_else(String::new, |run| format!(" · run {run}"));
    format!(
        "{}{rank}{run} · {} slices in {} · {}B uploaded, {}B stored · {} UTC",
        trace.format,
        format::count(trace.slices),
        time_text::duration(trace.span_ns as f64),
        format::large(trace.raw_bytes as f64),
        format::large(trace.stored_bytes as f64),
        format::moment(&trace.created_at),
    )
}
