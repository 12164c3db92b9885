//! Optimality proofs for solver results.

/// Proven quality of a solver result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Optimality {
    /// No better solution exists.
    Optimal,
    /// No solution is better by more than the requested gap.
    WithinGap,
    /// The gap to the lower bound exceeds the requested gap. The result may be far from optimal.
    Heuristic,
}

impl Optimality {
    /// Classifies a minimized `value` by its lower bound and the requested gap.
    pub fn classify(value: u64, bound: u64, gap: f64) -> Self {
        match relative_gap(value, bound) {
            _ if bound >= value => Self::Optimal,
            reached if reached <= gap => Self::WithinGap,
            _ => Self::Heuristic,
        }
    }

    /// Returns the stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::WithinGap => "within_gap",
            Self::Heuristic => "heuristic",
        }
    }
}

/// Returns the relative gap to the lower bound, (value - bound) / value, or 0 if they are equal.
/// Integer programming solvers use the same definition.
pub fn relative_gap(value: u64, bound: u64) -> f64 {
    if bound >= value { 0.0 } else { (value - bound) as f64 / value as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_measured_from_the_value() {
        for (value, bound, gap, optimality) in [
            (100, 100, 0.0, Optimality::Optimal),
            (100, 95, 0.05, Optimality::WithinGap),
            (100, 94, 0.05, Optimality::Heuristic),
            (0, 0, 0.05, Optimality::Optimal),
            (1, 0, 1.0, Optimality::WithinGap),
        ] {
            assert_eq!(Optimality::classify(value, bound, gap), optimality, "{value} {bound} {gap}");
        }
        assert!((relative_gap(100, 95) - 0.05).abs() < 1e-15);
    }
}
