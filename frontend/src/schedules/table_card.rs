//! Editor for a custom table: text and grid.

use api::planner::schedule_comparison::{EntryOutcome, Refusal};
use leptos::html;
use leptos::prelude::*;

use super::deadlock::RefusalView;
use super::figures::table_key;
use super::grid::{CellPosition, Grid};
use super::grid_view::{GridView, Marks, marks};
use super::{input, use_schedules};

/// Name, text, grid and errors of a table.
#[component]
pub(super) fn TableEditor(
    /// Table name.
    name: String,
    /// Unique number on the page.
    number: usize,
) -> impl IntoView {
    let schedules = use_schedules();
    let name = StoredValue::new(name);
    let key = table_key(&name.get_value());
    let csv = Memo::new(move |_| {
        let tables = schedules.request.with(input::tables);
        name.with_value(|name| {
            tables.into_iter().find(|table| table.0 == *name).map(|table| table.1).unwrap_or_default()
        })
    });
    let grid = Memo::new(move |_| csv.with(|csv| Grid::parse(csv)));
    let at = key.clone();
    let refusal = Memo::new(move |_| {
        schedules.displayed.with(|content| match &content.as_ref()?.entry(&at)?.outcome {
            EntryOutcome::Refused(refusal) => Some(refusal.clone()),
            EntryOutcome::Run(_) => None,
        })
    });
    let marks: Memo<Marks> =
        Memo::new(move |_| refusal.with(|refusal| refusal.as_ref().map(marks).unwrap_or_default()));
    let write = move |text: String| {
        let history_key = name.with_value(|name| format!("/imported/{name}"));
        schedules.edit(&history_key, |json| name.with_value(|name| input::set_table(json, name, text)));
    };
    let moved = Callback::new(move |grid: Grid| {
        // Each grid move is a separate undo step, so the name contains the time.
        let edit_key = name.with_value(|name| format!("/imported/{name}/{}", js_sys::Date::now()));
        schedules.edit(&edit_key, |json| name.with_value(|name| input::set_table(json, name, grid.write())));
    });
    let selected = RwSignal::new(CellPosition::default());
    let node = NodeRef::<html::Table>::new();
    let details = NodeRef::<html::Details>::new();
    let show_cell = Callback::new(move |position: CellPosition| {
        if let Some(details) = details.get_untracked() {
            details.set_open(true);
        }
        selected.set(position);
        if let Some(grid) = node.get_untracked() {
            // If the grid was removed, focus is not needed.
            drop(grid.focus());
        }
    });
    let opens = schedules.fresh.with_untracked(|fresh| fresh.as_deref() == Some(key.as_str()));
    // Expands for a new table and for a table with errors. Only the user collapses it.
    Effect::new(move |_| {
        let wrong = refusal.with(Option::is_some);
        if let Some(details) = details.get()
            && (wrong || opens)
        {
            details.set_open(true);
        }
    });
    let rows = move || grid.with(|grid| grid.rows.len()).clamp(4, 16).to_string();
    let text_keys = move |event: web_sys::KeyboardEvent| {
        let command = event.ctrl_key() || event.meta_key();
        match event.key().to_ascii_lowercase().as_str() {
            "z" if command && event.shift_key() => schedules.redo(),
            "z" if command => schedules.undo(),
            "y" if command => schedules.redo(),
            _ => return,
        }
        event.prevent_default();
    };
    let label = name.get_value();
    view! {
        {move || refusal.get().map(|refusal: Refusal| view! { <RefusalView refusal=refusal on_cell=Some(show_cell) /> })}
        <details class="table-editor" node_ref=details data-testid="table-editor">
            <summary>"Edit the table"</summary>
            <p class="hint">"Select a cell and press Alt with an arrow to move its action; Delete leaves the cell idle; Ctrl+Z takes it back."</p>
            <div class="csv-columns">
                <textarea
                    class="csv-text"
                    spellcheck="false"
                    autocomplete="off"
                    wrap="off"
                    data-testid="csv-text"
                    aria-label=format!("Text of {label}, one row per rank")
                    rows=rows
                    prop:value=move || csv.get()
                    on:input=move |event| write(event_target_value(&event))
                    on:keydown=text_keys
                ></textarea>
                <div class="csv-cells">
                    <GridView name=label.clone() number=number grid=grid marks=marks selected=selected node=node on_change=moved />
                </div>
            </div>
        </details>
    }
}
