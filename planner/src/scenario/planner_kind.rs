//! The planners by name.

mod question;

use serde::{Deserialize, Serialize};

use crate::schedule::ScheduleKind;

/// A planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// Best static layout under the GPipe schedule.
    Gpipe,
    /// Best static layout under the 1F1B schedule.
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// The same with stages of equal parameters instead of equal time, as a model is cut that nobody has profiled.
    #[serde(rename = "1f1b_parameters")]
    OneFOneBParameters,
    /// Best static layout under the interleaved schedule (VPP).
    Interleaved,
    /// The same with chunks of equal parameters instead of equal time, as a model is cut that nobody has
    /// profiled.
    InterleavedParameters,
    /// Best static layout under the looped breadth-first schedule.
    LoopedBfs,
    /// Best static layout under the interleaved zero-bubble schedule.
    InterleavedZeroBubble,
    /// Best static layout under ZB-H1, whose order is made for each batch's times within the memory of 1F1B.
    ZbH1,
    /// The same with twice the memory of 1F1B.
    ZbH2,
    /// Best static layout under ZBV, two chunks in a V.
    Zbv,
    /// The same with half the memory of 1F1B.
    VHalf,
    /// The same with a third of the memory of 1F1B.
    VMin,
    /// Static plan from one representative batch: uneven split by time, recomputation only where memory asks
    /// for it, 1F1B (after nnScaler; Lin et al., 2024).
    #[serde(rename = "nnscaler")]
    NnScaler,
    /// All encoder forwards, then the backbone's pipeline, then all encoder backwards (coarse-grained bubble
    /// scheduling of Optimus; Feng et al., 2024).
    Optimus,
    /// Wait-free cyclic schedule, ordered anew for every global batch.
    WaitFreeCyclic,
    /// PipeWeaver's partition and sub-microbatches in the order that equal stage times would give.
    #[serde(rename = "pipeweaver_partition")]
    PipeWeaverPartition,
    /// The same, interleaved by the dual queue for the batch at hand, microbatches in the order of the data
    /// loader.
    #[serde(rename = "pipeweaver_interleaving")]
    PipeWeaverInterleaving,
    /// The same, with the ranking of segment groups searched.
    #[serde(rename = "pipeweaver_ranking")]
    PipeWeaverRanking,
    /// PipeWeaver whole: partitioner, interleaving, ranking and layer tuning.
    #[serde(rename = "pipeweaver")]
    PipeWeaver,
    /// One context-parallel degree for all sequences, the best of an exhaustive search (Megatron-LM's ring).
    #[serde(rename = "static_cp")]
    StaticContext,
    /// One degree that divides the heads, tokens traded for heads (DeepSpeed-Ulysses; Jacobs et al., 2023).
    Ulysses,
    /// The degree of a sequence is the next power of two of its length over what a rank holds (Megatron-LM's hybrid
    /// context parallelism).
    #[serde(rename = "balanced_cp")]
    BalancedContext,
    /// Groups of any sequences whose degrees are powers of two (after FlexSP; Wang et al., 2025).
    #[serde(rename = "power_of_two_cp")]
    PowerOfTwoContext,
    /// Groups of any degree for every microbatch anew (DHP).
    Dhp,
    /// Best homogeneous <TP,PP,CP> for the whole run, sequences packed to the context length (Megatron-LM).
    StaticStrategy,
    /// DeepSpeed-Ulysses with all model states sharded over all devices (ZeRO 3) and no tensor parallelism.
    #[serde(rename = "deepspeed")]
    DeepSpeed,
    /// Homogeneous strategies one after the other in every iteration, each for sequences of some lengths (HotSPa; Ge et al.,
    /// 2024).
    #[serde(rename = "hotspa")]
    HotSpa,
    /// Hydraulis with one homogeneous strategy and packing to the context length: step (a) of its ablation.
    HydraulisBase,
    /// The same with packing by Eq. 1: step (b).
    HydraulisPacking,
    /// The same with one heterogeneous strategy for all batches: step (c).
    HydraulisStatic,
    /// Pipelines of different schemes, chosen for every batch anew (Hydraulis).
    Hydraulis,
    /// One layout for all modules with its context-parallel degree, encoders beside the backbone's pipeline on the same ranks.
    Homogeneous,
    /// A layout for each module on shared devices (heterogeneous parallelism, colocated; arXiv 2605.27678).
    HeterogeneousColocated,
    /// A layout for each module on devices of its own (heterogeneous parallelism, non-colocated).
    #[serde(rename = "heterogeneous_non_colocated")]
    HeterogeneousApart,
    /// Encoder and backbone on devices of their own, laid out for the data; microbatches in data-loader order (DFLOP without
    /// its online scheduler).
    DflopLayout,
    /// DFLOP whole: the same layouts, and every batch balanced anew.
    Dflop,
}

impl PlannerKind {
    /// Every planner, in the order in which pickers list them.
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

    /// Stable identifier, as in JSON and URLs.
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

    /// The planner of that identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Name shown to people.
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

    /// The same in two or three words, for captions and legends.
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

    /// Whether it searches rankings, for as long as [`super::SearchSettings::rollouts`] says.
    pub const fn searches_rankings(self) -> bool {
        matches!(self, Self::PipeWeaverRanking | Self::PipeWeaver)
    }

    /// Whether its pipelines have schemes of their own.
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

    /// Whether its ranks are whole replicas of the model that share sequences in groups.
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

    /// Whether it searches layouts with context-parallel degrees, of all modules or of each.
    pub const fn lays_out_modules(self) -> bool {
        matches!(self, Self::Homogeneous | Self::HeterogeneousColocated | Self::HeterogeneousApart)
    }

    /// The schedule of a planner that fills a layout with one, if it does.
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

    /// Whether it cuts the model module by module, so that it has something to do only where there are several.
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
