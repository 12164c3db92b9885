//! Gantt chart card per schedule on a shared time axis.

use std::sync::atomic::{AtomicUsize, Ordering};

use api::planner::schedule_comparison::EntryOutcome;
use leptos::prelude::*;

use super::csv_download::SaveAndCopy;
use super::deadlock::RefusalView;
use super::editor::SchedulePill;
use super::figures::{entry_report, table_key, units};
use super::table_card::TableEditor;
use super::{DisplayedSchedules, input, use_schedules};
use crate::form::restore_text;
use crate::format;
use crate::gantt::{Gantt, Legend};

#[component]
pub(super) fn Cards() -> impl IntoView {
    let schedules = use_schedules();
    let keys = Memo::new(move |_| {
        let entries = schedules.entries();
        entries.iter().map(super::figures::entry_key).collect::<Vec<_>>()
    });
    let drawn = Signal::derive(move || {
        schedules.displayed.with(|content| {
            let timelines = content.as_ref().map(|current| current.timelines.clone()).unwrap_or_default();
            timelines.into_iter().map(|(_, timeline)| timeline).collect::<Vec<_>>()
        })
    });
    view! {
        <div class="legend-row">
            <Legend timelines=drawn />
            <p class="keys-hint" aria-hidden="true">"u = time unit · W S zoom · A D pan · . , next · F fit · ? help"</p>
        </div>
        <For each=move || keys.get() key=Clone::clone let:key>
            <ScheduleCard key=key />
        </For>
    }
}

/// Chart number of a schedule in the displayed response.
fn chart_index(content: &DisplayedSchedules, key: &str) -> Option<usize> {
    content.timelines.iter().position(|timeline| timeline.0 == key)
}

/// Card counter for unique element identifiers.
static CARDS: AtomicUsize = AtomicUsize::new(0);

#[component]
fn ScheduleCard(key: String) -> impl IntoView {
    let schedules = use_schedules();
    let key = StoredValue::new(key);
    let entry = Memo::new(move |_| {
        schedules.displayed.with(|content| key.with_value(|key| content.as_ref()?.entry(key).cloned()))
    });
    let first = entry.get_untracked();
    let (kind, name) = first.map_or((None, String::new()), |entry| (entry.kind, entry.name));
    // The table index determines only the colour. Another table takes the index after a removal, so
    // identifiers use the counter.
    let number = schedules
        .request
        .with_untracked(|json| input::tables(json).iter().position(|table| table.0 == name).unwrap_or(0));
    let card = CARDS.fetch_add(1, Ordering::Relaxed);
    let title = Signal::stored(name.clone());
    let timeline = Signal::derive(move || {
        schedules.displayed.with(|content| key.with_value(|key| content.as_ref()?.timeline(key)))
    });
    let extent = Memo::new(move |_| {
        schedules.displayed.with(|content| content.as_ref().map_or(0, |current| current.extent_ns()))
    });
    // The chart number depends on the charts above. A new number creates a new chart.
    let chart = Memo::new(move |_| {
        schedules.displayed.with(|content| key.with_value(|key| chart_index(content.as_ref()?, key)))
    });
    let facts = move || {
        let entry = entry.get()?;
        let report = entry_report(&entry)?;
        let peak = report.peak_activations.iter().copied().fold(0.0, f64::max);
        Some(format!(
            "{} time units · idle {} of makespan, {} of span · peak {} activations",
            units(report.makespan),
            format::percent(report.bubble_of_makespan),
            format::percent(report.bubble_of_span),
            units(peak)
        ))
    };
    let source = move || entry.get().and_then(|entry| entry.source);
    let notes = move || {
        let entry = entry.get()?;
        let notes = entry_report(&entry)?.notes.clone();
        (!notes.is_empty()).then(|| {
            view! {
                <ul class="import-report" data-testid="notes">
                    {notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view()}
                </ul>
            }
        })
    };
    let csv = Callback::new(move |()| {
        let table_csv = table_name(key).and_then(|name| {
            let tables = schedules.request.with_untracked(input::tables);
            tables.into_iter().find(|table| table.0 == name).map(|table| table.1)
        });
        table_csv.unwrap_or_else(|| {
            entry.get_untracked().as_ref().and_then(entry_report).map(|report| report.csv.clone()).unwrap_or_default()
        })
    });
    let has_csv =
        move || kind.is_none() || entry.with(|entry| entry.as_ref().is_some_and(|entry| entry_report(entry).is_some()));
    let copied_name = StoredValue::new(name.clone());
    let edit_copy = move |_| {
        let copy = copied_name.with_value(|name| format!("{name}, edited"));
        schedules.open_table(&copy, csv.run(()));
    };
    let refusal = move || match entry.get()?.outcome {
        EntryOutcome::Refused(refusal) if kind.is_some() => Some(refusal),
        _ => None,
    };
    let rename = move |event: web_sys::Event| {
        let wanted = event_target_value(&event);
        let Some(from) = table_name(key) else { return };
        if wanted.trim().is_empty() {
            return restore_text(&event, &from);
        }
        schedules.edit("/imported", |json| {
            input::rename_table(json, &from, &wanted);
        });
    };
    let remove = move |_| {
        if let Some(name) = table_name(key) {
            schedules.edit("/imported", |json| input::remove_table(json, &name));
        }
    };
    let heading = match kind {
        Some(_) => view! { <span>{name.clone()}</span> }.into_any(),
        None => view! {
            <input class="table-name" aria-label="Name of the table" prop:value=name.clone() on:change=rename />
        }
        .into_any(),
    };
    let testid = key.with_value(|key| format!("card-{key}"));
    let id = StoredValue::new(kind.map_or_else(|| format!("table-{card}"), |kind| kind.id().to_owned()));
    let (display_name, copy_label) = (name.clone(), format!("Edit a copy of {name}"));
    view! {
        <section class="card schedule" data-testid=testid>
            <header class="card-title">
                <h2><SchedulePill kind=kind number=number />{heading}</h2>
                <span class="muted" data-testid="facts">{facts}</span>
                <small>{source}</small>
                <span class="grow"></span>
                <Show when=has_csv>
                    <span class="card-tools">
                        <button class="quiet" aria-label=copy_label.clone() data-testid="edit-copy" on:click=edit_copy>"Edit a copy"</button>
                        <SaveAndCopy name=display_name.clone() csv=csv />
                        {kind.is_none().then(|| view! { <button class="quiet" aria-label=format!("Remove {display_name}") on:click=remove>"Remove"</button> })}
                    </span>
                </Show>
            </header>
            {notes}
            {move || refusal().map(|refusal| view! { <RefusalView refusal=refusal on_cell=None /> })}
            {move || chart.get().map(|chart| view! {
                <Gantt
                    chart=chart
                    id=id.get_value()
                    title=title
                    timeline=timeline
                    extent_ns=extent
                    window=schedules.window
                    selection=schedules.selection
                    hover=schedules.hover
                />
            })}
            {kind.is_none().then(|| view! { <TableEditor name=name number=card /> })}
        </section>
    }
}

/// Returns the table name if the key belongs to a table.
fn table_name(key: StoredValue<String>) -> Option<String> {
    key.with_value(|key| key.strip_prefix(&table_key("")).map(str::to_owned))
}
