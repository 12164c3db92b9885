//! Ranking search progress: lowest known end by rollout (PipeWeaver Fig. 12).

use serde::{Deserialize, Serialize};

use planscope_plan::scenario::PlannerKind;

/// Compares three searches over the same rankings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SearchProgress {
    /// Studied planner.
    pub planner: PlannerKind,
    /// Global batch, from 0.
    pub iteration: u32,
    /// Data-parallel replica, from 0.
    pub replica: u32,
    /// Microbatches in the replica.
    pub microbatches: u32,
    /// Sub-microbatches in the replica.
    pub parts: u32,
    /// Ranked groups, one per microbatch and module.
    pub groups: u32,
    /// Rollout limit per search, in addition to the start orders.
    pub rollouts: u32,
    /// Lower bound for all orders, in s.
    pub lower_bound_s: f64,
    /// The searches.
    pub strategies: Vec<StrategyProgress>,
    /// End after critical-path swaps on the Monte-Carlo tree search result, in s, as in the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped_s: Option<f64>,
    /// True if the time limit was reached before the rollout limit.
    pub is_cut: bool,
}

/// Progress of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StrategyProgress {
    /// Search strategy.
    pub strategy: ExploredBy,
    /// Interleaved rankings, including start orders.
    pub rollouts: u32,
    /// Search duration in seconds.
    pub seconds: f64,
    /// Lowest end in s.
    pub best_s: f64,
    /// End condition.
    pub ended: EndedBy,
    /// Steps at which the lowest end improved, plus start orders and the last step.
    pub steps: ProgressColumns,
}

/// Improvements in a search as equal-length columns of at most 500 entries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProgressColumns {
    /// Interleaved rankings so far.
    pub rollouts: Vec<u32>,
    /// Seconds since the search start.
    pub seconds: Vec<f64>,
    /// Lowest known end in s.
    pub best_s: Vec<f64>,
}

/// Search strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExploredBy {
    /// Monte-Carlo tree search.
    Mcts,
    /// Depth-first search in lexicographic order.
    Dfs,
    /// Random search.
    Random,
}

/// End conditions for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The lower bound was reached.
    Optimal,
    /// The lowest end is within 0.1 % of the lower bound.
    NearBound,
    /// All rankings were tried.
    Exhausted,
    /// The rollout limit was reached.
    Rollouts,
    /// The time limit was reached.
    Time,
}

impl ExploredBy {
    /// Display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Mcts => "Monte-Carlo tree search",
            Self::Dfs => "Depth first",
            Self::Random => "Random",
        }
    }
}
