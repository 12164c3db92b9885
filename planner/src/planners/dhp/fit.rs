//! Fits cost coefficients to a profile by non-negative least squares on relative errors (the
//! profiler in DHP Sec. 5).

use super::cost::{Exchange, GroupCost, Load};

/// Measured forward and backward time of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Load of the group.
    pub load: Load,
    /// Number of ranks.
    pub degree: u32,
    /// Measured time in seconds.
    pub seconds: f64,
}

/// Fitted coefficients and errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Fitted coefficients; the network parameters are copied from the input.
    pub cost: GroupCost,
    /// Relative error per sample: predicted / measured - 1.
    pub residuals: Vec<f64>,
    /// Mean absolute relative error: the estimation error in DHP Table 3.
    pub mean: f64,
    /// 90th percentile of the absolute relative errors.
    pub p90: f64,
    /// True if the samples include a group with several ranks. Otherwise a3 and b2 are zero and
    /// have no meaning.
    pub communication: bool,
}

/// Error for invalid samples.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// There are not enough samples for five coefficients.
    #[error("{given} timings do not determine five coefficients; at least {needed} are needed")]
    TooFew {
        /// Samples given.
        given: usize,
        /// Samples needed.
        needed: usize,
    },
    /// A sample has an invalid load, degree or time.
    #[error("timing {index}: tokens, degree and seconds must be positive")]
    NotATiming {
        /// Index of the sample.
        index: usize,
    },
}

/// Minimum number of samples.
pub const TIMINGS_NEEDED: usize = 6;
/// Coefficients a1, a2, b1, a3, b2.
const COEFFICIENTS: usize = 5;

type Row = [f64; COEFFICIENTS];

/// Fits a1, a2, a3, b1 and b2 to `samples`. Bandwidths, node size and exchange method come from
/// `network`.
///
/// The fit minimizes the sum of squared relative errors, subject to non-negative coefficients. In a
/// ring, the overlap reduces the time to the maximum of attention and transfer. This is linear if
/// the samples with longer attention are known: those with Q v / (S d) above a3 / a1. Therefore the
/// function runs a fit per possible threshold and returns the result with the minimum error under
/// the exact formula. It enumerates all subsets of positive coefficients, so the result is exact.
pub fn fit(samples: &[Measured], network: &GroupCost) -> Result<Fit, FitError> {
    if let Some(index) = samples.iter().position(|sample| {
        sample.load.tokens == 0 || sample.degree == 0 || !(sample.seconds > 0.0 && sample.seconds.is_finite())
    }) {
        return Err(FitError::NotATiming { index });
    }
    if samples.len() < TIMINGS_NEEDED {
        return Err(FitError::TooFew { given: samples.len(), needed: TIMINGS_NEEDED });
    }
    let ratio = |sample: &Measured| {
        sample.load.squares * network.bandwidth(sample.degree) / (sample.load.tokens as f64 * f64::from(sample.degree))
    };
    let mut cuts = vec![f64::INFINITY];
    if network.exchange == Exchange::Ring {
        cuts.extend(samples.iter().filter(|sample| sample.degree > 1).map(ratio));
        cuts.sort_by(f64::total_cmp);
        cuts.dedup();
    }
    let mut best: Option<(f64, GroupCost)> = None;
    for cut in cuts {
        let rows: Vec<Row> = samples.iter().map(|sample| row(sample, network, ratio(sample) >= cut)).collect();
        let [a1, a2, b1, a3, b2] = non_negative(&rows);
        let cost = GroupCost { a1, a2, a3, b1, b2, ..*network };
        let error: f64 = samples.iter().map(|sample| residual(&cost, sample)).map(|residual| residual * residual).sum();
        if best.as_ref().is_none_or(|best| error < best.0) {
            best = Some((error, cost));
        }
    }
    let cost = best.map_or(*network, |(_, cost)| cost);
    let residuals: Vec<f64> = samples.iter().map(|sample| residual(&cost, sample)).collect();
    let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    Ok(Fit {
        cost,
        mean: sizes.iter().sum::<f64>() / sizes.len() as f64,
        p90: sizes[(sizes.len() * 9).div_ceil(10) - 1],
        communication: samples.iter().any(|sample| sample.degree > 1),
        residuals,
    })
}

fn residual(cost: &GroupCost, sample: &Measured) -> f64 {
    cost.seconds(sample.load, sample.degree) / sample.seconds - 1.0
}

/// Returns the coefficient multipliers, divided by the measured time.
fn row(sample: &Measured, network: &GroupCost, attention_is_longer: bool) -> Row {
    let (d, tokens) = (f64::from(sample.degree), sample.load.tokens as f64);
    let rate = network.bandwidth(sample.degree);
    let (attention, transfer, group) = match (sample.degree, network.exchange) {
        (1, _) => (sample.load.squares, 0.0, 0.0),
        (_, Exchange::AllToAll) => (sample.load.squares / d, tokens * (d - 1.0) / (d * d * rate), 1.0),
        (_, Exchange::Ring) if attention_is_longer => (sample.load.squares / d, 0.0, 1.0),
        (_, Exchange::Ring) => (0.0, tokens / rate, 1.0),
    };
    [attention, tokens / d, 1.0, transfer, group].map(|value| value / sample.seconds)
}

/// Returns the x >= 0 that minimizes the sum of (row · x - 1)² for all rows.
fn non_negative(rows: &[Row]) -> Row {
    let scale: Row = std::array::from_fn(|at| rows.iter().map(|row| row[at] * row[at]).sum::<f64>().sqrt());
    let mut normal = [[0.0; COEFFICIENTS]; COEFFICIENTS];
    let mut right = [0.0; COEFFICIENTS];
    for row in rows {
        let scaled: Row = std::array::from_fn(|at| if scale[at] > 0.0 { row[at] / scale[at] } else { 0.0 });
        for at in 0..COEFFICIENTS {
            right[at] += scaled[at];
            for other in 0..COEFFICIENTS {
                normal[at][other] += scaled[at] * scaled[other];
            }
        }
    }
    let mut best = (0.0, [0.0; COEFFICIENTS]);
    for set in 1_u32..1 << COEFFICIENTS {
        let members: Vec<usize> = (0..COEFFICIENTS).filter(|at| set >> at & 1 == 1).collect();
        let Some(solved) = solve(&normal, &right, &members) else { continue };
        // The sum of squares is the number of rows minus this gain.
        let gain: f64 = members.iter().zip(&solved).map(|(&at, value)| value * right[at]).sum();
        if solved.iter().all(|&value| value >= 0.0) && gain > best.0 {
            let mut values = [0.0; COEFFICIENTS];
            for (&at, value) in members.iter().zip(&solved) {
                values[at] = value / scale[at];
            }
            best = (gain, values);
        }
    }
    best.1
}

/// Solves the normal equations for a subset of columns by Gaussian elimination. Returns `None` if
/// the columns are linearly dependent.
fn solve(normal: &[Row; COEFFICIENTS], right: &Row, members: &[usize]) -> Option<Vec<f64>> {
    let size = members.len();
    let mut rows: Vec<Vec<f64>> =
        members.iter().map(|&at| members.iter().map(|&other| normal[at][other]).chain([right[at]]).collect()).collect();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        // Columns are normalized, so a smaller pivot means linear dependence up to rounding.
        if rows[column][column].abs() < 1e-11 {
            return None;
        }
        let (upper, lower) = rows.split_at_mut(column + 1);
        let lead = &upper[column];
        for row in lower {
            let factor = row[column] / lead[column];
            for (value, lead) in row.iter_mut().zip(lead) {
                *value -= factor * lead;
            }
        }
    }
    let mut values = vec![0.0; size];
    for column in (0..size).rev() {
        let known: f64 = (column + 1..size).map(|at| rows[column][at] * values[at]).sum();
        values[column] = (rows[column][size] - known) / rows[column][column];
    }
    Some(values)
}
