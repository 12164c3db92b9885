//! The table of planners.

use super::{PlannerFamily, PlannerKind};
use planscope_pipeline::schedule::ScheduleKind;

/// Properties of a planner.
#[derive(Debug, Clone, Copy)]
pub struct PlannerInfo {
    pub kind: PlannerKind,
    /// Stable identifier in JSON and URLs.
    pub id: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Display name for captions and legends.
    pub short_title: &'static str,
    /// Purpose as a phrase of at most 70 characters, for users who do not know the planner.
    pub purpose: &'static str,
    pub family: PlannerFamily,
    /// Schedule, if the planner runs a fixed schedule on a layout.
    pub schedule: Option<ScheduleKind>,
    /// Paper or system that describes the method.
    pub source: &'static str,
}

/// All planners, in display order. The order equals the order of the variants.
pub(super) const TABLE: [PlannerInfo; 39] = [
    PlannerInfo {
        kind: PlannerKind::Best,
        id: "best",
        title: "Best plan",
        short_title: "best",
        purpose: "The plan to run: the fastest of all planners, then improved",
        family: PlannerFamily::Best,
        schedule: None,
        source: "docs/models.md",
    },
    PlannerInfo {
        kind: PlannerKind::Gpipe,
        id: "gpipe",
        title: "GPipe, static",
        short_title: "GPipe",
        purpose: "All forwards, then all backwards",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::Gpipe),
        source: "GPipe (Huang et al., 2019)",
    },
    PlannerInfo {
        kind: PlannerKind::OneFOneB,
        id: "1f1b",
        title: "1F1B, static",
        short_title: "1F1B",
        purpose: "The usual pipeline: one forward, one backward",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::OneFOneB),
        source: "PipeDream-Flush (Narayanan et al., 2021)",
    },
    PlannerInfo {
        kind: PlannerKind::OneFOneBParameters,
        id: "1f1b_parameters",
        title: "1F1B, equal parameters, static",
        short_title: "1F1B, equal parameters",
        purpose: "1F1B with equal parameters on every stage",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::OneFOneB),
        source: "PipeDream-Flush (Narayanan et al., 2021)",
    },
    PlannerInfo {
        kind: PlannerKind::Interleaved,
        id: "interleaved",
        title: "Interleaved 1F1B, static",
        short_title: "interleaved",
        purpose: "Several chunks a rank (VPP) for a smaller bubble",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::Interleaved),
        source: "Megatron-LM (Narayanan et al., 2021)",
    },
    PlannerInfo {
        kind: PlannerKind::InterleavedParameters,
        id: "interleaved_parameters",
        title: "Interleaved 1F1B, equal parameters, static",
        short_title: "interleaved, equal parameters",
        purpose: "VPP with equal parameters in every chunk",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::Interleaved),
        source: "Megatron-LM (Narayanan et al., 2021)",
    },
    PlannerInfo {
        kind: PlannerKind::LoopedBfs,
        id: "looped_bfs",
        title: "Looped BFS, static",
        short_title: "looped BFS",
        purpose: "Several chunks a rank, breadth first",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::LoopedBfs),
        source: "Breadth-First Pipeline Parallelism (Lamy-Poirier, 2023)",
    },
    PlannerInfo {
        kind: PlannerKind::InterleavedZeroBubble,
        id: "interleaved_zero_bubble",
        title: "Interleaved zero bubble (ZB1P), static",
        short_title: "ZB1P",
        purpose: "VPP with split backwards",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::InterleavedZeroBubble),
        source: "Zero Bubble Pipeline Parallelism (Qi et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::ZbH1,
        id: "zb_h1",
        title: "ZB-H1, static layout",
        short_title: "ZB-H1",
        purpose: "Split backwards for a smaller bubble, memory of 1F1B",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::ZbH1),
        source: "Zero Bubble Pipeline Parallelism (Qi et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::ZbH2,
        id: "zb_h2",
        title: "ZB-H2, static layout",
        short_title: "ZB-H2",
        purpose: "Split backwards for no bubble, twice the memory",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::ZbH2),
        source: "Zero Bubble Pipeline Parallelism (Qi et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::Zbv,
        id: "zbv",
        title: "ZBV, static",
        short_title: "ZBV",
        purpose: "Split backwards, two chunks in a V, memory of 1F1B",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::Zbv),
        source: "Pipeline Parallelism with Controllable Memory (Qi et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::VHalf,
        id: "v_half",
        title: "V-Half, static",
        short_title: "V-Half",
        purpose: "Half the activation memory of 1F1B",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::VHalf),
        source: "Pipeline Parallelism with Controllable Memory (Qi et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::VMin,
        id: "v_min",
        title: "V-Min, static",
        short_title: "V-Min",
        purpose: "A third of the activation memory of 1F1B",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::VMin),
        source: "Pipeline Parallelism with Controllable Memory (Qi et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::NnScaler,
        id: "nnscaler",
        title: "nnScaler*, uneven split and 1F1B, static",
        short_title: "nnScaler*",
        purpose: "Uneven stages, recompute only where memory asks for it",
        family: PlannerFamily::Static,
        schedule: Some(ScheduleKind::OneFOneB),
        source: "nnScaler (Lin et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::Optimus,
        id: "optimus",
        title: "Optimus, coarse-grained, static",
        short_title: "Optimus",
        purpose: "Encoder work inside the bubbles of the backbone",
        family: PlannerFamily::Static,
        schedule: None,
        source: "Optimus (Feng et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::WaitFreeCyclic,
        id: "wait_free_cyclic",
        title: "Wait-free cyclic, dynamic",
        short_title: "wait-free cyclic",
        purpose: "Balance sample lengths over data parallelism",
        family: PlannerFamily::WaitFree,
        schedule: None,
        source: "after DynaPipe (Jiang et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::PipeWeaverPartition,
        id: "pipeweaver_partition",
        title: "PipeWeaver, partitioner only",
        short_title: "PipeWeaver (partitioner)",
        purpose: "Uneven stages by module, static order",
        family: PlannerFamily::PipeWeaver,
        schedule: None,
        source: "PipeWeaver (Xue et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::PipeWeaverInterleaving,
        id: "pipeweaver_interleaving",
        title: "PipeWeaver without ranking and layer tuning",
        short_title: "PipeWeaver (interleaving)",
        purpose: "Stages by module, order made for each batch",
        family: PlannerFamily::PipeWeaver,
        schedule: None,
        source: "PipeWeaver (Xue et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::PipeWeaverRanking,
        id: "pipeweaver_ranking",
        title: "PipeWeaver without layer tuning",
        short_title: "PipeWeaver (ranking)",
        purpose: "Stages by module, order searched for each batch",
        family: PlannerFamily::PipeWeaver,
        schedule: None,
        source: "PipeWeaver (Xue et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::PipeWeaver,
        id: "pipeweaver",
        title: "PipeWeaver, dynamic",
        short_title: "PipeWeaver",
        purpose: "Balance modules and samples of each batch in one pipeline",
        family: PlannerFamily::PipeWeaver,
        schedule: None,
        source: "PipeWeaver (Xue et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::StaticContext,
        id: "static_cp",
        title: "Static context parallelism (ring)",
        short_title: "static CP",
        purpose: "One context-parallel degree, ring exchange",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "Megatron-LM context parallelism",
    },
    PlannerInfo {
        kind: PlannerKind::Ulysses,
        id: "ulysses",
        title: "DeepSpeed-Ulysses, static",
        short_title: "Ulysses",
        purpose: "One context-parallel degree, all-to-all over heads",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "DeepSpeed-Ulysses (Jacobs et al., 2023)",
    },
    PlannerInfo {
        kind: PlannerKind::BalancedContext,
        id: "balanced_cp",
        title: "Megatron-LM balanced context parallelism",
        short_title: "balanced CP",
        purpose: "Context-parallel degree by sequence length",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "Megatron-LM hybrid context parallelism",
    },
    PlannerInfo {
        kind: PlannerKind::PowerOfTwoContext,
        id: "power_of_two_cp",
        title: "Groups of powers of two (after FlexSP)",
        short_title: "powers of two",
        purpose: "Context-parallel groups of 1, 2, 4, ... by length",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "after FlexSP (Wang et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::FlexSp,
        id: "flexsp",
        title: "FlexSP, groups of powers of two by all-to-all",
        short_title: "FlexSP",
        purpose: "Ulysses groups of 1, 2, 4, ... for each microbatch of similar lengths",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "FlexSP (Wang et al., 2025, arXiv 2412.01523)",
    },
    PlannerInfo {
        kind: PlannerKind::WlbLlm,
        id: "wlb_llm",
        title: "WLB-LLM, packing by work, static degree",
        short_title: "WLB-LLM",
        purpose: "One context-parallel degree, sequences packed by work",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "WLB-LLM (Wang et al., 2025, arXiv 2503.17924)",
    },
    PlannerInfo {
        kind: PlannerKind::Dhp,
        id: "dhp",
        title: "DHP, dynamic groups",
        short_title: "DHP",
        purpose: "Dynamic context parallelism: groups of any size for each batch",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "DHP (Niu et al., 2026)",
    },
    PlannerInfo {
        kind: PlannerKind::StaticStrategy,
        id: "static_strategy",
        title: "Best static <TP,PP,CP> (Megatron-LM)",
        short_title: "static strategy",
        purpose: "The best fixed TP, PP and CP for long sequences",
        family: PlannerFamily::Strategies,
        schedule: None,
        source: "Megatron-LM",
    },
    PlannerInfo {
        kind: PlannerKind::DeepSpeed,
        id: "deepspeed",
        title: "DeepSpeed SP (ZeRO-3 and Ulysses), static",
        short_title: "DeepSpeed SP",
        purpose: "ZeRO-3 with Ulysses, no tensor parallelism",
        family: PlannerFamily::ContextParallel,
        schedule: None,
        source: "DeepSpeed-Ulysses (Jacobs et al., 2023), ZeRO-3",
    },
    PlannerInfo {
        kind: PlannerKind::HotSpa,
        id: "hotspa",
        title: "HotSPa, strategies one after the other",
        short_title: "HotSPa",
        purpose: "Switch layouts between short and long sequences",
        family: PlannerFamily::Strategies,
        schedule: None,
        source: "HotSPa (Ge et al., 2024)",
    },
    PlannerInfo {
        kind: PlannerKind::HydraulisBase,
        id: "hydraulis_base",
        title: "Hydraulis, dispatching only",
        short_title: "Hydraulis (dispatch)",
        purpose: "One layout, sequences assigned by cost",
        family: PlannerFamily::Strategies,
        schedule: None,
        source: "Hydraulis (Li et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::HydraulisPacking,
        id: "hydraulis_packing",
        title: "Hydraulis, dispatching and packing",
        short_title: "Hydraulis (packing)",
        purpose: "One layout, sequences assigned and packed by cost",
        family: PlannerFamily::Strategies,
        schedule: None,
        source: "Hydraulis (Li et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::HydraulisStatic,
        id: "hydraulis_static",
        title: "Hydraulis, one heterogeneous strategy",
        short_title: "Hydraulis (static)",
        purpose: "Different layouts for short and long sequences, fixed",
        family: PlannerFamily::Strategies,
        schedule: None,
        source: "Hydraulis (Li et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::Hydraulis,
        id: "hydraulis",
        title: "Hydraulis, dynamic strategies",
        short_title: "Hydraulis",
        purpose: "Different layouts for short and long sequences, for each batch",
        family: PlannerFamily::Strategies,
        schedule: None,
        source: "Hydraulis (Li et al., 2025)",
    },
    PlannerInfo {
        kind: PlannerKind::Homogeneous,
        id: "homogeneous",
        title: "One layout for all modules, static",
        short_title: "one layout",
        purpose: "One layout for encoder and backbone",
        family: PlannerFamily::ModuleLayouts,
        schedule: None,
        source: "arXiv 2605.27678",
    },
    PlannerInfo {
        kind: PlannerKind::HeterogeneousColocated,
        id: "heterogeneous_colocated",
        title: "Heterogeneous layouts, colocated, static",
        short_title: "colocated",
        purpose: "A layout for each module on the same devices",
        family: PlannerFamily::ModuleLayouts,
        schedule: None,
        source: "arXiv 2605.27678",
    },
    PlannerInfo {
        kind: PlannerKind::HeterogeneousApart,
        id: "heterogeneous_non_colocated",
        title: "Heterogeneous layouts, non-colocated, static",
        short_title: "non-colocated",
        purpose: "Encoder on devices of its own",
        family: PlannerFamily::ModuleLayouts,
        schedule: None,
        source: "arXiv 2605.27678",
    },
    PlannerInfo {
        kind: PlannerKind::DflopLayout,
        id: "dflop_layout",
        title: "DFLOP without online scheduler, static",
        short_title: "DFLOP (layouts)",
        purpose: "Encoder and backbone laid out for the data",
        family: PlannerFamily::Dflop,
        schedule: None,
        source: "DFLOP",
    },
    PlannerInfo {
        kind: PlannerKind::Dflop,
        id: "dflop",
        title: "DFLOP, dynamic microbatches",
        short_title: "DFLOP",
        purpose: "Encoder and backbone laid out for the data, batches balanced",
        family: PlannerFamily::Dflop,
        schedule: None,
        source: "DFLOP",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_variants() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, index, "{}", row.id);
        }
    }

    #[test]
    fn json_and_urls_use_the_same_identifier() {
        for kind in PlannerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.id());
            assert_eq!(PlannerKind::from_id(kind.id()), Some(kind));
        }
    }

    #[test]
    fn plans_without_a_pipeline_name_no_schedule() {
        assert_eq!(PlannerKind::OneFOneB.title_with(4), "1F1B, static");
        assert_eq!(PlannerKind::Interleaved.title_with(4), "Interleaved 1F1B, static");
        assert_eq!(PlannerKind::OneFOneB.title_with(1), "Static layout, no pipeline");
        assert_eq!(PlannerKind::Dhp.title_with(1), PlannerKind::Dhp.title());
    }

    #[test]
    fn titles_and_purposes_are_unique() {
        let fields: [fn(&PlannerInfo) -> &'static str; 3] = [|row| row.title, |row| row.short_title, |row| row.purpose];
        for field in fields {
            let mut texts: Vec<&str> = TABLE.iter().map(field).collect();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), TABLE.len());
        }
        assert!(TABLE.iter().all(|row| row.purpose.len() <= 70), "the form shows a purpose in one line");
    }
}
