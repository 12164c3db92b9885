//! Description of the selected span.

use leptos::prelude::*;

use super::use_schedules;
use crate::gantt::describe::Details;

/// Selection card. Hidden without a selection.
#[component]
pub(super) fn SelectionCard() -> impl IntoView {
    let schedules = use_schedules();
    let details = Memo::new(move |_| {
        let selection = schedules.selection.get()?;
        schedules.shown.with(|shown| {
            let shown = shown.as_ref()?;
            let (key, timeline) = shown.timelines.get(selection.chart)?;
            let name = shown.entry(key)?.name.clone();
            (selection.span < timeline.len()).then(|| {
                let details = Details::of(timeline, selection.span);
                (name, details.title, details.rows)
            })
        })
    });
    move || {
        details.get().map(|(name, title, rows)| {
            let rows = rows.into_iter().map(|(what, value)| view! { <div><dt>{what}</dt><dd>{value}</dd></div> });
            view! {
                <section class="card selection" data-testid="selection" aria-label="Selected action">
                    <header class="card-title">
                        <h2>{title}</h2>
                        <span class="muted">{name}</span>
                        <span class="grow"></span>
                        <button class="quiet" on:click=move |_| schedules.selection.set(None)>"Close"</button>
                    </header>
                    <dl class="details">{rows.collect_view()}</dl>
                </section>
            }
        })
    }
}
