//! Execution plans: what every rank of a pipeline does, communication included, as a list that a trainer walks through.
//!
//! A timeline says when everything happens; a trainer needs to know *in which order* to launch and to wait. A
//! [`compile`]d plan has for every rank one ordered list of the actions of PipeWeaver's table 2 (section 7.3): stages,
//! `isend` and `irecv`, which start a transfer and return, and the waits for them. Stages of one rank hand their tensors
//! over without a transfer.
//!
//! *Channels.* A directed pair of ranks is a channel. A transfer begins once both its ends are launched, and the k-th
//! `isend` of a channel meets its k-th `irecv`, so both sides name a channel's transfers in one order: that in which the
//! sender computes them, and of one action's results that in which the receiver needs them.
//!
//! *Where actions stand.* `isend` stands right behind the action that computes what is sent, `wait_irecv` right before
//! the first action that needs what is received. `irecv` stands as early as the receive buffers allow: from the
//! beginning for what the first few consuming actions of a channel need, then whenever one of them has run. A buffer
//! holds what *one action* receives over the channel, be it the outputs of ten sub-microbatches. `wait_isend` stands
//! as late as the send buffers allow, before the action that computes into the same buffer again, at the latest at the
//! end; here a buffer holds what one action sends over the channel.
//!
//! *Batches.* Launches that follow each other share a batch. As a group of calls is done when all of it is done, a
//! launch joins a batch only if nothing in it ends later, by the timeline, than the first moment that somebody waits
//! for the batch: grouping delays nothing.
//!
//! *No deadlock.* With few buffers a rank can wait for a buffer that only its own next action frees. Therefore
//! `launch_order` runs all ranks without times until none can continue. Then it splits the batch that blocks a rank. If
//! no batch blocks, it launches the receive that a blocked sender waits for at the receiver's current position, beyond
//! the buffer limit. Without buffer limits the order is that of the timeline, which has run, so this terminates.
//! [`crate::check::check_execution_plan`] checks the result with independent code.

mod action;
mod launch_order;
mod listing;
mod windows;
mod work;

pub use action::{Ending, Payload, PlanAction, PlanActionKind, Transfer};

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::timeline::Timeline;
use crate::units::Bytes;

/// For every rank an ordered list of actions, communication included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionPlan {
    /// Buffers that it was compiled for.
    pub buffers: Buffers,
    /// End of the last stage by the timeline, whose buffers never run out, in ns.
    pub planned_ns: u64,
    /// Actions of every rank, in order.
    pub ranks: Vec<Vec<PlanAction>>,
    /// What ranks do behind their last stage, rank by rank in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endings: Vec<Ending>,
}

/// How many buffers every channel, a directed pair of ranks, may use at a time. Absent: as many as there are transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Buffers {
    /// Of the receiver: each holds what one action receives, from the launch of its first `irecv` until it has run.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1))]
    pub receive: Option<NonZeroU32>,
    /// Of the sender: each holds what one action sends, until its last `wait_isend`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1))]
    pub send: Option<NonZeroU32>,
}

impl Buffers {
    /// As many as there are transfers.
    pub const UNLIMITED: Self = Self { receive: None, send: None };

    /// The same number at both ends of every channel.
    pub const fn of(count: NonZeroU32) -> Self {
        Self { receive: Some(count), send: Some(count) }
    }
}

impl Default for Buffers {
    /// One that is computed with while the other one travels.
    fn default() -> Self {
        Self::of(NonZeroU32::MIN.saturating_add(1))
    }
}

/// Why a timeline cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Its columns have different lengths, or its lanes are not two for every rank.
    #[error("the columns of the timeline do not fit each other")]
    Columns,
    /// A stage runs on two ranks.
    #[error("stage {stage} runs on rank {first} and on rank {second}")]
    Stage {
        /// The stage.
        stage: u32,
        /// A rank.
        first: u32,
        /// Another one.
        second: u32,
    },
    /// An action is there twice, or both as full and as split backward.
    #[error("stage {stage} runs microbatch {microbatch} twice")]
    Repeated {
        /// The stage.
        stage: u32,
        /// The microbatch.
        microbatch: u32,
    },
    /// A forward without its backward, or a way through stages that do not follow each other.
    #[error("microbatch {microbatch} does not go forward and backward through stage {stage}")]
    Incomplete {
        /// The stage.
        stage: u32,
        /// The microbatch.
        microbatch: u32,
    },
    /// A microbatch waits for one that is not there.
    #[error("microbatch {into} waits for microbatch {from}; one of them is not there")]
    Join {
        /// What is waited for.
        from: u32,
        /// What waits.
        into: u32,
    },
    /// The orders of the ranks wait for each other in a circle, with any number of buffers.
    #[error("rank {rank} waits for ever before its computation number {place}")]
    Circular {
        /// A rank of the circle.
        rank: usize,
        /// Place in the order of what it computes.
        place: usize,
    },
}

/// The execution plan of a timeline.
///
/// # Errors
/// Says what is wrong with a timeline that is not one of a whole pipeline; those that the simulator assembled are.
pub fn compile(timeline: &Timeline, buffers: Buffers) -> Result<ExecutionPlan, CompileError> {
    let work = work::Work::of(timeline)?;
    let windows = windows::Windows::of(&work, buffers);
    let programs = launch_order::order_launches(&work, &windows)?;
    Ok(listing::list(timeline, &work, &windows, &programs, buffers))
}

/// How much there is of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Actions of all kinds.
    pub actions: usize,
    /// Stages that run.
    pub stages: usize,
    /// Transfers, each with two launches and two waits.
    pub transfers: usize,
    /// Batches of launches.
    pub batches: usize,
}

impl ExecutionPlan {
    /// How much there is of what, over all ranks.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for list in &self.ranks {
            let mut last = None;
            for action in list {
                counts.actions += 1;
                counts.stages += usize::from(action.action.computes());
                counts.transfers += usize::from(action.action == PlanActionKind::Isend);
                let batch = action.transfer.filter(|_| action.action.launches()).map(|transfer| transfer.batch);
                counts.batches += usize::from(batch.is_some() && batch != last);
                last = batch.or(last);
            }
        }
        counts
    }

    /// End of the whole iteration by the timeline, gradient synchronisation and optimizer included, in ns.
    pub fn iteration_ns(&self) -> u64 {
        let ends = self.endings.iter().map(|ending| ending.start_ns.saturating_add(ending.duration_ns));
        ends.max().unwrap_or(0).max(self.planned_ns)
    }

    /// The first stage or `isend` without a duration, as rank and index in its list: files of engines that did not write
    /// durations say in which order everything happens, but not how long it takes.
    pub fn without_duration(&self) -> Option<(usize, usize)> {
        let timed = |action: &PlanAction| {
            action.duration_ns.is_some() || !(action.action.computes() || action.action == PlanActionKind::Isend)
        };
        let first = |list: &Vec<PlanAction>| list.iter().position(|action| !timed(action));
        self.ranks.iter().enumerate().find_map(|(rank, list)| Some((rank, first(list)?)))
    }

    /// The same with the size of every transfer. `bytes` is asked once for each, with its `isend` and the rank of that;
    /// waits and receives get the answer, too.
    #[must_use]
    pub fn sized(mut self, bytes: impl Fn(usize, &PlanAction) -> Option<Bytes>) -> Self {
        let mut known = std::collections::BTreeMap::new();
        for (rank, list) in self.ranks.iter().enumerate() {
            for action in list.iter().filter(|action| action.action == PlanActionKind::Isend) {
                if let (Some(transfer), Some(bytes)) = (action.transfer, bytes(rank, action)) {
                    known.insert((rank as u32, transfer.peer, transfer.tag), bytes.get());
                }
            }
        }
        for (rank, list) in self.ranks.iter_mut().enumerate() {
            for action in list {
                let sends = matches!(action.action, PlanActionKind::Isend | PlanActionKind::WaitIsend);
                if let Some(transfer) = &mut action.transfer {
                    let (from, to) = if sends { (rank as u32, transfer.peer) } else { (transfer.peer, rank as u32) };
                    transfer.bytes = known.get(&(from, to, transfer.tag)).copied();
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests;
