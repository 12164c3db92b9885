//! Context-parallel groups of ranks.

use planscope_core::training::ContextExchange;
use planscope_core::units::Nanos;

/// Ranks that process a set of sequences jointly. Each rank is a model replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SequenceGroup {
    /// Ranks that split each sequence.
    pub ranks: Vec<u32>,
    /// Microbatch index.
    pub microbatch: u32,
    /// Groups that share a number start their forward passes at the same time. The same applies to
    /// their backward passes.
    pub gang: u32,
    /// Context-parallel exchange for attention.
    pub exchange: ContextExchange,
    /// Planner's time estimate.
    pub estimate: Nanos,
}

impl SequenceGroup {
    /// Context-parallel degree.
    pub const fn degree(&self) -> u32 {
        self.ranks.len() as u32
    }
}
