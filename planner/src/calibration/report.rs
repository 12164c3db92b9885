//! The outcome of a fit, part by part and coefficient by coefficient.

/// How one part was fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct PartReport {
    /// For example "matrix products".
    pub part: &'static str,
    /// Timings of it.
    pub samples: usize,
    /// Whether any of its coefficients was fitted; otherwise `note` has the reason.
    pub fitted: bool,
    /// Mean relative residual of the given cluster.
    pub mean_before: f64,
    /// Ninth decile of the relative residuals of the given cluster.
    pub p90_before: f64,
    /// Mean relative residual after the fit, never above `mean_before`; equal to it where nothing was fitted.
    pub mean_residual: f64,
    /// Ninth decile of the relative residuals after the fit.
    pub p90_residual: f64,
    /// The reason why nothing was fitted, or empty.
    pub note: String,
    /// The fitted coefficients, then those that did not change. Empty where there are too few timings for any.
    pub coefficients: Vec<CoefficientReport>,
}

/// How one coefficient was fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoefficientReport {
    /// Its path in the JSON of a cluster, for example "device.curves.attention.backward".
    pub name: &'static str,
    /// Different shapes among the timings that determine it; timings of one shape count once.
    pub shapes: usize,
    /// Fewest of them for a fit.
    pub fewest: usize,
    /// Whether it was fitted.
    pub outcome: Outcome,
    /// Its value after the fit.
    pub value: f64,
}

/// Whether a coefficient was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was, and may have ended at a bound, beyond which the fit does not search.
    Fitted(Option<Bound>),
    /// It has the value of the given cluster.
    Unchanged(Unchanged),
}

/// A bound of a coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The smallest value.
    Lower,
    /// The largest value.
    Upper,
}

/// Why a coefficient did not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unchanged {
    /// Too few timings determine it.
    Unmeasured,
    /// No values have a smaller mean residual.
    NoBetterFit,
}
