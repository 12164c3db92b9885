//! Error statistics over the rows of a set.

use serde::{Deserialize, Serialize};

/// Prediction errors in percent of the measured values.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Row count.
    pub count: usize,
    /// Mean absolute error.
    pub mean_abs_pct: f64,
    /// Median absolute error.
    pub median_abs_pct: f64,
    /// 90th percentile of the absolute errors.
    pub p90_abs_pct: f64,
    /// Maximum absolute error.
    pub max_abs_pct: f64,
    /// Mean signed error. Positive if predictions are too slow or too large.
    pub bias_pct: f64,
    /// Rank correlation of predicted and measured values. `None` if either is constant.
    pub spearman: Option<f64>,
}

impl Statistics {
    /// Computes the statistics from (measured, predicted) pairs.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Self {
        if pairs.is_empty() {
            return Self::default();
        }
        let signed: Vec<f64> = pairs.iter().map(|(measured, predicted)| (predicted / measured - 1.0) * 100.0).collect();
        let mut absolute: Vec<f64> = signed.iter().map(|error| error.abs()).collect();
        absolute.sort_by(f64::total_cmp);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let (measured, predicted): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Self {
            count: pairs.len(),
            mean_abs_pct: mean(&absolute),
            median_abs_pct: quantile(&absolute, 0.5),
            p90_abs_pct: quantile(&absolute, 0.9),
            max_abs_pct: quantile(&absolute, 1.0),
            bias_pct: mean(&signed),
            spearman: spearman(&measured, &predicted),
        }
    }
}

/// Returns the quantile `q` of sorted values, with linear interpolation.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

/// Spearman's rank correlation. Equal values share their mean rank.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let mean = f64::midpoint(a.len() as f64, 1.0);
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    let spread = (product(&a, &a) * product(&b, &b)).sqrt();
    (spread > 0.0).then(|| product(&a, &b) / spread)
}

/// Returns ranks starting at 1. Equal values share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for group in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        let shared = first as f64 + f64::midpoint(group.len() as f64, 1.0);
        for &index in group {
            ranks[index] = shared;
        }
        first += group.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }

    #[test]
    fn spearman_on_small_samples() {
        let value = |a: &[f64], b: &[f64]| spearman(a, b).unwrap();
        assert!((value(&[1.0, 2.0, 3.0], &[10.0, 20.0, 25.0]) - 1.0).abs() < 1e-12);
        assert!((value(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        // Ranks 1 2.5 2.5 4 and 1 2 3 4: 4.5 / sqrt(4.5 x 5).
        assert!((value(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]) - 4.5 / 22.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[], &[]), None);
    }

    /// Errors of +10, -20, 0 and +30 percent. Absolute errors: 0, 10, 20, 30.
    #[test]
    fn errors_are_summed_up() {
        let statistics = Statistics::from_pairs(&[(10.0, 11.0), (10.0, 8.0), (10.0, 10.0), (10.0, 13.0)]);
        let values = [
            (statistics.mean_abs_pct, 15.0),
            (statistics.median_abs_pct, 15.0),
            (statistics.p90_abs_pct, 27.0),
            (statistics.max_abs_pct, 30.0),
            (statistics.bias_pct, 5.0),
        ];
        assert!(values.iter().all(|(is, should)| (is - should).abs() < 1e-9), "{statistics:?}");
        assert_eq!(Statistics::from_pairs(&[]).count, 0);
    }
}
