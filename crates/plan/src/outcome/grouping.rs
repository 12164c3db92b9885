//! Context-parallel groups in an iteration (DHP and its baselines).

use serde::{Deserialize, Serialize};

/// Groups in an iteration, by microbatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IterationGroups {
    /// Group time by the planner's fitted cost, in s, excluding gradient synchronisation and
    /// optimizer step.
    pub estimated_s: f64,
    /// Busy time in the simulation for the rank with the highest load, in s.
    pub busiest_s: f64,
    /// Simulated mean busy time across ranks, in s.
    pub mean_s: f64,
    /// Communication groups with two or more ranks that already existed.
    pub pool_hits: u32,
    /// Communication groups with two or more ranks that were created.
    pub pool_misses: u32,
    /// Creation time of these groups, in s. They are planned one batch ahead, so the iteration time
    /// excludes it.
    pub creation_s: f64,
    /// Microbatches in order.
    pub microbatches: Vec<MicrobatchGroups>,
}

/// Groups in a microbatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MicrobatchGroups {
    /// Groups in DHP notation, for example "<6>x2 <4>x1".
    pub notation: String,
    /// Planner's estimate for the slowest rank, in s.
    pub estimated_s: f64,
    /// Idle ranks in this microbatch.
    pub idle_ranks: u32,
    /// Groups by degree, in descending order.
    pub degrees: Vec<DegreeGroups>,
}

/// Groups with the same degree in one microbatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DegreeGroups {
    /// Context-parallel degree.
    pub degree: u32,
    /// Number of groups.
    pub groups: u32,
    /// Total number of sequences.
    pub sequences: u32,
    /// Total number of tokens.
    pub tokens: u64,
    /// Tokens in the shortest sequence.
    pub shortest: u32,
    /// Tokens in the longest sequence.
    pub longest: u32,
    /// Planner's estimate for the slowest group, in s.
    pub estimated_s: f64,
}
