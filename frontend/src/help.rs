//! Help dialog with all keys.

use api::path;
use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;

use crate::gantt;

/// Keys on all pages.
const COMMON_KEYS: [(&str, &str); 1] = [("?", "This help")];

/// Keys on pages with an editor.
const EDITOR_KEYS: [(&str, &str); 4] = [
    ("Ctrl+Z", "Undo the last edit"),
    ("Ctrl+Shift+Z", "Redo it"),
    ("↑ ↓ in a number", "a step up, down"),
    ("drag a number's name", "right for more, left for less"),
];

/// Keys and gestures in the trace chart.
const TRACE_KEYS: [(&str, &str); 12] = [
    ("W S", "zoom in, out"),
    ("A D", "pan left, right"),
    ("F, double click", "show everything"),
    ("← →, , .", "previous, next slice of the row"),
    ("↑ ↓", "row above, below"),
    ("Enter", "zoom to the slice"),
    ("Esc", "select nothing"),
    ("/", "search names"),
    ("G", "fold the process"),
    ("drag", "zoom into a stretch of time"),
    ("Shift+drag, middle drag", "pan"),
    ("Ctrl+wheel", "zoom about the pointer"),
];

const DIALOG: &str = "help";

fn dialog() -> Option<web_sys::HtmlDialogElement> {
    document().get_element_by_id(DIALOG).and_then(|dialog| dialog.dyn_into().ok())
}

/// Closes the dialog when the user follows a link to another page.
fn close() {
    if let Some(dialog) = dialog() {
        dialog.close();
    }
}

/// Opens the dialog.
pub(crate) fn open() {
    if let Some(dialog) = dialog()
        && !dialog.open()
    {
        // `show_modal` fails only if the dialog is already open or not in the document.
        drop(dialog.show_modal());
    }
}

/// Returns true if the event target is a text field.
pub(crate) fn takes_text(event: &web_sys::KeyboardEvent) -> bool {
    let Some(element) = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok()) else {
        return false;
    };
    match element.tag_name().as_str() {
        "TEXTAREA" | "SELECT" => true,
        "INPUT" => !matches!(
            element.get_attribute("type").as_deref(),
            Some("range" | "checkbox" | "radio" | "file" | "number")
        ),
        _ => false,
    }
}

/// Help dialog, opened by `?`.
#[component]
pub(crate) fn HelpDialog() -> impl IntoView {
    let listener = window_event_listener(leptos::ev::keydown, move |event| {
        let command = event.ctrl_key() || event.meta_key();
        if event.key() == "?" && !command && !takes_text(&event) && !event.default_prevented() {
            event.prevent_default();
            open();
        }
    });
    on_cleanup(move || listener.remove());
    let pathname = use_location().pathname;
    let is_trace = move || pathname.with(|here| here.starts_with("/traces/") && here != path::TRACE_COMPARISON_PAGE);
    let has_editor =
        move || pathname.with(|here| ["/new", "/s/", "/schedules"].iter().any(|page| here.starts_with(page)));
    let page_keys = move || {
        let editor = if has_editor() { &EDITOR_KEYS[..] } else { &[] };
        COMMON_KEYS.iter().chain(editor).copied().collect()
    };
    let rows = |rows: Vec<(&'static str, &'static str)>| {
        rows.into_iter()
            .map(|(keys, meaning)| view! { <div><dt><kbd>{keys}</kbd></dt><dd>{meaning}</dd></div> })
            .collect_view()
    };
    view! {
        <dialog id=DIALOG class="help" aria-labelledby="help-title">
            <form method="dialog">
                <header class="card-title">
                    <h2 id="help-title">"Keys"</h2>
                    <span class="grow"></span>
                    <button>"Close"</button>
                </header>
            </form>
            <h3>"Page"</h3>
            <dl class="keys">{move || rows(page_keys())}</dl>
            <h3>"Charts"</h3>
            <dl class="keys">{move || rows(if is_trace() { TRACE_KEYS.to_vec() } else { gantt::help_rows() })}</dl>
            <p><a href="/access" on:click=|_| close()>"Access: session, tokens, audit"</a></p>
        </dialog>
    }
}
