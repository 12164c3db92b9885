//! First page: scenarios by topic, and choices for a new scenario.

use serde::{Deserialize, Serialize};

/// The first page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FrontPage {
    /// Topics with their scenarios.
    pub topics: Vec<Topic>,
    /// Models for a new scenario.
    pub models: Vec<NamedOption>,
    /// Clusters for a new scenario.
    pub clusters: Vec<NamedOption>,
    /// Number of example scenarios.
    pub ready_scenarios: u32,
}

/// A model or cluster by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedOption {
    /// Preset identifier.
    pub id: String,
    /// Display name.
    pub name: String,
}

/// A topic and its scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Topic {
    /// Title, for example "Balance sequence lengths".
    pub title: String,
    /// Description, one sentence.
    pub text: String,
    /// The scenarios.
    pub tiles: Vec<Tile>,
}

/// An example scenario with its headline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tile {
    /// Stable name.
    pub slug: String,
    /// Display title.
    pub title: String,
    /// Summary, one or two sentences.
    pub summary: String,
    /// Devices, for example "32 × A100 80 GB".
    pub devices: String,
    /// True if the samples come from synthetic distributions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_synthetic: bool,
    /// True if the scenario opens with a free layout, so that planners search all degrees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_layout: bool,
    /// Headline figures. Omitted if the scenario changed after they were computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
}

/// Figures of an example scenario, computed at build time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Headline {
    /// Engine version.
    pub engine: String,
    /// The fastest plan.
    pub best: HeadlinePlan,
    /// Baseline plan: 1F1B, otherwise the slowest plan. Omitted if only one planner has a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<HeadlinePlan>,
    /// Mean iteration time of the baseline divided by that of the fastest plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// True if the fastest plan runs out of memory with a probability above 10 %.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_at_risk: bool,
}

/// Figures of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeadlinePlan {
    /// Short planner name.
    pub planner: String,
    /// Mean iteration time, in s.
    pub iteration_s: f64,
    /// Model FLOPs utilization.
    pub mfu: f64,
    /// Up to four ranks in the first iteration. Each character is an equal time interval in both
    /// plans: the number of the dominant span kind, or "." if the rank is mostly idle.
    pub strip: Vec<String>,
}
