//! Stored scenarios.

use planner::outcome::Layout;
use planner::scenario::{PlannerKind, Scenario};
use serde::{Deserialize, Serialize};

use crate::shelf::ListPage;

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
    /// Reason why it stands in the list; absent where it was saved by hand, and for drafts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<KeptSource>,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
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
    /// Reason why it stands in the list; absent where it was saved by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<KeptSource>,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
    /// When it was deleted, RFC 3339 in UTC; it can come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
    /// Bytes that it takes with its outcomes.
    #[serde(default)]
    pub bytes: u64,
    /// Why its planning job was given up; absent where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
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
    /// Pinned ones, then newest first, unless another order was asked for.
    pub scenarios: Vec<ScenarioLine>,
    /// Of the list.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A plan that is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanLine {
    /// Scenario, engine and planner, in one word.
    pub id: String,
    /// Scenario, whole identifier.
    pub scenario: String,
    /// Its shortest unique prefix of at least ten characters.
    pub short: String,
    /// Its title, or what it is made of.
    pub title: String,
    /// Its note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its tags, in alphabetical order.
    pub tags: Vec<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Model by name.
    pub model: String,
    /// Cluster in words, "4 x 8 A100-80GB".
    pub cluster: String,
    /// Planner; absent where this server knows none of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<PlannerKind>,
    /// Its title.
    pub planner_title: String,
    /// Degrees of the layout; absent where the stored outcome does not contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Engine that computed it.
    pub engine: String,
    /// Mean iteration time, in s.
    pub iteration_s: f64,
    /// When it was computed, RFC 3339 in UTC.
    pub created_at: String,
}

/// Stored plans of all scenarios, drafts included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanList {
    /// Those of pinned scenarios, then newest first, unless another order was asked for.
    pub plans: Vec<PlanLine>,
    /// Engine of this server.
    pub current_engine: String,
    /// Of the list.
    #[serde(flatten)]
    pub page: ListPage,
}

/// Keeps a scenario in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Keep {
    /// Title to keep it under; absent: the one it has.
    #[serde(default)]
    pub title: Option<String>,
    /// Reason; absent: saved by hand. A link changes nothing of a scenario that was saved by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<KeptSource>,
}

/// Reason why a scenario stands in the list without being saved by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeptSource {
    /// A link to it was copied.
    Link,
}

impl KeptSource {
    /// Name in the database.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Link => "link",
        }
    }

    /// The source of that name.
    pub fn from_id(id: &str) -> Option<Self> {
        (id == Self::Link.id()).then_some(Self::Link)
    }
}

/// Identity of a scenario that is not stored by the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioIdentity {
    /// Identifier that the scenario has, 52 characters of lower-case base32.
    pub id: String,
    /// Whether a scenario of that identifier is stored.
    pub stored: bool,
    /// Whether an outcome of it is stored, by any engine.
    pub planned: bool,
}
