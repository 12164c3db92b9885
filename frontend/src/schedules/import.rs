//! Opens tables from file selection, drag and drop, or pasted text.

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;

use super::{Schedules, grid, use_schedules};

/// Maximum table size accepted by the server, in bytes.
const MAX: f64 = 16.0 * 1024.0 * 1024.0;

/// Drop area for tables.
#[component]
pub(super) fn OpenTable() -> impl IntoView {
    let schedules = use_schedules();
    let input = NodeRef::<html::Input>::new();
    let over = RwSignal::new(false);
    let select = move |_| {
        let Some(input) = input.get() else { return };
        if let Some(files) = input.files() {
            open_files(&schedules, &files);
        }
        // Reset the value, so that choosing the same file again triggers a change event.
        input.set_value("");
    };
    let dropped = move |event: web_sys::DragEvent| {
        event.prevent_default();
        over.set(false);
        if let Some(files) = event.data_transfer().and_then(|data| data.files()) {
            open_files(&schedules, &files);
        }
    };
    view! {
        <label
            class="drop compact"
            class:over=move || over.get()
            on:dragover=move |event| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=dropped
        >
            <input type="file" class="visually-hidden" multiple=true data-testid="open-table" node_ref=input on:change=select />
            <span class="drop-title">"Drop or choose a schedule CSV"</span>
            <small>"or paste one anywhere (Ctrl+V)"</small>
        </label>
        <p class="hint">"One row per rank, cells like 0F0, 1I3, 3W1, 0B2."</p>
        {move || schedules.open_error.get().map(|detail| view! { <p class="field-error" role="alert">{detail}</p> })}
    }
}

fn open_files(schedules: &Schedules, files: &web_sys::FileList) {
    for file in (0..files.length()).filter_map(|index| files.get(index)) {
        let name = file.name();
        if file.size() > MAX {
            schedules.open_error.set(Some(format!("{name} is larger than 16 MiB.")));
            continue;
        }
        let schedules = *schedules;
        spawn_local(async move {
            match JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string()) {
                Some(text) => schedules.open_table(name.trim_end_matches(".csv"), text),
                None => schedules.open_error.set(Some(format!("{name} could not be read."))),
            }
        });
    }
}

/// Opens a pasted table. Other pasted text is ignored.
pub(crate) fn open_pasted(schedules: &Schedules, event: &web_sys::ClipboardEvent) {
    let Some(data) = event.clipboard_data() else { return };
    if let Some(files) = data.files().filter(|files| files.length() > 0) {
        event.prevent_default();
        open_files(schedules, &files);
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
