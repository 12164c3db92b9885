//! Content of a new scenario: the draft, a gallery scenario, presets or uploaded datasets.

use api::gallery::{Gallery, Presets};
use api::path;
use api::planner::certainty::RISK;
use api::planner::scenario::{FreeSetting, PlannerKind};
use serde_json::{Value, json};

use super::modalities::leave_out_unread;
use crate::client::{self, RequestError};
use crate::mixture::{WeightedDataset, source_from_datasets};
use crate::storage;

/// Default gallery scenario.
const FIRST: &str = "llama-2-7b-long-documents";

/// Initial content of a new scenario.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Start {
    /// The draft, or the default gallery scenario if no draft exists.
    Draft,
    /// A gallery scenario.
    Ready {
        /// Name in the gallery.
        slug: String,
        /// Removes the fixed degrees of parallelism, so that the planner searches them.
        free_layout: bool,
    },
    /// The draft with an uploaded dataset.
    Dataset(String),
    /// A model preset on a cluster preset, without fixed degrees.
    Presets {
        model: String,
        cluster: String,
        /// Node count.
        nodes: Option<u32>,
    },
    /// The draft with a mixture of uploaded datasets.
    Mixture(Vec<WeightedDataset>),
}

/// Creates the scenario.
pub(super) async fn create(start: Start) -> Result<Value, RequestError> {
    match start {
        Start::Draft => draft_or_new().await,
        Start::Ready { slug, free_layout: false } => ready(&slug).await,
        Start::Ready { slug, free_layout: true } => ready(&slug).await.map(with_free_layout),
        Start::Presets { model, cluster, nodes } => on_presets(&model, &cluster, nodes).await,
        Start::Dataset(id) => draft_or_new().await.map(|scenario| on_dataset(scenario, &id)),
        Start::Mixture(parts) => draft_or_new().await.map(|scenario| on_mixture(scenario, &parts)),
    }
}

async fn draft_or_new() -> Result<Value, RequestError> {
    match draft() {
        Some(draft) => Ok(draft),
        None => new_scenario().await,
    }
}

/// Uses a dataset. Degrees that are fixed for other samples may not suit these samples.
fn on_dataset(mut scenario: Value, id: &str) -> Value {
    use_dataset(&mut scenario, id);
    with_free_layout(untitled(scenario))
}

/// Uses a mixture of datasets, like [`on_dataset`].
fn on_mixture(mut scenario: Value, parts: &[WeightedDataset]) -> Value {
    crate::pointer::set(&mut scenario, "/workload/samples", source_from_datasets(parts));
    leave_out_unread(&mut scenario);
    with_free_layout(untitled(scenario))
}

/// Sets an uploaded dataset as sample source. The images come from the file if the model reads
/// images.
pub(crate) fn use_dataset(scenario: &mut Value, id: &str) {
    crate::pointer::set(scenario, "/workload/samples", json!({"kind": "dataset", "id": id}));
    leave_out_unread(scenario);
}

fn draft() -> Option<Value> {
    let draft: Value = serde_json::from_str(&storage::read(storage::DRAFT)?).ok()?;
    // A draft in another format would only produce errors that the user cannot fix here.
    (draft["schema"] == api::planner::scenario::SCHEMA).then_some(draft)
}

/// Removes the fixed degrees, so that the planner searches all degrees.
fn with_free_layout(mut scenario: Value) -> Value {
    crate::pointer::remove(&mut scenario, "/layout");
    scenario
}

/// Returns a new scenario: the default gallery scenario without fixed degrees and settings.
async fn new_scenario() -> Result<Value, RequestError> {
    Ok(with_free_settings(with_free_layout(untitled(ready(FIRST).await?))))
}

/// Leaves all settings to the planners, and adds the fastest plan of all planners. Gradient communication overlaps
/// with the backward, as in current trainers and in `planscope estimate`. Plans are not at risk of running out of memory.
fn with_free_settings(mut scenario: Value) -> Value {
    crate::pointer::set(&mut scenario, "/free", json!(FreeSetting::ALL));
    crate::pointer::set(&mut scenario, "/training/data_overlap", json!(1.0));
    crate::pointer::set(&mut scenario, "/max_memory_risk", json!(RISK));
    let best = json!(PlannerKind::Best);
    if let Some(Value::Array(planners)) = scenario.get_mut("planners") {
        planners.retain(|planner| *planner != best);
        planners.insert(0, best);
    }
    scenario
}

fn untitled(mut scenario: Value) -> Value {
    crate::pointer::remove(&mut scenario, "/title");
    scenario
}

async fn on_presets(model: &str, cluster: &str, nodes: Option<u32>) -> Result<Value, RequestError> {
    let presets = client::get::<Presets>(path::PRESETS).await?;
    Ok(with_presets(new_scenario().await?, &presets, model, cluster, nodes))
}

/// Inserts presets into a scenario. Unknown names do not change the scenario.
fn with_presets(mut scenario: Value, presets: &Presets, model: &str, cluster: &str, nodes: Option<u32>) -> Value {
    let model = presets.models.iter().find(|preset| preset.id == model);
    let cluster = presets.clusters.iter().find(|candidate| candidate.id == cluster);
    if let Some(Ok(value)) = model.map(|model_entry| serde_json::to_value(&model_entry.model)) {
        crate::pointer::set(&mut scenario, "/model", value);
        leave_out_unread(&mut scenario);
    }
    if let Some(Ok(value)) = cluster.map(|cluster_entry| serde_json::to_value(&cluster_entry.cluster)) {
        crate::pointer::set(&mut scenario, "/cluster", value);
    }
    if let Some(nodes) = nodes {
        crate::pointer::set(&mut scenario, "/cluster/nodes", nodes.into());
    }
    scenario
}

async fn ready(slug: &str) -> Result<Value, RequestError> {
    let gallery = client::get::<Gallery>(path::GALLERY).await?;
    let entry = gallery.entries.iter().find(|entry| entry.slug == slug).or(gallery.entries.first());
    let entry = entry.ok_or_else(|| RequestError::Unreadable("the gallery is empty".to_owned()))?;
    serde_json::to_value(&entry.scenario).map_err(|error| RequestError::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_layout_fixes_no_degree() {
        let scenario = json!({"schema": "scenario/1", "layout": {"tensor": 4, "pipeline": 4}});
        assert_eq!(with_free_layout(scenario), json!({"schema": "scenario/1"}));
    }

    #[test]
    fn new_scenarios_leave_all_settings_to_the_planners() {
        let scenario = json!({"schema": "scenario/1", "planners": ["1f1b", "best", "interleaved"]});
        let created = with_free_settings(scenario);
        assert_eq!(created["planners"], json!(["best", "1f1b", "interleaved"]));
        assert_eq!(created["free"].as_array().map(Vec::len), Some(FreeSetting::ALL.len()));
        assert_eq!(created["training"]["data_overlap"], 1.0);
        assert_eq!(created["max_memory_risk"], RISK);
        assert_eq!(with_free_settings(created.clone()), created);
    }

    #[test]
    fn presets_replace_model_and_cluster() {
        use api::gallery::{ClusterOption, ModelOption};
        use api::planner::{cluster, model};
        let llama = model::presets::model("llama-3-8b").unwrap();
        let node = cluster::presets::clusters().into_iter().next().unwrap();
        let id = node.id;
        let presets = Presets {
            models: vec![ModelOption { id: "llama-3-8b".to_owned(), parameters: 0, model: llama.clone() }],
            clusters: vec![ClusterOption { id: id.to_owned(), cluster: node.cluster }],
            samples: vec![],
            planners: vec![],
        };
        let first = json!({"model": {}, "cluster": {}, "seed": 1, "workload": {"samples": {"kind": "constant"}}});
        let created = with_presets(first, &presets, "llama-3-8b", id, Some(4));
        assert_eq!(created["model"], serde_json::to_value(&llama).unwrap());
        assert_eq!((created["cluster"]["nodes"].as_u64(), created["seed"].as_u64()), (Some(4), Some(1)));
        assert_eq!(with_presets(created.clone(), &presets, "unknown", "unknown", None), created);
    }

    #[test]
    fn a_dataset_brings_its_images_to_a_model_that_reads_them() {
        let images = json!({"kind": "uniform", "min": 0, "max": 32});
        let drawn = json!({"kind": "drawn", "text_tokens": {"kind": "constant", "value": 1}, "images": images});
        let mut scenario = json!({"model": {"modules": [{"role": "vision_encoder"}, {"role": "backbone"}]}, "workload": {"samples": drawn}});
        let mut text_only = json!({"model": {"modules": [{"role": "backbone"}]}, "workload": {"samples": drawn}});
        use_dataset(&mut scenario, "abc");
        use_dataset(&mut text_only, "abc");
        assert_eq!(scenario["workload"]["samples"], json!({"kind": "dataset", "id": "abc"}));
        let none = json!({"kind": "constant", "value": 0});
        assert_eq!(text_only["workload"]["samples"], json!({"kind": "dataset", "id": "abc", "images": none}));
    }
}
