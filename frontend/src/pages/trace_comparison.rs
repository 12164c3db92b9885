//! Page that compares traces. The address names the compared traces.

use std::collections::BTreeSet;

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
    let uploads = StoredValue::new(Vec::<Upload>::new());
    let filled = StoredValue::new(Fields::default());
    // The card of the ranks is first if the page opens on ranks, or if the uploads are ranks.
    let has_pair = before.with_untracked(|id| !id.is_empty()) && after.with_untracked(|id| !id.is_empty());
    let ranks_first = RwSignal::new(chosen.with_untracked(|ids| ids.len() > 1) && !has_pair);
    let uploaded = move |uploaded: UploadedTrace| {
        let TraceSummary { id, name, rank, .. } = uploaded.trace;
        uploads.update_value(|uploads| {
            uploads.retain(|other| other.id != id);
            uploads.push(Upload { id, name, rank });
        });
        let fields = uploads.with_value(|uploads| fields_of(uploads));
        let earlier = filled.get_value();
        // A field that the user has changed stays.
        for (field, earlier, now) in [(before, &earlier.before, &fields.before), (after, &earlier.after, &fields.after)]
        {
            if field.with_untracked(|id| id == earlier) {
                field.set(now.clone());
            }
        }
        chosen.update(|chosen| {
            chosen.retain(|id| !earlier.ranks.contains(id));
            chosen.extend(fields.ranks.iter().cloned());
        });
        ranks_first.set(fields.ranks.len() > 1);
        filled.set_value(fields);
        load();
    };
    let ranks = move || view! { <RanksCard traces=traces chosen=chosen /> };
    view! {
        <main id="main" class="page" tabindex="-1">
            <p><a href="/traces">"← Traces"</a></p>
            <h1>"Compare traces"</h1>
            <p class="lead">
                "Two traces of a program by kernel, phase and step, or the ranks of one run: who waits for whom, and which rank is the straggler."
            </p>
            <TraceUpload on_uploaded=uploaded />
            {move || failure.get().map(|error| view! { <ErrorNotice error=error /> })}
            {move || ranks_first.get().then(ranks)}
            <DifferenceCard traces=traces before=before after=after />
            {move || (!ranks_first.get()).then(ranks)}
        </main>
    }
}

/// A trace that was uploaded on the page.
struct Upload {
    id: String,
    name: String,
    rank: Option<u32>,
}

/// Trace identifiers of the fields of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    before: String,
    after: String,
    ranks: Vec<String>,
}

/// Assigns uploaded traces to the fields. Traces of different ranks are the ranks of a run; otherwise the first two are
/// those before and after a change.
fn fields_of(uploads: &[Upload]) -> Fields {
    let ranks: BTreeSet<u32> = uploads.iter().filter_map(|trace| trace.rank).collect();
    let mut ids = uploads.iter().map(|trace| trace.id.clone());
    if uploads.len() > 1 && ranks.len() == uploads.len() {
        return Fields { ranks: ids.collect(), ..Fields::default() };
    }
    let (mut before, mut after) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
    // Uploads end in any order.
    let is_after = |trace: &Upload| trace.name.to_lowercase().contains("after");
    if let [first, second, ..] = uploads
        && is_after(first)
        && !is_after(second)
    {
        std::mem::swap(&mut before, &mut after);
    }
    let ranks = if uploads.len() == 1 { vec![before.clone()] } else { Vec::new() };
    Fields { before, after, ranks }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(name: &str, rank: Option<u32>) -> Upload {
        Upload { id: name.to_owned(), name: name.to_owned(), rank }
    }

    #[test]
    fn ranks_of_a_run_fill_only_the_ranks() {
        let ranks = [trace("a", Some(0)), trace("b", Some(1)), trace("c", Some(2))];
        let fields = fields_of(&ranks);
        assert_eq!((fields.before.as_str(), fields.after.as_str()), ("", ""));
        assert_eq!(fields.ranks, ["a", "b", "c"]);
    }

    #[test]
    fn traces_of_one_rank_are_before_and_after() {
        let pair = [trace("x_after.json", Some(0)), trace("x_before.json", Some(0))];
        let fields = fields_of(&pair);
        assert_eq!((fields.before.as_str(), fields.after.as_str()), ("x_before.json", "x_after.json"));
        assert_eq!(fields.ranks, <[String; 0]>::default());
        let fields = fields_of(&[trace("a", None), trace("b", None)]);
        assert_eq!((fields.before.as_str(), fields.after.as_str()), ("a", "b"));
    }
}
