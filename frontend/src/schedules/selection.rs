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
        schedules.displayed.with(|option| {
            let content = option.as_ref()?;
            let (key, timeline) = content.timelines.get(selection.chart)?;
            let name = content.entry(key)?.name.clone();
            (selection.span < timeline.len()).then(|| {
                let details = Details::new(timeline, selection.span);
                (name, details.title, details.rows)
            })
        })
    });
    move || {
        details.get().map(|(name, title, rows)| {
            let rows = rows.into_iter().map(|(label, value)| view! { <div><dt>{label}</dt><dd>{value}</dd></div> });
            view! {
                <section class="card selection pinned" data-testid="selection" aria-label="Selected action">
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
