//! Planner names and properties.

mod table;

use serde::{Deserialize, Serialize};

use planscope_core::training::Framework;
use planscope_pipeline::schedule::ScheduleKind;

pub use table::PlannerInfo;

/// A planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlannerKind {
    /// The fastest plan of all planners, with improved orders.
    Best,
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
    /// Sequence-parallel groups at power-of-two degrees, all-to-all exchange, microbatches of similar lengths
    /// (FlexSP; Wang et al., 2025).
    #[serde(rename = "flexsp")]
    FlexSp,
    /// A static context-parallel degree, sequences packed by work to variable length (WLB-LLM; Wang et al., 2025).
    WlbLlm,
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

/// A group of planners that share a planning method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannerFamily {
    /// The fastest plan of the other families.
    Best,
    /// A static layout with microbatches in data-loader order.
    Static,
    /// A static layout with a wait-free order per batch.
    WaitFree,
    /// Modules split into segments and sub-microbatches.
    PipeWeaver,
    /// Each rank is a model replica. Ranks form context-parallel groups that share sequences.
    ContextParallel,
    /// Pipelines with different parallel schemes.
    Strategies,
    /// Layouts including context-parallel degrees, for all modules or per module.
    ModuleLayouts,
    /// One encoder and one backbone on separate devices, layouts chosen from the data.
    Dflop,
}

impl PlannerKind {
    /// All planners, in display order.
    pub const ALL: [Self; 39] = {
        let mut all = [Self::Gpipe; 39];
        let mut index = 0;
        while index < all.len() {
            all[index] = table::TABLE[index].kind;
            index += 1;
        }
        all
    };

    /// Returns the planner's row in the table.
    pub const fn info(self) -> &'static PlannerInfo {
        &table::TABLE[self as usize]
    }

    /// Returns the stable identifier used in JSON and URLs.
    pub const fn id(self) -> &'static str {
        self.info().id
    }

    /// Returns the planner that has the given identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        self.info().title
    }

    /// Returns the display name of a plan with this pipeline-parallel degree. Without a pipeline, no schedule is named.
    pub const fn title_with(self, pipeline: u32) -> &'static str {
        let info = self.info();
        if pipeline == 1 && info.schedule.is_some() { "Static layout, no pipeline" } else { info.title }
    }

    /// Returns the display name for captions and legends.
    pub const fn short_title(self) -> &'static str {
        self.info().short_title
    }

    /// Returns the planning method.
    pub const fn family(self) -> PlannerFamily {
        self.info().family
    }

    /// Returns the schedule kind of a planner that uses a fixed schedule on a layout.
    pub const fn schedule(self) -> Option<ScheduleKind> {
        self.info().schedule
    }

    /// Returns whether a framework has the schedule of the planner, on a number of pipeline ranks. A plan of groups or of
    /// several layouts is in none.
    pub const fn runs_in(self, framework: Framework, pipeline: u32) -> bool {
        let schedule = match self {
            Self::Homogeneous | Self::StaticContext | Self::Ulysses | Self::StaticStrategy | Self::DeepSpeed => {
                ScheduleKind::OneFOneB
            }
            _ => match self.schedule() {
                Some(schedule) => schedule,
                None => return false,
            },
        };
        if pipeline <= 1 {
            return true;
        }
        match framework {
            Framework::Megatron => matches!(schedule, ScheduleKind::OneFOneB | ScheduleKind::Interleaved),
            Framework::MegatronDeepspeed => matches!(schedule, ScheduleKind::OneFOneB),
            Framework::Nanotron => matches!(schedule, ScheduleKind::Gpipe | ScheduleKind::OneFOneB),
            Framework::Internevo => matches!(
                schedule,
                ScheduleKind::OneFOneB | ScheduleKind::Interleaved | ScheduleKind::ZbH1 | ScheduleKind::Zbv
            ),
            Framework::Torchtitan => matches!(
                schedule,
                ScheduleKind::Gpipe
                    | ScheduleKind::OneFOneB
                    | ScheduleKind::Interleaved
                    | ScheduleKind::LoopedBfs
                    | ScheduleKind::InterleavedZeroBubble
                    | ScheduleKind::Zbv
            ),
            Framework::Fsdp | Framework::HuggingFace | Framework::Deepspeed => false,
        }
    }

    /// Returns whether the planner searches rankings, using [`super::SearchSettings::rollouts`].
    pub const fn searches_rankings(self) -> bool {
        matches!(self, Self::PipeWeaverRanking | Self::PipeWeaver)
    }

    /// Returns whether the planner chooses recomputation and offload for each layer.
    pub const fn tunes_layers(self) -> bool {
        matches!(self, Self::NnScaler | Self::PipeWeaver)
    }

    /// Returns whether the planner uses the numbers of layers per stage that a scenario fixes. Others have stages of
    /// their own.
    pub const fn follows_layers_per_stage(self) -> bool {
        matches!(self.family(), PlannerFamily::Best | PlannerFamily::Static | PlannerFamily::WaitFree)
            && !matches!(self, Self::Optimus)
    }

    /// Returns whether the planner has pipelines that are flushed after a number of microbatches, or no pipelines.
    pub const fn follows_flushes(self) -> bool {
        matches!(self.family(), PlannerFamily::Best | PlannerFamily::Static | PlannerFamily::ContextParallel)
            && !matches!(self, Self::Optimus)
    }

    /// Returns whether the planner partitions by module and therefore requires several modules.
    pub const fn cuts_by_module(self) -> bool {
        matches!(self.family(), PlannerFamily::PipeWeaver) || matches!(self, Self::Optimus)
    }
}
