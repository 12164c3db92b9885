//! Summaries of prepared scenarios, so that the start page does not download complete scenarios.

use api::gallery::PaperLocation;
use api::planner::scenario::PlannerKind;
use serde::Deserialize;

/// Summaries of the prepared scenarios.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ScenarioSummaries {
    /// Entries in gallery order.
    pub(crate) entries: Vec<ScenarioSummary>,
}

/// Subset of [`api::gallery::GalleryEntry`] for a card or a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct ScenarioSummary {
    /// Stable identifier.
    pub(crate) slug: String,
    pub(crate) title: String,
    /// Description in two sentences.
    pub(crate) summary: String,
    pub(crate) scenario: Facts,
    /// Paper that published the setup.
    #[serde(default)]
    pub(crate) paper: Option<PaperLocation>,
    /// True if the samples come from synthetic distributions.
    #[serde(default)]
    pub(crate) is_synthetic: bool,
}

/// Displayed fields of a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Facts {
    pub(crate) model: Name,
    pub(crate) cluster: Devices,
    pub(crate) workload: Batch,
    pub(crate) planners: Vec<PlannerKind>,
}

/// An object with a name, here the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Name {
    pub(crate) name: String,
}

/// Cluster size and device name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Devices {
    /// Device name.
    pub(crate) name: String,
    /// Node count.
    pub(crate) nodes: u32,
    /// Devices per node.
    #[serde(rename = "devices_per_node")]
    pub(crate) per_node: u32,
}

/// Batch size and context length.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Batch {
    /// Samples per global batch.
    pub(crate) global_batch: u32,
    /// Maximum sequence length in tokens.
    pub(crate) context_length: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gallery_entry_is_parsed_and_unknown_fields_are_ignored() {
        let text = r#"{"entries": [{"slug": "a", "title": "A", "summary": "S.", "scenario": {
            "schema": "x", "model": {"name": "M", "modules": []}, "cluster": {"name": "C", "nodes": 2, "devices_per_node": 8, "node": {}},
            "workload": {"global_batch": 16, "context_length": 8192, "samples": {}}, "planners": [], "seed": 1}}]}"#;
        let read: ScenarioSummaries = serde_json::from_str(text).expect("readable");
        let scenario = &read.entries[0].scenario;
        assert_eq!((scenario.cluster.nodes, scenario.cluster.per_node), (2, 8));
        assert_eq!((scenario.workload.global_batch, scenario.workload.context_length), (16, 8192));
        assert!(!read.entries[0].is_synthetic && read.entries[0].paper.is_none());
    }
}
