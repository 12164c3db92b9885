//! Predicted value with the expected range for measurements.

/// Fewest steps that narrow a band.
const MIN_STEPS: usize = 5;
/// Least relative standard deviation of steps.
const MIN_NOISE: f64 = 0.005;
/// 90 % quantile of the standard normal distribution.
const QUANTILE_90: f64 = 1.281_552;

/// A predicted value with its band.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Predicted value.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

impl Band {
    /// Creates a band from the range of the predicted iterations, widened by the interval of the prediction: `lower` and
    /// `upper` are its ends as multiples of the prediction. Without iterations, the range is the single value.
    pub fn new(value: f64, iterations: &[f64], (lower, upper): (f64, f64)) -> Self {
        let finite = || iterations.iter().copied().filter(|each| each.is_finite());
        let (min_value, max_value) = (finite().fold(value, f64::min), finite().fold(value, f64::max));
        Self { value, low: min_value * lower, high: max_value * upper }
    }

    /// Narrows the band by measured steps without outliers: the 80 % interval of the next step (docs/models.md, section 15,
    /// "Band"). Its value is the expected time. Returns `None` for fewer than five steps.
    pub fn narrowed(&self, steps: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = steps.iter().filter(|step| **step > 0.0).map(|step| libm::log(*step)).collect();
        if logs.len() < MIN_STEPS || !(self.low > 0.0 && self.high > self.low) {
            return None;
        }
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / count;
        let noise = variance.max(MIN_NOISE * MIN_NOISE);
        let spread = libm::log(self.high / self.low) / (2.0 * QUANTILE_90);
        let center = libm::log(self.low * self.high) / 2.0;
        let (prior, seen) = (1.0 / (spread * spread), count / noise);
        let level = (center * prior + mean * seen) / (prior + seen);
        let half = QUANTILE_90 * (noise + 1.0 / (prior + seen)).sqrt();
        Some(Self { value: libm::exp(level), low: libm::exp(level - half), high: libm::exp(level + half) })
    }

    /// Returns true if the measurement is in the band.
    pub fn holds(&self, measured: f64) -> bool {
        measured >= self.low && measured <= self.high
    }
}

/// Returns the fraction of measurements in a band; `None` for an empty slice.
pub fn inside(band: &Band, measured: &[f64]) -> Option<f64> {
    let inside = measured.iter().filter(|value| band.holds(**value)).count();
    (!measured.is_empty()).then(|| inside as f64 / measured.len() as f64)
}
