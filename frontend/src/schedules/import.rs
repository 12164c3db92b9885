//! Opens tables from file selection, drag and drop, or pasted text.

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::{Schedules, grid, use_schedules};
use crate::picked_files::{DropTarget, listed, read_text, selected};

/// Maximum table size accepted by the server, in MiB.
const MAX_MIB: u32 = 16;

/// Drop area for tables.
#[component]
pub(super) fn OpenTable() -> impl IntoView {
    let schedules = use_schedules();
    let target = DropTarget::new(move |files| open_files(&schedules, files));
    view! {
        <label
            class="drop compact"
            class:over=move || target.is_over()
            on:dragover=move |event| target.drag_over(&event)
            on:dragleave=move |_| target.drag_leave()
            on:drop=move |event| target.drop(&event)
        >
            <input type="file" class="visually-hidden" multiple=true data-testid="open-table" on:change=move |event| open_files(&schedules, selected(&event)) />
            <span class="drop-title">"Drop or choose a schedule CSV"</span>
            <small>"or paste one anywhere (Ctrl+V)"</small>
        </label>
        <p class="hint">"One row per rank, cells like 0F0, 1I3, 3W1, 0B2."</p>
        {move || schedules.open_error.get().map(|detail| view! { <p class="field-error" role="alert">{detail}</p> })}
    }
}

fn open_files(schedules: &Schedules, files: Vec<web_sys::File>) {
    let schedules = *schedules;
    for file in files {
        spawn_local(async move {
            match read_text(&file, MAX_MIB).await {
                Ok(text) => schedules.open_table(file.name().trim_end_matches(".csv"), text),
                Err(message) => schedules.open_error.set(Some(message)),
            }
        });
    }
}

/// Opens a pasted table. Other pasted text is ignored.
pub(crate) fn open_pasted(schedules: &Schedules, event: &web_sys::ClipboardEvent) {
    let Some(data) = event.clipboard_data() else { return };
    if let Some(files) = data.files().filter(|files| files.length() > 0) {
        event.prevent_default();
        open_files(schedules, listed(Some(files)));
        return;
    }
    // A clipboard without text contains no table.
    let text = data.get_data("text/plain").unwrap_or_default();
    let text = if text.contains('\t') { text.replace('\t', ",") } else { text };
    if grid::is_table(&text) {
        event.prevent_default();
        schedules.open_table("pasted", text);
    }
}
