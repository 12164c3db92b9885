//! Values of a configuration that the row does not state.

use planner::cluster::presets;
use planner::estimate::Configuration;
use planner::training::{Execution, GradientFormat};

use super::cells::Cells;
use super::column::{
    ATTENTION, Column, DATA_OVERLAP, DROPOUT, EXECUTION, FFN, FP8_RECIPE, FP8_WEIGHTS, FRAMEWORK,
    FUSED_WEIGHT_GRADIENTS, GLOBAL_BATCH, GPU, GRADIENTS, HEADS, HIDDEN, KV_HEADS, LAYERS, LINK_GB_PER_S,
    MASTER_WEIGHTS, MEMORY_RESERVE_GIB, MICROBATCH, MODEL, MOMENTS, NETWORK_GB_PER_S, OPTIMIZER, PRECISION, PRESET,
    RECOMPUTE, SEQ_LEN, SEQUENCE_PARALLEL, TENSOR_OVERLAP, TIED_EMBEDDINGS, VOCAB, ZERO,
};

/// Returns the default values that the estimate uses, for example "attention flash2; zero 1".
pub(super) fn used(cells: Cells<'_>, configuration: &Configuration) -> String {
    let Configuration { model, cluster, training, layout, global_batch, sequence_length, .. } = configuration;
    let module = &model.modules[0];
    let has_preset = cells.text(PRESET).is_some() || cells.text(MODEL).is_some() && cells.text(LAYERS).is_none();
    let mut used: Vec<String> = Vec::new();
    let mut add = |column: Column, value: String| {
        if cells.text(column).is_none() {
            used.push(format!("{} {value}", column.name));
        }
    };
    add(GPU, cluster.name.clone());
    if !has_preset {
        add(LAYERS, module.layers.to_string());
        add(HIDDEN, module.hidden.to_string());
        add(HEADS, module.heads.to_string());
        add(KV_HEADS, module.kv_heads.to_string());
        add(FFN, module.ffn.to_string());
        add(VOCAB, module.vocab.to_string());
        add(TIED_EMBEDDINGS, module.tied_embeddings.to_string());
    }
    add(SEQ_LEN, sequence_length.to_string());
    add(MICROBATCH, layout.microbatch.to_string());
    add(GLOBAL_BATCH, global_batch.to_string());
    add(FRAMEWORK, training.framework.id().to_owned());
    add(EXECUTION, training.execution.map_or("framework", Execution::id).to_owned());
    add(ATTENTION, training.attention.id().to_owned());
    add(DROPOUT, module.dropout.to_string());
    let precision = if presets::lacks_bf16(cluster) { "fp16" } else { training.precision.id() };
    add(PRECISION, precision.to_owned());
    if let Some(recipe) = training.used_recipe() {
        add(FP8_RECIPE, recipe.id().to_owned());
        add(FP8_WEIGHTS, training.fp8_weights.to_string());
    }
    add(RECOMPUTE, training.recompute.id().to_owned());
    add(SEQUENCE_PARALLEL, training.sequence_parallel.to_string());
    add(ZERO, training.zero_stage().to_string());
    add(OPTIMIZER, training.optimizer.id().to_owned());
    add(MASTER_WEIGHTS, training.master_weights.id().to_owned());
    add(MOMENTS, training.moments.id().to_owned());
    add(GRADIENTS, if training.gradients == GradientFormat::Fp32 { "fp32" } else { "bf16" }.to_owned());
    add(FUSED_WEIGHT_GRADIENTS, training.fused_weight_gradients.to_string());
    add(TENSOR_OVERLAP, training.tensor_overlap.to_string());
    add(DATA_OVERLAP, training.data_overlap.to_string());
    add(LINK_GB_PER_S, cluster.intra_node.gb_per_s.to_string());
    add(NETWORK_GB_PER_S, cluster.inter_node.gb_per_s.to_string());
    add(MEMORY_RESERVE_GIB, training.memory_reserve_gib.to_string());
    used.join("; ")
}
