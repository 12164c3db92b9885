//! Converts a row to a configuration.

use planner::cluster::{Cluster, presets};
use planner::estimate::Configuration;
use planner::model::Module;
use planner::outcome::Layout;
use planner::training::{
    AttentionKernel, ContextExchange, Execution, Fp8Recipe, Framework, GradientFormat, MasterWeights, MomentFormat,
    Optimizer, Precision, Recompute, RecomputedModule, Training,
};

use super::architecture::{self, Architecture, Origin};
use super::cells::{Cells, Rejection, quoted, refuse};
use super::column::{
    ACTIVATION_OFFLOAD, ATTENTION, CHUNKED_LOSS, CP_BALANCED, CP_EXCHANGE, Column, DATA_OVERLAP, DISPATCH_BY_NODE,
    DROPOUT, EXECUTION, EXPERT_OVERLAP, FP8_ACTIVATION_INPUT, FP8_RECIPE, FP8_WEIGHTS, FRAMEWORK, FSDP,
    FUSED_WEIGHT_GRADIENTS, GRADIENTS, GROUPED_EXPERTS, IN_PLACE_LOSS, LAYERS_PER_STAGE, MASTER_WEIGHTS,
    MEMORY_RESERVE_GIB, MICROBATCHES_PER_FLUSH, MOMENTS, OPTIMIZER, OPTIMIZER_OFFLOAD, PARAMETER_OFFLOAD, PRECISION,
    RECOMPUTE, RECOMPUTE_LAYERS, RECOMPUTE_MODULES, ROUTER_SKEW, SEND_OVERLAP, SEQUENCE_PARALLEL, SHARD_DEGREE,
    TENSOR_OVERLAP, UNSHARDED_GRADIENTS, ZERO,
};
use super::degrees::Degrees;
use super::presets::Presets;
use super::suggestion::did_you_mean;
use super::{copies, kernels};

/// A configuration with all defaults, and where its model comes from.
#[derive(Debug, Clone)]
pub(super) struct Finished {
    pub(super) configuration: Configuration,
    pub(super) origin: Origin,
}

/// Builds the configuration of a row and fills in defaults.
pub(super) fn configuration(cells: Cells<'_>, presets: &Presets) -> Result<Finished, Rejection> {
    copies::check(cells, presets)?;
    let degrees = Degrees::read(cells)?;
    let cluster = degrees.cluster(cells, presets)?;
    let Architecture { mut model, length, origin } = architecture::read(cells, presets)?;
    let training = training(cells, degrees, &cluster)?;
    // Models from the time before fused attention were trained with dropout.
    let is_unfused = training.attention == AttentionKernel::Unfused;
    let dropout = cells.flag(DROPOUT)?;
    for module in &mut model.modules {
        module.dropout = dropout.unwrap_or(module.dropout || is_unfused && !module.gated);
    }
    degrees.check(&model.modules[0], length)?;
    check_skew(&model.modules[0], degrees.expert)?;
    if training.context_exchange == ContextExchange::AllToAll
        && !model.modules[0].supports_all_to_all(degrees.tensor, degrees.context)
    {
        return refuse(CP_EXCHANGE, format!("all_to_all: cp {} does not divide the heads", degrees.context));
    }
    let layout = Layout {
        tensor: degrees.tensor,
        pipeline: degrees.pipeline,
        data: degrees.data,
        chunks: degrees.chunks,
        microbatch: degrees.microbatch,
        group: None,
    };
    let layers_per_stage = layers_per_stage(cells, degrees, model.layers())?;
    let global_batch = degrees.global_batch;
    let configuration = Configuration {
        model,
        cluster,
        training,
        layout,
        layers_per_stage,
        global_batch,
        sequence_length: length,
        items: 0,
    };
    Ok(Finished { configuration, origin })
}

/// Checks the load of the rank with the most tokens. Even if every token has its experts there, the load is at most EP times
/// the mean, and at most the number of experts divided by those of a token.
fn check_skew(module: &Module, expert: u32) -> Result<(), Rejection> {
    let Some(moe) = module.moe else { return Ok(()) };
    let routed = f64::from(moe.experts) / f64::from(moe.top_k.max(1));
    if moe.skew > f64::from(expert) {
        return refuse(ROUTER_SKEW, format!("{} exceeds ep {expert}: a rank has at most ep times the mean", moe.skew));
    }
    if moe.skew > routed.max(1.0) {
        let (experts, top_k) = (moe.experts, moe.top_k);
        return refuse(ROUTER_SKEW, format!("{} exceeds {experts} experts / top_k {top_k}", moe.skew));
    }
    Ok(())
}

/// Reads the layers of each stage: numbers with any separator; `8*6` stands for six stages of 8 layers.
fn layers_per_stage(cells: Cells<'_>, degrees: Degrees, layers: u32) -> Result<Vec<u32>, Rejection> {
    let Some(text) = cells.text(LAYERS_PER_STAGE) else { return Ok(Vec::new()) };
    let stages = u64::from(degrees.pipeline) * u64::from(degrees.chunks);
    let mut counts = Vec::new();
    let is_separator = |letter: char| !letter.is_ascii_digit() && letter != '*' && letter != '.';
    for part in text.split(is_separator).filter(|part| !part.is_empty()) {
        let (count, times) = part.split_once('*').unwrap_or((part, "1"));
        let (Ok(count), Ok(times)) = (count.parse::<u32>(), times.parse::<u32>()) else {
            return refuse(LAYERS_PER_STAGE, format!("{} is not a list of whole numbers", quoted(text)));
        };
        if counts.len() as u64 + u64::from(times) > stages {
            return refuse(LAYERS_PER_STAGE, format!("more than pp x vpp = {stages} stages"));
        }
        counts.extend(std::iter::repeat_n(count, times as usize));
    }
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    if counts.len() as u64 != stages {
        return refuse(LAYERS_PER_STAGE, format!("{} stages, but pp x vpp is {stages}", counts.len()));
    }
    if counts.contains(&0) || total != u64::from(layers) {
        return refuse(LAYERS_PER_STAGE, format!("{total} layers in all; the model has {layers}, at least 1 a stage"));
    }
    Ok(counts)
}

fn training(cells: Cells<'_>, degrees: Degrees, cluster: &Cluster) -> Result<Training, Rejection> {
    let recompute =
        [Recompute::None, Recompute::Selective, Recompute::Operators, Recompute::Full][cells.word(RECOMPUTE)?];
    let precision = [Precision::Bf16, Precision::Bf16, Precision::Fp8, Precision::Fp32][cells.word(PRECISION)?];
    if precision == Precision::Fp8 && cluster.device.fp8_tflops.is_none() {
        return refuse(PRECISION, format!("{} has no fp8", cluster.name));
    }
    if cells.text(PRECISION).is_some() && cells.word(PRECISION)? == 0 && presets::lacks_bf16(cluster) {
        return refuse(PRECISION, format!("{} has no bf16; fp16 has the same size and rate", cluster.name));
    }
    let is_fsdp = cells.flag(FSDP)?.unwrap_or(false);
    let framework = framework(cells, is_fsdp)?;
    if framework == Framework::Fsdp && cells.flag(FSDP)? == Some(false) {
        return refuse(FSDP, "false contradicts the framework, which is FSDP");
    }
    let zero = zero(cells, degrees, framework, is_fsdp)?;
    let parameter_offload = parameter_offload(cells, zero)?;
    let has_fp8 = cluster.device.fp8_tflops.is_some();
    let recompute_layers = cells.integer(RECOMPUTE_LAYERS)?;
    if recompute_layers.is_some() && recompute != Recompute::Full {
        return refuse(RECOMPUTE_LAYERS, "needs recompute full");
    }
    let overlaps = zero >= 1 && framework.overlaps_sharded_optimizer();
    let replicates_norms = framework == Framework::MegatronDeepspeed;
    Ok(Training {
        recompute,
        recompute_layers,
        recompute_modules: recompute_modules(cells, recompute, framework)?,
        activation_offload: cells.number(ACTIVATION_OFFLOAD)?.unwrap_or(0.0),
        attention: attention(cells, framework, cluster)?,
        // Megatron-LM overlaps sends with computation only with interleaving, and only since 2023.
        overlapped_sends: cells.flag(SEND_OVERLAP)?.unwrap_or(degrees.chunks > 1 && has_fp8),
        sequence_parallel: cells.flag(SEQUENCE_PARALLEL)?.unwrap_or(degrees.tensor > 1 && !replicates_norms),
        distributed_optimizer: zero >= 1,
        // Frameworks with sharded optimizer state overlap its communication with computation.
        data_overlap: cells.number(DATA_OVERLAP)?.unwrap_or(if overlaps { 1.0 } else { 0.0 }),
        tensor_overlap: cells.number(TENSOR_OVERLAP)?.unwrap_or(0.0),
        memory_reserve_gib: cells.number(MEMORY_RESERVE_GIB)?.unwrap_or(Training::default().memory_reserve_gib),
        gradients: if cells.text(GRADIENTS).is_some() {
            [GradientFormat::Fp32, GradientFormat::Bf16][cells.word(GRADIENTS)?]
        } else {
            framework.gradients()
        },
        precision,
        fp8_recipe: fp8_recipe(cells, precision, cluster)?,
        fp8_weights: fp8_flag(cells, FP8_WEIGHTS, precision)?,
        fp8_activation_input: fp8_flag(cells, FP8_ACTIVATION_INPUT, precision)?,
        zero: Some(zero),
        shard_degree: shard_degree(cells, degrees, zero)?,
        parameter_offload,
        chunked_loss: cells.flag(CHUNKED_LOSS)?.unwrap_or(false),
        in_place_loss: cells.flag(IN_PLACE_LOSS)?.unwrap_or(false),
        grouped_experts: cells.flag(GROUPED_EXPERTS)?.unwrap_or(false),
        unsharded_gradients: cells.flag(UNSHARDED_GRADIENTS)?.unwrap_or(false),
        microbatches_per_flush: cells.integer(MICROBATCHES_PER_FLUSH)?,
        fused_weight_gradients: cells
            .flag(FUSED_WEIGHT_GRADIENTS)?
            .unwrap_or_else(|| framework.fuses_weight_gradients()),
        context_parallel: degrees.context,
        context_exchange: [ContextExchange::Ring, ContextExchange::AllToAll][cells.word(CP_EXCHANGE)?],
        context_balanced: cells.flag(CP_BALANCED)?.unwrap_or(true),
        expert_parallel: degrees.expert,
        expert_tensor_parallel: degrees.has_whole_experts.then_some(1),
        framework,
        expert_overlap: cells.number(EXPERT_OVERLAP)?.unwrap_or(0.0),
        dispatch_by_node: cells.flag(DISPATCH_BY_NODE)?.unwrap_or(false),
        optimizer: Optimizer::ALL[cells.word(OPTIMIZER)?],
        master_weights: master_weights(cells)?,
        moments: MomentFormat::ALL[cells.word(MOMENTS)?],
        optimizer_offload: optimizer_offload(cells, parameter_offload)?,
        execution: [None, Some(Execution::Eager), Some(Execution::Compiled), Some(Execution::CudaGraph)]
            [cells.word(EXECUTION)?],
        ..Training::default()
    })
}

fn fp8_recipe(cells: Cells<'_>, precision: Precision, cluster: &Cluster) -> Result<Option<Fp8Recipe>, Rejection> {
    let recipe = cells.word(FP8_RECIPE)?.checked_sub(1).map(|index| Fp8Recipe::ALL[index]);
    if recipe.is_some() && precision != Precision::Fp8 {
        return refuse(FP8_RECIPE, format!("needs {} fp8", PRECISION.name));
    }
    if recipe == Some(Fp8Recipe::Mxfp8) && presets::lacks_mxfp8(cluster) {
        return refuse(
            FP8_RECIPE,
            format!("{} has no mxfp8, which needs B200, MI355X or a newer device", cluster.name),
        );
    }
    Ok(recipe)
}

/// Returns the format of the master weights. A precision such as `bf16-true` has none, unless the row states them.
fn master_weights(cells: Cells<'_>) -> Result<MasterWeights, Rejection> {
    let is_pure = cells.text(PRECISION).is_some_and(|text| text.to_lowercase().ends_with("true"));
    let stated = MasterWeights::ALL[cells.word(MASTER_WEIGHTS)?];
    Ok(if is_pure && cells.text(MASTER_WEIGHTS).is_none() { MasterWeights::None } else { stated })
}

/// Returns the share of the optimizer state in host memory. Offloaded parameters have the whole state there.
fn optimizer_offload(cells: Cells<'_>, parameter_offload: bool) -> Result<f64, Rejection> {
    let share = cells.number(OPTIMIZER_OFFLOAD)?;
    match share.filter(|&share| parameter_offload && share < 1.0) {
        Some(share) => refuse(
            OPTIMIZER_OFFLOAD,
            format!("{share} contradicts {} true, which offloads the whole optimizer state", PARAMETER_OFFLOAD.name),
        ),
        None => Ok(share.unwrap_or(0.0)),
    }
}

fn fp8_flag(cells: Cells<'_>, column: Column, precision: Precision) -> Result<bool, Rejection> {
    let is_on = cells.flag(column)?.unwrap_or(false);
    if is_on && precision != Precision::Fp8 {
        return refuse(column, format!("needs {} fp8", PRECISION.name));
    }
    Ok(is_on)
}

/// Reads the modules that selective recomputation repeats, with any separator. The default of Megatron-LM is the
/// attention core, if the row states this framework.
fn recompute_modules(
    cells: Cells<'_>,
    recompute: Recompute,
    framework: Framework,
) -> Result<Vec<RecomputedModule>, Rejection> {
    let Some(text) = cells.text(RECOMPUTE_MODULES) else {
        let is_megatron = cells.text(FRAMEWORK).is_some() && framework == Framework::Megatron;
        let has_default = is_megatron && recompute == Recompute::Selective;
        return Ok(if has_default { vec![RecomputedModule::CoreAttn] } else { Vec::new() });
    };
    if recompute != Recompute::Selective {
        return refuse(RECOMPUTE_MODULES, format!("needs {} selective", RECOMPUTE.name));
    }
    let names = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let module = |name: &str| {
        let Some(module) = RecomputedModule::from_id(&name.to_lowercase()) else {
            let known = RecomputedModule::ALL.map(RecomputedModule::id).join(", ");
            return refuse(RECOMPUTE_MODULES, format!("{} is none of {known}", quoted(name)));
        };
        Ok(module)
    };
    names.filter(|name| !name.is_empty()).map(module).collect()
}

fn framework(cells: Cells<'_>, is_fsdp: bool) -> Result<Framework, Rejection> {
    let Some(name) = cells.text(FRAMEWORK) else {
        return Ok(if is_fsdp { Framework::Fsdp } else { Framework::default() });
    };
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    // Megatron-FSDP has the layers of Megatron-LM and the shards of FSDP.
    let is_mixed = plain.contains("megatron") && plain.contains("fsdp");
    if let Some(framework) = Framework::named(name).filter(|_| !is_mixed) {
        return Ok(framework);
    }
    let known = Framework::ALL.map(Framework::id);
    let meant = if is_mixed {
        "; Megatron-LM with sharded weights is megatron with zero 3".to_owned()
    } else {
        did_you_mean(name, known.into_iter())
    };
    refuse(FRAMEWORK, format!("{} is none of {}{meant}", quoted(name), known.join(", ")))
}

/// Returns the ZeRO stage. torchtitan keeps weights gathered and gradients unreduced in a pipeline,
/// so only the optimizer state is sharded.
fn zero(cells: Cells<'_>, degrees: Degrees, framework: Framework, is_fsdp: bool) -> Result<u32, Rejection> {
    let replicated = degrees.data > 1 || degrees.context > 1;
    let given = stated_zero(cells)?;
    // torchtitan and FSDP shard everything over the replicas, unless the row says otherwise.
    let is_sharded_by_default = matches!(framework, Framework::Torchtitan | Framework::Fsdp)
        && cells.text(FRAMEWORK).is_some()
        && cells.text(FSDP).is_none()
        && given.is_none()
        && replicated;
    Ok(match (is_fsdp || is_sharded_by_default, given) {
        (true, None | Some(1)) if framework == Framework::Torchtitan && degrees.pipeline > 1 => 1,
        (true, Some(stage)) if stage < 2 => {
            return refuse(ZERO, format!("{stage} contradicts fsdp true, which shards weights"));
        }
        // Stage 2 is SHARD_GRAD_OP: weights stay gathered.
        (true, stage) => stage.unwrap_or(3),
        (false, given) => given.unwrap_or(u32::from(replicated)),
    })
}

/// Returns the stage in the column `zero`, for example `3` or `ZeRO-3`, or in a framework such as `DeepSpeed ZeRO-3`.
fn stated_zero(cells: Cells<'_>) -> Result<Option<u32>, Rejection> {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    let stage = |text: &str| {
        plain(text).split_once("zero").and_then(|(_, rest)| {
            rest.strip_prefix("stage").unwrap_or(rest).chars().next()?.to_digit(10).filter(|stage| *stage <= 3)
        })
    };
    let column = match cells.text(ZERO).map(plain) {
        Some(text) if text.starts_with("zero") || text.starts_with("stage") => {
            let digits = text.trim_start_matches("zero").trim_start_matches("stage");
            match digits.parse().ok().filter(|stage| *stage <= 3) {
                Some(stage) => Some(stage),
                None => return refuse(ZERO, format!("{} is none of 0 to 3", quoted(cells.text(ZERO).unwrap_or("")))),
            }
        }
        _ => cells.integer(ZERO)?,
    };
    match (column, cells.text(FRAMEWORK).and_then(stage)) {
        (Some(column), Some(named)) if column != named => {
            refuse(ZERO, format!("{column} contradicts the framework, which names stage {named}"))
        }
        (column, named) => Ok(column.or(named)),
    }
}

/// Returns the number of devices over which ZeRO shards, which divides DP x CP.
fn shard_degree(cells: Cells<'_>, degrees: Degrees, zero: u32) -> Result<Option<u32>, Rejection> {
    let Some(shards) = cells.integer(SHARD_DEGREE)? else { return Ok(None) };
    let replicas = degrees.data.saturating_mul(degrees.context);
    if zero == 0 {
        return refuse(SHARD_DEGREE, "contradicts zero 0, which shards nothing");
    }
    if !replicas.is_multiple_of(shards) {
        return refuse(SHARD_DEGREE, format!("{shards} does not divide dp x cp = {replicas}"));
    }
    Ok((shards < replicas).then_some(shards))
}

/// Returns whether weights and gradients are in host memory, which needs sharded weights.
fn parameter_offload(cells: Cells<'_>, zero: u32) -> Result<bool, Rejection> {
    let is_on = cells.flag(PARAMETER_OFFLOAD)?.unwrap_or(false);
    if is_on && zero != 3 {
        return refuse(PARAMETER_OFFLOAD, format!("contradicts zero {zero}; needs zero 3"));
    }
    Ok(is_on)
}

/// Returns the attention kernel, as the readers of job configurations do.
fn attention(cells: Cells<'_>, framework: Framework, cluster: &Cluster) -> Result<AttentionKernel, Rejection> {
    let has_fp8 = cluster.device.fp8_tflops.is_some();
    let kernel = match AttentionKernel::ALL.get(cells.word(ATTENTION)?.wrapping_sub(1)) {
        None => return Ok(framework.usual_attention(has_fp8)),
        Some(AttentionKernel::Flash) => framework.fused_attention(has_fp8),
        Some(&kernel) => kernel,
    };
    match kernels::missing(kernel, cluster).filter(|_| cells.word(ATTENTION).is_ok_and(|word| word > 1)) {
        Some(reason) => refuse(ATTENTION, format!("{} on {}: {reason}", kernel.title(), cluster.name)),
        None => Ok(kernel),
    }
}
