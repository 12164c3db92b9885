//! Opens a scenario or a training job configuration from a file.

use api::job_config::JobConfig;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;

use crate::client::{self, Body};
use crate::explore::use_explore;
use crate::picked_files::{read_text, selected};

/// Maximum file size in MiB; the server has the same limit.
const MAX_MIB: u32 = 1;

/// Parses a scenario, or the API response for a stored scenario. Returns `None` for other formats,
/// and an error for newer scenario versions.
fn parse_scenario(text: &str) -> Result<Option<Value>, String> {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let scenario = match document.get("scenario") {
        Some(inner) if inner.is_object() => inner.clone(),
        _ => document,
    };
    match scenario.get("schema").and_then(Value::as_str) {
        Some(api::planner::scenario::SCHEMA) => Ok(Some(scenario)),
        Some(schema) if schema.starts_with("scenario/") => {
            let schema: String = schema.chars().take(40).collect();
            Err(format!("This scenario is from a newer version ({schema})."))
        }
        _ => Ok(None),
    }
}

/// Reads a scenario from a file. For a job configuration, also returns the import report.
async fn open(file: &web_sys::File) -> Result<(Value, Option<JobConfig>), String> {
    let text = read_text(file, MAX_MIB).await?;
    if let Some(scenario) = parse_scenario(&text)? {
        return Ok((scenario, None));
    }
    let name = String::from(js_sys::encode_uri_component(&file.name()));
    let path = format!("{}?name={name}", api::path::JOB_CONFIGS);
    let config: JobConfig =
        client::send("POST", &path, Body::File(file.clone())).await.map_err(|error| error.detail())?;
    let scenario = serde_json::to_value(&config.scenario).map_err(|error| error.to_string())?;
    Ok((scenario, Some(config)))
}

/// Button that opens a file. The import is a single edit, which the user can undo.
#[component]
pub(super) fn OpenFile(
    /// Report of the last imported configuration.
    report: RwSignal<Option<(String, JobConfig)>>,
) -> impl IntoView {
    let explore = use_explore();
    let wrong = RwSignal::new(None::<String>);
    let open_selected = move |event: web_sys::Event| {
        let Some(file) = selected(&event).into_iter().next() else { return };
        spawn_local(async move {
            let opened = open(&file).await;
            // Clears the error and the report of the previous file.
            wrong.try_set(opened.as_ref().err().cloned());
            report.try_set(None);
            if let Ok((scenario, config)) = opened {
                report.try_set(config.map(|config| (file.name(), config)));
                explore.import(scenario);
            }
        });
    };
    view! {
        <label class="button quiet-button" title="Open a scenario (JSON), a Hugging Face config.json, a torchtitan job file (TOML) or Megatron-LM arguments">
            <input
                type="file"
                class="visually-hidden"
                accept=".json,.toml,.sh,.slurm,.sbatch,.txt,.args,.yaml,.yml,application/json,text/plain"
                data-testid="open-scenario"
                on:change=open_selected
            />
            "Open file"
        </label>
        {move || wrong.get().map(|message| view! { <p class="field-error" role="alert" data-testid="open-error">{message}</p> })}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_the_scenario_itself_or_wrapped() {
        let bare = r#"{"schema":"scenario/1","seed":3}"#;
        assert_eq!(parse_scenario(bare).unwrap().expect("a scenario")["seed"], 3);
        let stored = format!(r#"{{"id":"abc","scenario":{bare}}}"#);
        assert_eq!(parse_scenario(&stored).unwrap().expect("a stored one")["seed"], 3);
        assert!(parse_scenario("{\"schema\":\"scenario/99\"}").unwrap_err().contains("newer version (scenario/99)"));
        for other in ["", "[1]", "{\"schema\":\"plan/99\"}", "[model]\nname = \"llama3\""] {
            assert_eq!(parse_scenario(other), Ok(None), "{other}");
        }
    }
}
