//! A predicted value and the band that measurements are expected in.

/// A predicted value and its band.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Predicted value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Band {
    /// The spread of what the iterations are predicted to be, widened by the error of the simulator: predictions p that lie
    /// within the share `error` of what is measured, |p - m| <= e m, mean m between p / (1 + e) and p / (1 - e).
    ///
    /// Without iterations the spread is the value alone. An error of a whole or more leaves the band open above.
    pub fn of(value: f64, iterations: &[f64], error: f64) -> Self {
        let finite = || iterations.iter().copied().filter(|each| each.is_finite());
        let (least, most) = (finite().fold(value, f64::min), finite().fold(value, f64::max));
        let error = error.max(0.0);
        Self { value, low: least / (1.0 + error), high: if error < 1.0 { most / (1.0 - error) } else { f64::MAX } }
    }

    /// Whether a measurement lies inside.
    pub fn holds(&self, measured: f64) -> bool {
        measured >= self.low && measured <= self.high
    }
}

/// Share of measurements inside a band; `None` of nothing.
pub fn inside(band: &Band, measured: &[f64]) -> Option<f64> {
    let inside = measured.iter().filter(|value| band.holds(**value)).count();
    (!measured.is_empty()).then(|| inside as f64 / measured.len() as f64)
}
