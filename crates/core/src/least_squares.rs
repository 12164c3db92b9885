//! Linear least squares with non-negative coefficients.

/// Minimum pivot of normal equations whose columns have length 1. A smaller pivot means linear
/// dependence up to rounding.
const MIN_PIVOT: f64 = 1e-11;

/// Returns the x >= 0 that minimizes the sum of (row · x - right)² over all `(row, right)`.
///
/// Solves the normal equations for all subsets of columns, so the result is exact and N must be
/// small. Coefficients of columns that are 0 in all rows are 0.
pub fn non_negative<const N: usize>(rows: &[([f64; N], f64)]) -> [f64; N] {
    let scale: [f64; N] = std::array::from_fn(|at| rows.iter().map(|(row, _)| row[at] * row[at]).sum::<f64>().sqrt());
    let mut normal = [[0.0; N]; N];
    let mut rights = [0.0; N];
    for (row, right) in rows {
        let scaled: [f64; N] = std::array::from_fn(|at| if scale[at] > 0.0 { row[at] / scale[at] } else { 0.0 });
        for at in 0..N {
            rights[at] += scaled[at] * right;
            for other in 0..N {
                normal[at][other] += scaled[at] * scaled[other];
            }
        }
    }
    let mut best = (0.0, [0.0; N]);
    for set in 1_u32..1 << N {
        let members: Vec<usize> = (0..N).filter(|at| set >> at & 1 == 1).collect();
        let equation =
            |&at: &usize| members.iter().map(|&other| normal[at][other]).chain([rights[at]]).collect::<Vec<f64>>();
        let Some(solved) = eliminate(members.iter().map(equation).collect(), MIN_PIVOT) else { continue };
        // The sum of squares is the sum of all right² minus this gain.
        let gain: f64 = members.iter().zip(&solved).map(|(&at, value)| value * rights[at]).sum();
        if solved.iter().all(|&value| value >= 0.0) && gain > best.0 {
            let mut values = [0.0; N];
            for (&at, value) in members.iter().zip(&solved) {
                values[at] = value / scale[at];
            }
            best = (gain, values);
        }
    }
    best.1
}

/// Solves linear equations by Gaussian elimination with pivoting. The last entry of an equation is
/// its right side. `None` if a pivot is below `min_pivot`.
pub(crate) fn eliminate(mut equations: Vec<Vec<f64>>, min_pivot: f64) -> Option<Vec<f64>> {
    let size = equations.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|&a, &b| equations[a][column].abs().total_cmp(&equations[b][column].abs()))?;
        equations.swap(column, pivot);
        if equations[column][column].abs() < min_pivot {
            return None;
        }
        let (upper, lower) = equations.split_at_mut(column + 1);
        let lead = &upper[column];
        for equation in lower {
            let factor = equation[column] / lead[column];
            for (value, lead) in equation.iter_mut().zip(lead) {
                *value -= factor * lead;
            }
        }
    }
    let mut values = vec![0.0; size];
    for column in (0..size).rev() {
        let known: f64 = (column + 1..size).map(|at| equations[column][at] * values[at]).sum();
        values[column] = (equations[column][size] - known) / equations[column][column];
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close<const N: usize>(found: [f64; N], expected: [f64; N]) {
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9), "{found:?}");
    }

    /// y = 2 + 3 x at x = 0, 1, 2. For y = 4 - x, the line through the origin and the constant
    /// compete: 3 is the mean, and a slope of (3 + 2 * 2) / 5 leaves more.
    #[test]
    fn coefficients_are_found_and_never_negative() {
        let rows = |y: fn(f64) -> f64| [0.0, 1.0, 2.0].map(|x| ([1.0, x], y(x)));
        assert_close(non_negative(&rows(|x| 2.0 + 3.0 * x)), [2.0, 3.0]);
        assert_close(non_negative(&rows(|x| 4.0 - x)), [3.0, 0.0]);
    }

    #[test]
    fn dependent_and_empty_columns_have_no_coefficient() {
        let rows = [([1.0, 2.0, 0.0], 4.0), ([2.0, 4.0, 0.0], 8.0)];
        let [first, second, empty] = non_negative(&rows);
        assert!((first + 2.0 * second - 4.0).abs() < 1e-9 && (first == 0.0 || second == 0.0) && empty == 0.0);
        assert_close(non_negative::<2>(&[]), [0.0, 0.0]);
    }
}
