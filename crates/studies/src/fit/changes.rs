//! Single changes of a scenario that can reduce memory or time.

use serde_json::{Value, json};

use super::{ChangeKind, FieldChange};
use planscope_core::training::{
    AttentionKernel, ContextExchange, Execution, Experts, Framework, GradientFormat, Kernels, MomentFormat, Recompute,
    RecomputedModule,
};
use planscope_core::workload::Packing;
use planscope_cost::cost::has_rate;
use planscope_plan::scenario::{FreeSetting, PlanSettings, PlannerKind, Scenario};

/// Pointer of the requested planners.
pub(super) const PLANNERS: &str = "/planners";
/// Most chunks of a change of the schedule.
const MAX_CHUNKS: u32 = 8;

/// A change that is not yet simulated.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Proposal {
    pub title: String,
    pub kind: ChangeKind,
    pub fields: Vec<FieldChange>,
}

fn proposal(kind: ChangeKind, title: impl Into<String>, fields: &[(&str, Value)]) -> Proposal {
    let fields =
        fields.iter().map(|(pointer, value)| FieldChange { pointer: (*pointer).to_owned(), value: value.clone() });
    Proposal { title: title.into(), kind, fields: fields.collect() }
}

/// Returns the changes of a scenario that `planner` plans. Settings that are free are not proposed, because planners
/// choose them.
pub(super) fn proposals(scenario: &Scenario, planner: PlannerKind, fits: bool) -> Vec<Proposal> {
    let mut all = Vec::new();
    interleaving(scenario, planner, &mut all);
    recomputation(scenario, &mut all);
    training(scenario, &mut all);
    layout(scenario, &mut all);
    cluster(scenario, fits, &mut all);
    all
}

/// Pointers of changes that save much memory.
const SAVING: [&str; 12] = [
    "/training/recompute",
    "/training/zero",
    "/training/optimizer_offload",
    "/training/parameter_offload",
    "/training/activation_offload",
    "/training/gradients",
    "/training/moments",
    "/layout/tensor",
    "/layout/pipeline",
    "/layout/microbatch",
    "/layout",
    "/training/context_parallel",
];

/// Returns pairs of changes that save much memory, for a job that no single change makes fit. Of several changes of a
/// field, those that save most take part.
pub(super) fn pairs(single: &[Proposal]) -> Vec<Proposal> {
    let mut savers: Vec<&Proposal> = Vec::new();
    for pointer in SAVING {
        let is_first = |field: &FieldChange| field.pointer == pointer;
        let of_field = |proposal: &&Proposal| {
            proposal.kind != ChangeKind::Cluster && proposal.fields.first().is_some_and(is_first)
        };
        let changes: Vec<&Proposal> = single.iter().filter(of_field).collect();
        savers.extend(match pointer {
            "/training/recompute" => {
                let is_full = |change: &&&Proposal| {
                    let values: Vec<&Value> = change.fields.iter().map(|field| &field.value).collect();
                    values == [&json!(Recompute::Full), &Value::Null]
                };
                changes.iter().find(is_full).into_iter().collect()
            }
            // The smallest microbatch; the largest degrees and shares.
            "/layout/microbatch" => changes.first().into_iter().collect(),
            "/layout/tensor" | "/layout/pipeline" => changes.iter().rev().take(2).collect(),
            _ => changes.last().into_iter().collect::<Vec<_>>(),
        });
    }
    let mut all = Vec::new();
    for (index, first) in savers.iter().enumerate() {
        for second in &savers[index + 1..] {
            let is_separate = |field: &FieldChange| {
                first.fields.iter().all(|other| {
                    let (one, two) = (field.pointer.as_str(), other.pointer.as_str());
                    !one.starts_with(two) && !two.starts_with(one)
                })
            };
            if second.fields.iter().all(is_separate) {
                let fields = first.fields.iter().chain(&second.fields).cloned().collect();
                all.push(Proposal { title: format!("{} + {}", first.title, second.title), kind: first.kind, fields });
            }
        }
    }
    all
}

fn recomputation(scenario: &Scenario, all: &mut Vec<Proposal>) {
    if scenario.is_free(FreeSetting::Recompute) {
        return;
    }
    let mut add = |title: String, recompute: Recompute, layers: Option<u32>| {
        all.push(proposal(
            ChangeKind::Training,
            title,
            &[("/training/recompute", json!(recompute)), ("/training/recompute_layers", json!(layers))],
        ));
    };
    add("no recomputation".to_owned(), Recompute::None, None);
    add("selective recomputation".to_owned(), Recompute::Selective, None);
    if scenario.training.framework == Framework::Torchtitan {
        add("recomputation by operator".to_owned(), Recompute::Operators, None);
    }
    add("full recomputation".to_owned(), Recompute::Full, None);
    for count in PlanSettings::recomputed_layers(scenario.model.layers()) {
        let unit = if count == 1 { "layer" } else { "layers" };
        add(format!("full recomputation of {count} {unit} per stage"), Recompute::Full, Some(count));
    }
    all.extend(recomputed_modules(scenario));
}

/// Recomputation of modules that need little time, as Megatron-LM has it.
fn recomputed_modules(scenario: &Scenario) -> Option<Proposal> {
    let set = *PlanSettings::recomputed_modules(scenario).first()?;
    if PlanSettings::from_scenario(scenario).recompute_modules == set {
        return None;
    }
    let names: Vec<&str> = set.iter().map(RecomputedModule::id).collect();
    let fields = [
        ("/training/recompute", json!(Recompute::Selective)),
        ("/training/recompute_layers", Value::Null),
        ("/training/recompute_modules", json!(set)),
    ];
    Some(proposal(ChangeKind::Training, format!("recomputation of {}", names.join(", ")), &fields))
}

fn training(scenario: &Scenario, all: &mut Vec<Proposal>) {
    let settings = &scenario.training;
    let kind = ChangeKind::Training;
    if !scenario.is_free(FreeSetting::ActivationOffload) {
        for percent in [25, 50, 75, 100] {
            let title = format!("offload {percent} % of the activations to host memory");
            all.push(proposal(kind, title, &[("/training/activation_offload", json!(f64::from(percent) / 100.0))]));
        }
    }
    for percent in [50, 100] {
        let share = f64::from(percent) / 100.0;
        if share > settings.offloaded_optimizer() {
            let title = format!("offload {percent} % of the optimizer to host memory");
            all.push(proposal(kind, title, &[("/training/optimizer_offload", json!(share))]));
        }
    }
    no_offload(scenario, all);
    parameter_offload(scenario, all);
    if !scenario.is_free(FreeSetting::Zero) && !settings.offloads_parameters() {
        // The pipeline engine of DeepSpeed shards neither gradients nor weights.
        let has_engine = settings.framework == Framework::MegatronDeepspeed && scenario.layout.pipeline != Some(1);
        let most = if has_engine { 1 } else { 3 };
        for zero in (0..=most).filter(|&zero| zero != settings.zero_stage()) {
            let mut fields = vec![("/training/zero", json!(zero))];
            // DeepSpeed overlaps gradient communication by default at stage 3 alone.
            if settings.framework == Framework::Deepspeed && settings.zero_stage() == 3 && settings.data_overlap > 0.0 {
                fields.push(("/training/data_overlap", json!(0.0)));
            }
            all.push(proposal(kind, format!("ZeRO {zero}"), &fields));
        }
    }
    hybrid_sharding(scenario, all);
    if settings.unsharded_gradients && settings.zero_stage() >= 2 {
        let title = "gradients reduced and sharded after each microbatch";
        all.push(proposal(kind, title, &[("/training/unsharded_gradients", json!(false))]));
    }
    if settings.microbatches_per_flush.is_some() {
        let title = "one pipeline flush per step, without gradient accumulation";
        all.push(proposal(kind, title, &[("/training/microbatches_per_flush", Value::Null)]));
    }
    overlap(scenario, all);
    if settings.framework.is_hugging_face() && !settings.chunked_loss {
        let fields = [("/training/chunked_loss", json!(true)), ("/training/execution", json!(Execution::Compiled))];
        all.push(proposal(kind, "Liger-Kernel (fused kernels, loss in chunks)", &fields));
    }
    if settings.gradients == GradientFormat::Fp32 {
        all.push(proposal(kind, "gradients in bf16", &[("/training/gradients", json!(GradientFormat::Bf16))]));
    }
    if settings.moments == MomentFormat::Fp32 && settings.optimizer.has_moment_format() {
        all.push(proposal(kind, "moments in bf16", &[("/training/moments", json!(MomentFormat::Bf16))]));
    }
    if settings.attention == AttentionKernel::Unfused {
        let has_fp8 = scenario.cluster.device.fp8_tflops.is_some();
        let kernel = json!(settings.framework.attention(has_fp8).unwrap_or(AttentionKernel::Flash));
        all.push(proposal(kind, "fused attention", &[("/training/attention", kernel)]));
    }
    // A loop over experts breaks the compiled graph.
    let has_loop = settings.profile().experts == Experts::OneByOne
        && scenario.model.modules.iter().any(|module| module.moe.is_some());
    if settings.profile().norms == Kernels::Eager && !has_loop {
        let execution = json!(Execution::Compiled);
        all.push(proposal(kind, "fused memory-bound kernels (torch.compile)", &[("/training/execution", execution)]));
    }
    let is_newer_known = has_rate(AttentionKernel::Flash3, &scenario.cluster.device);
    if settings.attention == AttentionKernel::Flash2 && is_newer_known {
        let kernel = json!(AttentionKernel::Flash3);
        all.push(proposal(kind, "FlashAttention 3", &[("/training/attention", kernel)]));
    }
    if !settings.sequence_parallel && !scenario.is_free(FreeSetting::SequenceParallel) {
        all.push(proposal(kind, "sequence parallelism", &[("/training/sequence_parallel", json!(true))]));
    }
    if scenario.workload.packing != Packing::Packed && !scenario.is_free(FreeSetting::Packing) {
        let packed = [("/workload/packing", json!(Packing::Packed))];
        all.push(proposal(ChangeKind::Workload, "samples packed to the context length", &packed));
    }
}

/// Overlap of communication with computation, in frameworks that have options for it.
fn overlap(scenario: &Scenario, all: &mut Vec<Proposal>) {
    let Scenario { training, layout, .. } = scenario;
    let replica = layout.tensor.unwrap_or(1).saturating_mul(layout.pipeline.unwrap_or(1));
    // DeepSpeed has an option for gradients.
    let framework = training.framework;
    let has_option = framework.is_hugging_face() || matches!(framework, Framework::Megatron | Framework::Torchtitan);
    if has_option && training.data_overlap < 1.0 && scenario.cluster.devices() > replica {
        let fields = [("/training/data_overlap", json!(1.0))];
        let title = if training.data_overlap > 0.0 {
            "overlap of gradient communication and of the gathering of weights"
        } else {
            "overlap of gradient communication"
        };
        all.push(proposal(ChangeKind::Training, title, &fields));
    }
    let best = training.framework.tensor_overlap().filter(|&overlap| overlap > training.tensor_overlap);
    if let Some(overlap) = best.filter(|_| layout.tensor.is_none_or(|tensor| tensor > 1)) {
        let mut fields = vec![("/training/tensor_overlap", json!(overlap))];
        // Only the collectives of sequence parallelism have chunks.
        if !training.sequence_parallel {
            fields.push(("/training/sequence_parallel", json!(true)));
        }
        // torchtitan overlaps in compiled blocks.
        if training.framework == Framework::Torchtitan && training.profile().norms == Kernels::Eager {
            fields.push(("/training/execution", json!(Execution::Compiled)));
        }
        all.push(proposal(ChangeKind::Training, "overlap of tensor-parallel communication", &fields));
    }
}

/// No offload for a job that has it: the host memory can be too small, or the link too slow.
fn no_offload(scenario: &Scenario, all: &mut Vec<Proposal>) {
    let settings = &scenario.training;
    let (activations, optimizer) = (FreeSetting::ActivationOffload, FreeSetting::OptimizerOffload);
    for (pointer, share, setting, title) in [
        ("/training/activation_offload", settings.activation_offload, activations, "no offload of activations"),
        ("/training/optimizer_offload", settings.optimizer_offload, optimizer, "no offload of the optimizer"),
    ] {
        if share > 0.0 && !settings.offloads_parameters() && !scenario.is_free(setting) {
            all.push(proposal(ChangeKind::Training, title, &[(pointer, json!(0.0))]));
        }
    }
}

/// Offload of all states to the host in frameworks that have it; less offload for a job that has it.
fn parameter_offload(scenario: &Scenario, all: &mut Vec<Proposal>) {
    let settings = &scenario.training;
    let kind = ChangeKind::Training;
    if settings.offloads_parameters() {
        let on_device = [("/training/parameter_offload", json!(false)), ("/training/optimizer_offload", json!(0.0))];
        all.push(proposal(kind, "no offload to host memory", &on_device));
        let of_optimizer = [("/training/parameter_offload", json!(false)), ("/training/optimizer_offload", json!(1.0))];
        all.push(proposal(kind, "offload of the optimizer alone", &of_optimizer));
        return;
    }
    if offloads_states(scenario) && !scenario.is_free(FreeSetting::Zero) {
        let mut fields = vec![("/training/parameter_offload", json!(true))];
        if settings.zero_stage() != 3 {
            fields.push(("/training/zero", json!(3)));
        }
        all.push(proposal(kind, "offload weights, gradients and the optimizer to host memory (ZeRO 3)", &fields));
    }
}

/// True if the framework can have all states in host memory.
pub(super) fn offloads_states(scenario: &Scenario) -> bool {
    let framework = scenario.training.framework;
    framework.is_hugging_face() || matches!(framework, Framework::Fsdp | Framework::Torchtitan)
}

/// Hybrid sharding: a copy per node, or per group of two or four nodes; all devices instead of several copies.
fn hybrid_sharding(scenario: &Scenario, all: &mut Vec<Proposal>) {
    let Scenario { training, cluster, layout, .. } = scenario;
    let degrees = layout.tensor.unwrap_or(1).saturating_mul(layout.pipeline.unwrap_or(1)).max(1);
    let replicas = cluster.devices() / degrees;
    if training.zero_stage() == 0 || scenario.is_free(FreeSetting::Zero) {
        return;
    }
    let shards = training.shards(replicas);
    let of_node = (cluster.devices_per_node / layout.tensor.unwrap_or(1).max(1)).max(1);
    for nodes in [1, 2, 4] {
        let fewer = of_node.saturating_mul(nodes);
        if fewer > 1 && fewer < replicas && fewer != shards && replicas.is_multiple_of(fewer) {
            let title = format!("hybrid sharding over {fewer} devices");
            all.push(proposal(ChangeKind::Training, title, &[("/training/shard_degree", json!(fewer))]));
        }
    }
    if shards < replicas {
        let title = format!("sharding over all {replicas} replicas");
        all.push(proposal(ChangeKind::Training, title, &[("/training/shard_degree", Value::Null)]));
    }
}

/// Interleaved 1F1B instead of 1F1B, with numbers of chunks that divide the layers of a rank.
fn interleaving(scenario: &Scenario, planner: PlannerKind, all: &mut Vec<Proposal>) {
    let Scenario { layout, model, .. } = scenario;
    if planner != PlannerKind::OneFOneB || !has_pipeline(scenario) || layout.pipeline == Some(1) {
        return;
    }
    let mut planners = vec![PlannerKind::Interleaved];
    planners.extend(scenario.planners.iter().filter(|&&other| other != planner && other != PlannerKind::Interleaved));
    let planners = (PLANNERS, json!(planners));
    let Some(pipeline) = layout.pipeline else {
        return all.push(proposal(ChangeKind::Layout, "interleaved 1F1B", &[planners]));
    };
    if !has_whole_rounds(scenario, pipeline) {
        return;
    }
    let is_even = |chunks: &u32| model.layers().is_multiple_of(pipeline * chunks);
    for chunks in (2..=MAX_CHUNKS).filter(is_even) {
        let fields: Vec<_> =
            [planners.clone(), ("/layout/chunks", json!(chunks))].into_iter().chain(other_stages(scenario)).collect();
        all.push(proposal(ChangeKind::Layout, format!("interleaved 1F1B, VPP {chunks}"), &fields));
    }
}

/// Returns whether the microbatches of a replica are a multiple of PP, as Megatron-LM's interleaved schedule requires,
/// or not known.
fn has_whole_rounds(scenario: &Scenario, pipeline: u32) -> bool {
    let (Some(tensor), Some(microbatch)) = (scenario.layout.tensor, scenario.layout.microbatch) else { return true };
    let replica = tensor * pipeline * scenario.training.context_parallel;
    let sequences = (scenario.cluster.devices() / replica.max(1)).max(1) * microbatch;
    (scenario.workload.global_batch / sequences.max(1)).is_multiple_of(pipeline)
}

/// The trainers of Hugging Face have no pipeline, and FSDP in PyTorch has none by itself.
pub(super) fn has_pipeline(scenario: &Scenario) -> bool {
    let framework = scenario.training.framework;
    !framework.is_hugging_face() && framework != Framework::Fsdp
}

fn layout(scenario: &Scenario, all: &mut Vec<Proposal>) {
    let request = scenario.layout;
    let degrees = [
        ("TP", "/layout/tensor", request.tensor),
        ("PP", "/layout/pipeline", request.pipeline),
        ("VPP", "/layout/chunks", request.chunks),
        ("microbatch", "/layout/microbatch", request.microbatch),
    ];
    let has_pipeline = has_pipeline(scenario);
    for (name, pointer, value) in degrees {
        let Some(value) = value else { continue };
        if !has_pipeline && value == 1 && matches!(name, "TP" | "PP" | "VPP") {
            continue;
        }
        let others = [value / 4, value / 2, value * 2, value * 4].into_iter().filter(|&other| other > 0);
        for other in others {
            let mut fields = vec![(pointer, json!(other))];
            if matches!(name, "PP" | "VPP") {
                fields.extend(other_stages(scenario));
            }
            all.push(proposal(ChangeKind::Layout, format!("{name} {other}"), &fields));
        }
    }
    if has_pipeline && degrees.iter().any(|(_, _, value)| value.is_some()) {
        let fields: Vec<_> = std::iter::once(("/layout", json!({}))).chain(other_stages(scenario)).collect();
        all.push(proposal(ChangeKind::Layout, "TP, PP, VPP and microbatch free", &fields));
    }
    let rules = [
        (FreeSetting::LayersPerStage, "uneven layers per stage"),
        (FreeSetting::Assignment, "replicas balanced by compute time"),
    ];
    let is_single = request.pipeline == Some(1);
    let is_useful = |setting| setting != FreeSetting::LayersPerStage || !is_single;
    let open = rules.into_iter().filter(|&(setting, _)| !scenario.is_free(setting) && is_useful(setting));
    for (setting, name) in open {
        let stated = [(LAYERS_PER_STAGE, json!([]))].into_iter().filter(|_| setting == FreeSetting::LayersPerStage);
        let fields: Vec<_> = std::iter::once(freed(scenario, setting)).chain(stated).collect();
        all.push(proposal(ChangeKind::Layout, name, &fields));
    }
    let context = scenario.training.context_parallel;
    if !scenario.is_free(FreeSetting::ContextParallel) {
        for (degree, exchange, name) in [
            (2 * context, ContextExchange::Ring, "ring"),
            (4 * context, ContextExchange::Ring, "ring"),
            (2 * context, ContextExchange::AllToAll, "all-to-all"),
            (context / 2, scenario.training.context_exchange, exchange_name(scenario.training.context_exchange)),
        ] {
            if degree > 0 {
                let title = if degree > 1 { format!("CP {degree} ({name})") } else { format!("CP {degree}") };
                all.push(proposal(
                    ChangeKind::Layout,
                    title,
                    &[("/training/context_parallel", json!(degree)), ("/training/context_exchange", json!(exchange))],
                ));
            }
        }
    }
    let has_experts = scenario.model.modules.iter().any(|module| module.moe.is_some());
    if has_experts && !scenario.is_free(FreeSetting::ExpertParallel) {
        let expert = scenario.training.expert_parallel;
        for degree in [expert / 2, expert * 2, expert * 4].into_iter().filter(|&degree| degree > 0) {
            let fields = [("/training/expert_parallel", json!(degree))];
            all.push(proposal(ChangeKind::Layout, format!("EP {degree}"), &fields));
        }
        let whole = scenario.training.expert_tensor_parallel != Some(1) && request.tensor != Some(1);
        if whole {
            let fields = [("/training/expert_tensor_parallel", json!(1))];
            all.push(proposal(ChangeKind::Layout, "expert TP 1", &fields));
        }
    }
}

const fn exchange_name(exchange: ContextExchange) -> &'static str {
    match exchange {
        ContextExchange::Ring => "ring",
        ContextExchange::AllToAll => "all-to-all",
    }
}

/// Pointer of the fixed numbers of layers per stage.
pub(super) const LAYERS_PER_STAGE: &str = "/layers_per_stage";

/// Returns the field that frees a setting.
fn freed(scenario: &Scenario, setting: FreeSetting) -> (&'static str, Value) {
    let mut free = scenario.free.clone();
    free.push(setting);
    ("/free", json!(free))
}

/// Returns the fields that free the layers per stage if the scenario fixes them, because the number of stages changes.
fn other_stages(scenario: &Scenario) -> Vec<(&'static str, Value)> {
    if scenario.layers_per_stage.is_empty() {
        return Vec::new();
    }
    vec![(LAYERS_PER_STAGE, json!([])), freed(scenario, FreeSetting::LayersPerStage)]
}

fn cluster(scenario: &Scenario, fits: bool, all: &mut Vec<Proposal>) {
    let cluster = &scenario.cluster;
    let kind = ChangeKind::Cluster;
    for factor in [2, 4, 8] {
        let nodes = cluster.nodes.saturating_mul(factor);
        let mut fields = vec![("/cluster/nodes", json!(nodes))];
        let mut title = format!("{nodes} nodes");
        // A plan without a time has none to compare with, so that the batch of a replica can stay.
        if !fits && !divides_batch(scenario, factor) {
            let batch = scenario.workload.global_batch.saturating_mul(factor);
            fields.push(("/workload/global_batch", json!(batch)));
            title = format!("{title} with a global batch of {batch}");
        }
        all.push(proposal(kind, title, &fields));
        // More nodes always help; the smallest step is enough for a plan that fits.
        if fits {
            break;
        }
    }
    if fits {
        for (name, pointer, value) in [
            ("intra-node link", "/cluster/intra_node/gb_per_s", cluster.intra_node.gb_per_s),
            ("network", "/cluster/inter_node/gb_per_s", cluster.inter_node.gb_per_s),
        ] {
            let title = format!("{name} of {:.0} GB/s instead of {value:.0}", 2.0 * value);
            all.push(proposal(kind, title, &[(pointer, json!(2.0 * value))]));
        }
    }
}

/// True if the microbatches of the replicas on `factor` times as many devices divide the global batch, or are not fixed.
fn divides_batch(scenario: &Scenario, factor: u32) -> bool {
    let layout = scenario.layout;
    let (Some(tensor), Some(microbatch)) = (layout.tensor, layout.microbatch) else { return true };
    let degrees = [tensor, layout.pipeline.unwrap_or(1), scenario.training.context_parallel];
    let replica = degrees.into_iter().fold(1_u32, u32::saturating_mul).max(1);
    let replicas = (scenario.cluster.devices().saturating_mul(factor) / replica).max(1);
    scenario.workload.global_batch.is_multiple_of(replicas.saturating_mul(microbatch).max(1))
}
