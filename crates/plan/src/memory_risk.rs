//! Errors of predicted peak memories (docs/models.md, section 18), and the largest peak with a probability of running out
//! of memory.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Quantiles of the error of a peak memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryErrors {
    /// 10 % quantile.
    pub lower: f64,
    /// Median.
    pub median: f64,
    /// 90 % quantile.
    pub upper: f64,
}

/// ln 9: the distance between the median and the 90 % quantile of a logistic distribution, in
/// scales.
const LN_9: f64 = 2.197_224_577_336_219_6;

impl MemoryErrors {
    /// Returns the probability that the error exceeds `error`. Each side of the median is half of a
    /// logistic distribution with the quantile of that side.
    pub fn probability_above(&self, error: f64) -> f64 {
        let distance = error - self.median;
        1.0 / (1.0 + libm::exp(distance * LN_9 / self.quantile(distance)))
    }

    /// Returns the error that is exceeded with a probability: the inverse of [`Self::probability_above`].
    pub fn error_at(&self, probability: f64) -> f64 {
        let scales = libm::log((1.0 - probability) / probability);
        self.median + scales * self.quantile(scales) / LN_9
    }

    /// Returns the distance between the median and the quantile on the side of `distance`.
    fn quantile(&self, distance: f64) -> f64 {
        if distance < 0.0 { self.median - self.lower } else { self.upper - self.median }
    }
}

/// Returns the largest predicted peak in GiB whose probability of exceeding `available` GiB is at most `risk`, above 0
/// and below 1. It is rounded down by 10^-9, so that its probability is not above `risk`.
pub fn largest_peak(available: f64, risk: f64) -> f64 {
    #[derive(Deserialize)]
    struct Committed {
        peak_memory: MemoryErrors,
    }
    static COMMITTED: LazyLock<Committed> = LazyLock::new(|| {
        serde_json::from_str(include_str!("certainty/errors.json"))
            .expect("errors.json is part of the source and tested")
    });
    available * libm::exp(-COMMITTED.peak_memory.error_at(risk)) * (1.0 - 1e-9)
}
