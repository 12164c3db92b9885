//! A place to drop files on, or to choose them.

use leptos::html;
use leptos::prelude::*;

use crate::sending::Sending;

/// A place to drop files on, or to choose them.
#[component]
pub(crate) fn FileDrop(
    /// What belongs here.
    #[prop(into)]
    title: Signal<String>,
    /// Which formats are read.
    hint: &'static str,
    /// Names the field in tests.
    test_id: &'static str,
    /// Files on their way.
    sending: Sending,
    /// A single line instead of a field to aim at.
    #[prop(optional)]
    compact: bool,
    /// Gets every file that is dropped or chosen, one after the other.
    #[prop(into)]
    on_file: Callback<web_sys::File>,
    /// Whether more than one may be chosen at once.
    #[prop(optional)]
    multiple: bool,
    /// Told that the files on their way were called back.
    #[prop(optional, into)]
    on_cancel: Option<Callback<()>>,
) -> impl IntoView {
    let busy = move || sending.count() > 0;
    let shown = move || match sending.count() {
        0 => title.get(),
        1 => "Reading…".to_owned(),
        more => format!("Reading {more} files…"),
    };
    let cancel = move |_| {
        sending.call_back();
        if let Some(on_cancel) = on_cancel {
            on_cancel.run(());
        }
    };
    let input = NodeRef::<html::Input>::new();
    let over = RwSignal::new(false);
    let hand_over = move |files: Option<web_sys::FileList>| {
        let Some(files) = files else { return };
        let most = if multiple { files.length() } else { files.length().min(1) };
        (0..most).filter_map(|index| files.get(index)).for_each(|file| on_file.run(file));
    };
    let chosen = move |_| {
        let Some(input) = input.get() else { return };
        hand_over(input.files());
        // The same file chosen again must be a change again.
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
            aria-busy=move || busy().to_string()
            on:dragover=move |event| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=dropped
        >
            <input type="file" class="visually-hidden" data-testid=test_id multiple=multiple node_ref=input on:change=chosen />
            <span class="drop-title">{shown}</span>
            <small>{hint}</small>
        </label>
        <Show when=busy>
            <p class="actions"><button type="button" data-testid="cancel-upload" on:click=cancel>"Cancel"</button></p>
        </Show>
    }
}
