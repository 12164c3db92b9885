//! Effects of the sub-microbatch size for images or clips (PipeWeaver Fig. 10).

use serde::{Deserialize, Serialize};

use planscope_plan::scenario::PlannerKind;

/// Fastest and slowest order per size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubMicrobatches {
    /// Studied planner.
    pub planner: PlannerKind,
    /// Global batch, from 0.
    pub iteration: u32,
    /// Data-parallel replica, from 0.
    pub replica: u32,
    /// Module with the split items.
    pub module: String,
    /// Maximum module items per microbatch in the replica.
    pub most_items: u32,
    /// Size in the plan.
    pub chosen: u32,
    /// True if the scenario fixes the size, false if the partitioner chose it.
    pub is_fixed: bool,
    /// Rollout limit per search, in addition to the start orders.
    pub rollouts: u32,
    /// Results by size, ascending.
    pub points: Vec<SizePoint>,
    /// True if the time limit was reached before all sizes used all rollouts.
    pub is_cut: bool,
}

/// Result for one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SizePoint {
    /// Maximum items per sub-microbatch.
    pub size: u32,
    /// Sub-microbatches of the module in the replica.
    pub parts: u32,
    /// Segments of the module.
    pub segments: u32,
    /// Efficiency of the module at this size, relative to its best.
    pub efficiency: f64,
    /// Ends of the fastest and slowest order; omitted if the size is infeasible.
    pub ends: Option<SizeEnds>,
    /// Explanation if the size is infeasible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfit: Option<String>,
}

/// Range of ends for a size, from the fastest to the slowest ranking.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SizeEnds {
    /// End of the fastest order after critical-path swaps, in s.
    pub best_s: f64,
    /// End of the slowest order, in s.
    pub worst_s: f64,
    /// Lower bound for all orders, in s.
    pub lower_bound_s: f64,
}
