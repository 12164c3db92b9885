//! T(l) = a l² + b l + c, fitted to timings of sequences with different lengths
//! (Hydraulis App. C.2).

use crate::least_squares::eliminate;

/// Measured time of a microbatch with equal sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LengthTiming {
    /// Tokens per sequence, l.
    pub tokens: f64,
    /// Packed sequences in the microbatch.
    pub sequences: f64,
    /// Positive time in any unit.
    pub time: f64,
}

/// Coefficients of T(l) in the unit of the timings, and their relative errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LengthFit {
    /// Coefficient per squared token.
    pub a: f64,
    /// Coefficient per token.
    pub b: f64,
    /// Constant per microbatch.
    pub c: f64,
    /// Mean relative error of the timings.
    pub mean: f64,
    /// Maximum relative error.
    pub max_error: f64,
}

impl LengthFit {
    /// Returns the time of a microbatch with `tokens` total tokens and `squared`, the sum of
    /// squared sequence lengths.
    pub fn time(&self, tokens: f64, squared: f64) -> f64 {
        self.a * squared + self.b * tokens + self.c
    }

    /// Fits a, b and c by non-negative least squares on relative errors.
    ///
    /// Solves all seven sets of positive coefficients and selects the best valid solution. Returns
    /// `None` if the timings do not determine any coefficient.
    pub fn from_timings(timings: &[LengthTiming]) -> Option<Self> {
        let max_length = timings.iter().map(|timing| timing.tokens).fold(1.0, f64::max);
        // Scaled by the maximum length, for well-conditioned equations.
        let rows: Vec<([f64; 3], f64)> = timings
            .iter()
            .map(|timing| {
                let length = timing.tokens / max_length;
                ([timing.sequences * length * length, timing.sequences * length, 1.0], timing.time)
            })
            .collect();
        let mut best: Option<([f64; 3], Errors)> = None;
        for set in 1_u32..8 {
            let used: Vec<usize> = (0..3).filter(|&index| set & (1 << index) != 0).collect();
            let Some(found) = solve(&rows, &used).filter(|found| found.iter().all(|&coefficient| coefficient >= 0.0))
            else {
                continue;
            };
            let errors = Errors::new(&rows, &found);
            if best.as_ref().is_none_or(|(_, known)| errors.squares < known.squares) {
                best = Some((found, errors));
            }
        }
        let ([a, b, c], Errors { mean, max_error, .. }) = best?;
        Some(Self { a: a / (max_length * max_length), b: b / max_length, c, mean, max_error })
    }
}

/// Pivot below which a system is singular.
const SINGULAR: f64 = 1e-300;

/// Relative errors of a solution.
struct Errors {
    squares: f64,
    mean: f64,
    max_error: f64,
}

impl Errors {
    fn new(rows: &[([f64; 3], f64)], coefficients: &[f64; 3]) -> Self {
        let mut errors = Self { squares: 0.0, mean: 0.0, max_error: 0.0 };
        for (basis, time) in rows {
            let predicted: f64 = basis.iter().zip(coefficients).map(|(base, coefficient)| base * coefficient).sum();
            let error = (predicted / time - 1.0).abs();
            errors.squares += error * error;
            errors.mean += error / rows.len() as f64;
            errors.max_error = errors.max_error.max(error);
        }
        errors
    }
}

/// Solves the normal equations for the coefficients in `used`. `None` for a singular system.
fn solve(measured: &[([f64; 3], f64)], used: &[usize]) -> Option<[f64; 3]> {
    let count = used.len();
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (basis, time) in measured {
        for (row, &i) in rows.iter_mut().zip(used) {
            for (column, &j) in used.iter().enumerate() {
                row[column] += basis[i] * basis[j] / (time * time);
            }
            row[count] += basis[i] / time;
        }
    }
    let solved = eliminate(rows, SINGULAR)?;
    let mut found = [0.0; 3];
    for (&index, value) in used.iter().zip(solved) {
        found[index] = value;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timings(a: f64, b: f64, c: f64) -> Vec<LengthTiming> {
        let timing = |(tokens, sequences): (f64, f64)| LengthTiming {
            tokens,
            sequences,
            time: sequences * (a * tokens * tokens + b * tokens) + c,
        };
        [(256.0, 1.0), (1024.0, 1.0), (1024.0, 8.0), (8192.0, 1.0), (8192.0, 3.0), (32_768.0, 1.0)].map(timing).to_vec()
    }

    /// Recovers 2e-8 l² + 3e-4 l per sequence plus 0.5. For 1e-8 l² + 1e-4 l - 0.001, the best
    /// non-negative fit has c = 0.
    #[test]
    fn a_quadratic_is_found_again_and_nothing_is_negative() {
        let LengthFit { a, b, c, mean, max_error } = LengthFit::from_timings(&timings(2e-8, 3e-4, 0.5)).unwrap();
        assert!((a / 2e-8 - 1.0).abs() < 1e-6 && (b / 3e-4 - 1.0).abs() < 1e-6 && (c / 0.5 - 1.0).abs() < 1e-6);
        assert!(mean <= max_error && max_error < 1e-6);
        let fit = LengthFit::from_timings(&timings(1e-8, 1e-4, -0.001)).unwrap();
        assert!(fit.a > 0.0 && fit.b > 0.0 && fit.c.abs() < 1e-300 && fit.max_error > 1e-3);
        assert!((fit.time(2000.0, 2e6) - (fit.a * 2e6 + fit.b * 2000.0)).abs() < 1e-12);
        assert_eq!(LengthFit::from_timings(&[]), None);
    }
}
