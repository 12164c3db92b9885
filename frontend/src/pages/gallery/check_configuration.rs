//! First section: paste or drop a training configuration.

use api::check::NamedText;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::check::{listed, read_files, use_check};

/// Field for a configuration. The check page shows the result.
#[component]
pub(super) fn CheckConfiguration() -> impl IntoView {
    let state = use_check();
    let text = RwSignal::new(String::new());
    let over = RwSignal::new(false);
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
    let drop_file = move |event: web_sys::DragEvent| {
        over.set(false);
        let files = listed(event.data_transfer().and_then(|data| data.files()));
        if !files.is_empty() {
            event.prevent_default();
            read(files);
        }
    };
    let select = move |event: web_sys::Event| {
        let input = event_target::<web_sys::HtmlInputElement>(&event);
        read(listed(input.files()));
        input.set_value("");
    };
    let paste = move |_| check(vec![NamedText { name: String::new(), text: text.get_untracked() }]);
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
                placeholder="Paste a torchtitan TOML, Megatron-LM arguments, a config.json or the YAML of another trainer, or drop the files here: does it fit, how fast is it, and what to change."
                prop:value=move || text.get()
                on:input=move |event| text.set(event_target_value(&event))
            ></textarea>
            <p class="new-more">
                <button class="primary" data-testid="first-check" disabled=is_empty on:click=paste>"Check"</button>
                <label class="button quiet-button">
                    <input type="file" class="visually-hidden" multiple on:change=select />
                    "Open files"
                </label>
                <a href="/check">"Examples"</a>
            </p>
            {move || wrong.get().map(|message| view! { <p class="field-error" role="alert">{message}</p> })}
        </section>
    }
}
