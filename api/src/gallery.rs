//! Presets and ready scenarios.

use planner::cluster::Cluster;
use planner::model::Model;
use planner::scenario::{PlannerKind, Scenario};
use planner::workload::SampleSource;
use serde::{Deserialize, Serialize};

/// Everything a picker offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Presets {
    /// Models.
    pub models: Vec<ModelChoice>,
    /// Clusters, one node of each.
    pub clusters: Vec<ClusterChoice>,
    /// Sources of samples.
    pub samples: Vec<SampleChoice>,
    /// Planners.
    pub planners: Vec<PlannerChoice>,
}

/// A model by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ModelChoice {
    /// Identifier.
    pub id: String,
    /// Parameters.
    pub parameters: u64,
    /// The model.
    pub model: Model,
}

/// A cluster by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterChoice {
    /// Identifier.
    pub id: String,
    /// One node of it.
    pub cluster: Cluster,
}

/// A source of samples by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SampleChoice {
    /// Identifier.
    pub id: String,
    /// Shown name; says where it is synthetic.
    pub title: String,
    /// The source.
    pub source: SampleSource,
}

/// A planner by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlannerChoice {
    /// Identifier.
    pub id: PlannerKind,
    /// Shown name.
    pub title: String,
    /// The question that it answers, for example "Balance sample lengths over data parallelism".
    #[serde(default)]
    pub question: String,
}

/// Ready scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gallery {
    /// In the order in which the gallery shows them.
    pub entries: Vec<GalleryEntry>,
}

/// A ready scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GalleryEntry {
    /// Stable name, for example "vlm-s-image-heavy".
    pub slug: String,
    /// Shown title.
    pub title: String,
    /// What it shows and why it is interesting, two sentences.
    pub summary: String,
    /// The scenario.
    pub scenario: Scenario,
    /// Whose set-up it is; absent for those of no paper. Entries of one paper stand together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<GalleryPlace>,
    /// Whether its samples are drawn from distributions of ours, because no data are public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_synthetic: bool,
}

/// Where a paper has a set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GalleryPlace {
    /// The paper, for example "PipeWeaver (Xue et al., 2025)".
    pub title: String,
    /// Table or figure, for example "Table 5".
    pub place: String,
}
