//! Calibration report per part and coefficient.

/// Calibration result for a part.
#[derive(Debug, Clone, PartialEq)]
pub struct PartReport {
    /// Part name, for example "matrix products".
    pub part: &'static str,
    /// Number of timings.
    pub samples: usize,
    /// True if any coefficient was fitted or confirmed.
    pub fitted: bool,
    /// Mean relative residual before the fit.
    pub mean_before: f64,
    /// Ninth decile of relative residuals before the fit.
    pub p90_before: f64,
    /// Mean relative residual after the fit, at most `mean_before`. Equal to `mean_before` if
    /// nothing was fitted.
    pub mean_residual: f64,
    /// Ninth decile of relative residuals after the fit.
    pub p90_residual: f64,
    /// Explanation for unchanged coefficients, or empty.
    pub note: String,
    /// Fitted coefficients, then unchanged ones. Empty without timings.
    pub coefficients: Vec<CoefficientReport>,
}

/// Calibration result for a coefficient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoefficientReport {
    /// JSON path in a cluster, for example "device.curves.attention.backward".
    pub name: &'static str,
    /// Number of different shapes that determine the coefficient.
    pub shapes: usize,
    /// Minimum number of shapes for a fit.
    pub fewest: usize,
    /// Result of the fit.
    pub outcome: Outcome,
    /// Value after the fit.
    pub value: f64,
}

/// Result of a fit for a coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Fitted. Contains the bound if the search stopped there.
    Fitted(Option<Bound>),
    /// Unchanged from the given cluster.
    Unchanged(Unchanged),
}

/// A bound for a coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Minimum value.
    Lower,
    /// Maximum value.
    Upper,
}

/// Reason for an unchanged coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// Too few timings determine it.
    NoBatchClock,
    /// No values have a smaller mean residual.
    NoBetterFit,
}
