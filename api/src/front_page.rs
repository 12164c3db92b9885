//! The first page: scenarios by the question that they answer, and what a new scenario starts from.

use serde::{Deserialize, Serialize};

/// The first page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FrontPage {
    /// Questions, each with its scenarios.
    pub topics: Vec<Topic>,
    /// Models that a new scenario may start from.
    pub models: Vec<NamedChoice>,
    /// Clusters that a new scenario may start from.
    pub clusters: Vec<NamedChoice>,
    /// Ready scenarios in all.
    pub ready_scenarios: u32,
}

/// A model or cluster by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedChoice {
    /// Identifier of the preset.
    pub id: String,
    /// Shown name.
    pub name: String,
}

/// A question and the scenarios that answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Topic {
    /// For example "Balance sequence lengths".
    pub title: String,
    /// One sentence.
    pub text: String,
    /// The scenarios.
    pub tiles: Vec<Tile>,
}

/// A ready scenario with its headline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tile {
    /// Stable name.
    pub slug: String,
    /// Shown title.
    pub title: String,
    /// One or two sentences.
    pub summary: String,
    /// For example "32 × A100 80 GB".
    pub devices: String,
    /// Whether its samples are drawn from distributions of ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_synthetic: bool,
    /// Whether it is opened with a free layout: planners search all degrees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_layout: bool,
    /// Its figures; absent if the scenario changed since they were computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
}

/// Figures of a ready scenario, computed by an engine and shipped with the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Headline {
    /// Version of the engine.
    pub engine: String,
    /// The fastest plan.
    pub best: HeadlinePlan,
    /// The plan that it is compared with: 1F1B, else the slowest; absent if only one planner has a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<HeadlinePlan>,
    /// Mean time of an iteration of the baseline over that of the fastest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
}

/// Figures of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HeadlinePlan {
    /// Short name of the planner.
    pub planner: String,
    /// Mean time of an iteration, in s.
    pub iteration_s: f64,
    /// Model FLOP utilisation.
    pub mfu: f64,
    /// Up to four ranks of the first iteration, from start to end: a character per stretch of time, the number of the
    /// span kind with most time in it, or "." if the rank is mostly idle. Stretches of both plans are equally long.
    pub strip: Vec<String>,
}
