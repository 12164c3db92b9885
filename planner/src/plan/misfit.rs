//! Why a layout cannot be, and how far it came.

use crate::schedule::ScheduleError;
use crate::units::Bytes;

/// Why a layout cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    /// In words that do not name its degrees, so that rejections can be counted.
    pub reason: String,
    /// How far it came.
    pub hurdle: Hurdle,
}

/// How far a layout came before it was rejected; the furthest names the binding constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hurdle {
    /// It breaks a rule.
    Rule,
    /// This rank cannot hold weights, gradients and optimizer state.
    State(Bytes, usize),
    /// This rank cannot hold the activations too.
    Activations(Bytes, usize),
    /// It fits, but does not run.
    Run,
}

impl Hurdle {
    /// The rank that lacks memory, and what it needs.
    pub(super) fn memory(self) -> Option<(usize, Bytes)> {
        match self {
            Self::State(bytes, rank) | Self::Activations(bytes, rank) => Some((rank, bytes)),
            Self::Rule | Self::Run => None,
        }
    }

    /// Later hurdles have larger numbers.
    pub(super) const fn stage(self) -> u8 {
        match self {
            Self::Rule => 0,
            Self::State(..) => 1,
            Self::Activations(..) => 2,
            Self::Run => 3,
        }
    }
}

impl Misfit {
    /// A rule that is broken.
    pub(super) fn rule(reason: &str) -> Self {
        Self { reason: reason.to_owned(), hurdle: Hurdle::Rule }
    }

    /// A rank whose activations do not fit.
    pub(super) fn activations(rank: usize, needs: Bytes) -> Self {
        let reason = "activations exceed the memory".to_owned();
        Self { reason, hurdle: Hurdle::Activations(needs, rank) }
    }

    /// A schedule that does not exist for the shape or the memory.
    pub(super) fn schedule(error: &ScheduleError) -> Self {
        match *error {
            ScheduleError::Memory { rank, needs, .. } => Self::activations(rank, needs),
            _ => Self::rule(&error.to_string()),
        }
    }

    /// A schedule that does not run to its end.
    pub(super) fn deadlock() -> Self {
        Self { reason: "its order of actions deadlocks".to_owned(), hurdle: Hurdle::Run }
    }
}
