//! Opening a scenario from a file.

use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;
use wasm_bindgen_futures::JsFuture;

use crate::explore::use_explore;

/// Larger files are no scenarios, in bytes; the server takes no more either.
const LARGEST: f64 = 1024.0 * 1024.0;

/// The scenario of a file: itself, or what the API answers of a stored one.
fn scenario_of(text: &str) -> Result<Value, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| format!("Not a scenario JSON file: {error}."))?;
    let scenario = match document.get("scenario") {
        Some(inner) if inner.is_object() => inner.clone(),
        _ => document,
    };
    match scenario.get("schema").and_then(Value::as_str) {
        Some(api::planner::scenario::SCHEMA) => Ok(scenario),
        Some(schema) if schema.starts_with("scenario/") => {
            let schema: String = schema.chars().take(40).collect();
            Err(format!("This scenario is from a newer version ({schema})."))
        }
        _ => Err("Not a scenario JSON file: the field \u{201c}schema\u{201d} is missing or unknown.".to_owned()),
    }
}

/// Chooses a file and opens it as one more edit, which can be undone.
#[component]
pub(super) fn OpenFile() -> impl IntoView {
    let explore = use_explore();
    let wrong = RwSignal::new(None::<String>);
    let chosen = move |event: web_sys::Event| {
        let input = event_target::<web_sys::HtmlInputElement>(&event);
        let Some(file) = input.files().and_then(|files| files.get(0)) else { return };
        // The same file chosen again must be a change again.
        input.set_value("");
        if file.size() > LARGEST {
            wrong.set(Some("The file is larger than 1 MiB.".to_owned()));
            return;
        }
        spawn_local(async move {
            let text = JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string());
            match text.ok_or_else(|| "The browser cannot read the file.".to_owned()).and_then(|text| scenario_of(&text))
            {
                Ok(scenario) => {
                    wrong.try_set(None);
                    explore.import(scenario);
                }
                Err(words) => drop(wrong.try_set(Some(words))),
            }
        });
    };
    view! {
        <label class="button quiet-button" title="Open a scenario that was saved as JSON">
            <input type="file" class="visually-hidden" accept=".json,application/json" data-testid="open-scenario" on:change=chosen />
            "Open file"
        </label>
        {move || wrong.get().map(|words| view! { <p class="field-error" role="alert" data-testid="open-error">{words}</p> })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_scenario_itself_or_wrapped() {
        let bare = r#"{"schema":"scenario/1","seed":3}"#;
        assert_eq!(scenario_of(bare).expect("a scenario")["seed"], 3);
        assert_eq!(scenario_of(&format!(r#"{{"id":"abc","scenario":{bare}}}"#)).expect("a stored one")["seed"], 3);
        for (text, words) in [
            ("", "Not a scenario JSON file"),
            ("[1]", "is missing or unknown"),
            ("{\"schema\":\"plan/99\"}", "is missing or unknown"),
            ("{\"schema\":\"scenario/99\"}", "newer version (scenario/99)"),
        ] {
            assert!(scenario_of(text).expect_err(text).contains(words), "{text}");
        }
    }
}
