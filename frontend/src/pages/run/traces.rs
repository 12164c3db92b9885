//! Links to the traces of a run.

use api::path;
use api::trace::{TraceList, TraceSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, pause};
use crate::format;
use crate::runs::use_run_monitor;

/// Delay in ms before the trace list of a finished run is fetched again.
const LATE_MS: i32 = 3_000;

/// Links to traces. Hidden if there are none.
#[component]
pub(super) fn TracesCard() -> impl IntoView {
    let monitor = use_run_monitor();
    let count = Memo::new(move |_| monitor.summary().map_or(0, |summary| summary.traces));
    let list = RwSignal::new(Vec::<TraceSummary>::new());
    Effect::new(move |_| {
        count.track();
        monitor.feed.state.track();
        let url = format!("{}?run={}", path::TRACES, client::encode(&monitor.feed.id()));
        spawn_local(async move {
            // Traces arrive when a run ends or shortly after. If a request fails, the list stays
            // unchanged.
            for wait_ms in [0, LATE_MS] {
                pause(wait_ms).await;
                if let Ok(found) = client::get::<TraceList>(&url).await {
                    drop(list.try_set(found.traces));
                }
            }
        });
    });
    let links = move || {
        let traces = list.get();
        let link = |trace: TraceSummary| {
            let href = format!("/traces/{}", trace.id);
            let facts = format!("{} slices", format::count(trace.slices));
            view! { <li><a href=href>{trace.name}</a>" "<small class="muted">{facts}</small></li> }
        };
        traces.into_iter().map(link).collect_view()
    };
    let compare = move || format!("{}?run={}", path::TRACE_COMPARISON_PAGE, client::encode(&monitor.feed.id()));
    view! {
        <Show when=move || list.with(|list| !list.is_empty())>
            <section class="card" data-testid="run-traces">
                <header class="card-title">
                    <h2>"Traces"</h2>
                    <span class="muted">"profiler traces of the ranks, compared with the plan"</span>
                </header>
                <ul class="plain">{links}</ul>
                <Show when=move || list.with(|list| list.len() > 1)>
                    <p><a href=compare>"Which rank is the straggler?"</a></p>
                </Show>
            </section>
        </Show>
    }
}
