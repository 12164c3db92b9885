//! What the gallery shows of ready scenarios: a few words of each, so that the first page reads no whole scenario.

use api::gallery::GalleryPlace;
use api::planner::scenario::PlannerKind;
use serde::Deserialize;

/// Ready scenarios at a glance.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Glances {
    /// In the order in which the gallery shows them.
    pub(crate) entries: Vec<Glance>,
}

/// What [`api::gallery::GalleryEntry`] comes to in a card or a line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Glance {
    /// Stable name.
    pub(crate) slug: String,
    /// Shown title.
    pub(crate) title: String,
    /// Two sentences.
    pub(crate) summary: String,
    /// What of the scenario is shown.
    pub(crate) scenario: Facts,
    /// Whose set-up it is.
    #[serde(default)]
    pub(crate) paper: Option<GalleryPlace>,
    /// Whether its samples are drawn from distributions of ours.
    #[serde(default)]
    pub(crate) is_synthetic: bool,
}

/// What of a scenario is shown.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Facts {
    /// What is trained.
    pub(crate) model: Name,
    /// Where.
    pub(crate) cluster: Devices,
    /// On what.
    pub(crate) workload: Batch,
    /// By whom it is planned.
    pub(crate) planners: Vec<PlannerKind>,
}

/// Something with a name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Name {
    /// The name.
    pub(crate) name: String,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Devices {
    /// Name of its devices.
    pub(crate) name: String,
    /// Nodes.
    pub(crate) nodes: u32,
    /// Devices of a node.
    #[serde(rename = "devices_per_node")]
    pub(crate) per_node: u32,
}

/// A workload.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Batch {
    /// Samples of a global batch.
    pub(crate) global_batch: u32,
    /// Tokens of a sequence at most.
    pub(crate) context_length: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_gallery_is_read_and_the_rest_passed_over() {
        let text = r#"{"entries": [{"slug": "a", "title": "A", "summary": "S.", "scenario": {
            "schema": "x", "model": {"name": "M", "modules": []}, "cluster": {"name": "C", "nodes": 2, "devices_per_node": 8, "node": {}},
            "workload": {"global_batch": 16, "context_length": 8192, "samples": {}}, "planners": [], "seed": 1}}]}"#;
        let read: Glances = serde_json::from_str(text).expect("readable");
        let scenario = &read.entries[0].scenario;
        assert_eq!((scenario.cluster.nodes, scenario.cluster.per_node), (2, 8));
        assert_eq!((scenario.workload.global_batch, scenario.workload.context_length), (16, 8192));
        assert!(!read.entries[0].is_synthetic && read.entries[0].paper.is_none());
    }
}
