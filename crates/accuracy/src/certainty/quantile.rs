//! Quantile regression with slopes that are not negative.

/// Level of the lower bound.
pub(super) const LOWER: f64 = 0.1;
/// Level of the upper bound.
pub(super) const UPPER: f64 = 0.9;

/// Penalty of squared slopes.
const RIDGE: f64 = 0.003;

/// Rounds of reweighting.
const ROUNDS: usize = 100;

/// Returns the pinball loss of a residual at a level.
pub(super) fn pinball(residual: f64, level: f64) -> f64 {
    (level * residual).max((level - 1.0) * residual)
}

/// A row of the regression.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// Properties, without the constant.
    pub(super) values: Vec<f64>,
    pub(super) error: f64,
    pub(super) weight: f64,
}

/// Returns the constant and the slopes that minimise the weighted pinball loss plus a ridge
/// penalty. Columns with negative slopes are removed one by one and have slope 0.
pub(super) fn regress(points: &[Point], level: f64) -> Vec<f64> {
    let columns = points.first().map_or(0, |point| point.values.len());
    let mut active: Vec<usize> = (0..columns).collect();
    loop {
        let fitted = unconstrained(points, &active, level);
        let lowest = fitted[1..].iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        match lowest {
            Some((position, slope)) if *slope < 0.0 => {
                active.remove(position);
            }
            _ => {
                let mut result = vec![0.0; columns + 1];
                result[0] = fitted[0];
                for (column, slope) in active.iter().zip(&fitted[1..]) {
                    result[column + 1] = *slope;
                }
                return result;
            }
        }
    }
}

/// Majorises the pinball loss by squares: |e| <= e² / 2c + c / 2 with c the previous |e| (Hunter and
/// Lange, 2000).
fn unconstrained(points: &[Point], active: &[usize], level: f64) -> Vec<f64> {
    let size = active.len() + 1;
    let total: f64 = points.iter().map(|point| point.weight).sum();
    let row = |point: &Point| -> Vec<f64> {
        std::iter::once(1.0).chain(active.iter().map(|column| point.values[*column])).collect()
    };
    let rows: Vec<(Vec<f64>, f64, f64)> =
        points.iter().map(|point| (row(point), point.error, point.weight / total)).collect();
    let mut fitted = vec![0.0; size];
    for _ in 0..ROUNDS {
        let mut system = vec![vec![0.0; size + 1]; size];
        for (values, error, weight) in &rows {
            let residual = error - dot(values, &fitted);
            let scaled = weight / (1e-3 + residual.abs());
            for (at, value) in values.iter().enumerate() {
                for (other, second) in values.iter().enumerate() {
                    system[at][other] += scaled * value * second;
                }
                system[at][size] += value * (scaled * error + (2.0 * level - 1.0) * weight);
            }
        }
        for (at, equation) in system.iter_mut().enumerate() {
            equation[at] += if at == 0 { 1e-9 } else { 2.0 * RIDGE };
        }
        fitted = solve(system);
    }
    fitted
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Solves a positive definite system by elimination. The last column is the right side.
fn solve(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    let size = system.len();
    for pivot in 0..size {
        let equation = system[pivot].clone();
        for (at, row) in system.iter_mut().enumerate() {
            if at != pivot {
                let factor = row[pivot] / equation[pivot];
                for (cell, value) in row.iter_mut().zip(&equation) {
                    *cell -= factor * value;
                }
            }
        }
    }
    (0..size).map(|at| system[at][size] / system[at][at]).collect()
}

/// Returns the quantile of weighted values: the smallest value with at least `level` of the weight
/// up to it.
pub(super) fn weighted(values: &[(f64, f64)], level: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    let mut sum = 0.0;
    let reached = sorted.iter().find(|(_, weight)| {
        sum += weight;
        sum >= level * total - 1e-12
    });
    reached.map_or(0.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_weighted_values() {
        let values: Vec<(f64, f64)> = (1..=10).map(|value| (f64::from(value), 1.0)).collect();
        assert!((weighted(&values, 0.1) - 1.0).abs() < 1e-12);
        assert!((weighted(&values, 0.5) - 5.0).abs() < 1e-12);
        assert!((weighted(&[(1.0, 1.0), (2.0, 8.0), (3.0, 1.0)], 0.9) - 2.0).abs() < 1e-12);
    }

    /// Errors spread over 0 to 1 without the property, and over 0 to 2 with it.
    #[test]
    fn the_slope_of_a_wider_group_is_found() {
        let point = |index: u32, scale: f64, value: f64| Point {
            values: vec![value],
            error: scale * f64::from(index) / 100.0,
            weight: 1.0,
        };
        let points: Vec<Point> = (0..=100).flat_map(|index| [point(index, 1.0, 0.0), point(index, 2.0, 1.0)]).collect();
        let fitted = regress(&points, UPPER);
        assert!((fitted[0] - 0.9).abs() < 0.05 && (fitted[1] - 0.9).abs() < 0.1, "{fitted:?}");
        let negative: Vec<Point> =
            points.into_iter().map(|point| Point { values: vec![1.0 - point.values[0]], ..point }).collect();
        assert!(regress(&negative, UPPER)[1].abs() < 1e-12, "a property may not make steps faster");
    }
}
