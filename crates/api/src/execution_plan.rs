//! Execution plan of a rank, and totals of the plan.

use crate::planner::execution_plan::{Buffers, PlanAction};
use serde::{Deserialize, Serialize};

/// Action list of a rank, with totals of the execution plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionPlanView {
    /// Buffers per channel. A channel is a directed pair of ranks.
    pub buffers: Buffers,
    /// End of the last stage in the timeline, which has unlimited buffers, in seconds.
    pub planned_s: f64,
    /// End of the last stage with these buffers, in seconds.
    pub replayed_s: f64,
    /// Maximum number of receives per channel launched before their consumer has run.
    pub receives_held: u32,
    /// Maximum number of sends per channel in flight.
    pub sends_held: u32,
    /// Number of actions over all ranks.
    pub actions: u32,
    /// Number of executed stages over all ranks.
    pub stages: u32,
    /// Number of transfers. Each transfer has two launches and two waits.
    pub transfers: u32,
    /// Number of launch batches over all ranks.
    pub batches: u32,
    /// Number of pipeline ranks.
    pub ranks: u32,
    /// Rank of the list.
    pub rank: u32,
    /// Actions of the rank, in order.
    pub list: Vec<PlanAction>,
}
