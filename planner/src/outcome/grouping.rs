//! What an iteration did with groups of ranks that share sequences (DHP and what it is compared with).

use serde::{Deserialize, Serialize};

/// The groups of one iteration, microbatch by microbatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IterationGroups {
    /// How long the groups take by the planner's own fitted cost, in s; gradient synchronisation and optimizer not counted.
    pub estimated_s: f64,
    /// How long the busiest rank is busy in the simulation, in s.
    pub busiest_s: f64,
    /// Mean of that over all ranks, in s.
    pub mean_s: f64,
    /// Communication groups of two ranks or more that an iteration before had made already.
    pub pool_hits: u32,
    /// Those that had to be made.
    pub pool_misses: u32,
    /// What making those would cost if training waited for it, in s; it is planned one batch ahead, so it is not in the
    /// iteration's time.
    pub creation_s: f64,
    /// One after the other.
    pub microbatches: Vec<MicrobatchGroups>,
}

/// The groups of one microbatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MicrobatchGroups {
    /// In the paper's notation, for example "<6>x2 <4>x1".
    pub notation: String,
    /// How long the slowest of its ranks takes by the planner's own estimate, in s.
    pub estimated_s: f64,
    /// Ranks that have nothing to do in it.
    pub idle_ranks: u32,
    /// Its groups by degree, largest first.
    pub degrees: Vec<DegreeGroups>,
}

/// All groups of one degree in one microbatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DegreeGroups {
    /// Context-parallel degree.
    pub degree: u32,
    /// Groups.
    pub groups: u32,
    /// Sequences of all of them.
    pub sequences: u32,
    /// Tokens of all of them.
    pub tokens: u64,
    /// Tokens of the shortest sequence.
    pub shortest: u32,
    /// Tokens of the longest sequence.
    pub longest: u32,
    /// How long the slowest takes by the planner's own estimate, in s.
    pub estimated_s: f64,
}
