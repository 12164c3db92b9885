//! Values of a configuration that the row does not state.

use std::fmt::Write;

use planner::cluster::presets;
use planner::estimate::{Configuration, layers_per_stage};
use planner::model::{Bias, Mask, Moe, Norm};
use planner::training::{ContextExchange, Execution, GradientFormat, RecomputedModule};

use super::architecture::Origin;
use super::cells::Cells;
use super::column::{
    ACTIVATION_OFFLOAD, ATTENTION, BASE_BITS, BIAS, CAUSAL, CHUNKED_LOSS, COLUMNS, CONTENT_SIZE, CP, CP_BALANCED,
    CP_EXCHANGE, Column, DATA_OVERLAP, DENSE_FFN, DENSE_LAYERS, DISPATCH_BY_NODE, DP, DROPOUT, EP, ETP, EXECUTION,
    EXPERT_FFN, EXPERT_OVERLAP, EXPERTS_EVERY, FFN, FP8_ACTIVATION_INPUT, FP8_RECIPE, FP8_WEIGHTS, FRAMEWORK,
    FULL_EVERY, FUSED_WEIGHT_GRADIENTS, Facts, GATED, GLOBAL_BATCH, GPU, GPUS_PER_NODE, GRADIENTS, GROUPED_EXPERTS,
    HEAD_SIZE, HEADS, HIDDEN, HOST_MEMORY_GIB, IN_PLACE_LOSS, KV_HEADS, KV_RANK, LAYERS, LAYERS_PER_STAGE,
    LINK_GB_PER_S, LORA_RANK, LORA_TARGETS, MASTER_WEIGHTS, MEMORY_RESERVE_GIB, MICROBATCH, MICROBATCHES_PER_FLUSH,
    MODEL, MOMENTS, N_EXPERTS, N_GPUS, NETWORK_GB_PER_S, NORM, OPTIMIZER, OPTIMIZER_OFFLOAD, PARAMETER_OFFLOAD,
    POSITIONS, PP, PRECISION, PREDICTED_AHEAD, PRESET, QUERY_RANK, RECOMPUTE, RECOMPUTE_LAYERS, RECOMPUTE_MODULES,
    ROTARY_SIZE, ROUTER_SKEW, SEND_OVERLAP, SEQ_LEN, SEQUENCE_PARALLEL, SHARD_DEGREE, SHARED_EXPERT_FFN,
    TENSOR_OVERLAP, TIED_EMBEDDINGS, TOP_K, TP, UNSHARDED_GRADIENTS, VALUE_SIZE, VOCAB, VPP, WINDOW, ZERO,
};
use super::presets::{counted, is_general};

/// Value of a column in a configuration. `None` if the configuration has none.
type Value = fn(&Configuration) -> Option<String>;

/// Values of the columns that describe the model.
const OF_MODEL: [(Column, Value); 32] = [
    (LAYERS, |c| some(c.model.modules[0].layers)),
    (HIDDEN, |c| some(c.model.modules[0].hidden)),
    (HEADS, |c| some(c.model.modules[0].heads)),
    (KV_HEADS, |c| some(c.model.modules[0].kv_heads)),
    (HEAD_SIZE, |c| c.model.modules[0].latent.is_none().then(|| c.model.modules[0].head_dim().to_string())),
    (FFN, |c| some(c.model.modules[0].ffn)),
    (VOCAB, |c| some(c.model.modules[0].vocab)),
    (GATED, |c| some(c.model.modules[0].gated)),
    (NORM, |c| some(if c.model.modules[0].norm == Norm::Rms { "rms" } else { "layer" })),
    (BIAS, |c| {
        some(match c.model.modules[0].bias {
            Bias::None => "none",
            Bias::Qkv => "qkv",
            Bias::All => "all",
        })
    }),
    (POSITIONS, |c| some(if c.model.modules[0].learned_positions > 0 { "learned" } else { "rotary" })),
    (CAUSAL, |c| some(c.model.modules[0].mask == Mask::Causal)),
    (WINDOW, |c| some(c.model.modules[0].window.map_or(0, |window| window.tokens))),
    (FULL_EVERY, |c| some(c.model.modules[0].window?.full_every)),
    (QUERY_RANK, |c| some(c.model.modules[0].latent?.query_rank)),
    (KV_RANK, |c| some(c.model.modules[0].latent.map_or(0, |latent| latent.kv_rank))),
    (CONTENT_SIZE, |c| some(c.model.modules[0].latent?.content_size)),
    (ROTARY_SIZE, |c| some(c.model.modules[0].latent?.rotary_size)),
    (VALUE_SIZE, |c| some(c.model.modules[0].latent?.value_size)),
    (N_EXPERTS, |c| some(moe(c).map_or(0, |moe| moe.experts))),
    (TOP_K, |c| some(moe(c)?.top_k)),
    (EXPERT_FFN, |c| some(moe(c)?.expert_width.unwrap_or(c.model.modules[0].ffn))),
    (SHARED_EXPERT_FFN, |c| some(moe(c)?.shared_width)),
    (DENSE_LAYERS, |c| some(moe(c)?.dense_layers)),
    (DENSE_FFN, |c| moe(c).map(|_| c.model.modules[0].ffn.to_string())),
    (EXPERTS_EVERY, |c| some(moe(c)?.every)),
    (PREDICTED_AHEAD, |c| some(c.model.modules[0].predicted_ahead)),
    (TIED_EMBEDDINGS, |c| some(c.model.modules[0].tied_embeddings)),
    (LORA_RANK, |c| some(c.model.modules[0].adapters.map_or(0, |adapters| adapters.rank))),
    (LORA_TARGETS, |c| some(if c.model.modules[0].adapters?.mlp { "all" } else { "attention" })),
    (BASE_BITS, |c| {
        some(c.model.modules[0].adapters?.base_bits.unwrap_or((c.training.layer_weight_bytes() * 8.0) as u32))
    }),
    (ROUTER_SKEW, |c| some(moe(c)?.skew)),
];

/// Values of the other columns.
const OF_TRAINING: [(Column, Value); 52] = [
    (GPU, |c| some(&c.cluster.name)),
    (N_GPUS, |c| some(c.cluster.devices())),
    (GPUS_PER_NODE, |c| some(c.cluster.devices_per_node)),
    (SEQ_LEN, |c| some(c.sequence_length)),
    (EXPERT_OVERLAP, |c| some(c.training.expert_overlap)),
    (DISPATCH_BY_NODE, |c| some(c.training.dispatch_by_node)),
    (OPTIMIZER, |c| some(c.training.optimizer.id())),
    (MASTER_WEIGHTS, |c| some(c.training.master_weights.id())),
    (MOMENTS, |c| some(c.training.moments.id())),
    (OPTIMIZER_OFFLOAD, |c| some(c.training.optimizer_offload)),
    (TP, |c| some(c.layout.tensor)),
    (PP, |c| some(c.layout.pipeline)),
    (DP, |c| some(c.layout.data)),
    (CP, |c| some(c.training.context_parallel)),
    (EP, |c| some(c.training.expert_parallel)),
    (ETP, |c| some(c.training.expert_tensor(c.layout.tensor))),
    (VPP, |c| some(c.layout.chunks)),
    (LAYERS_PER_STAGE, |c| layers_per_stage(c).map(|layers| runs(&layers))),
    (MICROBATCH, |c| some(c.layout.microbatch)),
    (GLOBAL_BATCH, |c| some(c.global_batch)),
    (RECOMPUTE, |c| some(c.training.recompute.id())),
    (RECOMPUTE_LAYERS, |c| (c.training.recompute.id() == "full").then(|| "all".to_owned())),
    (RECOMPUTE_MODULES, |c| {
        (c.training.recompute.id() == "selective").then(|| RecomputedModule::CoreAttn.id().to_owned())
    }),
    (SEQUENCE_PARALLEL, |c| some(c.training.sequence_parallel)),
    (ZERO, |c| some(c.training.zero_stage())),
    (SHARD_DEGREE, |c| {
        let replicas = c.layout.data * c.training.context_parallel;
        (c.training.zero_stage() > 0).then(|| c.training.shards(replicas).to_string())
    }),
    (PRECISION, |c| some(if presets::lacks_bf16(&c.cluster) { "fp16" } else { c.training.precision.id() })),
    (FP8_RECIPE, |c| some(c.training.used_recipe()?.id())),
    (FP8_WEIGHTS, |c| some(c.training.fp8_weights)),
    (FP8_ACTIVATION_INPUT, |c| some(c.training.fp8_activation_input)),
    (FRAMEWORK, |c| some(c.training.framework.id())),
    (EXECUTION, |c| some(c.training.execution.map_or("framework", Execution::id))),
    (ATTENTION, |c| some(c.training.attention.id())),
    (DROPOUT, |c| some(c.model.modules[0].dropout)),
    (ACTIVATION_OFFLOAD, |c| some(c.training.activation_offload)),
    (GRADIENTS, |c| some(if c.training.gradients == GradientFormat::Fp32 { "fp32" } else { "bf16" })),
    (CP_BALANCED, |c| some(c.training.context_balanced)),
    (CP_EXCHANGE, |c| some(if c.training.context_exchange == ContextExchange::Ring { "ring" } else { "all_to_all" })),
    (CHUNKED_LOSS, |c| some(c.training.chunked_loss)),
    (IN_PLACE_LOSS, |c| some(c.training.in_place_loss)),
    (GROUPED_EXPERTS, |c| some(c.training.grouped_experts)),
    (UNSHARDED_GRADIENTS, |c| some(c.training.unsharded_gradients)),
    (MICROBATCHES_PER_FLUSH, |c| some(c.training.microbatches_per_flush.map_or("all".to_owned(), |k| k.to_string()))),
    (PARAMETER_OFFLOAD, |c| some(c.training.parameter_offload)),
    (FUSED_WEIGHT_GRADIENTS, |c| some(c.training.fused_weight_gradients)),
    (TENSOR_OVERLAP, |c| some(c.training.tensor_overlap)),
    (DATA_OVERLAP, |c| some(c.training.data_overlap)),
    (SEND_OVERLAP, |c| some(c.training.overlapped_sends)),
    (LINK_GB_PER_S, |c| some(c.cluster.intra_node.gb_per_s)),
    (NETWORK_GB_PER_S, |c| some(c.cluster.inter_node.gb_per_s)),
    (MEMORY_RESERVE_GIB, |c| some(c.training.memory_reserve_gib)),
    (HOST_MEMORY_GIB, |c| some(c.cluster.host_share().gib() * f64::from(c.cluster.devices_per_node))),
];

/// Returns the values that the estimate uses and the row does not state, for example "attention flash2; zero 1". Values
/// without effect are left out, and those of a preset are summarized by its name.
pub(super) fn used(cells: Cells<'_>, configuration: &Configuration, origin: Origin, facts: &Facts<'_>) -> String {
    let mut used = String::new();
    let mut add = |column: Column, value: &str| {
        // Writing to a string cannot fail.
        let _ = write!(used, "{}{} {value}", if used.is_empty() { "" } else { "; " }, column.name);
    };
    let has_preset = matches!(origin, Origin::Preset(_));
    if cells.text(GPU).is_some_and(|text| is_general(counted(text).0)) {
        add(GPU, &configuration.cluster.name);
    }
    match (cells.text(PRESET), cells.text(MODEL)) {
        (None, Some(_)) if has_preset => add(PRESET, &configuration.model.name),
        (None, Some(_)) => add(MODEL, "is a label"),
        (Some(_), Some(_)) => add(MODEL, "is a label; preset has priority"),
        _ => {}
    }
    let is_of_preset = |column: Column| {
        // The load of ranks and adapters are no properties of a preset.
        has_preset && ![ROUTER_SKEW, LORA_RANK, LORA_TARGETS, BASE_BITS].contains(&column)
    };
    let of_model = OF_MODEL.iter().filter(|(column, _)| !is_of_preset(*column));
    for (column, value) in of_model.chain(&OF_TRAINING).filter(|(column, _)| cells.text(*column).is_none()) {
        // Without a preset, `dense_ffn` replaces the width of layers without experts, and `expert_ffn` has that of experts.
        let is_replaced = *column == FFN && cells.text(DENSE_FFN).is_some();
        if is_replaced || facts.reason(*column).is_some() {
            continue;
        }
        if let Some(value) = value(configuration) {
            add(*column, &value);
        }
    }
    used
}

/// Number of columns that neither table has: `model`, `preset` and `fsdp`, which other columns describe.
const WITHOUT_VALUE: usize = 3;
const _: () = assert!(OF_MODEL.len() + OF_TRAINING.len() + WITHOUT_VALUE == COLUMNS.len());

#[allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value, reason = "the tables call it with any value")]
fn some(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn moe(configuration: &Configuration) -> Option<Moe> {
    configuration.model.modules[0].moe
}

/// Formats layers per stage as the column has them: `7*2 6*3`.
fn runs(layers: &[u32]) -> String {
    let run = |run: &[u32]| if run.len() > 1 { format!("{}*{}", run[0], run.len()) } else { run[0].to_string() };
    layers.chunk_by(u32::eq).map(run).collect::<Vec<_>>().join(" ")
}
