//! Execution plans: whether what every rank is told to do can be done, and does what the timeline says.
//!
//! The lists are read against the definitions: what each action needs, what therefore has to travel, how the ends
//! of a channel meet. Then all ranks walk through their lists in a small [machine](machine) whose transfers begin when
//! both ends are launched, whose batches are done when all of them is done, and whose waits block. It takes the
//! durations of the timeline, so that it also says what the plan takes with its buffers.

mod demand;
mod lists;
mod machine;

use serde::{Deserialize, Serialize};

use crate::execution_plan::ExecutionPlan;
use crate::timeline::Timeline;

/// What a sound plan does when its lists are walked through with the durations of its timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Replay {
    /// End of the last stage, in ns. With unlimited buffers that of the timeline; a rank without a free buffer waits.
    pub end_ns: u64,
    /// The most receives of one channel that were launched and whose action had not run.
    pub receives_held: u32,
    /// The most sends of one channel that were launched and not waited for.
    pub sends_held: u32,
}

/// A rank and the index of an action in its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The rank.
    pub rank: usize,
    /// Index in its list.
    pub index: usize,
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}, action {}", self.rank, self.index)
    }
}

/// What is wrong with an execution plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionViolation {
    /// It has not a list for every rank.
    #[error("{found} lists for {expected} ranks")]
    Ranks {
        /// Lists.
        found: usize,
        /// Ranks of the timeline.
        expected: usize,
    },
    /// A stage with a transfer, a transfer without, or to the rank itself or one that does not exist.
    #[error("{0}: stage and transfer do not fit each other")]
    Malformed(At),
    /// It runs what the timeline does not run on that rank.
    #[error("{0}: this rank has no such stage and microbatch")]
    Foreign(At),
    /// It runs, launches or waits for something again.
    #[error("{0}: this was done before")]
    Repeated(At),
    /// It runs something before what stands before it in the timeline.
    #[error("{0}: another stage or microbatch is next")]
    Reordered(At),
    /// Two overlapped stages do not follow each other, or are not those that the timeline overlaps.
    #[error("{0}: overlapped stages must follow each other, as in the timeline")]
    Torn(At),
    /// Times run backwards, or a stage has another start or duration than in the timeline.
    #[error("{0}: starts or lasts otherwise than in the timeline, or starts before the action in front of it")]
    Time(At),
    /// What ranks do behind their last stage is not what the timeline says.
    #[error("gradient synchronisation and optimizer are other ones than in the timeline")]
    Ending,
    /// A stage that the timeline runs is not in the list.
    #[error("rank {rank} never runs stage {stage} for microbatch {microbatch}")]
    Missing {
        /// The rank.
        rank: usize,
        /// The stage.
        stage: u32,
        /// The microbatch.
        microbatch: u32,
    },
    /// A stage runs before what it needs was computed on its rank, or received and waited for.
    #[error("{0}: an input was not computed or waited for before")]
    Unfed(At),
    /// A result is sent before it is computed.
    #[error("{0}: sends what has not been computed")]
    Unmade(At),
    /// A transfer that nobody needs.
    #[error("{0}: nobody needs this transfer")]
    Unneeded(At),
    /// A wait for what this rank has not launched before.
    #[error("{0}: waits for what was not launched before")]
    Unstarted(At),
    /// A launch that nobody waits for.
    #[error("{0}: is never waited for")]
    Unwaited(At),
    /// A batch whose launches do not follow each other.
    #[error("{0}: its batch was closed before")]
    Batch(At),
    /// A launch without a counterpart on the other rank.
    #[error("{0}: has no counterpart on rank {peer}", peer = .1)]
    Unmatched(At, usize),
    /// The ends of a channel name its transfers in different orders, or a transfer with different tags or sizes.
    #[error("from rank {from} to rank {to}: transfer {place} is another one, or has another tag or size, at both ends")]
    Order {
        /// Sending rank.
        from: usize,
        /// Receiving rank.
        to: usize,
        /// Place in the order of the channel.
        place: usize,
    },
    /// The timeline itself is not one of a whole pipeline.
    #[error("stage {stage} never finishes microbatch {microbatch} in the timeline")]
    Incomplete {
        /// The stage.
        stage: u32,
        /// The microbatch.
        microbatch: u32,
    },
    /// Ranks wait for each other in a circle.
    #[error("deadlock: {}", describe(.0))]
    Deadlock(Vec<At>),
}

fn describe(circle: &[At]) -> String {
    let waits = circle.iter().zip(circle.iter().cycle().skip(1));
    let waits = waits.map(|(at, next)| format!("{at} waits for rank {}", next.rank));
    waits.collect::<Vec<_>>().join("; ")
}

/// Checks an execution plan against the timeline that it is of: every computation once and in order, every input there,
/// every send with one receive, the order of every channel the same at both ends, every launch waited for, no
/// deadlock.
///
/// # Errors
/// Names the first thing that is wrong.
pub fn check_execution_plan(plan: &ExecutionPlan, timeline: &Timeline) -> Result<Replay, ExecutionViolation> {
    let expected = timeline.ranks as usize;
    if plan.ranks.len() != expected {
        return Err(ExecutionViolation::Ranks { found: plan.ranks.len(), expected });
    }
    let demand = demand::Demand::of(timeline)?;
    let held = lists::check_lists(plan, &demand)?;
    // Plans of engines that did not write them have none.
    if !plan.endings.is_empty() && !demand.ends_with(&plan.endings) {
        return Err(ExecutionViolation::Ending);
    }
    let end_ns = machine::walk(plan, &demand)?;
    Ok(Replay { end_ns, receives_held: held.receives, sends_held: held.sends })
}

#[cfg(test)]
mod tests;
