//! Activations in flight on one rank, for all schedules.

use std::sync::Arc;

use leptos::prelude::*;

use super::editor::stroke;
use super::figures::units;
use super::use_schedules;
use crate::charts::{MemoryChart, MemoryLine};

/// Memory chart and rank selection.
#[component]
pub(super) fn MemoryCard() -> impl IntoView {
    let schedules = use_schedules();
    let picked = RwSignal::new(0_usize);
    let ranks = Memo::new(move |_| {
        schedules.displayed.with(|content| {
            let timelines = content.iter().flat_map(|current| &current.timelines);
            timelines.map(|(_, timeline)| timeline.ranks as usize).max().unwrap_or(0)
        })
    });
    let rank = Memo::new(move |_| picked.get().min(ranks.get().saturating_sub(1)));
    let lines = Signal::derive(move || {
        schedules.displayed.with(|option| {
            let Some(content) = option.as_ref() else { return Vec::new() };
            let mut tables = 0;
            let line = |(key, timeline): &(String, Arc<api::planner::timeline::Timeline>)| {
                let entry = content.entry(key)?;
                let stroke = stroke(entry.kind, tables);
                tables += usize::from(entry.kind.is_none());
                Some(MemoryLine { title: entry.name.clone(), stroke, timeline: Arc::clone(timeline) })
            };
            content.timelines.iter().filter_map(line).collect::<Vec<_>>()
        })
    });
    let cap = Memo::new(move |_| {
        schedules
            .entries()
            .iter()
            .filter_map(super::figures::entry_report)
            .find_map(|report| report.cap)
            .map(|cap| cap.limit)
    });
    let options = move || {
        let option = |index: usize| view! { <option value=index.to_string() prop:selected=move || rank.get() == index>{format!("rank {index}")}</option> };
        (0..ranks.get()).map(option).collect_view()
    };
    view! {
        <section class="card" data-testid="card-memory">
            <header class="card-title">
                <h2>"Activations in flight"</h2>
                <select aria-label="Rank whose memory is shown" on:change=move |event| picked.set(event_target_value(&event).parse().unwrap_or(0))>
                    {options}
                </select>
                <span class="muted">{move || cap.get().map(|cap| format!("cap {}", units(cap)))}</span>
            </header>
            <MemoryChart lines=lines rank=rank limit=Signal::derive(move || cap.get()) window=schedules.window />
        </section>
    }
}
