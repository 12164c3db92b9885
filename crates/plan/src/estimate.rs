//! Closed-form estimate of time and memory for a configuration.
//!
//! Stage costs come from the simulator's cost model ([`LayerTable`]). A formula replaces the
//! schedule (docs/models.md, section 11), at the cost of a single microbatch. The formula does not
//! apply to uneven stages or microbatch groups; the event engine simulates these.

mod memory;

pub use std::convert::Infallible;

use memory::RankMemory;

use crate::compare::IterationTotals;
use crate::outcome::Layout;
use planscope_core::action::Schedule;
use planscope_core::cluster::Cluster;
use planscope_core::model::Model;
use planscope_core::training::{ContextExchange, Precision, StageRule, Training};
use planscope_core::units::{Nanos, Seconds};
use planscope_core::workload::{Packing, SampleShape, Sequence};
use planscope_cost::cost::{LayerTable, MicrobatchLoad, Partition, PipelineCosts, ReplicaLayout};
use planscope_pipeline::schedule::{Grouping, interleaved, one_f_one_b};
use planscope_pipeline::simulate::{StepEnd, execute, peak_composition};

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
    let table = LayerTable::new(model, cluster, training, layout.tensor, &loads);
    let stages = layout.pipeline * layout.chunks;
    let partition = partition(configuration, &table, stages)?;
    let replica_layout = ReplicaLayout { pipeline: layout.pipeline, data: layout.data, replica: 0 };
    let even = partition.stages.windows(2).all(|pair| layers(&pair[0]) == layers(&pair[1]));
    let dealt = layout.chunks == 1 || microbatches.is_multiple_of(layout.pipeline);
    let cells = u64::from(stages) * u64::from(microbatches);
    let costs = table.pipeline(&partition, replica_layout, &[0]);
    let flush = training.microbatches_per_flush.filter(|&flush| flush < microbatches && layout.pipeline > 1);
    let is_closed = flush.is_none() && ((even && model.modules.len() == 1 && dealt) || cells > MAX_CELLS);
    let (time, memory) = if is_closed {
        (schedule_time(&costs, microbatches), memory::peaks(&costs, layout.chunks, microbatches))
    } else {
        simulated(&costs.repeated(microbatches as usize), layout.chunks, flush)?
    };
    let iteration = time.end.secs().max(1e-9);
    let devices = f64::from(cluster.devices());
    let flops = loads[0].model_flops(model).get() * f64::from(microbatches) * f64::from(layout.data);
    let tokens = f64::from(configuration.global_batch) * f64::from(configuration.sequence_length);
    let capacity = iteration * costs.ranks() as f64;
    let worst = memory.iter().enumerate().max_by(|a, b| a.1.total().total_cmp(&b.1.total()).then(b.0.cmp(&a.0)));
    let (rank, peak_memory) = worst.map(|(rank, memory)| (rank, *memory)).unwrap_or_default();
    let limit = cluster.device.memory_gib - training.memory_reserve_gib;
    let peak = peak_memory.total() / GIB;
    let per_device = flops / iteration / devices;
    let host = memory::host_peak(&costs, layout.chunks, flush.unwrap_or(microbatches)) / GIB;
    let host_excess = cluster.host_excess(host * f64::from(cluster.devices_per_node));
    let excess = (peak > limit).then(|| format!("rank {rank} needs {peak:.1} GiB; {limit:.1} GiB available"));
    Ok(Estimate {
        iteration: Seconds::from_secs(iteration),
        tokens_per_s_per_device: tokens / iteration / devices,
        tflops_per_device: per_device * 1e-12,
        mfu: per_device / cluster.device.peak().get(),
        peak_memory,
        first_rank_memory: memory.first().copied().unwrap_or_default(),
        bubble_fraction: without_noise(1.0 - time.active_time / capacity),
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
    let rule = || format!("the stages must have 1 layer or more, {} in all", model.layers());
    split(configuration, stages).ok_or_else(|| Inconsistent(rule()))
}

/// Maximum stages x microbatches for simulating an uneven pipeline, which needs less than a
/// millisecond.
const MAX_CELLS: u64 = 10_000;

fn layers(stage: &[planscope_cost::cost::partition::LayerRange]) -> u32 {
    stage.iter().map(planscope_cost::cost::partition::LayerRange::len).sum()
}

/// Simulates a pipeline with uneven stages or microbatch groups, or one that is flushed after `flush` microbatches.
fn simulated(
    costs: &PipelineCosts,
    chunks: u32,
    flush: Option<u32>,
) -> Result<(ScheduleTime, Vec<RankMemory>), Inconsistent> {
    let (p, m) = (costs.ranks(), costs.microbatches());
    let flush = flush.map_or(m, |flush| flush as usize);
    let order = |m| if chunks > 1 { interleaved(p, chunks as usize, m, Grouping::Balanced) } else { one_f_one_b(p, m) };
    let Ok(schedule) = Schedule::flushed(m, flush, |m| Ok::<_, Infallible>(order(m)));
    let execution = execute(&schedule, costs).map_err(|deadlock| Inconsistent(deadlock.to_string()))?;
    let mut totals = IterationTotals::default();
    totals.add_replica(&schedule, costs, 1);
    let end = StepEnd::from_executions(p, std::iter::once(&execution)).iteration_end(costs);
    let time = ScheduleTime {
        end: Seconds::from_secs(end.secs()),
        active_time: totals.active_time.secs(),
        exposed: totals.exposed.secs(),
    };
    let memory =
        (0..p).map(|rank| RankMemory::from_peak(costs, rank, &peak_composition(rank, &schedule, &execution, costs)));
    Ok((time, memory.collect()))
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

/// Times of a pipeline with equal microbatches, in seconds.
struct ScheduleTime {
    end: Seconds,
    /// Sum across ranks.
    active_time: f64,
    /// Sum across ranks.
    exposed: f64,
}

/// Computes the time of 1F1B, or interleaved 1F1B for several chunks per rank.
///
/// Rank r is busy for m (F + B), summed across its chunks. Before that, microbatch 0 passes the
/// previous ranks; after that, the last gradient returns through them. With a single chunk per
/// rank, each microbatch also waits for a send between neighbours.
fn schedule_time(costs: &PipelineCosts, microbatches: u32) -> ScheduleTime {
    let (p, m) = (costs.ranks(), f64::from(microbatches));
    let seconds = |column: &[Nanos], stage: usize| column[stage].secs();
    let backward = |stage: usize| costs.backward(stage).secs();
    let mut work = vec![0.0; p];
    let mut exposed = 0.0;
    for stage in 0..costs.stages() {
        work[stage % p] += seconds(&costs.forward, stage) + backward(stage);
        exposed += m * (seconds(&costs.exposed_forward, stage) + seconds(&costs.exposed_backward, stage));
    }
    // With a single stage per rank, each microbatch exposes a send: the longer of forward and
    // backward.
    let send = |stage: usize| seconds(&costs.send_forward, stage).max(seconds(&costs.send_backward, stage + 1));
    let wait = if costs.stages() == p { (0..p.saturating_sub(1)).map(send).fold(0.0, f64::max) } else { 0.0 };
    let (mut head, mut tail) = (0.0, 0.0);
    let mut pipeline: f64 = 0.0;
    let mut tails = Vec::with_capacity(p);
    for (rank, work) in work.iter().enumerate() {
        pipeline = pipeline.max(head + m * work + (m - 1.0) * wait + tail);
        tails.push(tail);
        head += seconds(&costs.forward, rank) + seconds(&costs.send_forward, rank);
        tail += backward(rank) + costs.send_backward.get(rank + 1).map_or(0.0, |send| send.secs());
    }
    // If there are fewer microbatches than ranks, a chunk waits until a microbatch has passed all
    // ranks.
    let stage_time = |stage: usize| seconds(&costs.forward, stage) + backward(stage);
    let path: f64 = (0..costs.stages())
        .map(|stage| stage_time(stage) + seconds(&costs.send_forward, stage) + seconds(&costs.send_backward, stage))
        .sum();
    let slowest = (0..costs.stages()).map(stage_time).fold(0.0, f64::max);
    pipeline = pipeline.max(path + (m - 1.0) * slowest);
    let mut end: f64 = 0.0;
    let mut active_time = m * work.iter().sum::<f64>();
    for (rank, tail) in tails.iter().enumerate() {
        let (sync, optimizer) = (costs.sync[rank].secs(), costs.optimizer[rank].secs());
        end = end.max(pipeline - tail + sync + optimizer);
        active_time += sync + optimizer;
        exposed += sync;
    }
    ScheduleTime { end: Seconds::from_secs(end), active_time, exposed }
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
    if u64::from(pipeline) * u64::from(chunks) > u64::from(model.layers()) {
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
