//! First section: paste or drop a training configuration.

use api::check::NamedText;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::check::{read_files, use_check};
use crate::picked_files::{DropTarget, selected};

/// Field for a configuration. The check page shows the result.
#[component]
pub(super) fn CheckConfiguration() -> impl IntoView {
    let state = use_check();
    let text = RwSignal::new(String::new());
    let navigate = StoredValue::new_local(use_navigate());
    let wrong = RwSignal::new(None::<String>);
    let check = move |files: Vec<NamedText>| {
        state.open(files);
        navigate.with_value(|navigate| navigate("/check", NavigateOptions::default()));
    };
    let read = move |files: Vec<web_sys::File>| {
        spawn_local(async move {
            match read_files(files).await {
                Ok(files) => check(files),
                Err(message) => drop(wrong.try_set(Some(message))),
            }
        });
    };
    let target = DropTarget::new(read);
    let is_empty = move || text.with(|text| text.trim().is_empty());
    let paste = move || check(vec![NamedText { name: String::new(), text: text.get_untracked() }]);
    let press = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) && !untrack(is_empty) {
            event.prevent_default();
            paste();
        }
    };
    view! {
        <section class="new-scenario check-first" class:over=move || target.is_over() aria-labelledby="check-configuration"
            on:dragover=move |event| target.drag_over(&event)
            on:dragleave=move |_| target.drag_leave()
            on:drop=move |event| target.drop(&event)
        >
            <h2 id="check-configuration">"Check a configuration"</h2>
            <textarea
                rows="3"
                spellcheck="false"
                autocomplete="off"
                data-testid="first-check-text"
                aria-label="Training configuration"
                placeholder="Paste a torchtitan TOML, Megatron-LM arguments, a config.json or the YAML of another trainer, or drop the files here: does it fit, how fast is it, and what to change."
                prop:value=move || text.get()
                on:input=move |event| text.set(event_target_value(&event))
                on:keydown=press
            ></textarea>
            <p class="new-more">
                <button class="primary" data-testid="first-check" title="Ctrl+Enter in the text" disabled=is_empty on:click=move |_| paste()>"Check"</button>
                <label class="button quiet-button">
                    <input type="file" class="visually-hidden" multiple on:change=move |event| read(selected(&event)) />
                    "Open files"
                </label>
                <a href="/check">"Examples"</a>
            </p>
            {move || wrong.get().map(|message| view! { <p class="field-error" role="alert">{message}</p> })}
        </section>
    }
}
