//! Input for a file with custom patterns that parse the log of an unknown trainer.

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;

/// Maximum file size in bytes. The table is part of a URL.
const MAX_BYTES: f64 = 20_000.0;

/// Pattern table: file name and content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogTableFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Optional pattern file. The server validates the patterns when it creates the run or imports the
/// log.
#[component]
pub(crate) fn LogTableField(table: RwSignal<Option<LogTableFile>>, test_id: &'static str) -> impl IntoView {
    let input = NodeRef::<html::Input>::new();
    let problem = RwSignal::new(None::<String>);
    let choose = move |_| {
        let file = input.get_untracked().and_then(|input| input.files()).and_then(|files| files.get(0));
        let Some(file) = file else { return };
        let name = file.name();
        if file.size() > MAX_BYTES {
            table.set(None);
            problem.set(Some(format!("{name} has {:.0} kB. A table has at most 20 kB.", file.size() / 1e3)));
            return;
        }
        spawn_local(async move {
            let text = JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string());
            let read = text.ok_or_else(|| format!("{name} cannot be read."));
            if problem.try_set(read.as_ref().err().cloned()).is_none() {
                table.set(read.ok().map(|text| LogTableFile { name, text }));
            }
        });
    };
    let remove = move |_| {
        table.set(None);
        problem.set(None);
        if let Some(input) = input.get_untracked() {
            input.set_value("");
        }
    };
    view! {
        <details class="log-table">
            <summary>"Unknown trainer: add patterns"</summary>
            <p class="hint">
                "A TOML or JSON file (log-table/1) with regular expressions, fields and units for the lines of the log. The form is described in docs/formats.md."
            </p>
            <label>
                "File of patterns"
                <input node_ref=input type="file" accept=".toml,.json,text/plain,application/json" data-testid=test_id on:change=choose />
            </label>
            {move || problem.get().map(|problem| view! { <p class="field-error" role="alert">{problem}</p> })}
            <Show when=move || table.with(Option::is_some)>
                <p>
                    {move || table.with(|table| table.as_ref().map(|table| format!("Lines are read with {}. ", table.name)))}
                    <button type="button" class="quiet" on:click=remove>"Remove"</button>
                </p>
            </Show>
        </details>
    }
}
