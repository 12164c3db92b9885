//! Fits cost coefficients to a profile by non-negative least squares on relative errors (the
//! profiler in DHP Sec. 5).

use super::cost::{Exchange, GroupCost, Load};
use planscope_core::least_squares::non_negative;

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
        let row = |sample: &Measured| (row(sample, network, ratio(sample) >= cut), 1.0);
        let rows: Vec<([f64; COEFFICIENTS], f64)> = samples.iter().map(row).collect();
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
fn row(sample: &Measured, network: &GroupCost, attention_is_longer: bool) -> [f64; COEFFICIENTS] {
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
