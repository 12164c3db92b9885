//! Execution plan actions, and transfers between ranks.

use serde::{Deserialize, Serialize};

use planscope_core::timeline::SpanKind;

/// An action on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanAction {
    /// Start in the timeline, in ns.
    pub start_ns: u64,
    /// Duration in the timeline, in ns: computation time for a stage, occupied send-stream time for
    /// an `isend`. Omitted for actions that take no time, and if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Action type.
    pub action: PlanActionKind,
    /// Local stage: runs, produces the sent tensor, or consumes the received tensor.
    pub stage: u32,
    /// Microbatch or sub-microbatch on that stage.
    pub microbatch: u32,
    /// True if the stage overlaps the subsequent stage in the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_next: bool,
    /// Transferred tensor. Omitted for stages. A `wait_*` action repeats the transfer from its
    /// launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

/// Gradient synchronization or optimizer step, after a rank's final stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ending {
    /// Rank index.
    pub rank: u32,
    /// Synchronization or optimizer.
    pub kind: SpanKind,
    /// Start in the timeline, in ns. Can be later than the final stage end if other replicas are
    /// slower.
    pub start_ns: u64,
    /// Duration in ns.
    pub duration_ns: u64,
}

/// Action type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanActionKind {
    /// Stage forward.
    ForwardStage,
    /// Full stage backward.
    BackwardStage,
    /// Input gradient.
    InputGradStage,
    /// Weight gradient.
    WeightGradStage,
    /// Launches a send.
    Isend,
    /// Blocks until a send completes. Afterwards the buffer is free.
    WaitIsend,
    /// Launches a receive.
    Irecv,
    /// Blocks until a receive completes.
    WaitIrecv,
}

impl PlanActionKind {
    /// All action types.
    pub const ALL: [Self; 8] = [
        Self::ForwardStage,
        Self::BackwardStage,
        Self::InputGradStage,
        Self::WeightGradStage,
        Self::Isend,
        Self::WaitIsend,
        Self::Irecv,
        Self::WaitIrecv,
    ];

    /// Returns the name used in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ForwardStage => "forward_stage",
            Self::BackwardStage => "backward_stage",
            Self::InputGradStage => "input_grad_stage",
            Self::WeightGradStage => "weight_grad_stage",
            Self::Isend => "isend",
            Self::WaitIsend => "wait_isend",
            Self::Irecv => "irecv",
            Self::WaitIrecv => "wait_irecv",
        }
    }

    /// Returns whether the action runs a stage.
    pub const fn computes(self) -> bool {
        matches!(self, Self::ForwardStage | Self::BackwardStage | Self::InputGradStage | Self::WeightGradStage)
    }

    /// Returns whether the action starts a transfer.
    pub const fn launches(self) -> bool {
        matches!(self, Self::Isend | Self::Irecv)
    }
}

/// A tensor transfer between two ranks, from the local rank's perspective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transfer {
    /// Tensor type.
    pub payload: Payload,
    /// Remote rank.
    pub peer: u32,
    /// Remote stage.
    pub peer_stage: u32,
    /// Remote microbatch. Differs from the local index if sub-microbatches join a microbatch.
    pub peer_microbatch: u32,
    /// Position in the channel order, equal for sender and receiver.
    pub tag: u32,
    /// Local launch batch.
    pub batch: u32,
    /// Tensor size in bytes. Omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Tensor type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Forward output, sent to the subsequent stage.
    Activation,
    /// Input gradient, sent to the previous stage.
    Gradient,
}

impl Payload {
    /// Returns the name used in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activation => "activation",
            Self::Gradient => "gradient",
        }
    }
}
