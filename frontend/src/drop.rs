//! Area for file drops and file selection.

use leptos::prelude::*;

use crate::file_uploads::FileUploads;
use crate::picked_files::{DropTarget, selected};

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
    let hand_over = move |files: Vec<web_sys::File>| {
        let limit = if multiple { files.len() } else { 1 };
        files.into_iter().take(limit).for_each(|file| on_file.run(file));
    };
    let target = DropTarget::new(hand_over);
    view! {
        <label
            class="drop"
            class:compact=compact
            class:over=move || target.is_over()
            aria-busy=move || is_sending().to_string()
            on:dragover=move |event| target.drag_over(&event)
            on:dragleave=move |_| target.drag_leave()
            on:drop=move |event| target.drop(&event)
        >
            <input type="file" class="visually-hidden" data-testid=test_id multiple=multiple on:change=move |event| hand_over(selected(&event)) />
            <span class="drop-title">{displayed_title}</span>
            <small>{hint}</small>
        </label>
        <Show when=is_sending>
            <p class="actions"><button type="button" data-testid="cancel-upload" on:click=cancel>"Cancel"</button></p>
        </Show>
    }
}
