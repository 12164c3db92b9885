//! Profiles: what a device, a cluster or a run was measured to do, and what was fitted to it.

use planner::cluster::Cluster;
use planner::cost::overrides::CostOverride;
use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

use crate::run::Prediction;
use crate::shelf::ListPage;

/// Kind of the problem that a file was measured on another device than the one to be fitted.
pub const OTHER_DEVICE: &str = "other-device";

/// A stored profile, as lists show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProfileSummary {
    /// Content address.
    pub id: String,
    /// Name to show.
    pub name: String,
    /// Note beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    /// Where it comes from.
    pub source: ProfileSource,
    /// Measurements that were read.
    pub measurements: u64,
    /// Mean relative residual of what was fitted; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// When it was stored, RFC 3339 in UTC.
    pub created_at: String,
    /// Bytes that it takes.
    pub bytes: u64,
    /// Whether it stands in front of the list.
    #[serde(default)]
    pub pinned: bool,
    /// When it was deleted, RFC 3339 in UTC; it can come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at: Option<String>,
}

/// Where a profile comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfileSource {
    /// Files of measured operators or collectives, or tables of layers.
    Files {
        /// Formats that were recognised, in words.
        formats: Vec<String>,
    },
    /// The log of a run beside the plan that it was held against.
    Run {
        /// The run.
        run: String,
        /// Scenario, whole identifier.
        scenario: String,
    },
}

/// Stored profiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProfileList {
    /// Pinned ones, then newest first, unless another order was asked for.
    pub profiles: Vec<ProfileSummary>,
    /// Of the list.
    #[serde(flatten)]
    pub page: ListPage,
}

/// A stored profile, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Profile {
    /// As lists show it.
    pub summary: ProfileSummary,
    /// What it puts into a scenario that uses it.
    pub effect: ProfileEffect,
    /// What was fitted, part by part.
    pub parts: Vec<FittedPart>,
    /// What was read and what was not, in words, one line per file.
    pub report: Vec<String>,
    /// Of a profile from a run: by how much the phases of a step differ from the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<PhaseFactor>,
}

/// By how much a phase of a step differs from the plan, and whether the profile makes up for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PhaseFactor {
    /// Phase in words, for example "forward compute"; "step" for the whole of it.
    pub phase: String,
    /// Median of the run, in s per step.
    pub measured_s: f64,
    /// What the plan said, in s per step.
    pub predicted_s: f64,
    /// Measured over predicted.
    pub ratio: f64,
    /// Factor that the profile puts on the layers; absent where nothing is put on them for this phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// What the plan says with the profile, in s per step; absent where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<f64>,
    /// In words: what it is, or why nothing is put on anything.
    pub detail: String,
}

/// What a profile puts into a scenario that uses it. Nothing is applied in silence: the scenario then says it itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProfileEffect {
    /// A cluster with fitted curves in place of the scenario's device and links; its size stays.
    Cluster {
        /// The cluster that was fitted.
        cluster: Box<Cluster>,
    },
    /// Times in place of the model's, added to the scenario's own.
    Overrides {
        /// The times.
        overrides: Vec<CostOverride>,
    },
}

/// One part of a fit with its residuals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FittedPart {
    /// What was fitted, for example "matrix products".
    pub name: String,
    /// Whether it was; otherwise `detail` says why not.
    pub fitted: bool,
    /// In words: the figures before and after.
    pub detail: String,
    /// Mean relative residual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// What the horizontal axis of the residual plot counts, for example "floating-point operations".
    pub size_name: String,
    /// Measurements beside what the fit says, at most 2,000, evenly thinned.
    pub points: Vec<FittedPoint>,
}

/// A measurement beside what the fit says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FittedPoint {
    /// Size, in the unit that the part names.
    pub size: f64,
    /// Measured time, in s.
    pub measured_s: f64,
    /// Fitted time, in s.
    pub fitted_s: f64,
}

/// A run beside its plan as the scenario is, and as it would be with a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProfileCheck {
    /// The profile.
    pub profile: String,
    /// The run.
    pub run: String,
    /// Scenario that the run is held against, whole identifier.
    pub scenario: String,
    /// Planner whose plan it is.
    pub planner: PlannerKind,
    /// Layout and schedule of the plan, in a line; of that with the profile where it is another one.
    pub plan: String,
    /// Every quantity before.
    pub before: Vec<Prediction>,
    /// Every quantity with the profile.
    pub after: Vec<Prediction>,
    /// What a reader should know, in words.
    pub notes: Vec<String>,
}

/// Which scenario is to use a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ApplyProfile {
    /// The scenario, by identifier or unique prefix.
    pub scenario: String,
}

/// A scenario that uses a profile, stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AppliedProfile {
    /// The new scenario, whole identifier.
    pub scenario: String,
    /// What it differs in, in words.
    pub changes: Vec<String>,
}
