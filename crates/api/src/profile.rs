//! Profiles: measurements of a device, a cluster or a run, and the parameters fitted to them.

use crate::planner::cluster::Cluster;
use crate::planner::cost::overrides::CostOverride;
use crate::planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::listing::ListPage;
use crate::run::Prediction;

/// Problem kind for a file measured on another device.
pub const OTHER_DEVICE: &str = "other-device";

/// A stored profile in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProfileSummary {
    /// Content address.
    pub id: String,
    /// Display name.
    pub name: String,
    /// User note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    /// Source.
    pub source: ProfileSource,
    /// Number of measurements.
    pub measurements: u64,
    /// Mean relative residual of the fit. Omitted without a fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// Stored size, in bytes.
    pub bytes: u64,
    /// True if the profile is pinned to the start of the list.
    #[serde(default)]
    pub pinned: bool,
    /// Deletion time, RFC 3339 in UTC. Deleted profiles can be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
}

/// Source of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfileSource {
    /// Files with measured operators, collectives or layers.
    Files {
        /// Detected formats.
        formats: Vec<String>,
    },
    /// The log of a run compared with its plan.
    Run {
        /// The run.
        run: String,
        /// Full scenario identifier.
        scenario: String,
    },
}

/// Stored profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProfileList {
    /// Profiles: pinned first, then newest first by default.
    pub profiles: Vec<ProfileSummary>,
    /// Page information.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A stored profile with all details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Profile {
    /// List entry.
    pub summary: ProfileSummary,
    /// Effect on scenarios that use the profile.
    pub effect: ProfileEffect,
    /// Fitted parts.
    pub parts: Vec<FittedPart>,
    /// Import report, one line per file.
    pub report: Vec<String>,
    /// For a profile from a run: ratios of measured and predicted phases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<PhaseFactor>,
}

/// Ratio of measured and predicted time for a phase, and the correction in the profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseFactor {
    /// Phase, for example "forward compute"; "step" for the complete step.
    pub phase: String,
    /// Median measured time, in s per step.
    pub measured_s: f64,
    /// Predicted time, in s per step.
    pub predicted_s: f64,
    /// Measured time divided by predicted time.
    pub ratio: f64,
    /// Correction factor for the layers. Omitted if the profile does not correct this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Predicted time with the profile, in s per step. Omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<f64>,
    /// Description, or the reason for no correction.
    pub detail: String,
}

/// Effect of a profile on a scenario that uses it. The resulting scenario contains the changes
/// explicitly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfileEffect {
    /// Replaces the device and links of the scenario by a cluster with fitted curves. The cluster
    /// size is unchanged.
    Cluster {
        /// Fitted cluster.
        cluster: Box<Cluster>,
    },
    /// Adds cost overrides to the scenario.
    Overrides {
        /// Cost overrides.
        overrides: Vec<CostOverride>,
    },
}

/// A part of a fit, with residuals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FittedPart {
    /// Part name, for example "matrix products".
    pub name: String,
    /// Number of measurements. 0 in profiles of earlier versions.
    #[serde(default)]
    pub samples: u64,
    /// True if the part was fitted. Otherwise `detail` states the reason.
    pub fitted: bool,
    /// Parameters before and after the fit, as text.
    pub detail: String,
    /// Mean relative residual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Quantity on the horizontal axis of the residual plot, for example "floating-point
    /// operations".
    pub size_name: String,
    /// Measured and fitted times, at most 2,000 points, evenly thinned.
    pub points: Vec<FittedPoint>,
}

/// A measurement and its fitted time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FittedPoint {
    /// Size, in the unit of the part.
    pub size: f64,
    /// Measured time, in s.
    pub measured_s: f64,
    /// Fitted time, in s.
    pub fitted_s: f64,
}

/// Comparison of a run with its plan, before and after a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProfileCheck {
    /// The profile.
    pub profile: String,
    /// The run.
    pub run: String,
    /// Full identifier of the scenario attached to the run.
    pub scenario: String,
    /// Planner of the plan.
    pub planner: PlannerKind,
    /// Layout and schedule of the plan as text. If the profile changes the plan, the new plan.
    pub plan: String,
    /// Predictions before the profile.
    pub before: Vec<Prediction>,
    /// Predictions with the profile.
    pub after: Vec<Prediction>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Request to apply a profile to a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApplyProfile {
    /// Scenario identifier or unique prefix.
    pub scenario: String,
}

/// A stored scenario that uses a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppliedProfile {
    /// Full identifier of the new scenario.
    pub scenario: String,
    /// Changed fields, as text.
    pub changes: Vec<String>,
}
