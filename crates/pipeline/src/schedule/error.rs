//! Errors for unsupported schedules.

use super::ScheduleKind;
use planscope_core::units::Bytes;

/// Reason why a schedule does not exist for the given sizes or costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// Zero ranks, chunks or microbatches.
    #[error("a schedule needs ranks, chunks and microbatches: {ranks}, {chunks} and {microbatches} given")]
    Empty {
        ranks: usize,
        /// Chunks per rank.
        chunks: usize,
        microbatches: usize,
    },
    /// Unsupported number of chunks for the kind.
    #[error("{} needs {needs} chunks on every rank, {chunks} given", kind.title())]
    Chunks {
        kind: ScheduleKind,
        /// Required number of chunks.
        needs: usize,
        /// Given number of chunks.
        chunks: usize,
    },
    /// The kind has no groups, or the group size is zero.
    #[error(
        "{}",
        if kind.has_groups() { "a group needs a microbatch at least".to_owned() } else { format!("{} has no groups", kind.title()) }
    )]
    Group { kind: ScheduleKind },
    /// The number of ranks is odd.
    #[error("{} needs an even number of ranks, {ranks} given", kind.title())]
    OddRanks {
        kind: ScheduleKind,
        /// Given number of ranks.
        ranks: usize,
    },
    /// The number of microbatches is odd.
    #[error("{} needs an even number of microbatches, {microbatches} given", kind.title())]
    OddMicrobatches {
        kind: ScheduleKind,
        /// Given number of microbatches.
        microbatches: usize,
    },
    /// Too few microbatches to fill the pipeline.
    #[error("{} needs at least {min} microbatches on {ranks} ranks, {microbatches} given", kind.title())]
    TooFewMicrobatches {
        kind: ScheduleKind,
        /// Minimum number of microbatches.
        min: usize,
        ranks: usize,
        /// Given number of microbatches.
        microbatches: usize,
    },
    /// The costs have a different shape or placement.
    #[error("the costs are not those of {} on these ranks and microbatches", kind.title())]
    Costs { kind: ScheduleKind },
    /// A single microbatch does not fit in memory.
    #[error(
        "{}: rank {rank} needs {} bytes for its largest microbatch alone, {} are allowed",
        kind.title(), needs.get(), limit.get()
    )]
    Memory {
        kind: ScheduleKind,
        /// Rank with the maximum shortage.
        rank: usize,
        /// Required memory.
        needs: Bytes,
        /// Memory limit.
        limit: Bytes,
    },
    /// Each single microbatch fits, but no order was found.
    #[error("{}: no order was found that stays within {} bytes", kind.title(), limit.get())]
    NoOrder {
        kind: ScheduleKind,
        /// Memory limit.
        limit: Bytes,
    },
}
