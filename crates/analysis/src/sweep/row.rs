//! Summary of a point's results.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Point;
use planscope_plan::certainty::{self, Interval};
use planscope_plan::outcome::{ENGINE, Planned};
use planscope_plan::scenario::{FieldError, PlannerKind, Scenario};

/// Result row for a point. The bytes do not depend on the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PointRow {
    /// Point number.
    pub index: u32,
    /// Value per axis.
    pub coordinates: Vec<Value>,
    /// Scenario identifier; omitted if the scenario is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Engine version.
    pub engine: String,
    /// Result.
    pub answer: PointOutcome,
}

/// Result for a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum PointOutcome {
    /// Results for all planners, in request order.
    Planned {
        /// Cluster devices.
        devices: u32,
        /// One row per planner.
        planners: Vec<PlannerRow>,
    },
    /// The scenario is invalid.
    Invalid {
        /// Field errors.
        errors: Vec<WrongField>,
    },
    /// Internal error.
    Failed {
        /// Error description.
        detail: String,
    },
}

/// A field error in a point's scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WrongField {
    /// JSON pointer into the scenario.
    pub pointer: String,
    /// Error description.
    pub detail: String,
}

/// Result for a planner: figures, or an explanation if there is no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlannerRow {
    /// A validated plan.
    Planned {
        /// Planner.
        planner: PlannerKind,
        /// Plan figures.
        figures: PlanMetrics,
    },
    /// No layout satisfies all constraints.
    Infeasible {
        /// Planner.
        planner: PlannerKind,
        /// Binding constraint.
        reason: String,
    },
}

impl PlannerRow {
    /// Planner of the row.
    pub const fn planner(&self) -> PlannerKind {
        match self {
            Self::Planned { planner, .. } | Self::Infeasible { planner, .. } => *planner,
        }
    }

    /// Plan figures; `None` if there is no plan.
    pub const fn metrics(&self) -> Option<&PlanMetrics> {
        match self {
            Self::Planned { figures: metrics, .. } => Some(metrics),
            Self::Infeasible { .. } => None,
        }
    }
}

/// Plan figures: the metrics used for comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanMetrics {
    /// Mean iteration time in s.
    pub iteration_s: f64,
    /// 80 % interval of the iteration time in s; omitted in rows of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<Interval>,
    /// Backbone tokens/s, excluding padding.
    pub tokens_per_s: f64,
    /// Backbone tokens/s per device, excluding padding.
    pub tokens_per_s_per_device: f64,
    /// Model FLOPs utilisation.
    pub mfu: f64,
    /// Idle time divided by (ranks x time).
    pub bubble: f64,
    /// Exposed communication divided by (ranks x time).
    pub exposed_communication: f64,
    /// Highest peak memory per rank, in GiB.
    pub peak_memory_gib: f64,
    /// Probability of running out of memory; omitted in rows of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability_out_of_memory: Option<f64>,
    /// Lower bound on the iteration time, in s.
    pub lower_bound_s: f64,
    /// (iteration - bound) / bound.
    pub gap: f64,
}

impl PlanMetrics {
    /// Returns the figures of a plan.
    pub fn new(scenario: &Scenario, planned: &Planned) -> Self {
        let (metrics, devices) = (&planned.metrics, scenario.cluster.devices());
        Self {
            iteration_s: metrics.iteration_s,
            interval_s: Some(certainty::step_time(scenario, planned)),
            tokens_per_s: metrics.tokens_per_s,
            tokens_per_s_per_device: metrics.tokens_per_s / f64::from(devices),
            mfu: metrics.mfu,
            bubble: metrics.bubble,
            exposed_communication: metrics.exposed_communication,
            peak_memory_gib: metrics.peak_memory_gib,
            probability_out_of_memory: Some(certainty::peak_memory(scenario, planned).probability_out_of_memory),
            lower_bound_s: metrics.lower_bound_s,
            gap: metrics.gap,
        }
    }
}

impl PointRow {
    /// Builds the row for a point with an invalid scenario, or one that this machine cannot plan.
    pub fn invalid(point: &Point, errors: Vec<FieldError>) -> Self {
        let named = |error: FieldError| WrongField { pointer: error.pointer, detail: error.detail };
        Self::without_scenario(point, PointOutcome::Invalid { errors: errors.into_iter().map(named).collect() })
    }

    /// Builds the row for a point with an internal error.
    pub fn failed(point: &Point, detail: &str) -> Self {
        Self::without_scenario(point, PointOutcome::Failed { detail: detail.to_owned() })
    }

    fn without_scenario(point: &Point, outcome: PointOutcome) -> Self {
        let (index, coordinates) = (point.index, point.coordinates.clone());
        Self { index, coordinates, scenario: None, engine: ENGINE.to_owned(), answer: outcome }
    }

    /// Results for all planners. Empty if the scenario is invalid.
    pub fn planners(&self) -> &[PlannerRow] {
        match &self.answer {
            PointOutcome::Planned { planners, .. } => planners,
            PointOutcome::Invalid { .. } | PointOutcome::Failed { .. } => &[],
        }
    }
}
