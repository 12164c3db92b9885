//! Coefficients from a profile: non-negative least squares of relative errors.

use super::cost::{Exchange, GroupCost, Load};

/// One timing of a group, forward and backward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// What ran.
    pub load: Load,
    /// On how many ranks.
    pub degree: u32,
    /// For how many seconds.
    pub seconds: f64,
}

/// Fitted coefficients and how well they do.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The network's figures as given, the coefficients fitted.
    pub cost: GroupCost,
    /// Of every timing: predicted / measured - 1.
    pub residuals: Vec<f64>,
    /// Mean of their absolute values: the estimation error of DHP's Table 3.
    pub mean: f64,
    /// Nine of ten lie within this.
    pub p90: f64,
    /// Whether any group of more than one rank was measured; otherwise a3 and b2 are zero and mean nothing.
    pub communication: bool,
}

/// Why there is nothing to fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Five coefficients need more timings.
    #[error("{given} timings do not determine five coefficients; at least {needed} are needed")]
    TooFew {
        /// Timings given.
        given: usize,
        /// Timings needed.
        needed: usize,
    },
    /// A timing is not one.
    #[error("timing {place}: tokens, degree and seconds must be positive")]
    NotATiming {
        /// Its place among those given.
        place: usize,
    },
}

/// Timings below this number determine nothing.
pub const TIMINGS_NEEDED: usize = 6;
/// a1, a2, b1, a3, b2.
const COEFFICIENTS: usize = 5;

type Row = [f64; COEFFICIENTS];

/// Fits a1, a2, a3, b1 and b2 of `network` to `samples`, its bandwidths, node size and exchange taken as given.
///
/// Every coefficient is at least zero and the sum of squared relative errors is smallest. What overlaps in a ring makes the time
/// the larger of attention and transfer, which is linear once it is known which timings have the longer attention:
/// those where Q v / (S d) is above a3 / a1. So one fit is made for every place at which that order can be cut, and the
/// best under the formula itself is kept. With five coefficients all sets of them that may be positive are tried, which is exact.
pub fn fit(samples: &[Measured], network: &GroupCost) -> Result<Fit, FitError> {
    if let Some(place) = samples.iter().position(|sample| {
        sample.load.tokens == 0 || sample.degree == 0 || !(sample.seconds > 0.0 && sample.seconds.is_finite())
    }) {
        return Err(FitError::NotATiming { place });
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

/// What each coefficient is multiplied with, over the time measured.
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

/// The x >= 0 that minimises the sum over rows of (row · x - 1)².
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
        // The sum of squares is the number of rows less this.
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

/// Solves the normal equations of some columns by Gauss's elimination; none where they depend on each other.
fn solve(normal: &[Row; COEFFICIENTS], right: &Row, members: &[usize]) -> Option<Vec<f64>> {
    let size = members.len();
    let mut rows: Vec<Vec<f64>> =
        members.iter().map(|&at| members.iter().map(|&other| normal[at][other]).chain([right[at]]).collect()).collect();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        // Columns have length one: below this they are one direction up to rounding.
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
