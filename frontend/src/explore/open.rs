//! Initial scenario of the page: a link, a gallery scenario, a dataset, the draft, or the default
//! gallery scenario.

use api::gallery::{Gallery, Presets};
use api::path;
use api::planner::scenario::{FreeSetting, PlannerKind};
use api::scenario::{ScenarioIdentity, StoredScenario};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::{Value, json};

use super::modalities::leave_out_unread;
use super::{Explore, PlanState};
use crate::client::{self, Body, RequestError};
use crate::field_errors::FieldErrors;
use crate::mixture::{WeightedDataset, source_from_datasets};
use crate::outcome_fetch;
use crate::recent;
use crate::storage;
use crate::undo::History;

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

impl Explore {
    /// Opens a stored scenario by identifier or prefix.
    pub(crate) fn open(self, id: String) {
        let open = |stored: &StoredScenario| stored.id.starts_with(&id);
        if self.stored.with_untracked(|stored| stored.as_ref().is_some_and(open))
            && self.result.with_untracked(Option::is_some)
        {
            if self.arrived.with_value(|fragment| fragment.as_ref().is_some_and(|fragment| fragment.len() > 1)) {
                self.read_address();
            }
            // The write is delayed, because the address bar may still contain the previous page.
            self.write_address_soon();
            return;
        }
        let generation = self.clear();
        self.named.set_value(id.clone());
        spawn_local(async move {
            let response = client::get::<StoredScenario>(&path::scenario(&id)).await;
            if !self.is_current(generation) {
                return;
            }
            match response {
                Ok(stored) => self.open_stored(generation, &id, stored).await,
                Err(error) => {
                    if matches!(error.status(), Some(404 | 410)) {
                        recent::forget(&id);
                    }
                    self.fail(error);
                }
            }
        });
    }

    /// Opens the scenario in the address bar after a history navigation, unless it is already open.
    ///
    /// The router may have the same location already, because pages write addresses without the
    /// router.
    pub(crate) fn open_stepped(self) {
        let location = window().location();
        let (Ok(page), links) = (location.pathname(), path::share("")) else { return };
        let Some(id) = page.strip_prefix(&links).filter(|id| !id.is_empty()) else { return };
        let is_here = self.stored.with_untracked(|stored| {
            self.named.with_value(|named| is_same_scenario(stored.as_ref().map(|stored| stored.id.as_str()), named, id))
        });
        if !is_here {
            self.arrived.set_value(Some(location.hash().unwrap_or_default()));
            self.open(id.to_owned());
        }
    }

    async fn open_stored(self, generation: u64, named: &str, stored: StoredScenario) {
        let id = stored.id.clone();
        recent::remember(&stored);
        // A stored outcome from any engine version is shown without planning again. Both requests
        // use the name in the link, so that they match the prefetched responses of `start.js`.
        let outcome = outcome_fetch::stored(named).await;
        if !self.is_current(generation) {
            return;
        }
        // Renders the editor while the timelines load.
        let fill = move || {
            self.scenario.set(serde_json::to_value(&stored.scenario).unwrap_or(Value::Null));
            self.stored.set(Some(stored));
            self.write_address();
        };
        match outcome {
            Ok(Some(outcome)) => self.show_while_loading(generation, outcome, fill).await,
            Ok(None) => {
                fill();
                self.plan(generation, id).await;
            }
            Err(error) => {
                fill();
                self.fail(error);
            }
        }
    }

    /// Creates a scenario.
    pub(crate) fn start(self, start: Start) {
        let generation = self.clear();
        spawn_local(async move {
            let scenario = match &start {
                Start::Draft | Start::Dataset(_) | Start::Mixture(_) => match draft() {
                    Some(draft) => Ok(draft),
                    None => new_scenario().await,
                },
                Start::Ready { slug, free_layout: false } => ready(slug).await,
                Start::Ready { slug, free_layout: true } => ready(slug).await.map(with_free_layout),
                Start::Presets { model, cluster, nodes } => on_presets(model, cluster, *nodes).await,
            };
            if !self.is_current(generation) {
                return;
            }
            match scenario {
                Ok(mut scenario) => {
                    match start {
                        Start::Dataset(id) => {
                            use_dataset(&mut scenario, &id);
                            // Degrees that are fixed for other samples may not suit these samples.
                            scenario = with_free_layout(untitled(scenario));
                        }
                        Start::Mixture(parts) => {
                            crate::pointer::set(&mut scenario, "/workload/samples", source_from_datasets(&parts));
                            leave_out_unread(&mut scenario);
                            // Degrees that are fixed for other samples may not suit these samples.
                            scenario = with_free_layout(untitled(scenario));
                        }
                        Start::Draft | Start::Ready { .. } | Start::Presets { .. } => {}
                    }
                    self.scenario.set(scenario);
                    self.send(generation);
                }
                Err(error) => self.fail(error),
            }
        });
    }

    /// Opens a scenario from a self-contained link. If the server has an outcome, the page shows
    /// it. Otherwise the scenario is stored on planning.
    ///
    /// `fragment` is the link's fragment without the `#`.
    pub(crate) fn start_unsaved(self, scenario: Value, fragment: String) {
        let generation = self.clear();
        let body = scenario.to_string();
        self.scenario.set(scenario);
        self.unsaved.set(Some(fragment));
        self.state.set(PlanState::Idle);
        spawn_local(async move {
            let url = path::SCENARIO_IDENTITY;
            // Invalid scenarios and scenarios without an outcome are shown unplanned.
            let Ok(known) = client::send::<ScenarioIdentity>("POST", url, Body::Json(body)).await else { return };
            if !known.planned || !self.is_current(generation) {
                return;
            }
            let Ok(stored) = client::get::<StoredScenario>(&path::scenario(&known.id)).await else { return };
            if self.is_current(generation) {
                self.unsaved.set(None);
                self.open_stored(generation, &known.id, stored).await;
            }
        });
    }

    /// Imports a scenario from a file as one edit and plans it.
    pub(crate) fn import(self, scenario: Value) {
        self.edit("", |present| *present = scenario);
    }

    /// Deletes the draft and starts from the default gallery scenario.
    pub(crate) fn start_afresh(self) {
        storage::forget(storage::DRAFT);
        self.start(Start::Draft);
    }

    fn clear(self) -> u64 {
        self.abandon_job();
        self.cancel_preview();
        self.history.set_value(History::default());
        self.undoable.set((false, false));
        self.errors.set(FieldErrors::default());
        self.unreadable.set(FieldErrors::default());
        self.unsaved.set(None);
        self.scenario.set(Value::Null);
        self.stored.set(None);
        self.named.set_value(String::new());
        self.result.set(None);
        self.is_preview.set(false);
        self.set_displayed(super::DisplayedIteration::default());
        self.selection.set(None);
        self.hover.set(None);
        self.read_address();
        self.state.set(PlanState::Opening);
        let generation = self.next_generation();
        self.opened.set_value(generation);
        generation
    }
}

/// Returns true if the link refers to the open scenario or to the scenario that is loading.
fn is_same_scenario(stored: Option<&str>, opening: &str, link: &str) -> bool {
    stored.map_or(opening == link, |id| id.starts_with(link))
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

/// Leaves all settings to the planners, and adds the fastest plan of all planners.
fn with_free_settings(mut scenario: Value) -> Value {
    crate::pointer::set(&mut scenario, "/free", json!(FreeSetting::ALL));
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
    fn open_or_loading_scenario_is_not_opened_again() {
        assert!(is_same_scenario(Some("abcdefghijkl"), "", "abcdefghij"));
        assert!(!is_same_scenario(Some("abcdefghijkl"), "zzzzzzzzzz", "zzzzzzzzzz"), "that was opened before an edit");
        assert!(is_same_scenario(None, "abcdefghij", "abcdefghij"));
        assert!(!is_same_scenario(None, "zzzzzzzzzz", "abcdefghij"));
    }

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
