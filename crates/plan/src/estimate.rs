//! Estimate of time and memory for a configuration, as for a plan with the same layout.
//!
//! All microbatches are equal, so the layers are priced once and the schedule repeats. The event
//! engine simulates the first microbatches; the others extend its result (docs/models.md,
//! section 11).

mod memory;
mod repetition;

use memory::RankMemory;
use repetition::{Repetition, Step};

use crate::outcome::Layout;
use planscope_core::cluster::Cluster;
use planscope_core::model::Model;
use planscope_core::training::{ContextExchange, Precision, StageRule, Training};
use planscope_core::units::Seconds;
use planscope_core::workload::{Packing, SampleShape, Sequence};
use planscope_cost::cost::{LayerTable, MicrobatchLoad, Partition, ReplicaLayout};

/// Input for an estimate: model, cluster and layout. All sequences have equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The model.
    pub model: Model,
    /// Cluster with TP x CP x PP x DP devices.
    pub cluster: Cluster,
    /// Training settings, including CP and EP.
    pub training: Training,
    /// TP, PP, DP, VPP and sequences per microbatch.
    pub layout: Layout,
    /// Layers of each stage, PP x VPP numbers. Empty: as the framework splits them.
    pub layers_per_stage: Vec<u32>,
    /// Sequences per iteration, across all replicas.
    pub global_batch: u32,
    /// Backbone tokens per sequence, including items.
    pub sequence_length: u32,
    /// Images per sequence, or audio clips if the model reads audio and no images.
    pub items: u32,
}

/// Result for an estimate.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Iteration time.
    pub iteration: Seconds,
    /// Backbone tokens/s per device.
    pub tokens_per_s_per_device: f64,
    /// Model FLOPs per second and device, in TFLOP/s, excluding recomputation. Attention is treated
    /// as unmasked.
    pub tflops_per_device: f64,
    /// `tflops_per_device` divided by the data-sheet peak.
    pub mfu: f64,
    /// Peak memory per device on the rank with the highest peak.
    pub peak_memory: RankMemory,
    /// Peak memory per device on rank 0.
    pub first_rank_memory: RankMemory,
    /// Idle time divided by (ranks x time).
    pub bubble_fraction: f64,
    /// Exposed communication divided by (ranks x time).
    pub exposed_communication: f64,
    /// Explanation if the configuration exceeds the device memory, `None` otherwise.
    pub infeasibility: Option<String>,
}

/// The rule that a configuration violates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inconsistent(pub String);

/// Estimates a configuration.
///
/// # Errors
/// Returns the violated rule: the product of degrees differs from the number of devices, a degree
/// does not divide heads or layers, or the replicas cannot split the batch equally.
pub fn estimate(configuration: &Configuration) -> Result<Estimate, Inconsistent> {
    check(configuration)?;
    let Configuration { model, cluster, training, layout, .. } = configuration;
    let load = microbatch(configuration);
    let microbatches = configuration.global_batch / (layout.data * layout.microbatch);
    let loads = [load];
    let all = (microbatches * layout.data) as usize;
    let table = LayerTable::new(model, cluster, training, layout.tensor, &loads).repeated(all);
    let stages = layout.pipeline * layout.chunks;
    let partition = partition(configuration, &table, stages)?;
    let replica_layout = ReplicaLayout { pipeline: layout.pipeline, data: layout.data, replica: 0 };
    let costs = table.pipeline(&partition, replica_layout, &[0]);
    let flush = training.microbatches_per_flush.filter(|&flush| flush < microbatches && layout.pipeline > 1);
    let pipeline = Repetition { costs: &costs, chunks: layout.chunks, flush };
    let Step { time, memory, host } = pipeline.step(microbatches)?;
    let iteration = time.end.max(1e-9);
    let devices = f64::from(cluster.devices());
    let flops = loads[0].model_flops(model).get() * f64::from(microbatches) * f64::from(layout.data);
    let tokens = f64::from(configuration.global_batch) * f64::from(configuration.sequence_length);
    let capacity = iteration * costs.ranks() as f64;
    let worst = memory.iter().enumerate().max_by(|a, b| a.1.total().total_cmp(&b.1.total()).then(b.0.cmp(&a.0)));
    let (rank, peak_memory) = worst.map(|(rank, memory)| (rank, *memory)).unwrap_or_default();
    let limit = cluster.device.memory_gib - training.memory_reserve_gib;
    let peak = peak_memory.total() / GIB;
    let per_device = flops / iteration / devices;
    let host = host.get() as f64 / GIB;
    let host_excess = cluster.host_excess(host * f64::from(cluster.devices_per_node));
    let excess = (peak > limit).then(|| format!("rank {rank} needs {peak:.1} GiB; {limit:.1} GiB available"));
    Ok(Estimate {
        iteration: Seconds::from_secs(iteration),
        tokens_per_s_per_device: tokens / iteration / devices,
        tflops_per_device: per_device * 1e-12,
        mfu: per_device / cluster.device.peak().get(),
        peak_memory,
        first_rank_memory: memory.first().copied().unwrap_or_default(),
        bubble_fraction: without_noise(1.0 - time.active / capacity),
        exposed_communication: without_noise(time.exposed / capacity),
        infeasibility: excess.or(host_excess),
    })
}

/// Returns the layers of each stage, PP x VPP numbers: as stated, or else as usual in the framework. Returns `None` if the
/// layers have no such split.
pub fn layers_per_stage(configuration: &Configuration) -> Option<Vec<u32>> {
    let stages = configuration.layout.pipeline.checked_mul(configuration.layout.chunks)?;
    let partition = split(configuration, stages)?;
    Some(partition.stages.iter().map(|stage| layers(stage)).collect())
}

/// Splits the layers as stated, or else as usual in the framework. Frameworks with equal stages have one layer more in the
/// first stages if PP x VPP does not divide the layers.
fn split(configuration: &Configuration, stages: u32) -> Option<Partition> {
    let Configuration { model, training, layers_per_stage, .. } = configuration;
    if !layers_per_stage.is_empty() {
        return Partition::stated(model, layers_per_stage);
    }
    // An estimate has stages without layers, where the framework has them. Plans have none.
    let by_parameters = training.framework.stage_rule() == StageRule::ByParameters;
    let blocks = by_parameters.then(|| Partition::cumulative_blocks(model, stages)).flatten();
    blocks
        .or_else(|| Partition::usual(model, stages, training.framework))
        .or_else(|| Partition::with_ends_as_layers(model, stages, (0, 0)))
}

/// Splits the layers as [`split`] does. Several modules are balanced by time.
fn partition(configuration: &Configuration, table: &LayerTable<'_>, stages: u32) -> Result<Partition, Inconsistent> {
    let Configuration { model, layers_per_stage, .. } = configuration;
    if layers_per_stage.is_empty() {
        return split(configuration, stages)
            .or_else(|| Partition::balanced(model, &table.weights(stages), stages))
            .ok_or_else(|| Inconsistent(format!("{stages} stages for {} layers", model.layers())));
    }
    if layers_per_stage.len() != stages as usize {
        let stated = layers_per_stage.len();
        return Err(Inconsistent(format!("layers of {stated} stages are stated, PP x VPP is {stages}")));
    }
    let rule = || match model.modules.len() {
        1 => format!("the stages must have {} layers in all", model.layers()),
        _ => format!("the stages must have 1 layer or more, {} in all", model.layers()),
    };
    split(configuration, stages).ok_or_else(|| Inconsistent(rule()))
}

fn layers(stage: &[planscope_cost::cost::partition::LayerRange]) -> u32 {
    stage.iter().map(planscope_cost::cost::partition::LayerRange::len).sum()
}

const GIB: f64 = 1_073_741_824.0;

/// Returns a share of the time, or 0 if it is rounding noise.
fn without_noise(share: f64) -> f64 {
    const NOISE: f64 = 1e-9;
    if share < NOISE { 0.0 } else { share }
}

fn microbatch(configuration: &Configuration) -> MicrobatchLoad {
    let length = configuration.sequence_length;
    let items = SampleShape { images: configuration.items, ..SampleShape::default() }.as_read_by(&configuration.model);
    let sequence = Sequence {
        samples: 1,
        tokens: length,
        computed_tokens: length,
        squared: u64::from(length) * u64::from(length),
        useful_squared: u64::from(length) * u64::from(length),
        images: items.images,
        audio_clips: items.audio_clips,
        ..Sequence::default()
    };
    let sequences = vec![sequence; configuration.layout.microbatch as usize];
    MicrobatchLoad::new(&sequences, &configuration.model, Packing::Packed)
}

fn check(configuration: &Configuration) -> Result<(), Inconsistent> {
    let Configuration { model, cluster, training, layout, global_batch, .. } = configuration;
    let refuse = |rule: String| Err(Inconsistent(rule));
    let Layout { tensor, pipeline, data, chunks, microbatch, .. } = *layout;
    let context = training.context_parallel;
    let degrees = [tensor, pipeline, data, chunks, microbatch, context, training.expert_parallel, *global_batch];
    if degrees.contains(&0) || model.modules.is_empty() || configuration.sequence_length == 0 {
        return refuse("degrees, batch and sequence length are at least 1".to_owned());
    }
    for (name, degree, max) in [("VPP", chunks, 1024), ("microbatch", microbatch, 65_536)] {
        if degree > max {
            return refuse(format!("{name} {degree} is above {max}"));
        }
    }
    let product = u64::from(tensor) * u64::from(pipeline) * u64::from(data) * u64::from(context);
    if product != u64::from(cluster.devices()) {
        let devices = cluster.devices();
        return refuse(format!("TP {tensor} x CP {context} x PP {pipeline} x DP {data} is not {devices} devices"));
    }
    for module in &model.modules {
        // Latent attention and a stated head size do not follow from the hidden size.
        let is_derived = module.head_size.is_none() && module.latent.is_none();
        if module.heads == 0 || (is_derived && !module.hidden.is_multiple_of(module.heads)) {
            return refuse(format!("{} heads do not divide the hidden size {}", module.heads, module.hidden));
        }
        if let Some((kind, count)) = module.sharded_heads().find(|(_, count)| !count.is_multiple_of(tensor)) {
            return refuse(format!("TP {tensor} does not divide the {count} {kind} of {}", module.name));
        }
        if training.context_exchange == ContextExchange::AllToAll && !module.supports_all_to_all(tensor, context) {
            let (heads, shared) = (module.heads, module.kv_heads);
            return refuse(format!(
                "CP {context} cannot trade the {heads} heads of {}, {shared} of keys and values, over TP {tensor} all-to-all",
                module.name
            ));
        }
        let experts = module.moe.map_or(training.expert_parallel, |moe| moe.experts);
        if !experts.is_multiple_of(training.expert_parallel) {
            return refuse(format!("EP {} does not divide {experts} experts", training.expert_parallel));
        }
    }
    if training.expert_parallel > 1 && model.modules.iter().all(|module| module.moe.is_none()) {
        return refuse("EP needs a mixture of experts".to_owned());
    }
    // No overflow: the degrees do not exceed the number of devices.
    let expert_tensor = training.expert_tensor(tensor);
    if !(data * context * tensor).is_multiple_of(training.expert_parallel * expert_tensor) {
        let (unit, devices) =
            if expert_tensor == 1 { ("TP x DP x CP", tensor * data * context) } else { ("DP x CP", data * context) };
        return refuse(format!("EP {} does not divide {unit} {devices}", training.expert_parallel));
    }
    let exceeds_layers = u64::from(pipeline) * u64::from(chunks) > u64::from(model.layers());
    if exceeds_layers && configuration.layers_per_stage.is_empty() {
        return refuse(format!("PP {pipeline} x VPP {chunks} exceeds the {} layers", model.layers()));
    }
    if chunks > 1 && pipeline == 1 {
        return refuse("VPP needs a pipeline".to_owned());
    }
    if !configuration.sequence_length.is_multiple_of(context) {
        return refuse(format!("CP {context} does not divide {} tokens", configuration.sequence_length));
    }
    if !u64::from(*global_batch).is_multiple_of(u64::from(data) * u64::from(microbatch)) {
        return refuse(format!("{global_batch} sequences are no multiple of DP {data} x microbatch {microbatch}"));
    }
    if training.precision == Precision::Fp8 && cluster.device.fp8_tflops.is_none() {
        return refuse(format!("{} has no fp8", cluster.name));
    }
    if configuration.items == 0 && model.backbone().is_none() {
        return refuse("a model without a backbone needs items".to_owned());
    }
    if configuration.items > 0 && model.images().is_none() && model.sound().is_none() {
        return refuse("items need a module that reads or makes them".to_owned());
    }
    if model.video().is_some() {
        return refuse("a configuration says nothing of the length of its video".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
