//! Published figures compared with ours. `cargo xtask papers` writes docs/papers.json.

use crate::planner::outcome::{Layout, RankTime};
use crate::planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

/// Published figures compared with ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Papers {
    /// Engine version of the plans.
    pub engine: String,
    /// One entry per paper.
    pub papers: Vec<Paper>,
}

/// One paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Paper {
    /// Stable identifier, for example "pipeweaver".
    pub id: String,
    /// Display name.
    pub title: String,
    /// Authors and year.
    pub source: String,
    /// Tables and figures.
    pub sets: Vec<PaperSet>,
}

/// A table or figure, or a part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperSet {
    /// Stable identifier within the paper, for example "table-5".
    pub id: String,
    /// Location in the paper, for example "Table 5".
    pub place: String,
    /// Description.
    pub title: String,
    /// True if the batches come from synthetic distributions because the paper's data is not
    /// public.
    pub is_synthetic: bool,
    /// Assumptions for values that the paper does not state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// Published values and ours.
    pub figures: Vec<PaperFigure>,
    /// Published choices, for example degrees, and ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<PaperChoice>,
    /// Plans behind our values, with their time breakdown.
    pub plans: Vec<PaperPlan>,
    /// Our curves, if the paper draws curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<PaperChart>,
}

/// Papers that publish figures for a scenario.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioPapers {
    /// Gallery name of the scenario. Omitted for other scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// Tables and figures with values for the scenario.
    pub cited: Vec<CitedSet>,
}

/// A table or figure with its paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CitedSet {
    /// Paper identifier, for example "pipeweaver".
    pub paper: String,
    /// Display name of the paper.
    pub title: String,
    /// The table or figure.
    pub set: PaperSet,
}

/// A published value and ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperFigure {
    /// Description of the value.
    pub label: String,
    /// Unit: "s", "%", "PFLOP", "images". Empty for ratios such as model FLOPs utilization.
    pub unit: String,
    /// Published value. Omitted if the paper only draws it or does not compare it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedValue>,
    /// Our value: the mean over the seeds or, without a spread, the value for the seed of the
    /// scenario. Omitted if there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// Values over several seeds. Omitted if only the seed of the scenario is planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// The fastest other planner for the seed of the scenario. Omitted if the quantity names its
    /// reference plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opponent: Option<PlannerKind>,
    /// Why there is no value of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Difference from the published value, or from the nearer end of a range. Zero within a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// True for wall times, which differ between runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wall_time: bool,
}

/// Values of a figure over several seeds: that of the scenario, and the numbers after it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spread {
    /// Seeds with a value.
    pub seeds: u32,
    /// Planned seeds without a value, because a plan is infeasible.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_value: u32,
    /// Value for the seed of the scenario.
    pub own: f64,
    /// Minimum over the seeds.
    pub min: f64,
    /// Maximum over the seeds.
    pub max: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is fixed by serde")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A published choice of a planner, and ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperChoice {
    /// Description of the choice.
    pub label: String,
    /// Published choice. Omitted if the paper does not give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Our choice for the first iteration, for the seed of the scenario.
    pub ours: String,
}

/// A published number or range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublishedValue {
    /// The number, or the lower end of the range.
    pub from: f64,
    /// The number, or the upper end of the range.
    pub to: f64,
}

/// Difference from a published value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Difference {
    /// Our value minus the published value: in percentage points for percentages, otherwise in
    /// percent of the published value.
    pub value: f64,
    /// Unit of the difference.
    pub of: DifferenceUnit,
}

/// Unit of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DifferenceUnit {
    /// Percentage points, for values in percent.
    Points,
    /// Percent of the published value.
    PerCent,
}

impl PublishedValue {
    /// Returns the difference for our value in this unit.
    pub fn difference(self, ours: f64, unit: &str) -> Difference {
        let (nearest, is_range) = (ours.clamp(self.from, self.to), self.from < self.to);
        let nearest = if is_range { nearest } else { self.from };
        if unit == "%" {
            Difference { value: ours - nearest, of: DifferenceUnit::Points }
        } else {
            Difference { value: 100.0 * (ours / nearest - 1.0), of: DifferenceUnit::PerCent }
        }
    }
}

/// A plan behind a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperPlan {
    /// Gallery name of the scenario.
    pub scenario: String,
    /// The planner.
    pub planner: PlannerKind,
    /// Layout. Omitted if there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Binding constraint if there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// Mean iteration time, in s. Zero without a plan.
    pub iteration_s: f64,
    /// Model FLOPs utilization. Zero without a plan.
    pub mfu: f64,
    /// Time breakdown of the mean rank, in s. The parts sum to the iteration time.
    pub time: RankTime,
    /// Relative gap between iteration time and lower bound.
    pub gap: f64,
    /// Peak memory over all ranks, in GiB.
    pub peak_memory_gib: f64,
    /// Memory limit, in GiB.
    pub memory_limit_gib: f64,
}

/// Curves with a common axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperChart {
    /// Label of the horizontal axis, with unit.
    pub x: String,
    /// Label of the vertical axis, with unit.
    pub y: String,
    /// The curves.
    pub curves: Vec<PaperCurve>,
}

/// A curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperCurve {
    /// Its name.
    pub label: String,
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Values, one per position.
    pub y: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_use_percentage_points_or_percent() {
        let exact = |value| PublishedValue { from: value, to: value };
        let range = PublishedValue { from: 15.6, to: 76.2 };
        for (published, ours, unit, value, expected_unit) in [
            (exact(17.3), 30.0, "%", 12.7, DifferenceUnit::Points),
            // 20 s instead of 16 s is 25 % more.
            (exact(16.0), 20.0, "s", 25.0, DifferenceUnit::PerCent),
            (range, 40.0, "%", 0.0, DifferenceUnit::Points),
            (range, 10.6, "%", -5.0, DifferenceUnit::Points),
            (range, 80.2, "%", 4.0, DifferenceUnit::Points),
        ] {
            let difference = published.difference(ours, unit);
            assert!((difference.value - value).abs() < 1e-9 && difference.of == expected_unit, "{difference:?}");
        }
    }
}
