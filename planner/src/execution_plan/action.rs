//! Actions of an execution plan, and what travels between ranks.

use serde::{Deserialize, Serialize};

use crate::timeline::SpanKind;

/// An action of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PlanAction {
    /// When the rank comes to it by the timeline, in ns.
    pub start_ns: u64,
    /// How long it takes by the timeline, in ns: a stage its computation, an `isend` its own share of the sending stream.
    /// Absent for what takes no time of its own, and where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// What it does.
    pub action: PlanActionKind,
    /// The rank's own stage: the one that runs, whose result is sent, or that needs what is received.
    pub stage: u32,
    /// The microbatch or sub-microbatch on that stage.
    pub microbatch: u32,
    /// A stage that runs overlapped with the one behind it in the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_next: bool,
    /// What travels; absent for stages. A wait repeats that of the launch it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

/// What a rank does behind its last stage: it synchronises gradients, or steps the optimizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ending {
    /// The rank.
    pub rank: u32,
    /// What it does.
    pub kind: SpanKind,
    /// When it begins by the timeline, in ns: where other replicas are waited for, later than the rank itself is done.
    pub start_ns: u64,
    /// How long it takes, in ns.
    pub duration_ns: u64,
}

/// What an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanActionKind {
    /// Runs a stage forward.
    ForwardStage,
    /// Runs a stage's full backward.
    BackwardStage,
    /// Computes a stage's gradient of the input.
    InputGradStage,
    /// Computes a stage's gradients of the weights.
    WeightGradStage,
    /// Launches a send.
    Isend,
    /// Waits for a send; its buffer is free from then on.
    WaitIsend,
    /// Launches a receive.
    Irecv,
    /// Waits for a receive.
    WaitIrecv,
}

impl PlanActionKind {
    /// Every kind.
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

    /// Its name, as in JSON and CSV.
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

    /// Whether it runs a stage.
    pub const fn computes(self) -> bool {
        matches!(self, Self::ForwardStage | Self::BackwardStage | Self::InputGradStage | Self::WeightGradStage)
    }

    /// Whether it starts a transfer.
    pub const fn launches(self) -> bool {
        matches!(self, Self::Isend | Self::Irecv)
    }
}

/// A tensor that travels between two ranks, seen from one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transfer {
    /// What travels.
    pub payload: Payload,
    /// The rank at the other end.
    pub peer: u32,
    /// The stage at the other end.
    pub peer_stage: u32,
    /// The microbatch there: another one where sub-microbatches go into a microbatch, else the same.
    pub peer_microbatch: u32,
    /// Place in the order of its channel, the same at both ends.
    pub tag: u32,
    /// Batch of the rank in which it is launched.
    pub batch: u32,
    /// Size of the tensor, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// The output of a forward, to the stage behind.
    Activation,
    /// The gradient of a stage's input, to the stage before.
    Gradient,
}

impl Payload {
    /// Its name, as in JSON and CSV.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Activation => "activation",
            Self::Gradient => "gradient",
        }
    }
}
