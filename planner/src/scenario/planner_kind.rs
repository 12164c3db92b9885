//! Planner names and properties.

mod question;

use serde::{Deserialize, Serialize};

use crate::schedule::ScheduleKind;

/// A planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// Best static layout for GPipe.
    Gpipe,
    /// Best static layout for 1F1B.
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// 1F1B, stages balanced by parameters instead of time, as for an unprofiled model.
    #[serde(rename = "1f1b_parameters")]
    OneFOneBParameters,
    /// Best static layout for interleaved 1F1B (VPP).
    Interleaved,
    /// Interleaved 1F1B, chunks balanced by parameters instead of time, as for an unprofiled model.
    InterleavedParameters,
    /// Best static layout for the looped breadth-first schedule.
    LoopedBfs,
    /// Best static layout for the interleaved zero-bubble schedule.
    InterleavedZeroBubble,
    /// Best static layout for ZB-H1. The order is computed per batch, limited to 1F1B memory.
    ZbH1,
    /// ZB-H2, with twice the memory of 1F1B.
    ZbH2,
    /// Best static layout for ZBV, two chunks in V shape.
    Zbv,
    /// V-Half, with half the memory of 1F1B.
    VHalf,
    /// V-Min, with a third of the memory of 1F1B.
    VMin,
    /// Static plan from a representative batch: uneven stages balanced by time, recomputation only
    /// if memory requires it, 1F1B (after nnScaler; Lin et al., 2024).
    #[serde(rename = "nnscaler")]
    NnScaler,
    /// All encoder forwards, then the backbone pipeline, then all encoder backwards (coarse-grained
    /// bubble scheduling in Optimus; Feng et al., 2024).
    Optimus,
    /// Wait-free cyclic schedule, reordered per global batch.
    WaitFreeCyclic,
    /// PipeWeaver partitioning and sub-microbatches, in the order for equal stage times.
    #[serde(rename = "pipeweaver_partition")]
    PipeWeaverPartition,
    /// Adds dual-queue interleaving per batch, microbatches in data-loader order.
    #[serde(rename = "pipeweaver_interleaving")]
    PipeWeaverInterleaving,
    /// Adds the search for segment group rankings.
    #[serde(rename = "pipeweaver_ranking")]
    PipeWeaverRanking,
    /// Full PipeWeaver: partitioner, interleaving, ranking and layer tuning.
    #[serde(rename = "pipeweaver")]
    PipeWeaver,
    /// A static context-parallel degree for all sequences, from exhaustive search (Megatron-LM ring
    /// attention).
    #[serde(rename = "static_cp")]
    StaticContext,
    /// A static degree that divides the heads, all-to-all from tokens to heads (DeepSpeed-Ulysses;
    /// Jacobs et al., 2023).
    Ulysses,
    /// Degree per sequence: sequence length divided by the tokens per rank, rounded up to a power
    /// of two (Megatron-LM hybrid context parallelism).
    #[serde(rename = "balanced_cp")]
    BalancedContext,
    /// Sequence groups at power-of-two degrees (after FlexSP; Wang et al., 2025).
    #[serde(rename = "power_of_two_cp")]
    PowerOfTwoContext,
    /// Groups at arbitrary degrees, replanned per microbatch (DHP).
    Dhp,
    /// Best homogeneous `<TP,PP,CP>` for the run, sequences packed to the context length
    /// (Megatron-LM).
    StaticStrategy,
    /// DeepSpeed-Ulysses and ZeRO 3 over all devices, no tensor parallelism.
    #[serde(rename = "deepspeed")]
    DeepSpeed,
    /// Several homogeneous strategies per iteration, executed sequentially, each for a
    /// sequence-length range (HotSPa; Ge et al., 2024).
    #[serde(rename = "hotspa")]
    HotSpa,
    /// Hydraulis using a single homogeneous strategy and packing to the context length: step (a) in
    /// the paper's ablation.
    HydraulisBase,
    /// Adds packing by Hydraulis Eq. 1: step (b).
    HydraulisPacking,
    /// Uses a single heterogeneous strategy for all batches: step (c).
    HydraulisStatic,
    /// Heterogeneous pipelines, selected per batch (Hydraulis).
    Hydraulis,
    /// A common layout and context-parallel degree for all modules. Encoders share ranks with the
    /// backbone pipeline.
    Homogeneous,
    /// A layout per module on shared devices (heterogeneous parallelism, colocated; arXiv
    /// 2605.27678).
    HeterogeneousColocated,
    /// A layout per module on separate devices (heterogeneous parallelism, non-colocated).
    #[serde(rename = "heterogeneous_non_colocated")]
    HeterogeneousApart,
    /// Encoder and backbone on separate devices, layouts optimized for the data, microbatches in
    /// data-loader order (DFLOP without its online scheduler).
    DflopLayout,
    /// Full DFLOP: the same layouts, plus online balancing per batch.
    Dflop,
}

impl PlannerKind {
    /// All planners, in display order.
    pub const ALL: [Self; 36] = [
        Self::Gpipe,
        Self::OneFOneB,
        Self::OneFOneBParameters,
        Self::Interleaved,
        Self::InterleavedParameters,
        Self::LoopedBfs,
        Self::InterleavedZeroBubble,
        Self::ZbH1,
        Self::ZbH2,
        Self::Zbv,
        Self::VHalf,
        Self::VMin,
        Self::NnScaler,
        Self::Optimus,
        Self::WaitFreeCyclic,
        Self::PipeWeaverPartition,
        Self::PipeWeaverInterleaving,
        Self::PipeWeaverRanking,
        Self::PipeWeaver,
        Self::StaticContext,
        Self::Ulysses,
        Self::BalancedContext,
        Self::PowerOfTwoContext,
        Self::Dhp,
        Self::StaticStrategy,
        Self::DeepSpeed,
        Self::HotSpa,
        Self::HydraulisBase,
        Self::HydraulisPacking,
        Self::HydraulisStatic,
        Self::Hydraulis,
        Self::Homogeneous,
        Self::HeterogeneousColocated,
        Self::HeterogeneousApart,
        Self::DflopLayout,
        Self::Dflop,
    ];

    /// Returns the stable identifier used in JSON and URLs.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Gpipe => "gpipe",
            Self::OneFOneB => "1f1b",
            Self::OneFOneBParameters => "1f1b_parameters",
            Self::Interleaved => "interleaved",
            Self::InterleavedParameters => "interleaved_parameters",
            Self::LoopedBfs => "looped_bfs",
            Self::InterleavedZeroBubble => "interleaved_zero_bubble",
            Self::ZbH1 => "zb_h1",
            Self::ZbH2 => "zb_h2",
            Self::Zbv => "zbv",
            Self::VHalf => "v_half",
            Self::VMin => "v_min",
            Self::NnScaler => "nnscaler",
            Self::Optimus => "optimus",
            Self::WaitFreeCyclic => "wait_free_cyclic",
            Self::PipeWeaverPartition => "pipeweaver_partition",
            Self::PipeWeaverInterleaving => "pipeweaver_interleaving",
            Self::PipeWeaverRanking => "pipeweaver_ranking",
            Self::PipeWeaver => "pipeweaver",
            Self::StaticContext => "static_cp",
            Self::Ulysses => "ulysses",
            Self::BalancedContext => "balanced_cp",
            Self::PowerOfTwoContext => "power_of_two_cp",
            Self::Dhp => "dhp",
            Self::StaticStrategy => "static_strategy",
            Self::DeepSpeed => "deepspeed",
            Self::HotSpa => "hotspa",
            Self::HydraulisBase => "hydraulis_base",
            Self::HydraulisPacking => "hydraulis_packing",
            Self::HydraulisStatic => "hydraulis_static",
            Self::Hydraulis => "hydraulis",
            Self::Homogeneous => "homogeneous",
            Self::HeterogeneousColocated => "heterogeneous_colocated",
            Self::HeterogeneousApart => "heterogeneous_non_colocated",
            Self::DflopLayout => "dflop_layout",
            Self::Dflop => "dflop",
        }
    }

    /// Returns the planner that has the given identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Gpipe => "GPipe, static",
            Self::OneFOneB => "Megatron-LM 1F1B, static",
            Self::OneFOneBParameters => "1F1B, equal parameters, static",
            Self::Interleaved => "Megatron-LM interleaved, static",
            Self::InterleavedParameters => "Megatron-LM interleaved, equal parameters, static",
            Self::LoopedBfs => "Looped BFS, static",
            Self::InterleavedZeroBubble => "Interleaved zero bubble (ZB1P), static",
            Self::ZbH1 => "ZB-H1, static layout",
            Self::ZbH2 => "ZB-H2, static layout",
            Self::Zbv => "ZBV, static",
            Self::VHalf => "V-Half, static",
            Self::VMin => "V-Min, static",
            Self::NnScaler => "nnScaler*, uneven split and 1F1B, static",
            Self::Optimus => "Optimus, coarse-grained, static",
            Self::WaitFreeCyclic => "Wait-free cyclic, dynamic",
            Self::PipeWeaverPartition => "PipeWeaver, partitioner only",
            Self::PipeWeaverInterleaving => "PipeWeaver without ranking and layer tuning",
            Self::PipeWeaverRanking => "PipeWeaver without layer tuning",
            Self::PipeWeaver => "PipeWeaver, dynamic",
            Self::StaticContext => "Static context parallelism (ring)",
            Self::Ulysses => "DeepSpeed-Ulysses, static",
            Self::BalancedContext => "Megatron-LM balanced context parallelism",
            Self::PowerOfTwoContext => "Groups of powers of two (after FlexSP)",
            Self::Dhp => "DHP, dynamic groups",
            Self::StaticStrategy => "Best static <TP,PP,CP> (Megatron-LM)",
            Self::DeepSpeed => "DeepSpeed SP (ZeRO-3 and Ulysses), static",
            Self::HotSpa => "HotSPa, strategies one after the other",
            Self::HydraulisBase => "Hydraulis, dispatching only",
            Self::HydraulisPacking => "Hydraulis, dispatching and packing",
            Self::HydraulisStatic => "Hydraulis, one heterogeneous strategy",
            Self::Hydraulis => "Hydraulis, dynamic strategies",
            Self::Homogeneous => "One layout for all modules, static",
            Self::HeterogeneousColocated => "Heterogeneous layouts, colocated, static",
            Self::HeterogeneousApart => "Heterogeneous layouts, non-colocated, static",
            Self::DflopLayout => "DFLOP without online scheduler, static",
            Self::Dflop => "DFLOP, dynamic microbatches",
        }
    }

    /// Returns a short display name for captions and legends.
    pub const fn short(self) -> &'static str {
        match self {
            Self::Gpipe => "GPipe",
            Self::OneFOneB => "1F1B",
            Self::OneFOneBParameters => "1F1B, equal parameters",
            Self::Interleaved => "interleaved",
            Self::InterleavedParameters => "interleaved, equal parameters",
            Self::LoopedBfs => "looped BFS",
            Self::InterleavedZeroBubble => "ZB1P",
            Self::ZbH1 => "ZB-H1",
            Self::ZbH2 => "ZB-H2",
            Self::Zbv => "ZBV",
            Self::VHalf => "V-Half",
            Self::VMin => "V-Min",
            Self::NnScaler => "nnScaler*",
            Self::Optimus => "Optimus",
            Self::WaitFreeCyclic => "wait-free cyclic",
            Self::PipeWeaverPartition => "PipeWeaver (partitioner)",
            Self::PipeWeaverInterleaving => "PipeWeaver (interleaving)",
            Self::PipeWeaverRanking => "PipeWeaver (ranking)",
            Self::PipeWeaver => "PipeWeaver",
            Self::StaticContext => "static CP",
            Self::Ulysses => "Ulysses",
            Self::BalancedContext => "balanced CP",
            Self::PowerOfTwoContext => "powers of two",
            Self::Dhp => "DHP",
            Self::StaticStrategy => "static strategy",
            Self::DeepSpeed => "DeepSpeed SP",
            Self::HotSpa => "HotSPa",
            Self::HydraulisBase => "Hydraulis (dispatch)",
            Self::HydraulisPacking => "Hydraulis (packing)",
            Self::HydraulisStatic => "Hydraulis (static)",
            Self::Hydraulis => "Hydraulis",
            Self::Homogeneous => "one layout",
            Self::HeterogeneousColocated => "colocated",
            Self::HeterogeneousApart => "non-colocated",
            Self::DflopLayout => "DFLOP (layouts)",
            Self::Dflop => "DFLOP",
        }
    }

    /// Returns whether the planner searches rankings, using [`super::SearchSettings::rollouts`].
    pub const fn searches_rankings(self) -> bool {
        matches!(self, Self::PipeWeaverRanking | Self::PipeWeaver)
    }

    /// Returns whether pipelines can have different parallel schemes.
    pub const fn has_strategies(self) -> bool {
        matches!(
            self,
            Self::StaticStrategy
                | Self::HotSpa
                | Self::HydraulisBase
                | Self::HydraulisPacking
                | Self::HydraulisStatic
                | Self::Hydraulis
        )
    }

    /// Returns whether each rank is a model replica and ranks form groups that share sequences.
    pub const fn works_in_groups(self) -> bool {
        matches!(
            self,
            Self::StaticContext
                | Self::Ulysses
                | Self::BalancedContext
                | Self::PowerOfTwoContext
                | Self::Dhp
                | Self::DeepSpeed
        )
    }

    /// Returns whether the planner searches layouts including context-parallel degrees, globally or
    /// per module.
    pub const fn lays_out_modules(self) -> bool {
        matches!(self, Self::Homogeneous | Self::HeterogeneousColocated | Self::HeterogeneousApart)
    }

    /// Returns the schedule kind of a planner that uses a fixed schedule on a layout.
    pub const fn schedule(self) -> Option<ScheduleKind> {
        match self {
            Self::Gpipe => Some(ScheduleKind::Gpipe),
            Self::OneFOneB | Self::OneFOneBParameters | Self::NnScaler => Some(ScheduleKind::OneFOneB),
            Self::Interleaved | Self::InterleavedParameters => Some(ScheduleKind::Interleaved),
            Self::LoopedBfs => Some(ScheduleKind::LoopedBfs),
            Self::InterleavedZeroBubble => Some(ScheduleKind::InterleavedZeroBubble),
            Self::ZbH1 => Some(ScheduleKind::ZbH1),
            Self::ZbH2 => Some(ScheduleKind::ZbH2),
            Self::Zbv => Some(ScheduleKind::Zbv),
            Self::VHalf => Some(ScheduleKind::VHalf),
            Self::VMin => Some(ScheduleKind::VMin),
            _ => None,
        }
    }

    /// Returns whether the planner partitions by module and therefore requires several modules.
    pub const fn cuts_by_module(self) -> bool {
        matches!(
            self,
            Self::Optimus
                | Self::PipeWeaverPartition
                | Self::PipeWeaverInterleaving
                | Self::PipeWeaverRanking
                | Self::PipeWeaver
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_urls_use_the_same_identifier() {
        for kind in PlannerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.id());
            assert_eq!(PlannerKind::from_id(kind.id()), Some(kind));
        }
    }
}
