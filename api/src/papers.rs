//! Figures of papers beside ours: what `cargo xtask papers` wrote to docs/papers.json.

use planner::outcome::{Layout, RankTime};
use planner::scenario::PlannerKind;
use serde::{Deserialize, Serialize};

/// Figures of papers beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Papers {
    /// The engine that planned.
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
    /// Shown name.
    pub title: String,
    /// Who wrote it, and when.
    pub source: String,
    /// Its tables and figures.
    pub sets: Vec<PaperSet>,
}

/// One table or figure, or a part of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperSet {
    /// Stable identifier within the paper, for example "table-5".
    pub id: String,
    /// Where it stands in the paper, for example "Table 5".
    pub place: String,
    /// What it shows.
    pub title: String,
    /// Whether the batches are drawn from distributions of ours because those of the paper are not public.
    pub is_synthetic: bool,
    /// What the paper leaves open and is assumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// Published values and ours.
    pub figures: Vec<PaperFigure>,
    /// The plans behind our values, and where their time goes.
    pub plans: Vec<PaperPlan>,
    /// Curves of ours, where the paper draws curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<PaperChart>,
}

/// What papers say of a scenario that is one of their set-ups.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScenarioPapers {
    /// The gallery's name of the scenario; absent where it is none of a ready one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// Tables and figures whose values stand on it.
    pub cited: Vec<CitedSet>,
}

/// A table or figure with its paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CitedSet {
    /// Identifier of the paper, for example "pipeweaver".
    pub paper: String,
    /// Shown name of the paper.
    pub title: String,
    /// The table or figure.
    pub set: PaperSet,
}

/// One published value and ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperFigure {
    /// What it is a value of.
    pub label: String,
    /// Its unit: "s", "%", "PFLOP", "images"; empty for shares such as model FLOP utilisation.
    pub unit: String,
    /// What was published; absent where the paper only draws it, or does not compare these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<PublishedValue>,
    /// What this engine gives; absent where it has no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// Why there is no value of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// How far ours is from the published one, or from the closer end of a range; 0 within a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Whether it is a wall time, which is another one on every run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wall_time: bool,
}

/// A published value: one number, or the range that the paper gives for several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PublishedValue {
    /// The number, or the smallest of the range.
    pub from: f64,
    /// The largest of the range; the same number where there is one.
    pub to: f64,
}

/// How far ours is from the published value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Difference {
    /// Ours less the published one; in points for values in per cent, in per cent of the published one for others.
    pub value: f64,
    /// Which of the two.
    pub of: DifferenceOf,
}

/// What a difference is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DifferenceOf {
    /// Percentage points, for values that are per cent themselves.
    Points,
    /// Per cent of the published value.
    PerCent,
}

impl PublishedValue {
    /// How far a value with this unit is from it.
    pub fn difference(self, ours: f64, unit: &str) -> Difference {
        let (nearest, is_range) = (ours.clamp(self.from, self.to), self.from < self.to);
        let nearest = if is_range { nearest } else { self.from };
        if unit == "%" {
            Difference { value: ours - nearest, of: DifferenceOf::Points }
        } else {
            Difference { value: 100.0 * (ours / nearest - 1.0), of: DifferenceOf::PerCent }
        }
    }
}

/// A plan behind a figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperPlan {
    /// The gallery's name of the scenario.
    pub scenario: String,
    /// The planner.
    pub planner: PlannerKind,
    /// Its layout; absent where it has no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Why there is no plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// Mean time of an iteration, in s; 0 without a plan.
    pub iteration_s: f64,
    /// Model FLOP utilisation; 0 without a plan.
    pub mfu: f64,
    /// Where the time of the mean rank goes, in s; the parts add up to the iteration.
    pub time: RankTime,
    /// How much longer than its lower bound an iteration takes.
    pub gap: f64,
    /// Largest memory of any rank, in GiB.
    pub peak_memory_gib: f64,
    /// Memory that it may use, in GiB.
    pub memory_limit_gib: f64,
}

/// Curves over one axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PaperChart {
    /// What runs along the axis, with its unit.
    pub x: String,
    /// What the curves show, with its unit.
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
    /// Places along the axis.
    pub x: Vec<f64>,
    /// Values, one for each place.
    pub y: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_points_of_percentages_and_percentages_of_the_rest() {
        let one = |value| PublishedValue { from: value, to: value };
        let range = PublishedValue { from: 15.6, to: 76.2 };
        for (published, ours, unit, value, of) in [
            (one(17.3), 30.0, "%", 12.7, DifferenceOf::Points),
            // 20 s for 16: a quarter more.
            (one(16.0), 20.0, "s", 25.0, DifferenceOf::PerCent),
            (range, 40.0, "%", 0.0, DifferenceOf::Points),
            (range, 10.6, "%", -5.0, DifferenceOf::Points),
            (range, 80.2, "%", 4.0, DifferenceOf::Points),
        ] {
            let difference = published.difference(ours, unit);
            assert!((difference.value - value).abs() < 1e-9 && difference.of == of, "{difference:?}");
        }
    }
}
