//! Stored scenarios.

use planner::scenario::Scenario;
use serde::{Deserialize, Serialize};

/// A stored scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredScenario {
    /// Identifier, 52 characters of lower-case base32.
    pub id: String,
    /// Shortest unique prefix of at least ten characters.
    pub short: String,
    /// The scenario, its title included.
    pub scenario: Scenario,
    /// Whether it stands in the list; drafts do not.
    pub kept: bool,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
}

/// A line of the list of scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioLine {
    /// Identifier.
    pub id: String,
    /// Shortest unique prefix of at least ten characters.
    pub short: String,
    /// Title, or what it is made of ("Llama-2 7B on 32 x A100-80GB").
    pub title: String,
    /// Model by name.
    pub model: String,
    /// Cluster in words, "4 x 8 A100-80GB".
    pub cluster: String,
    /// Fastest planner and its iteration time in s, where an outcome is stored.
    pub best: Option<BestOf>,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
}

/// The fastest planner of a stored outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestOf {
    /// Its title.
    pub planner: String,
    /// Mean iteration time, in s.
    pub iteration_s: f64,
}

/// The list of kept scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioList {
    /// Newest first.
    pub scenarios: Vec<ScenarioLine>,
}

/// Keeps a scenario in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Keep {
    /// Title to keep it under; absent: the one it has.
    #[serde(default)]
    pub title: Option<String>,
}
