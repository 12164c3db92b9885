//! The base scenario of a sweep: model, cluster, swept fields, and a button that opens it.

use api::path;
use api::scenario::StoredScenario;
use api::sweep::StoredSweep;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use serde_json::Value;

use crate::client::{self, Body, RequestError};
use crate::format;

/// Describes what the sweep varies: "Llama-3 8B on 4 nodes × 8 H100, with other values of nodes and context length".
fn subject_text(sweep: &StoredSweep) -> String {
    let value = |pointer: &str| sweep.sweep.pointer(pointer);
    let name = |pointer: &str| value(pointer).and_then(Value::as_str);
    let model = name("/scenario/model/name").unwrap_or("Scenario");
    let count = |pointer: &str| value(pointer).and_then(Value::as_u64);
    let cluster = match (
        count("/scenario/cluster/nodes"),
        count("/scenario/cluster/devices_per_node"),
        name("/scenario/cluster/name"),
    ) {
        (Some(nodes), Some(devices), Some(device)) => {
            format!(" on {}", format::cluster(&format!("{nodes} x {devices} {device}")))
        }
        (_, _, Some(device)) => format!(" on {device}"),
        _ => String::new(),
    };
    let fields: Vec<&str> =
        sweep.axes.iter().map(|axis| axis.title.split(", ").next().unwrap_or(&axis.title)).collect();
    format!("{model}{cluster}, with other values of {}", fields.join(" and "))
}

/// Line with the base scenario and a button that opens it.
#[component]
pub(super) fn Subject(sweep: StoredSweep, last_error: RwSignal<Option<RequestError>>) -> impl IntoView {
    let text = subject_text(&sweep);
    let navigate = use_navigate();
    let scenario = sweep.sweep.get("scenario").map(Value::to_string);
    let open = scenario.map(|scenario| {
        let on_click = move |_| {
            let (body, navigate) = (Body::Json(scenario.clone()), navigate.clone());
            spawn_local(async move {
                let response = client::send::<StoredScenario>("PUT", path::SCENARIOS, body).await;
                // If the user left the page, do not navigate.
                if last_error.try_set(None).is_some() {
                    return;
                }
                match response {
                    Ok(stored) => navigate(&path::share(&stored.short), NavigateOptions::default()),
                    Err(problem) => last_error.set(Some(problem)),
                }
            });
        };
        view! { " · "<button class="link" data-testid="sweep-scenario" on:click=on_click>"open the scenario"</button> }
    });
    view! { <p data-testid="sweep-subject">{text}{open}</p> }
}

#[cfg(test)]
mod tests {
    use api::sweep::{LabelledAxis, SweepProgress, SweepState};

    use super::*;

    #[test]
    fn the_subject_names_model_cluster_and_fields() {
        let axis = |title: &str| LabelledAxis {
            pointer: String::new(),
            title: title.into(),
            labels: Vec::new(),
            numbers: None,
        };
        let sweep = StoredSweep {
            id: String::new(),
            title: String::new(),
            note: None,
            tags: Vec::new(),
            pinned: false,
            sweep: serde_json::json!({"scenario": {
                "model": {"name": "Llama-3 8B"}, "cluster": {"name": "H100", "nodes": 4, "devices_per_node": 8}
            }}),
            axes: vec![axis("nodes"), axis("context length, tokens")],
            planners: Vec::new(),
            progress: SweepProgress {
                state: SweepState::Idle,
                points: 0,
                done: 0,
                without_plan: 0,
                points_per_s: None,
            },
            engine: String::new(),
            current_engine: String::new(),
            created_at: String::new(),
        };
        assert_eq!(
            subject_text(&sweep),
            "Llama-3 8B on 4 nodes × 8 H100, with other values of nodes and context length"
        );
    }
}
