//! Layer times from a sequence length profiler.

use super::{Variable, Variables};
use planscope_core::length_fit::{LengthFit, LengthTiming};

/// Minimum number of timings, because T(l) has three coefficients.
const MIN: usize = 3;
/// Maximum number of timings.
const MAX_TIMINGS: usize = 1024;
/// Maximum tokens per sequence and maximum sequences per microbatch in a timing.
const MAX: f64 = 1e9;

/// Time over the sequences in a microbatch, a Σl² + b Σl + c, fitted to timings of equal sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequenceTimes(LengthFit);

/// Invalid timings, with the index of the invalid entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimingsError {
    /// Fewer than three timings, or more than the limit.
    #[error("{0} timings: {MIN} to {MAX_TIMINGS} are needed")]
    Count(usize),
    /// Not a positive number, or out of range.
    #[error("tokens, sequences and microseconds are numbers above zero, and at most a billion of the first two")]
    Value(usize),
    /// All sequences have the same length.
    #[error("all sequences have the same length: two lengths are needed")]
    SingleLength,
}

impl TimingsError {
    /// Returns the index of the invalid timing, if any.
    pub const fn index(self) -> Option<usize> {
        match self {
            Self::Count(_) | Self::SingleLength => None,
            Self::Value(index) => Some(index),
        }
    }
}

impl SequenceTimes {
    /// Fits timings (tokens per sequence, equal packed sequences, microseconds).
    pub fn new(timings: &[[f64; 3]]) -> Result<Self, TimingsError> {
        if timings.len() < MIN || timings.len() > MAX_TIMINGS {
            return Err(TimingsError::Count(timings.len()));
        }
        let usable = |&[tokens, sequences, micros]: &[f64; 3]| {
            [tokens, sequences].iter().all(|value| *value >= 1.0 && *value <= MAX) && micros > 0.0 && micros.is_finite()
        };
        if let Some(index) = timings.iter().position(|timing| !usable(timing)) {
            return Err(TimingsError::Value(index));
        }
        if timings.windows(2).all(|pair| pair[0][0].total_cmp(&pair[1][0]).is_eq()) {
            return Err(TimingsError::SingleLength);
        }
        let length_timing = |&[tokens, sequences, time]: &[f64; 3]| LengthTiming { tokens, sequences, time };
        let all: Vec<LengthTiming> = timings.iter().map(length_timing).collect();
        // Positive times always have a fit: at least one coefficient is positive.
        LengthFit::from_timings(&all).map(Self).ok_or(TimingsError::SingleLength)
    }

    /// Returns the coefficients in microseconds, with errors.
    pub const fn fit(&self) -> &LengthFit {
        &self.0
    }

    /// Returns microseconds. The tokens and squares in `variables` are per device after the
    /// context-parallel split.
    pub fn micros(&self, variables: &Variables) -> f64 {
        let cp = variables.get(Variable::Cp);
        self.0.time(cp * variables.get(Variable::Tokens), cp * variables.get(Variable::Squared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_timings_are_rejected_with_their_index() {
        let good = [1024.0, 1.0, 10.0];
        for (timings, wrong) in [
            (vec![good, [2048.0, 1.0, 30.0]], TimingsError::Count(2)),
            (vec![good; MAX_TIMINGS + 1], TimingsError::Count(MAX_TIMINGS + 1)),
            (vec![good, good, [2048.0, 1.0, 0.0]], TimingsError::Value(2)),
            (vec![good, [2048.0, 0.5, 1.0], good], TimingsError::Value(1)),
            (vec![[f64::NAN, 1.0, 1.0], good, good], TimingsError::Value(0)),
            (vec![good, [1024.0, 4.0, 40.0], good], TimingsError::SingleLength),
        ] {
            assert_eq!(SequenceTimes::new(&timings), Err(wrong));
        }
    }
}
