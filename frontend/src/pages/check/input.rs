//! Input of a configuration: text, file, examples, and the devices of the job.

use api::check::NamedText;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::catalogue::Catalogue;
use crate::check::{CheckState, Loaded, read_files, use_check};
use crate::format;
use crate::picked_files::{DropTarget, selected};

/// Examples, each with its file name.
const EXAMPLES: [(&str, &str, &str); 3] = [
    ("torchtitan", "llama3_8b.toml", include_str!("../../../../examples/configurations/llama3_8b.toml")),
    ("Megatron-LM", "gpt_175b.sh", include_str!("../../../../examples/configurations/gpt_175b.sh")),
    ("config.json", "config.json", include_str!("../../../../examples/configurations/config.json")),
];

/// Reads files into the page and checks them.
fn open_files(state: CheckState, files: Vec<web_sys::File>, wrong: RwSignal<Option<String>>) {
    spawn_local(async move {
        match read_files(files).await {
            Ok(files) => {
                wrong.try_set(None);
                state.open(files);
            }
            Err(message) => drop(wrong.try_set(Some(message))),
        }
    });
}

/// Text area, file button, examples and devices.
#[component]
pub(super) fn Input() -> impl IntoView {
    let state = use_check();
    let wrong = RwSignal::new(None::<String>);
    let is_checked = Memo::new(move |_| state.result.with(|result| matches!(result, Loaded::Here(_))));
    let target = DropTarget::new(move |files| open_files(state, files, wrong));
    let summary = move || {
        let name = state.file_name.get();
        let name = if name.is_empty() { "Configuration".to_owned() } else { name };
        let lines = state.text.with(|text| text.lines().count());
        format!("{name}, {}", format::counted(lines as u64, "line", "lines"))
    };
    let examples = EXAMPLES.into_iter().map(|(title, name, text)| {
        let open = move |_| state.open(vec![NamedText { name: name.to_owned(), text: text.to_owned() }]);
        view! { <button class="quiet" on:click=open data-testid=format!("example-{title}")>{title}</button> }
    });
    let check = move |_| state.run();
    let press = move |event: web_sys::KeyboardEvent| {
        if event.key() == "Enter" && (event.ctrl_key() || event.meta_key()) {
            event.prevent_default();
            state.run();
        }
    };
    let is_empty = move || state.text.with(|text| text.trim().is_empty());
    view! {
        <section class="check-input" class:over=move || target.is_over()
            on:dragover=move |event| target.drag_over(&event)
            on:dragleave=move |_| target.drag_leave()
            on:drop=move |event| target.drop(&event)
        >
            <details open=move || !is_checked.get()>
                <summary>{summary}</summary>
                <textarea
                    rows="12"
                    spellcheck="false"
                    autocomplete="off"
                    data-testid="check-text"
                    aria-label="Training configuration"
                    placeholder="Paste a torchtitan TOML, a script or command of Megatron-LM, Megatron-Bridge, Hugging Face, TRL, ms-swift, OpenRLHF or torchtune, a config.json, YAML of axolotl, LLaMA-Factory, nanotron, NeMo, MaxText, litgpt, Levanter, OLMo or verl, a SkyPilot task, a Kubernetes workload, or a scenario. Or drop the files of one job here, for example config.json and DeepSpeed JSON."
                    prop:value=move || state.text.get()
                    on:input=move |event| state.text.set(event_target_value(&event))
                    on:keydown=press
                ></textarea>
            </details>
            {move || state.further.with(|files| (!files.is_empty()).then(|| {
                let names = files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>().join(", ");
                view! {
                    <p data-testid="check-further">
                        {format!("Together with {names} ")}
                        <button class="quiet" on:click=move |_| state.further.set(Vec::new())>"Remove"</button>
                    </p>
                }
            }))}
            <div class="check-controls">
                <Devices state=state />
                <button class="primary" data-testid="check" title="Ctrl+Enter in the text" disabled=move || is_empty() || state.devices_error().is_some() on:click=check>"Check"</button>
                <label class="button quiet-button">
                    <input type="file" class="visually-hidden" multiple data-testid="check-file" on:change=move |event| open_files(state, selected(&event), wrong) />
                    "Open files"
                </label>
                <Show when=move || is_empty()>
                    <span class="muted">"Examples: "</span>
                </Show>
                <span class="check-examples" class:hidden=move || !is_empty()>{examples.collect_view()}</span>
                <Show when=move || !is_empty()>
                    <button class="quiet" on:click=move |_| state.clear()>"Clear"</button>
                </Show>
                <Show when=move || state.can_undo()>
                    <button class="quiet" data-testid="check-undo" on:click=move |_| state.undo()>"Undo change"</button>
                </Show>
                <Show when=move || state.is_outdated()>
                    <span class="slower" role="status">"The input has changed since this check."</span>
                </Show>
            </div>
            {move || state.devices_error().map(|message| view! {
                <p class="field-error" id="check-devices-error" role="alert">{format!("Devices: {message}")}</p>
            })}
            {move || wrong.get().map(|message| view! { <p class="field-error" role="alert">{message}</p> })}
        </section>
    }
}

/// Number and type of the devices. Empty fields leave the values of the file.
#[component]
fn Devices(state: CheckState) -> impl IntoView {
    let catalogue = expect_context::<Catalogue>();
    if catalogue.presets.with_untracked(Option::is_none) {
        catalogue.fetch();
    }
    let options = move || {
        let presets = catalogue.presets.get();
        let clusters = presets.iter().flat_map(|presets| presets.clusters.clone());
        let option = |(id, name): (String, String)| {
            let value = id.clone();
            view! { <option value=value prop:selected=move || state.device.with(|device| *device == id)>{name}</option> }
        };
        clusters.map(|preset| option((preset.id, preset.cluster.name))).collect_view()
    };
    let is_wrong = move || state.devices_error().is_some();
    view! {
        <label>
            "Devices"
            <input
                type="text" inputmode="numeric" class="count" placeholder="from file" data-testid="check-devices"
                aria-invalid=move || is_wrong().to_string()
                aria-describedby=move || is_wrong().then_some("check-devices-error")
                prop:value=move || state.devices.get()
                on:input=move |event| state.devices.set(event_target_value(&event))
                on:keydown=move |event: web_sys::KeyboardEvent| {
                    let is_ready = state.devices_error().is_none() && !state.text.with(|text| text.trim().is_empty());
                    if event.key() == "Enter" && is_ready {
                        state.run();
                    }
                }
            />
        </label>
        <label>
            "Type"
            <select data-testid="check-device" on:change=move |event| state.device.set(event_target_value(&event))>
                <option value="" prop:selected=move || state.device.with(String::is_empty)>"as in the file, otherwise H100"</option>
                {options}
            </select>
        </label>
    }
}
