//! Errors as RFC 9457 problem documents.

use serde::{Deserialize, Serialize};

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
