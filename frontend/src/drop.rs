//! A place to drop files on, or to choose them.

use leptos::html;
use leptos::prelude::*;

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
    /// Whether files are being read.
    #[prop(into)]
    busy: Signal<bool>,
    /// A single line instead of a field to aim at.
    #[prop(optional)]
    compact: bool,
    /// Gets every file that is dropped or chosen, one after the other.
    #[prop(into)]
    on_file: Callback<web_sys::File>,
    /// Whether more than one may be chosen at once.
    #[prop(optional)]
    multiple: bool,
) -> impl IntoView {
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
            aria-busy=move || busy.get().to_string()
            on:dragover=move |event| {
                event.prevent_default();
                over.set(true);
            }
            on:dragleave=move |_| over.set(false)
            on:drop=dropped
        >
            <input type="file" class="visually-hidden" data-testid=test_id multiple=multiple node_ref=input on:change=chosen />
            <span class="drop-title">{move || if busy.get() { "Reading…".to_owned() } else { title.get() }}</span>
            <small>{hint}</small>
        </label>
    }
}
