//! Converts settings to a scenario. All assumed values are reported.

use planner::cluster::{Cluster, presets};
use planner::model::{Model, ModuleRole};
use planner::scenario::{FreeSetting, PlannerKind, SCHEMA, Scenario, SearchSettings};
use planner::training::{
    AttentionKernel, Execution, Experts, Framework, GradientFormat, LayoutRequest, Precision, Training,
};
use planner::workload::{Distribution, Packing, SampleSource, Workload};

use super::keys::Keys;
use super::settings::{Batch, Loss, NODE, Settings, Sharding, Shards};
use super::{ConfigFormat, launcher};

const DEVICE: &str = "h100";
/// Most devices of a node in any server without a link between nodes.
const MAX_PER_NODE: u32 = 16;
/// Sequence length of a job that states none.
pub(super) const SEQUENCE: u32 = 4096;
/// Fewest sequences of an assumed global batch, sequences per replica, and most tokens of the batch. Published jobs of
/// thousands of devices have batches of 4 to 64 million tokens.
const BATCH: (u32, u32, u32) = (256, 4, 1 << 24);
const GIB: f64 = 1_073_741_824.0;
/// Maximum values in a scenario. Scenario validation rejects larger values.
const MAX_NODES: u32 = 16_384;

/// Builds the scenario. `name` is the file name.
pub(super) fn build(
    name: &str,
    mut model: Model,
    (format, settings): (ConfigFormat, &Settings),
    keys: &mut Keys,
) -> Scenario {
    let (cluster, replicas) = cluster(settings, model.parameters(), keys);
    let workload = workload(&model, settings, replicas, keys);
    let title = name.rsplit(['/', '\\']).next().filter(|title| !title.is_empty());
    let activation_offload = settings.offloaded_activations(model.layers());
    let mut training = Training { activation_offload, ..training(format, settings, &cluster, keys) };
    if model.modules.iter().all(|module| module.moe.is_none()) {
        training.expert_tensor_parallel = None;
    }
    let microbatch = match settings.batch {
        Batch::Whole(batch) if settings.microbatch.is_none() => Some((batch / replicas.max(1)).max(1)),
        _ => settings.microbatch,
    };
    let of_replica = workload.global_batch / replicas.max(1) / microbatch.unwrap_or(1).max(1);
    training.microbatches_per_flush = settings.microbatches_per_flush.filter(|&flush| flush < of_replica);
    settings.refuse_local_batch(replicas, keys);
    let layout = LayoutRequest {
        tensor: settings.tensor.or(settings.has_layout.then_some(1)),
        pipeline: settings.pipeline.or(settings.has_layout.then_some(1)),
        chunks: settings.chunks.filter(|&chunks| chunks > 1),
        microbatch,
        group: None,
    };
    if !settings.has_layout {
        keys.assume("The layout is not stated. Tensor and pipeline parallelism and the microbatch are searched.");
    } else if settings.tensor.is_none() && settings.pipeline.is_none() {
        keys.assume("Tensor and pipeline parallelism are not stated. Their degrees are 1, the default.");
    }
    if settings.has_layout && microbatch.is_none() {
        keys.assume("The microbatch is not stated. It is searched.");
    }
    for module in &mut model.modules {
        module.frozen |= settings.frozen.contains(&module.role);
        if module.role == ModuleRole::Backbone && !module.frozen {
            module.adapters = settings.adapters;
            if module.moe.is_some() && module.adapters.is_some_and(|adapters| adapters.mlp) {
                keys.not_modelled("Adapters of routed experts are left out: memory and time are lower bounds.");
            }
        }
        if module.role == ModuleRole::Backbone && module.learned_positions > 0 {
            module.learned_positions = module.learned_positions.max(workload.context_length);
        }
    }
    let stages = layout.pipeline.unwrap_or(1).saturating_mul(layout.chunks.unwrap_or(1));
    let layers_per_stage = layers_per_stage(settings, &model, keys);
    let is_applied = stages > 1 && layers_per_stage.iter().sum::<u32>() == model.layers();
    let is_free = !is_applied && (settings.has_uneven_stages || !layers_per_stage.is_empty());
    Scenario {
        schema: SCHEMA.to_owned(),
        title: title.map(str::to_owned),
        model,
        cluster,
        workload,
        training,
        layout,
        free: if is_free && stages > 1 { vec![FreeSetting::LayersPerStage] } else { Vec::new() },
        layers_per_stage: if is_applied { layers_per_stage } else { Vec::new() },
        search: SearchSettings::default(),
        planners: planners(settings.schedule, &layout),
        seed: 0,
        iterations: 4,
        profiles: Vec::new(),
        max_memory_risk: None,
    }
}

/// Returns the stated layers of each stage, with those of the first and last rank if the model is stated by name.
fn layers_per_stage(settings: &Settings, model: &Model, keys: &mut Keys) -> Vec<u32> {
    let ranks = settings.pipeline.unwrap_or(1);
    let Some(ends) = settings.stage_ends.filter(|_| ranks > 1 && model.modules.len() == 1) else {
        return settings.layers_per_stage.clone();
    };
    ends.layers_of_stages(model.layers(), ranks, settings.chunks.unwrap_or(1)).unwrap_or_else(|error| {
        keys.not_modelled(format!("The layers of the first and last stage are not applied: {error}."));
        Vec::new()
    })
}

/// Returns the job's schedule first, then alternatives.
fn planners(schedule: Option<PlannerKind>, layout: &LayoutRequest) -> Vec<PlannerKind> {
    let usual = if layout.chunks.is_some() {
        [PlannerKind::Interleaved, PlannerKind::InterleavedZeroBubble, PlannerKind::OneFOneB]
    } else {
        [PlannerKind::OneFOneB, PlannerKind::ZbH1, PlannerKind::WaitFreeCyclic]
    };
    let others = usual.into_iter().filter(|&planner| schedule != Some(planner));
    schedule.into_iter().chain(others).collect()
}

/// Returns the cluster and the data-parallel degree of a model with `parameters`.
fn cluster(settings: &Settings, parameters: u64, keys: &mut Keys) -> (Cluster, u32) {
    match (settings.device, &settings.other_device) {
        (Some(_), _) => {}
        (None, Some(name)) => keys.not_modelled(format!(
            "The device {name} has no preset. It is read as H100 with 80 GB: choose a device with similar rates and memory."
        )),
        (None, None) => keys.assume("The device is not stated. It is read as H100 with 80 GB."),
    }
    let unit = settings.devices_per_replica();
    let per_node = settings.devices_per_node;
    let stated = settings.stated_devices().or_else(|| settings.replicas.map(|replicas| replicas.saturating_mul(unit)));
    let preset = presets::cluster(settings.device.unwrap_or(DEVICE))
        .unwrap_or_else(|| presets::clusters().swap_remove(0).cluster);
    let devices = stated.unwrap_or_else(|| {
        let devices = if settings.has_layout {
            assumed_devices(settings, unit)
        } else {
            roomy_devices(settings, parameters, &preset)
        };
        keys.assume(format!("The number of devices is not stated. It is read as {devices}."));
        devices
    });
    let devices = devices.max(1);
    let replicas = devices / unit.max(1);
    if let Some(Sharding::Copies(copies)) = settings.sharding
        && !replicas.is_multiple_of(copies.max(1))
    {
        keys.refuse(format!("{replicas} data-parallel replicas are no multiple of {copies} copies."));
    }
    if let Some(named) = settings.replicas.filter(|&named| named != replicas && settings.stated_devices().is_some()) {
        keys.assume(format!(
            "The degrees state {named} data-parallel replicas, but {devices} devices have {replicas}. The number of devices \
             counts."
        ));
    }
    if let Some(stated) = per_node.filter(|&stated| stated > preset.devices_per_node.max(MAX_PER_NODE)) {
        keys.refuse(format!(
            "The job states {stated} devices of a node, and a node of {} has {}. State the devices of a node and the number of \
             nodes.",
            preset.name, preset.devices_per_node
        ));
    }
    let per_node = if settings.device.is_some_and(|device| device.contains("nvl")) {
        per_rack(devices, &preset, keys)
    } else {
        // If the job uses part of a node, the cluster has a single node.
        let node = per_node.unwrap_or(preset.devices_per_node).clamp(1, devices);
        let per_node = common_divisor(devices, node);
        if per_node != node {
            let nodes = devices / per_node;
            keys.assume(format!(
                "{devices} devices do not fill nodes of {node}. They are read as {nodes} nodes of {per_node}."
            ));
        }
        per_node
    };
    let cluster = Cluster { nodes: devices / per_node, devices_per_node: per_node, ..preset };
    if cluster.nodes > 1 {
        // The number of devices replaces the default of the launcher.
        keys.retract(launcher::ONE_NODE);
    }
    (cluster, (devices / unit.max(1)).max(1))
}

/// Returns the devices of a rack in which a fast link connects more devices than a node has. The racks have equal
/// numbers of devices.
fn per_rack(devices: u32, preset: &Cluster, keys: &mut Keys) -> u32 {
    let per_rack = preset.devices_per_rack(devices);
    keys.assume(format!(
        "NVLink connects the {} devices of a {} rack. The {devices} devices are read as racks of {per_rack}.",
        preset.devices_per_node, preset.name
    ));
    per_rack
}

/// Greatest common divisor of positive numbers.
const fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Returns the minimum number of full nodes for one replica and the expert-parallel group.
fn assumed_devices(settings: &Settings, unit: u32) -> u32 {
    let copies = if let Some(Sharding::Copies(copies)) = settings.sharding { copies.max(1) } else { 1 };
    let replicas = settings.expert.unwrap_or(1).max(1).saturating_mul(copies);
    let min_devices = unit.saturating_mul(replicas).min(MAX_NODES * NODE);
    (1..=NODE)
        .map(|times| min_devices.saturating_mul(times))
        .find(|devices| devices.is_multiple_of(NODE))
        .unwrap_or(min_devices)
}

/// Returns four nodes, or the smallest power of two of nodes whose memory the sharded state fills to 60 %: 18 bytes per
/// parameter of mixed precision with Adam, or the weights in 16 bits with adapters.
fn roomy_devices(settings: &Settings, parameters: u64, cluster: &Cluster) -> u32 {
    let bytes = if settings.adapters.is_some() { 2.0 } else { 18.0 };
    let needed = bytes * parameters as f64 / GIB;
    let of_nodes = |nodes: u32| 0.6 * f64::from(nodes * NODE) * cluster.device.memory_gib;
    let powers = (2..).map(|power| 1_u32 << power).take_while(|&nodes| nodes <= MAX_NODES);
    NODE * powers.clone().find(|&nodes| needed <= of_nodes(nodes)).or(powers.last()).unwrap_or(4)
}

/// Formats a count with its noun, for example "1 sequence" or "4 sequences".
fn plural(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn workload(model: &Model, settings: &Settings, replicas: u32, keys: &mut Keys) -> Workload {
    let context_length = settings.sequence.unwrap_or_else(|| {
        let length = settings.max_positions.map_or(SEQUENCE, |max_positions| max_positions.min(SEQUENCE));
        keys.assume(format!("The sequence length is not stated. It is read as {length} tokens."));
        length
    });
    let global_batch = match settings.batch {
        Batch::Global(batch) | Batch::Whole(batch) => batch,
        Batch::Replica(batch) => {
            let global = batch.saturating_mul(replicas);
            let (sequences, replica) = (plural(batch, "sequence"), plural(replicas, "data-parallel replica"));
            keys.assume(format!("The global batch is not stated. It is {sequences} times {replica}, {global}."));
            global
        }
        Batch::Least { least, sequences } => {
            let step = sequences.saturating_mul(replicas).max(1);
            let global = step.saturating_mul(least.div_ceil(step));
            keys.assume(format!("The global batch is not stated. It is {global} sequences."));
            global
        }
        Batch::Unknown => {
            let (least, of_replica, tokens) = BATCH;
            let replicas = replicas.max(1);
            let of_replica = (tokens / context_length.max(1) / replicas).clamp(1, of_replica);
            let global = of_replica.saturating_mul(replicas).max(least);
            keys.assume(format!("The global batch is not stated. It is read as {global} sequences."));
            global
        }
    };
    let has_images = model.modules.iter().any(|module| module.role == ModuleRole::VisionEncoder);
    if has_images {
        let tokens = model.tokens_per_image();
        keys.assume(format!("A sample has one image, of {tokens} tokens in the backbone."));
    }
    keys.assume(format!("Every sample has {context_length} tokens. Choose a dataset for its own lengths."));
    // Text fills the sequence after the image tokens.
    let text = context_length.saturating_sub(model.tokens_per_image()).max(1);
    let samples = SampleSource::Drawn {
        text_tokens: Distribution::Constant { value: if has_images { text } else { context_length } },
        images: Distribution::Constant { value: u32::from(has_images) },
        audio_clips: None,
        video_s: None,
        text_per_item: None,
    };
    Workload { samples, global_batch, context_length, packing: Packing::Padded, max_samples: None, max_video_s: None }
}

fn training(format: ConfigFormat, settings: &Settings, cluster: &Cluster, keys: &mut Keys) -> Training {
    let framework = settings.framework.unwrap_or(format.framework());
    let default = Training::default();
    let has_fp8 = cluster.device.fp8_tflops.is_some();
    let usual = framework.usual_attention(has_fp8);
    if settings.attention.is_none() {
        keys.assume(format!(
            "The attention kernel is not stated. It is read as {}, as usual with {}.",
            usual.title(),
            settings.framework.map_or(format.framework_name(), Framework::title)
        ));
    }
    if settings.precision.is_none() {
        keys.assume("The precision is not stated. It is read as bf16.");
    }
    let zero = settings.zero;
    let precision = settings.precision.unwrap_or(default.precision);
    // Settings without effect have the default.
    let has_masters = precision != Precision::Fp32;
    let is_fp8 = precision == Precision::Fp8;
    let has_formats = settings.optimizer.has_moment_format();
    Training {
        recompute: settings.recompute.unwrap_or(default.recompute),
        recompute_layers: settings.recompute_layers,
        recompute_modules: settings.recompute_modules.clone(),
        // "flash" names no version.
        attention: match settings.attention {
            None => usual,
            Some(AttentionKernel::Flash) => framework.fused_attention(has_fp8),
            Some(kernel) => kernel,
        },
        framework,
        execution: settings.is_compiled.then_some(Execution::Compiled),
        precision,
        fp8_recipe: settings.fp8.recipe.filter(|recipe| is_fp8 && *recipe != framework.fp8_recipe()),
        fp8_weights: settings.fp8.has_weights && is_fp8,
        fp8_activation_input: settings.fp8.has_activation_input && is_fp8,
        distributed_optimizer: zero.unwrap_or(1) > 0,
        zero: zero.filter(|&zero| zero > 1),
        chunked_loss: settings.loss == Loss::Chunked,
        in_place_loss: settings.loss == Loss::InPlace,
        shard_degree: settings.shard_degree(cluster),
        gradients: settings.gradients.unwrap_or(default.gradients),
        sequence_parallel: settings.sequence_parallel.unwrap_or(default.sequence_parallel),
        fused_weight_gradients: settings.fused_weight_gradients.unwrap_or(default.fused_weight_gradients),
        tensor_overlap: tensor_overlap(framework, settings, keys),
        data_overlap: data_overlap(settings, default.gradients),
        context_parallel: settings.context.unwrap_or(1),
        context_exchange: settings.context_exchange,
        expert_parallel: settings.expert.unwrap_or(1),
        expert_tensor_parallel: settings.expert_tensor,
        dispatch_by_node: settings.dispatch_by_node.unwrap_or(false),
        optimizer: settings.optimizer,
        master_weights: if has_masters { settings.master_weights } else { default.master_weights },
        moments: if has_formats { settings.own_moments.unwrap_or(settings.moments) } else { default.moments },
        unsharded_gradients: settings.unsharded_gradients == Some(true),
        grouped_experts: settings.experts == Some(Experts::Together),
        optimizer_offload: settings.optimizer_offload,
        parameter_offload: offloads_parameters(settings, keys),
        ..default
    }
}

/// Returns the share of the bytes of data-parallel communication that computation hides: of gradients, and of weights that
/// a sharded optimizer gathers, twice a step under ZeRO 3.
fn data_overlap(settings: &Settings, default: GradientFormat) -> f64 {
    let is_hidden = settings.overlapped_gradients == Some(true);
    let are_weights_hidden = settings.overlapped_weights.unwrap_or(is_hidden);
    let zero = settings.zero.unwrap_or(1);
    if is_hidden == are_weights_hidden || zero == 0 {
        return f64::from(u8::from(is_hidden));
    }
    let gradients = settings.gradients.unwrap_or(default).bytes();
    let width = match settings.precision {
        Some(Precision::Fp32) => 4.0,
        Some(Precision::Fp8) if settings.fp8.has_weights => 1.0,
        _ => 2.0,
    };
    let weights = if zero == 3 { 2.0 * width } else { width };
    let hidden = if is_hidden { gradients } else { weights };
    (1000.0 * hidden / (gradients + weights)).round() / 1000.0
}

/// Returns the overlap of tensor-parallel communication. Only the collectives of sequence parallelism have chunks.
fn tensor_overlap(framework: Framework, settings: &Settings, keys: &mut Keys) -> f64 {
    if settings.chunked_collectives != Some(true) {
        return 0.0;
    }
    if settings.sequence_parallel == Some(false) {
        keys.not_modelled(
            "Overlap of tensor-parallel communication is not applied, because it needs sequence parallelism.",
        );
        return 0.0;
    }
    framework.tensor_overlap().unwrap_or(0.0)
}

/// Returns whether the shards of weights and gradients are in host memory. Only ZeRO 3 has shards of weights.
fn offloads_parameters(settings: &Settings, keys: &mut Keys) -> bool {
    let is_sharded = settings.zero == Some(3);
    let is_offloaded = settings.shards == Shards::OnHost;
    if is_offloaded && !is_sharded {
        keys.not_modelled("Offload of parameters is not applied, because the weights are not sharded (ZeRO 3).");
    }
    is_offloaded && is_sharded
}
