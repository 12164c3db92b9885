//! Stored scenarios.

use crate::planner::outcome::Layout;
use crate::planner::scenario::{PlannerKind, Scenario};
use serde::{Deserialize, Serialize};

use crate::listing::ListPage;

/// A stored scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StoredScenario {
    /// Identifier, 52 characters of lower-case base32.
    pub id: String,
    /// Shortest unique prefix of at least ten characters.
    pub short: String,
    /// The scenario, including its title.
    pub scenario: Scenario,
    /// True if the scenario is in the list. Drafts are not.
    pub kept: bool,
    /// Reason for the list entry. Omitted for drafts and scenarios saved by a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SavedSource>,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// True if the scenario is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
}

/// A scenario in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioLine {
    /// Identifier.
    pub id: String,
    /// Shortest unique prefix of at least ten characters.
    pub short: String,
    /// Title, or a description ("Llama-2 7B on 32 × A100-80GB").
    pub title: String,
    /// Model name.
    pub model: String,
    /// Cluster as text, "4 x 8 A100-80GB".
    pub cluster: String,
    /// Fastest planner and its iteration time in s, if an outcome is stored.
    pub best: Option<BestPlanner>,
    /// Reason for the list entry. Omitted if a user saved the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SavedSource>,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// True if the scenario is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
    /// Deletion time, RFC 3339 in UTC. Deleted scenarios can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Stored size including outcomes, in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Reason why the server stopped planning the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Fastest planner in a stored outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BestPlanner {
    /// Planner title.
    pub planner: String,
    /// Mean iteration time, in s.
    pub iteration_s: f64,
}

/// A page of saved scenarios.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioList {
    /// Scenarios: pinned first, then newest first by default.
    pub scenarios: Vec<ScenarioLine>,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A stored plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanLine {
    /// Identifier from scenario, engine and planner.
    pub id: String,
    /// Full scenario identifier.
    pub scenario: String,
    /// Its shortest unique prefix of at least ten characters.
    pub short: String,
    /// Scenario title, or a description.
    pub title: String,
    /// Scenario note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Scenario tags, in alphabetical order.
    pub tags: Vec<String>,
    /// True if the scenario is pinned.
    pub pinned: bool,
    /// Model name.
    pub model: String,
    /// Cluster as text, "4 x 8 A100-80GB".
    pub cluster: String,
    /// Planner. Omitted if this server does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// Planner title.
    pub planner_title: String,
    /// Layout degrees. Omitted if the stored outcome does not contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Engine version.
    pub engine: String,
    /// Mean iteration time, in s.
    pub iteration_s: f64,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
}

/// Stored plans for all scenarios, including drafts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanList {
    /// Plans: pinned scenarios first, then newest first by default.
    pub plans: Vec<PlanLine>,
    /// Engine version on this server.
    pub current_engine: String,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
}

/// Request to save a scenario in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Keep {
    /// Title. Default: the current title.
    #[serde(default)]
    pub title: Option<String>,
    /// Reason. Default: saved by a user. A link does not change a scenario that a user saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SavedSource>,
}

/// Reason for a list entry that no user saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SavedSource {
    /// The link was copied.
    Link,
}

impl SavedSource {
    /// Name in the database.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Link => "link",
        }
    }

    /// Returns the source with a name.
    pub fn from_id(id: &str) -> Option<Self> {
        (id == Self::Link.id()).then_some(Self::Link)
    }
}

/// Identity of a scenario. The request does not store it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioIdentity {
    /// Identifier, 52 characters of lower-case base32.
    pub id: String,
    /// True if the scenario is stored.
    pub stored: bool,
    /// True if an outcome is stored, for any engine version.
    pub planned: bool,
}
