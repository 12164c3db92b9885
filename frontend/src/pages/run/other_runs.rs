//! Comparison with other runs: selection, and values relative to this run.

use api::path;
use api::run::{RunList, RunSummary};
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::charts::SHADES;
use crate::client;
use crate::format;
use crate::gantt::Theme;
use crate::gantt::observers::{theme, theme_version};
use crate::runs::{StateBadge, has_ended_early, use_run_monitor};

#[component]
pub(super) fn OtherRuns() -> impl IntoView {
    let monitor = use_run_monitor();
    let known = RwSignal::new(Vec::<RunSummary>::new());
    let fetch = move || {
        spawn_local(async move {
            // If the list request fails, no run can be added. Runs in the charts remain.
            if let Ok(list) = client::get::<RunList>(path::RUNS).await {
                known.try_set(list.runs);
            }
        });
    };
    fetch();
    let options = move || {
        let current_id = monitor.feed.id();
        let drawn = monitor.view.with(|view| view.runs.clone());
        let others = known.get().into_iter().filter(|run| run.id != current_id && !drawn.contains(&run.id));
        others.map(|run| view! { <option value=run.id>{run.name}</option> }).collect_view()
    };
    let add = move |event: web_sys::Event| {
        let id = event_target_value(&event);
        if !id.is_empty() {
            monitor.toggle_run(&id);
        }
        // Reset the field: it adds a run and does not store a selection.
        if let Some(field) =
            event.target().and_then(|target| wasm_bindgen::JsCast::dyn_into::<web_sys::HtmlSelectElement>(target).ok())
        {
            field.set_value("");
        }
    };
    let has_others = Memo::new(move |_| !monitor.others.with(Vec::is_empty));
    view! {
        <section class="card" data-testid="other-runs">
            <header class="card-title">
                <h2>"Compare with other runs"</h2>
                <select aria-label="Add a run to compare with" data-testid="add-run" on:focus=move |_| fetch() on:change=add>
                    <option value="">"add a run…"</option>
                    {options}
                </select>
            </header>
            <Show when=move || has_others.get() fallback=|| view! { <p class="hint">"Each added run has its own colour in every chart and is listed here."</p> }>
                <Compared />
            </Show>
        </section>
    }
}

#[component]
fn Compared() -> impl IntoView {
    let monitor = use_run_monitor();
    let reference = Memo::new(move |_| monitor.summary().and_then(|summary| summary.median_step_s));
    let rows = move || {
        let current_row = monitor.summary().map(|summary| (0, summary, None));
        // Number the runs before filtering unavailable runs, because the charts assign colours by
        // the same index.
        let others = (1..).zip(monitor.others.get()).filter_map(|(index, other)| {
            let summary = other.feed.detail.with(|detail| detail.as_ref().map(|detail| detail.summary.clone()))?;
            Some((index, summary, Some(other.feed.id())))
        });
        let rows = current_row.into_iter().chain(others);
        rows.map(|(index, summary, key)| view! { <Row index=index summary=summary reference=reference key=key /> })
            .collect_view()
    };
    let failures = move || {
        let failed = monitor.others.get().into_iter().filter_map(|other| {
            let error = other.feed.last_error.get()?;
            let id = other.feed.id();
            Some(view! {
                <p class="notice bad">
                    <b>{format!("{id}: {}", error.title())}</b>
                    <button on:click=move |_| monitor.toggle_run(&id)>"Leave it out"</button>
                </p>
            })
        });
        failed.collect_view()
    };
    view! {
        <div class="table-scroll" role="region" aria-label="Runs compared" tabindex="0">
            <table class="list figures" data-testid="compared">
                <thead>
                    <tr>
                        <th scope="col">"Run"</th>
                        <th scope="col">"State"</th>
                        <th scope="col" class="number">"Points"</th>
                        <th scope="col" class="number">"Median of all steps"</th>
                        <th scope="col" class="number">"Compared with the first"</th>
                        <th scope="col"><span class="visually-hidden">"Actions"</span></th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
        {failures}
    }
}

#[component]
fn Row(index: usize, summary: RunSummary, reference: Memo<Option<f64>>, key: Option<String>) -> impl IntoView {
    let monitor = use_run_monitor();
    let version = theme_version();
    let shade = SHADES[index % SHADES.len()];
    let colour = move || {
        version.track();
        if theme() == Theme::Dark { shade.1 } else { shade.0 }
    };
    let median = summary.median_step_s;
    let difference = move || match (median, reference.get()) {
        (Some(median), Some(first)) if first > 0.0 && index > 0 => {
            let share = median / first - 1.0;
            view! { <span class:faster=share < 0.0 class:slower={share > 0.0}>{format::signed_percent(share)}</span> }
                .into_any()
        }
        _ => view! { "–" }.into_any(),
    };
    let ended_early = has_ended_early(&summary);
    let name = summary.name;
    let label = format!("Leave out {name}");
    let link = if key.is_some() {
        view! { <a href=path::run_page(&summary.id)>{name}</a> }.into_any()
    } else {
        view! { {name} }.into_any()
    };
    view! {
        <tr>
            <th scope="row"><i class="swatch" style:background=colour aria-hidden="true"></i>" "{link}</th>
            <td><StateBadge state=Signal::stored(summary.state) ended_early=Signal::stored(ended_early) exit_code=summary.exit_code /></td>
            <td class="number">{format::count(summary.points)}</td>
            <td class="number">{median.map_or_else(|| "–".to_owned(), format::seconds)}</td>
            <td class="number">{difference}</td>
            <td class="number">{key.map(|id| view! { <button class="quiet" aria-label=label on:click=move |_| monitor.toggle_run(&id)>"Leave out"</button> })}</td>
        </tr>
    }
}
