//! Schedules page: input form on the left, schedules for comparison.

use leptos::prelude::*;
use leptos_router::hooks::use_location;
use wasm_bindgen::JsCast;

use crate::gantt::{Measure, set_measure};
use crate::schedules::{RequestEditor, ScheduleResults, open_pasted, use_schedules};

/// Views, compares and edits pipeline schedules without a model.
#[component]
pub(crate) fn SchedulesPage() -> impl IntoView {
    document().set_title("Schedules · Planscope");
    let schedules = use_schedules();
    provide_context(schedules.form());
    schedules.enter();
    on_cleanup(move || {
        schedules.on_page.set(false);
        set_measure(Measure::Physical);
    });
    // The router updates the hash before the address bar changes.
    schedules.open(&use_location().hash.get_untracked());
    Effect::new(move |before: Option<()>| {
        drop(schedules.fragment());
        if before.is_some() || schedules.request.with_untracked(serde_json::Value::is_object) {
            schedules.write_address_soon();
        }
    });
    let address = window_event_listener(leptos::ev::hashchange, move |_| {
        schedules.open(&window().location().hash().unwrap_or_default());
    });
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        let command = event.ctrl_key() || event.meta_key();
        if !command || event.default_prevented() || accepts_text(&event) {
            return;
        }
        match event.key().to_ascii_lowercase().as_str() {
            "z" if event.shift_key() => schedules.redo(),
            "z" => schedules.undo(),
            "y" => schedules.redo(),
            _ => return,
        }
        event.prevent_default();
    });
    let pasted = window_event_listener(leptos::ev::paste, move |event| {
        if !accepts_text(&event) {
            open_pasted(&schedules, &event);
        }
    });
    on_cleanup(move || {
        address.remove();
        keys.remove();
        pasted.remove();
    });
    let open = RwSignal::new(false);
    view! {
        <main id="main" class="explore schedules" tabindex="-1">
            <aside class="side editor" class:open=move || open.get() aria-label="Question">
                <button class="side-toggle" aria-expanded=move || open.get().to_string() aria-controls="side-question" on:click=move |_| open.update(|open| *open = !*open)>
                    "Sizes, times and schedules"
                </button>
                <div class="side-body" id="side-question"><RequestEditor /></div>
            </aside>
            <div class="middle"><ScheduleResults /></div>
        </main>
    }
}

/// True if the event target is a text field, which handles undo keys itself. Table text fields are
/// excluded: this page handles their undo.
fn accepts_text(event: &web_sys::Event) -> bool {
    let Some(element) = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok()) else {
        return false;
    };
    match element.tag_name().as_str() {
        "TEXTAREA" => !element.class_list().contains("csv-text") || event.type_() == "paste",
        "INPUT" => matches!(element.get_attribute("type").as_deref(), None | Some("text")) || event.type_() == "paste",
        _ => false,
    }
}
