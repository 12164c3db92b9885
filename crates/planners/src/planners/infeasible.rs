//! Causes of infeasible layouts.

use planscope_core::units::Bytes;
use planscope_pipeline::schedule::ScheduleError;

/// An infeasible layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Infeasibility {
    /// Text without degrees, so that equal rejections can be counted.
    pub reason: String,
    /// Binding constraint.
    pub constraint: BindingConstraint,
}

/// Binding constraint of an infeasible layout, ordered by check. Reports use the latest check that
/// any candidate reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BindingConstraint {
    /// The layout violates a rule.
    Rule,
    /// Model states exceed the memory limit. Fields: required bytes, rank.
    State(Bytes, usize),
    /// Model states plus activations exceed the memory limit. Fields: required bytes, rank.
    Activations(Bytes, usize),
    /// The layout fits but its schedule deadlocks.
    Run,
}

impl BindingConstraint {
    /// Rank above the memory limit, and its required memory.
    pub(crate) fn memory(self) -> Option<(usize, Bytes)> {
        match self {
            Self::State(bytes, rank) | Self::Activations(bytes, rank) => Some((rank, bytes)),
            Self::Rule | Self::Run => None,
        }
    }

    /// Position in the order of the checks.
    pub(crate) const fn stage(self) -> u8 {
        match self {
            Self::Rule => 0,
            Self::State(..) => 1,
            Self::Activations(..) => 2,
            Self::Run => 3,
        }
    }
}

impl Infeasibility {
    pub(crate) fn rule(reason: &str) -> Self {
        Self { reason: reason.to_owned(), constraint: BindingConstraint::Rule }
    }

    /// Builds a misfit for a rank whose activations need too much memory.
    pub(crate) fn activations(rank: usize, needs: Bytes) -> Self {
        let reason = "activations exceed the memory".to_owned();
        Self { reason, constraint: BindingConstraint::Activations(needs, rank) }
    }

    /// Builds a misfit for a schedule that does not exist for the shape or the memory limit.
    pub(crate) fn schedule(error: &ScheduleError) -> Self {
        match *error {
            ScheduleError::Memory { rank, needs, .. } => Self::activations(rank, needs),
            _ => Self::rule(&error.to_string()),
        }
    }

    pub(crate) fn deadlock() -> Self {
        Self { reason: "its order of actions deadlocks".to_owned(), constraint: BindingConstraint::Run }
    }
}
