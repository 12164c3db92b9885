//! Search by slice name: hit count, total duration, next hit.

use api::path;
use api::trace::TraceMatches;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::chart::{Mark, TraceChart};
use crate::client::{self, RequestError};
use crate::format;
use crate::gantt::surface::Surface;
use crate::gantt::time_text;
use crate::notice::ErrorNotice;

/// Search field, hit summary, and buttons for collapsing and zooming.
#[component]
pub(super) fn SearchBar(chart: TraceChart) -> impl IntoView {
    let found = RwSignal::new(None::<Result<TraceMatches, RequestError>>);
    let last = StoredValue::new(String::new());
    // Search number. Responses to older searches are discarded.
    let number = StoredValue::new(0_u64);
    let go = move || {
        let text = chart.text.get_untracked();
        if text.is_empty() {
            number.update_value(|number| *number += 1);
            found.set(None);
            return;
        }
        let id = chart.detail.with_value(|detail| detail.trace.id.clone());
        let is_same = last.with_value(|last| *last == text);
        let from = chart.selected.get_untracked().filter(|_| is_same).map_or(0, |mark| mark.start_ns + 1);
        last.set_value(text.clone());
        number.update_value(|number| *number += 1);
        let mine = number.get_value();
        spawn_local(async move {
            let url = |from| path::trace_search(&id, &client::encode(&text), from);
            let mut result = client::get::<TraceMatches>(&url(from)).await;
            // After the last hit, continue with the first hit.
            if from > 0 && result.as_ref().is_ok_and(|matches| matches.next.is_none()) {
                result = client::get(&url(0)).await;
            }
            // The user may have left the page or started another search.
            if number.try_get_value() != Some(mine) {
                return;
            }
            if let Ok(TraceMatches { next: Some(next), .. }) = &result {
                chart.show(Mark::from_slice(next));
            }
            found.set(Some(result));
        });
    };
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        go();
    };
    view! {
        <form class="trace-search" role="search" on:submit=submit>
            <input
                type="search"
                node_ref=chart.viewport.search
                data-testid="trace-search"
                placeholder="Search names"
                aria-label="Search names of slices"
                prop:value=move || chart.text.get()
                on:input=move |event| chart.text.set(event_target_value(&event))
            />
            <button type="submit">"Next"</button>
            <button type="button" class="quiet" on:click=move |_| chart.fold_all()>
                {move || if chart.folded.with(std::collections::BTreeSet::is_empty) { "Fold all" } else { "Unfold all" }}
            </button>
            <button type="button" class="quiet" data-testid="trace-fit" on:click=move |_| chart.fit()>
                "Show everything"
            </button>
        </form>
        {move || found.get().map(|found| match found {
            Ok(matches) => view! { <Found matches=matches /> }.into_any(),
            Err(error) => view! { <ErrorNotice error=error /> }.into_any(),
        })}
    }
}

#[component]
fn Found(matches: TraceMatches) -> impl IntoView {
    let TraceMatches { slices, names, all_names, .. } = matches;
    let line = match slices {
        0 => "No slice has this name".to_owned(),
        _ => {
            format!("{} of {}", format::counted(slices, "slice", "slices"), format::counted(all_names, "name", "names"))
        }
    };
    let rows = names.into_iter().map(|named| {
        view! {
            <tr>
                <th scope="row" class="trace-name">{named.name}</th>
                <td class="number">{format::count(named.slices)}</td>
                <td class="number">{time_text::duration(named.total_ns as f64)}</td>
            </tr>
        }
    });
    view! {
        <details class="gantt-table" data-testid="trace-found">
            <summary>{line}</summary>
            <div class="gantt-table-scroll" tabindex="0" role="region" aria-label="Names that were found">
                <table>
                    <thead><tr><th scope="col">"Name"</th><th scope="col">"Slices"</th><th scope="col">"Together"</th></tr></thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </details>
    }
}
