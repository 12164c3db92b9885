//! First section: paste or drop a training configuration.

use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen_futures::JsFuture;

use crate::check::use_check;

/// Field for a configuration. The check page shows the result.
#[component]
pub(super) fn CheckConfiguration() -> impl IntoView {
    let state = use_check();
    let text = RwSignal::new(String::new());
    let over = RwSignal::new(false);
    let navigate = StoredValue::new_local(use_navigate());
    let check = move |name: String, text: String| {
        state.open(name, text);
        navigate.with_value(|navigate| navigate("/check", NavigateOptions::default()));
    };
    let read = move |file: web_sys::File| {
        spawn_local(async move {
            let content = JsFuture::from(file.text()).await.ok().and_then(|content| content.as_string());
            // The check reports an empty file.
            check(file.name(), content.unwrap_or_default());
        });
    };
    let drop_file = move |event: web_sys::DragEvent| {
        over.set(false);
        if let Some(file) = event.data_transfer().and_then(|data| data.files()).and_then(|files| files.get(0)) {
            event.prevent_default();
            read(file);
        }
    };
    let select = move |event: web_sys::Event| {
        let input = event_target::<web_sys::HtmlInputElement>(&event);
        if let Some(file) = input.files().and_then(|files| files.get(0)) {
            input.set_value("");
            read(file);
        }
    };
    let is_empty = move || text.with(|text| text.trim().is_empty());
    view! {
        <section class="new-scenario check-first" class:over=move || over.get() aria-labelledby="check-configuration"
            on:dragover=move |event| { event.prevent_default(); over.set(true); }
            on:dragleave=move |_| over.set(false)
            on:drop=drop_file
        >
            <h2 id="check-configuration">"Check a configuration"</h2>
            <textarea
                rows="3"
                spellcheck="false"
                autocomplete="off"
                data-testid="first-check-text"
                aria-label="Training configuration"
                placeholder="Paste a torchtitan TOML, Megatron-LM arguments or a config.json, or drop the file here: does it fit, how fast is it, and what to change."
                prop:value=move || text.get()
                on:input=move |event| text.set(event_target_value(&event))
            ></textarea>
            <p class="new-more">
                <button class="primary" data-testid="first-check" disabled=is_empty on:click=move |_| check(String::new(), text.get_untracked())>"Check"</button>
                <label class="button quiet-button">
                    <input type="file" class="visually-hidden" on:change=select />
                    "Open file"
                </label>
                <a href="/check">"Examples"</a>
            </p>
        </section>
    }
}
