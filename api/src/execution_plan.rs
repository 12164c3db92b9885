//! What one rank does in an execution plan, and how large the whole plan is.

use planner::execution_plan::{Buffers, PlanAction};
use serde::{Deserialize, Serialize};

/// One rank's list out of an execution plan, with totals of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionPlanView {
    /// Buffers that every channel, a directed pair of ranks, may use at a time.
    pub buffers: Buffers,
    /// End of the last stage by the timeline, whose buffers never run out, in seconds.
    pub planned_s: f64,
    /// End of the last stage when the lists are followed with these buffers, in seconds.
    pub replayed_s: f64,
    /// The most receives of one channel that are launched before the action that needs them has run.
    pub receives_held: u32,
    /// The most sends of one channel that are launched and not waited for.
    pub sends_held: u32,
    /// Actions of all kinds, over all ranks.
    pub actions: u32,
    /// Stages that run, over all ranks.
    pub stages: u32,
    /// Transfers, each with two launches and two waits.
    pub transfers: u32,
    /// Batches of launches, over all ranks.
    pub batches: u32,
    /// Ranks of the pipeline.
    pub ranks: u32,
    /// The rank whose list follows.
    pub rank: u32,
    /// What it does, in order.
    pub list: Vec<PlanAction>,
}
