//! What a point answers, in brief.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Point;
use crate::engine::{self, PlanError};
use crate::observer::{Cancelled, Observer};
use crate::outcome::{Answer, ENGINE, Metrics};
use crate::scenario::{FieldError, PlannerKind, ValidScenario};

/// The row of a point: the same bytes from whoever plans it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PointRow {
    /// Number of the point.
    pub index: u32,
    /// Its value on every axis.
    pub coordinates: Vec<Value>,
    /// Identifier of its scenario; absent where that is not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Version of the engine.
    pub engine: String,
    /// What came of it.
    pub answer: PointAnswer,
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum PointAnswer {
    /// The planners answered, in the order of the question.
    Planned {
        /// Devices of the cluster.
        devices: u32,
        /// One row per planner.
        planners: Vec<PlannerRow>,
    },
    /// The values make no valid scenario.
    Invalid {
        /// The wrong fields.
        errors: Vec<WrongField>,
    },
    /// A fault of ours.
    Failed {
        /// What happened.
        detail: String,
    },
}

/// A wrong field of a point's scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct WrongField {
    /// JSON pointer into the scenario.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
}

/// What one planner answered: figures, or why there is no plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "snake_case", deny_unknown_fields)]
pub enum PlannerRow {
    /// A plan that the checker passed.
    Planned {
        /// The planner.
        planner: PlannerKind,
        /// Its figures.
        figures: Figures,
    },
    /// No layout satisfies every constraint.
    Infeasible {
        /// The planner.
        planner: PlannerKind,
        /// The binding constraint.
        reason: String,
    },
}

impl PlannerRow {
    /// The planner.
    pub const fn planner(&self) -> PlannerKind {
        match self {
            Self::Planned { planner, .. } | Self::Infeasible { planner, .. } => *planner,
        }
    }

    /// Its figures, if it found a plan.
    pub const fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Planned { figures, .. } => Some(figures),
            Self::Infeasible { .. } => None,
        }
    }
}

/// Figures of a plan: those of its metrics that people compare.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Mean time of an iteration, in s.
    pub iteration_s: f64,
    /// Backbone tokens per second, padding not counted.
    pub tokens_per_s: f64,
    /// The same per device.
    pub tokens_per_s_per_device: f64,
    /// Model FLOP utilisation.
    pub mfu: f64,
    /// Idle share.
    pub bubble: f64,
    /// Share of exposed communication.
    pub exposed_communication: f64,
    /// Largest memory of any rank, in GiB.
    pub peak_memory_gib: f64,
    /// Lower bound of the iteration time, in s.
    pub lower_bound_s: f64,
    /// (iteration - bound) / bound.
    pub gap: f64,
}

impl Figures {
    fn of(metrics: &Metrics, devices: u32) -> Self {
        Self {
            iteration_s: metrics.iteration_s,
            tokens_per_s: metrics.tokens_per_s,
            tokens_per_s_per_device: metrics.tokens_per_s / f64::from(devices),
            mfu: metrics.mfu,
            bubble: metrics.bubble,
            exposed_communication: metrics.exposed_communication,
            peak_memory_gib: metrics.peak_memory_gib,
            lower_bound_s: metrics.lower_bound_s,
            gap: metrics.gap,
        }
    }
}

impl PointRow {
    /// The row of a point that gives no scenario, or one that cannot be planned here.
    pub fn invalid(point: &Point, errors: Vec<FieldError>) -> Self {
        let named = |error: FieldError| WrongField { pointer: error.pointer, detail: error.detail };
        Self::without_scenario(point, PointAnswer::Invalid { errors: errors.into_iter().map(named).collect() })
    }

    /// The row of a point whose planning came to nothing by a fault of ours.
    pub fn failed(point: &Point, detail: &str) -> Self {
        Self::without_scenario(point, PointAnswer::Failed { detail: detail.to_owned() })
    }

    fn without_scenario(point: &Point, answer: PointAnswer) -> Self {
        let (index, coordinates) = (point.index, point.coordinates.clone());
        Self { index, coordinates, scenario: None, engine: ENGINE.to_owned(), answer }
    }

    /// What the planners answered; nothing where the scenario is not valid.
    pub fn planners(&self) -> &[PlannerRow] {
        match &self.answer {
            PointAnswer::Planned { planners, .. } => planners,
            PointAnswer::Invalid { .. } | PointAnswer::Failed { .. } => &[],
        }
    }
}

/// Why a point has no row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unplanned {
    /// The observer asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// It takes more memory than the observer allows.
    #[error("planning takes {} MiB or more", .bytes.div_ceil(1 << 20))]
    Outgrown {
        /// Bytes at the peak, as far as they are known.
        bytes: u64,
    },
}

/// Plans the scenario of a point.
pub(super) fn planned(
    point: &Point,
    scenario: &ValidScenario,
    observer: &mut dyn Observer,
) -> Result<PointRow, Unplanned> {
    let outcome = match engine::plan(scenario, observer) {
        Ok(planning) => planning.outcome,
        Err(PlanError::Cancelled(cancelled)) => return Err(Unplanned::Cancelled(cancelled)),
        Err(PlanError::Outgrown { bytes }) => return Err(Unplanned::Outgrown { bytes }),
        Err(refused @ PlanError::Refused { .. }) => return Ok(PointRow::failed(point, &refused.to_string())),
        Err(large @ PlanError::TooLarge(_)) => {
            return Ok(PointRow::invalid(point, vec![FieldError::new("/iterations", large.to_string())]));
        }
    };
    let devices = scenario.scenario().cluster.devices();
    let rows = scenario.scenario().planners.iter().filter_map(|planner| {
        let result = outcome.results.iter().find(|result| result.planner == *planner)?;
        Some(match &result.answer {
            Answer::Planned(planned) => {
                PlannerRow::Planned { planner: *planner, figures: Figures::of(&planned.metrics, devices) }
            }
            Answer::Infeasible { binding, .. } => PlannerRow::Infeasible { planner: *planner, reason: binding.clone() },
        })
    });
    Ok(PointRow {
        index: point.index,
        coordinates: point.coordinates.clone(),
        scenario: Some(scenario.id().to_string()),
        engine: ENGINE.to_owned(),
        answer: PointAnswer::Planned { devices, planners: rows.collect() },
    })
}
