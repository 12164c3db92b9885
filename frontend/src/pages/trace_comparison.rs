//! Page that compares traces. The address names the compared traces.

use api::listing::{ListQuery, MAX_PAGE};
use api::path;
use api::trace::{TraceList, TraceSummary, UploadedTrace};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_query_map;
use wasm_bindgen::JsValue;

use crate::client::{self, RequestError};
use crate::gantt::{Measure, set_measure};
use crate::notice::ErrorNotice;
use crate::traces::{DifferenceCard, RanksCard, TraceUpload};

#[component]
pub(crate) fn TraceComparisonPage() -> impl IntoView {
    document().set_title("Compare traces · Planscope");
    set_measure(Measure::Physical);
    let query = use_query_map();
    let named = |key: &str| query.with_untracked(|query| query.get(key)).unwrap_or_default();
    let (before, after) = (RwSignal::new(named("before")), RwSignal::new(named("after")));
    let listed = named("traces");
    let ids: Vec<String> = listed.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect();
    let chosen = RwSignal::new(ids);
    let run = StoredValue::new(named("run"));
    let traces = RwSignal::new(Vec::<TraceSummary>::new());
    let failure = RwSignal::new(None::<RequestError>);
    let load = move || {
        let query = ListQuery { limit: Some(MAX_PAGE), ..ListQuery::default() };
        let url = format!("{}{}", path::TRACES, query.write(client::encode));
        spawn_local(async move {
            match client::get::<TraceList>(&url).await {
                Ok(list) => {
                    let run = run.try_get_value().unwrap_or_default();
                    let own = list.traces.iter().filter(|trace| !run.is_empty() && trace.run.as_ref() == Some(&run));
                    let own: Vec<String> = own.map(|trace| trace.id.clone()).collect();
                    traces.set(list.traces);
                    if !own.is_empty() && chosen.with_untracked(Vec::is_empty) {
                        chosen.set(own);
                    }
                }
                Err(error) => failure.set(Some(error)),
            }
        });
    };
    load();
    Effect::new(move |_| write_address(&before.get(), &after.get(), &chosen.get()));
    let uploaded = move |uploaded: UploadedTrace| {
        let id = uploaded.trace.id;
        // Uploaded traces fill the two fields, and join the ranks.
        for field in [before, after] {
            if before.get_untracked() != id && field.with_untracked(String::is_empty) {
                field.set(id.clone());
                break;
            }
        }
        chosen.update(|chosen| {
            if !chosen.contains(&id) {
                chosen.push(id.clone());
            }
        });
        load();
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <p><a href="/traces">"← Traces"</a></p>
            <h1>"Compare traces"</h1>
            <p class="lead">
                "Two traces of a program by kernel, phase and step, or the ranks of one run: who waits for whom, and which rank is the straggler."
            </p>
            <TraceUpload on_uploaded=uploaded />
            {move || failure.get().map(|error| view! { <ErrorNotice error=error /> })}
            <DifferenceCard traces=traces before=before after=after />
            <RanksCard traces=traces chosen=chosen />
        </main>
    }
}

/// Writes the compared traces to the address, so that it can be sent.
fn write_address(before: &str, after: &str, chosen: &[String]) {
    let page = path::TRACE_COMPARISON_PAGE;
    let fields = [("before", before.to_owned()), ("after", after.to_owned()), ("traces", chosen.join(","))];
    let named = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = named.map(|(key, value)| format!("{key}={value}")).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    // The user may have left the page.
    if window().location().pathname().is_ok_and(|here| here == page)
        && let Ok(history) = window().history()
    {
        let address = format!("{page}{mark}{}", query.join("&"));
        // If the browser refuses, the old address stays.
        drop(history.replace_state_with_url(&JsValue::NULL, "", Some(&address)));
    }
}
