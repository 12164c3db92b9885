//! Predicted value with the expected range for measurements.

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
    /// Creates a band from the range of the predicted iterations, widened by the simulator error. A
    /// prediction p with relative error `error` (e), |p - m| <= e m, implies a measurement m
    /// between p / (1 + e) and p / (1 - e).
    ///
    /// Without iterations, the range is the single value. An error of at least 1 leaves the band
    /// unbounded above.
    pub fn new(value: f64, iterations: &[f64], error: f64) -> Self {
        let finite = || iterations.iter().copied().filter(|each| each.is_finite());
        let (min_value, max_value) = (finite().fold(value, f64::min), finite().fold(value, f64::max));
        let error = error.max(0.0);
        Self {
            value,
            low: min_value / (1.0 + error),
            high: if error < 1.0 { max_value / (1.0 - error) } else { f64::MAX },
        }
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
