//! Execution plans: an ordered action list per pipeline rank, including communication, for
//! execution by a trainer.
//!
//! A timeline contains start times. A trainer needs the execution order. [`compile`] creates an
//! ordered list per rank from the action types in PipeWeaver Table 2 (PipeWeaver Sec. 7.3): stages,
//! `isend` and `irecv`, which start a transfer and return immediately, and the corresponding waits.
//! Stages on the same rank exchange tensors without a transfer.
//!
//! # Channels
//! A directed pair of ranks is a channel. A transfer starts after sender and receiver launch it.
//! The k-th `isend` on a channel matches the k-th `irecv`. Therefore sender and receiver use the
//! same order: the order in which the sender computes the tensors; for tensors from the same
//! action, the order in which the receiver needs them.
//!
//! # Action order
//! - `isend` directly follows the action that computes the tensor.
//! - `wait_irecv` directly precedes the first action that needs the tensor.
//! - `irecv` is launched as early as the receive buffers permit: at the start for the initial
//!   consumer actions, then whenever a consumer action finishes. A buffer stores the inputs that
//!   *one action* receives through the channel, even if these are outputs from ten
//!   sub-microbatches.
//! - `wait_isend` runs as late as the send buffers permit: before the action that reuses the
//!   buffer, otherwise at the end. A send buffer stores the tensors that an action sends through
//!   the channel.
//!
//! # Batches
//! Consecutive launches form a batch. A batched call completes when all members complete. Therefore
//! a launch joins a batch only if all members finish, according to the timeline, before the first
//! `wait_*` action for the batch. Batching adds no delay.
//!
//! # Deadlock freedom
//! If buffers are scarce, a rank can block on a buffer that only its own next action releases.
//! Therefore `launch_order` executes all ranks, ignoring time, until all block. It then splits the
//! blocking batch. If no batch blocks, it launches the receive for a blocked sender at the
//! receiver's current position, beyond the buffer limit. If buffers are unlimited, the order equals
//! the timeline's order, which is executable. Therefore this process terminates.
//! `check_execution_plan` in the crate `planscope-check` validates the result by independent code.

mod action;
mod launch_order;
mod listing;
mod windows;
mod work;

pub use action::{Ending, Payload, PlanAction, PlanActionKind, Transfer};

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use planscope_core::timeline::Timeline;
use planscope_core::units::Bytes;

/// Ordered action list per rank, including communication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionPlan {
    /// Buffer limits used for compilation.
    pub buffers: Buffers,
    /// Final stage end in the timeline, which assumes unlimited buffers, in ns.
    pub planned_ns: u64,
    /// Actions per rank, in execution order.
    pub ranks: Vec<Vec<PlanAction>>,
    /// Gradient synchronization and optimizer steps, sorted by rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endings: Vec<Ending>,
}

/// Maximum buffers per channel (a directed pair of ranks). Default: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Buffers {
    /// Receive buffers. A buffer stores the inputs for an action, from the launch of its earliest
    /// `irecv` to the end of the action.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1))]
    pub receive: Option<NonZeroU32>,
    /// Send buffers. A buffer stores the outputs from an action, up to its final `wait_isend`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1))]
    pub send: Option<NonZeroU32>,
}

impl Buffers {
    /// No buffer limits.
    pub const UNLIMITED: Self = Self { receive: None, send: None };

    /// Uses the same limit for send and receive buffers.
    pub const fn uniform(count: NonZeroU32) -> Self {
        Self { receive: Some(count), send: Some(count) }
    }
}

impl Default for Buffers {
    /// Two buffers: one for computation, one for the transfer in flight.
    fn default() -> Self {
        Self::uniform(NonZeroU32::MIN.saturating_add(1))
    }
}

/// Reasons why compilation can fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Columns have different lengths, or the timeline does not contain two lanes per rank.
    #[error("the columns of the timeline do not fit each other")]
    Columns,
    /// A stage is assigned to two ranks.
    #[error("stage {stage} runs on rank {first} and on rank {second}")]
    Stage {
        /// Stage index.
        stage: u32,
        /// A rank that runs the stage.
        first: u32,
        /// Another rank that runs the stage.
        second: u32,
    },
    /// An action occurs twice, or as full and as split backward.
    #[error("stage {stage} runs microbatch {microbatch} twice")]
    Repeated {
        /// Stage index.
        stage: u32,
        /// Microbatch index.
        microbatch: u32,
    },
    /// A forward has no backward, or a microbatch visits stages that are not consecutive.
    #[error("microbatch {microbatch} does not go forward and backward through stage {stage}")]
    Incomplete {
        /// Stage index.
        stage: u32,
        /// Microbatch index.
        microbatch: u32,
    },
    /// A microbatch depends on a microbatch that does not exist.
    #[error("microbatch {into} waits for microbatch {from}; one of them is not there")]
    Join {
        /// Producer microbatch.
        from: u32,
        /// Consumer microbatch.
        into: u32,
    },
    /// The rank orders form a deadlock, independent of the buffer limits.
    #[error("rank {rank} waits for ever before its computation number {index}")]
    Circular {
        /// A rank in the cycle.
        rank: usize,
        /// Index into the rank's computations.
        index: usize,
    },
}

/// Compiles a timeline to an execution plan.
///
/// # Errors
/// Returns an error if the timeline does not describe a complete pipeline. Timelines from the
/// simulator are always valid.
pub fn compile(timeline: &Timeline, buffers: Buffers) -> Result<ExecutionPlan, CompileError> {
    let work = work::Work::from_timeline(timeline)?;
    let windows = windows::Windows::new(&work, buffers);
    let programs = launch_order::order_launches(&work, &windows)?;
    Ok(listing::list(timeline, &work, &windows, &programs, buffers))
}

/// Size statistics for a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Total actions.
    pub actions: usize,
    /// Stage executions.
    pub stages: usize,
    /// Transfers. Each transfer has two launch actions and two wait actions.
    pub transfers: usize,
    /// Launch batches.
    pub batches: usize,
}

impl ExecutionPlan {
    /// Returns size statistics for all ranks together.
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

    /// Returns the iteration end in the timeline, including gradient synchronization and optimizer,
    /// in ns.
    pub fn iteration_ns(&self) -> u64 {
        let ends = self.endings.iter().map(|ending| ending.start_ns.saturating_add(ending.duration_ns));
        ends.max().unwrap_or(0).max(self.planned_ns)
    }

    /// Returns the first stage or `isend` that has no duration, as rank and list index. Files from
    /// engines that do not record durations contain only the order.
    pub fn without_duration(&self) -> Option<(usize, usize)> {
        let timed = |action: &PlanAction| {
            action.duration_ns.is_some() || !(action.action.computes() || action.action == PlanActionKind::Isend)
        };
        let first = |list: &Vec<PlanAction>| list.iter().position(|action| !timed(action));
        self.ranks.iter().enumerate().find_map(|(rank, list)| Some((rank, first(list)?)))
    }

    /// Sets the transfer sizes. The function calls `bytes` once per transfer, passing the `isend`
    /// and its rank. All actions for a transfer get the same size.
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
