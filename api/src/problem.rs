//! Errors as RFC 9457 problem documents.

use serde::{Deserialize, Serialize};

use crate::dataset::ColumnCandidate;

/// A problem document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Kind of problem, a URI reference, for example "/problems/invalid-scenario".
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong, in one short line that is the same for every problem of the kind.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// What is wrong here, and the remedy.
    pub detail: String,
    /// Every wrong field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// What can be chosen: scenarios of an ambiguous prefix, or columns of a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// When it was deleted, and the way back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deletion>,
}

/// What can be chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Candidate {
    /// A scenario of an ambiguous prefix.
    Scenario(ScenarioCandidate),
    /// A column of a file.
    Column(ColumnCandidate),
}

/// A scenario that an ambiguous prefix may stand for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioCandidate {
    /// Identifier.
    pub id: String,
    /// Shortest unique prefix.
    pub short: String,
    /// Title, or what it is made of.
    pub title: String,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// When it was deleted, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
}

/// When something was deleted, and the way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deletion {
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// Path that brings it back by POST; absent: it cannot come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

/// One wrong field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldProblem {
    /// JSON pointer into the request body, for example "/cluster/nodes".
    pub pointer: String,
    /// What is wrong with it, and what would be right.
    pub detail: String,
}

impl Problem {
    /// Columns that can be chosen.
    pub fn columns(&self) -> Vec<ColumnCandidate> {
        let column = |candidate: &Candidate| match candidate {
            Candidate::Column(column) => Some(column.clone()),
            Candidate::Scenario(_) => None,
        };
        self.candidates.iter().filter_map(column).collect()
    }

    /// Scenarios that can be chosen.
    pub fn scenarios(&self) -> Vec<ScenarioCandidate> {
        let scenario = |candidate: &Candidate| match candidate {
            Candidate::Scenario(scenario) => Some(scenario.clone()),
            Candidate::Column(_) => None,
        };
        self.candidates.iter().filter_map(scenario).collect()
    }
}
