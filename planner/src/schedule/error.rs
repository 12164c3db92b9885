//! Why there is no such schedule.

use super::ScheduleKind;
use crate::units::Bytes;

/// Why there is no such schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Nothing to schedule, or nobody to do it.
    #[error("a schedule needs ranks, chunks and microbatches: {ranks}, {chunks} and {microbatches} given")]
    Empty {
        /// Ranks.
        ranks: usize,
        /// Chunks of a rank.
        chunks: usize,
        /// Microbatches.
        microbatches: usize,
    },
    /// The kind fixes the number of chunks.
    #[error("{} needs {needs} chunks on every rank, {chunks} given", kind.title())]
    Chunks {
        /// The kind.
        kind: ScheduleKind,
        /// Chunks that it needs.
        needs: usize,
        /// Chunks given.
        chunks: usize,
    },
    /// The kind has no groups, or the group is empty.
    #[error(
        "{}",
        if kind.has_groups() { "a group needs a microbatch at least".to_owned() } else { format!("{} has no groups", kind.title()) }
    )]
    Group {
        /// The kind.
        kind: ScheduleKind,
    },
    /// The ranks cannot be halved.
    #[error("{} needs an even number of ranks, {ranks} given", kind.title())]
    OddRanks {
        /// The kind.
        kind: ScheduleKind,
        /// Ranks given.
        ranks: usize,
    },
    /// The microbatches cannot be halved.
    #[error("{} needs an even number of microbatches, {microbatches} given", kind.title())]
    OddMicrobatches {
        /// The kind.
        kind: ScheduleKind,
        /// Microbatches given.
        microbatches: usize,
    },
    /// The pipeline cannot be filled.
    #[error("{} needs at least {least} microbatches on {ranks} ranks, {microbatches} given", kind.title())]
    TooFewMicrobatches {
        /// The kind.
        kind: ScheduleKind,
        /// What it needs.
        least: usize,
        /// Ranks.
        ranks: usize,
        /// Microbatches given.
        microbatches: usize,
    },
    /// The costs are those of another shape or placement.
    #[error("the costs are not those of {} on these ranks and microbatches", kind.title())]
    Costs {
        /// The kind.
        kind: ScheduleKind,
    },
    /// One microbatch alone does not fit.
    #[error(
        "{}: rank {rank} needs {} bytes for its largest microbatch alone, {} are allowed",
        kind.title(), needs.get(), limit.get()
    )]
    Memory {
        /// The kind.
        kind: ScheduleKind,
        /// The rank that lacks the most.
        rank: usize,
        /// What it needs.
        needs: Bytes,
        /// What is allowed.
        limit: Bytes,
    },
    /// Each microbatch fits, and still no order was found.
    #[error("{}: no order was found that stays within {} bytes", kind.title(), limit.get())]
    NoOrder {
        /// The kind.
        kind: ScheduleKind,
        /// What is allowed.
        limit: Bytes,
    },
}
