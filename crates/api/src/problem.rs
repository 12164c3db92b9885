//! Errors as RFC 9457 problem documents.

use serde::{Deserialize, Serialize};

use crate::dataset::ColumnCandidate;

/// A problem document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// Problem type, a URI reference, for example "/problems/invalid-scenario".
    #[serde(rename = "type")]
    pub kind: String,
    /// Short title, equal for all problems of the type.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// Description of this problem, with a remedy.
    pub detail: String,
    /// All invalid fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// Choices: scenarios for an ambiguous prefix, or columns of a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// Deletion time and restore path of a deleted object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deletion>,
}

/// A choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum Candidate {
    /// A scenario for an ambiguous prefix.
    Scenario(ScenarioCandidate),
    /// A column of a file.
    Column(ColumnCandidate),
}

/// A scenario that matches an ambiguous prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioCandidate {
    /// Identifier.
    pub id: String,
    /// Shortest unique prefix.
    pub short: String,
    /// Title, or a description.
    pub title: String,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// Deletion time, if the scenario is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
}

/// Deletion time and restore path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Deletion {
    /// Deletion time, RFC 3339 in UTC.
    pub at: String,
    /// POST path that restores the object. Omitted if it cannot be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
}

/// An invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FieldProblem {
    /// JSON pointer into the request body, for example "/cluster/nodes".
    pub pointer: String,
    /// Description of the error and the allowed values.
    pub detail: String,
}

impl Problem {
    /// Returns the selectable columns.
    pub fn columns(&self) -> Vec<ColumnCandidate> {
        let column = |candidate: &Candidate| match candidate {
            Candidate::Column(column) => Some(column.clone()),
            Candidate::Scenario(_) => None,
        };
        self.candidates.iter().filter_map(column).collect()
    }

    /// Returns the selectable scenarios.
    pub fn scenarios(&self) -> Vec<ScenarioCandidate> {
        let scenario = |candidate: &Candidate| match candidate {
            Candidate::Scenario(scenario) => Some(scenario.clone()),
            Candidate::Column(_) => None,
        };
        self.candidates.iter().filter_map(scenario).collect()
    }
}
