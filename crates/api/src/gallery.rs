//! Presets and example scenarios.

use crate::planner::cluster::Cluster;
use crate::planner::model::Model;
use crate::planner::scenario::{PlannerKind, Scenario};
use crate::planner::workload::SampleSource;
use serde::{Deserialize, Serialize};

/// All choices for pickers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Presets {
    /// Models.
    pub models: Vec<ModelOption>,
    /// Clusters with one node each.
    pub clusters: Vec<ClusterOption>,
    /// Sample sources.
    pub samples: Vec<SampleOption>,
    /// Planners.
    pub planners: Vec<PlannerOption>,
}

/// A named model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelOption {
    /// Identifier.
    pub id: String,
    /// Number of parameters.
    pub parameters: u64,
    /// The model.
    pub model: Model,
}

/// A named cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterOption {
    /// Identifier.
    pub id: String,
    /// The cluster with one node.
    pub cluster: Cluster,
}

/// A named sample source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SampleOption {
    /// Identifier.
    pub id: String,
    /// Display name. States if the source is synthetic.
    pub title: String,
    /// The source.
    pub source: SampleSource,
}

/// A named planner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannerOption {
    /// Identifier.
    pub id: PlannerKind,
    /// Display name.
    pub title: String,
    /// Purpose, for example "Balance sample lengths over data parallelism".
    #[serde(default)]
    pub question: String,
}

/// Example scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gallery {
    /// Entries in display order.
    pub entries: Vec<GalleryEntry>,
}

/// An example scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GalleryEntry {
    /// Stable name, for example "vlm-s-image-heavy".
    pub slug: String,
    /// Display title.
    pub title: String,
    /// Summary, two sentences.
    pub summary: String,
    /// The scenario.
    pub scenario: Scenario,
    /// Paper of the set-up. Omitted for scenarios without a paper. Entries of a paper are
    /// consecutive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperLocation>,
    /// True if the samples come from synthetic distributions because the data is not public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_synthetic: bool,
}

/// Location of a set-up in a paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperLocation {
    /// Paper, for example "PipeWeaver (Xue et al., 2025)".
    pub title: String,
    /// Table or figure, for example "Table 5".
    pub place: String,
}
