//! Area for file drops and file selection.

use leptos::html;
use leptos::prelude::*;

use crate::file_uploads::FileUploads;

/// Area for file drops and file selection.
#[component]
pub(crate) fn FileDrop(
    #[prop(into)] title: Signal<String>,
    /// Supported formats.
    hint: &'static str,
    /// Identifier for tests.
    test_id: &'static str,
    /// Uploads in progress.
    sending: FileUploads,
    /// Renders a single line instead of a drop area.
    #[prop(optional)]
    compact: bool,
    /// Called once per dropped or selected file.
    #[prop(into)]
    on_file: Callback<web_sys::File>,
    /// Allows multiple files.
    #[prop(optional)]
    multiple: bool,
    /// Called when the user cancels the uploads.
    #[prop(optional, into)]
    on_cancel: Option<Callback<()>>,
) -> impl IntoView {
    let is_sending = move || sending.count() > 0;
    let displayed_title = move || match sending.count() {
        0 => title.get(),
        1 => "Reading…".to_owned(),
        more => format!("Reading {more} files…"),
    };
    let cancel = move |_| {
        sending.cancel_all();
        if let Some(on_cancel) = on_cancel {
            on_cancel.run(());
        }
    };
    let input = NodeRef::<html::Input>::new();
    let over = RwSignal::new(false);
    let hand_over = move |files: Option<web_sys::FileList>| {
        let Some(files) = files else { return };
        let file_limit = if multiple { files.length() } else { files.length().min(1) };
        (0..file_limit).filter_map(|index| files.get(index)).for_each(|file| on_file.run(file));
    };
    let on_select = move |_| {
        let Some(input) = input.get() else { return };
        hand_over(input.files());
        // Clears the input, so that selecting the same file again fires a change event.
        input.set_value("");
    };
    let dropped = move |event: web_sys::DragEvent| {
        event.prevent_default();
        over.set(false);
        hand_over(event.data_transfer().and_then(|data| data.files()));
    };
    view! {
        <label
            class="drop"
            class:compact=compact
            class:over=move || over.get()
            aria-busy=move || is_sending().to_string()
            on:dragover=move |event| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=dropped
        >
            <input type="file" class="visually-hidden" data-testid=test_id multiple=multiple node_ref=input on:change=on_select />
            <span class="drop-title">{displayed_title}</span>
            <small>{hint}</small>
        </label>
        <Show when=is_sending>
            <p class="actions"><button type="button" data-testid="cancel-upload" on:click=cancel>"Cancel"</button></p>
        </Show>
    }
}
