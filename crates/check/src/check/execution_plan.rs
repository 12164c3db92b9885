//! Execution plan validation against the timeline.
//!
//! Initially, action lists are checked against the definitions: inputs, required transfers and
//! matching channel ends. Then a small [machine](machine) simulates the lists. A transfer starts
//! when sender and receiver have launched it, a batch completes with the last transfer, and waits
//! block. Durations come from the timeline, so the result also shows the effect of limited buffers.

pub(in crate::check) mod demand;
pub(in crate::check) mod lists;
pub(in crate::check) mod machine;

use serde::{Deserialize, Serialize};

use planscope_core::timeline::Timeline;
use planscope_pipeline::execution_plan::ExecutionPlan;

/// Simulation result of a valid execution plan with the timeline's durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Replay {
    /// End of the last stage, in ns. Equal to the timeline's end if buffers are unlimited;
    /// otherwise a rank can wait for a free buffer.
    pub end_ns: u64,
    /// Maximum number of launched receives per channel whose action has not run.
    pub receives_held: u32,
    /// Maximum number of launched sends per channel that are not yet waited for.
    pub sends_held: u32,
}

/// Position of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// Rank.
    pub rank: usize,
    /// Index in the rank's list.
    pub index: usize,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}, action {}", self.rank, self.index)
    }
}

/// A violation in an execution plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionViolation {
    /// The number of lists differs from the rank count.
    #[error("{found} lists for {expected} ranks")]
    Ranks {
        /// Number of lists.
        found: usize,
        /// Ranks in the timeline.
        expected: usize,
    },
    /// A stage action has a transfer, a transfer action has none, or the peer is invalid.
    #[error("{0}: stage and transfer do not fit each other")]
    Malformed(At),
    /// The timeline does not contain this action on the rank.
    #[error("{0}: this rank has no such stage and microbatch")]
    Foreign(At),
    /// An action, launch or wait is duplicated.
    #[error("{0}: this was done before")]
    Repeated(At),
    /// An action runs earlier than in the timeline's order.
    #[error("{0}: another stage or microbatch is next")]
    Reordered(At),
    /// Overlapped stages are not adjacent, or the timeline does not overlap them.
    #[error("{0}: overlapped stages must follow each other, as in the timeline")]
    Torn(At),
    /// Start times decrease, or a start or duration differs from the timeline.
    #[error("{0}: its start or duration differs from the timeline, or it starts before the action that precedes it")]
    Time(At),
    /// Gradient synchronisation or optimizer step differ from the timeline.
    #[error("gradient synchronisation and optimizer are other ones than in the timeline")]
    Ending,
    /// The list lacks a stage of the timeline.
    #[error("rank {rank} never runs stage {stage} for microbatch {microbatch}")]
    Missing {
        /// The rank.
        rank: usize,
        /// Stage index.
        stage: u32,
        /// Microbatch index.
        microbatch: u32,
    },
    /// A stage runs although an input is not computed locally, or not received and waited for.
    #[error("{0}: an input was not computed or waited for before")]
    Unfed(At),
    /// A send precedes the computation of its result.
    #[error("{0}: sends what has not been computed")]
    Unmade(At),
    /// A transfer is not required.
    #[error("{0}: nobody needs this transfer")]
    Unneeded(At),
    /// A wait has no previous launch on this rank.
    #[error("{0}: waits for what was not launched before")]
    Unstarted(At),
    /// A launch has no wait.
    #[error("{0}: is never waited for")]
    Unwaited(At),
    /// The launches of a batch are not adjacent.
    #[error("{0}: its batch was closed before")]
    Batch(At),
    /// A launch has no counterpart on the peer rank.
    #[error("{0}: has no counterpart on rank {peer}", peer = .1)]
    Unmatched(At, usize),
    /// Sender and receiver of a channel differ in the order, tag or size of transfers.
    #[error(
        "from rank {from} to rank {to}: transfer {position} is another one, or has another tag or size, at both ends"
    )]
    Order {
        /// Sending rank.
        from: usize,
        /// Receiving rank.
        to: usize,
        /// Position in the channel order.
        position: usize,
    },
    /// The timeline is not from a complete pipeline.
    #[error("stage {stage} never finishes microbatch {microbatch} in the timeline")]
    Incomplete {
        /// Stage index.
        stage: u32,
        /// Microbatch index.
        microbatch: u32,
    },
    /// Ranks wait in a cycle.
    #[error("deadlock: {}", describe(.0))]
    Deadlock(Vec<At>),
}

fn describe(circle: &[At]) -> String {
    let waits = circle.iter().zip(circle.iter().cycle().skip(1));
    let waits = waits.map(|(at, next)| format!("{at} waits for rank {}", next.rank));
    waits.collect::<Vec<_>>().join("; ")
}

/// Validates an execution plan against its timeline. All computations must run exactly once, in
/// order and after their inputs are available. Sends must match receives, and channel orders must
/// agree at sender and receiver. Every launch needs a wait. Deadlocks are rejected.
///
/// # Errors
/// Returns the first violation.
pub fn check_execution_plan(plan: &ExecutionPlan, timeline: &Timeline) -> Result<Replay, ExecutionViolation> {
    let expected = timeline.ranks as usize;
    if plan.ranks.len() != expected {
        return Err(ExecutionViolation::Ranks { found: plan.ranks.len(), expected });
    }
    let demand = demand::Demand::from_timeline(timeline)?;
    let ranks: Vec<_> = plan.ranks.iter().map(Vec::as_slice).collect();
    let usage = lists::check_lists(&ranks, &demand)?;
    // Plans from earlier engines have no endings.
    if !plan.endings.is_empty() && !demand.ends_with(&plan.endings) {
        return Err(ExecutionViolation::Ending);
    }
    let end_ns = machine::walk(&ranks, &demand)?.end;
    Ok(Replay { end_ns, receives_held: usage.receives, sends_held: usage.sends })
}

#[cfg(test)]
mod tests;
