//! How good a solver's answer is known to be.

/// What is proven of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proof {
    /// No answer is better.
    Optimal,
    /// No answer is better by more than the gap that was asked for.
    WithinGap,
    /// The bound is further away than that: the answer may be far from the best.
    Heuristic,
}

impl Proof {
    /// What a bound says of a value that is to be small, when `gap` was asked for.
    pub fn of(value: u64, bound: u64, gap: f64) -> Self {
        match relative_gap(value, bound) {
            _ if bound >= value => Self::Optimal,
            reached if reached <= gap => Self::WithinGap,
            _ => Self::Heuristic,
        }
    }

    /// Stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::WithinGap => "within_gap",
            Self::Heuristic => "heuristic",
        }
    }
}

/// Distance from the lower bound, (value - bound) / value; 0 where they meet. Integer-programming solvers measure their
/// relative gap in the same way.
pub fn relative_gap(value: u64, bound: u64) -> f64 {
    if bound >= value { 0.0 } else { (value - bound) as f64 / value as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_measured_from_the_value() {
        for (value, bound, gap, proof) in [
            (100, 100, 0.0, Proof::Optimal),
            (100, 95, 0.05, Proof::WithinGap),
            (100, 94, 0.05, Proof::Heuristic),
            (0, 0, 0.05, Proof::Optimal),
            (1, 0, 1.0, Proof::WithinGap),
        ] {
            assert_eq!(Proof::of(value, bound, gap), proof, "{value} {bound} {gap}");
        }
        assert!((relative_gap(100, 95) - 0.05).abs() < 1e-15);
    }
}
