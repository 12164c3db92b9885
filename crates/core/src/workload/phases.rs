//! Distribution bounds that vary by iteration.

use serde::{Deserialize, Serialize};

use super::Distribution;

/// Bounds at an iteration. Linear interpolation applies between points; outside, the bounds are
/// constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PhasePoint {
    /// Iteration within the period, from 0.
    pub iteration: u32,
    /// Minimum.
    pub min: u32,
    /// Maximum.
    pub max: u32,
}

/// Returns the uniform distribution between the bounds at an iteration, rounded to integers.
pub fn distribution_at(points: &[PhasePoint], iteration: u32) -> Distribution {
    let after = points.partition_point(|point| point.iteration <= iteration);
    let before = points[after.saturating_sub(1)];
    let next = points.get(after).copied().unwrap_or(before);
    let span = f64::from(next.iteration) - f64::from(before.iteration);
    let share = if span > 0.0 { (f64::from(iteration) - f64::from(before.iteration)) / span } else { 0.0 };
    let between = |from: u32, to: u32| (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u32;
    Distribution::Uniform { min: between(before.min, next.min), max: between(before.max, next.max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_move_linearly_between_points_and_stay_outside() {
        let point = |iteration, min, max| PhasePoint { iteration, min, max };
        let points = [point(2, 0, 32), point(6, 16, 32), point(16, 0, 0)];
        // From iteration 2 to 6 the lower bound rises by 4 per iteration. From 6 to 16 the bounds
        // fall by 1.6 and 3.2.
        for (iteration, min, max) in [
            (0, 0, 32),
            (2, 0, 32),
            (3, 4, 32),
            (6, 16, 32),
            (7, 14, 29),
            (11, 8, 16),
            (15, 2, 3),
            (16, 0, 0),
            (19, 0, 0),
        ] {
            assert_eq!(distribution_at(&points, iteration), Distribution::Uniform { min, max }, "{iteration}");
        }
        assert_eq!(distribution_at(&points[..1], 9), Distribution::Uniform { min: 0, max: 32 });
    }
}
