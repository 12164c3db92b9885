//! Columns whose values cannot have an effect in some rows, with the reason.

use std::borrow::Cow;

use planner::estimate::Configuration;
use planner::model::{LayerKind, Mask, Mixer, MlpKind, Module};
use planner::training::{ContextExchange, Experts, Precision, Recompute, RecomputedModule, Training};

use super::super::cells::Cells;
use super::{
    BASE_BITS, CAUSAL, CHUNKED_LOSS, CONTENT_SIZE, CP_BALANCED, CP_EXCHANGE, Column, DATA_OVERLAP, DENSE_FFN,
    DENSE_LAYERS, DISPATCH_BY_NODE, EP, ETP, EXPERT_FFN, EXPERT_OVERLAP, EXPERTS_EVERY, FFN, FP8_ACTIVATION_INPUT,
    FP8_RECIPE, FP8_WEIGHTS, FULL_EVERY, FUSED_WEIGHT_GRADIENTS, GPUS_PER_NODE, GROUPED_EXPERTS, HOST_MEMORY_GIB,
    IN_PLACE_LOSS, KV_HEADS, LAYERS_PER_STAGE, LINK_GB_PER_S, LORA_TARGETS, MASTER_WEIGHTS, MICROBATCHES_PER_FLUSH,
    MOMENTS, N_EXPERTS, NETWORK_GB_PER_S, OPTIMIZER_OFFLOAD, PARAMETER_OFFLOAD, QUERY_RANK, RECOMPUTE,
    RECOMPUTE_LAYERS, RECOMPUTE_MODULES, ROTARY_SIZE, ROUTER_SKEW, SEND_OVERLAP, SEQUENCE_PARALLEL, SHARD_DEGREE,
    SHARED_EXPERT_FFN, TENSOR_OVERLAP, TIED_EMBEDDINGS, TOP_K, UNSHARDED_GRADIENTS, VALUE_SIZE, VPP, WINDOW, ZERO,
};

/// Reason why a column has no effect. `None` if it can have one.
pub(in crate::configurations) type Reason = Option<Cow<'static, str>>;

/// Returns the reason why a column has no effect in a row.
type Condition = fn(&Facts<'_>) -> Reason;

/// A finished configuration, with the cells of its row.
#[derive(Debug)]
pub(in crate::configurations) struct Facts<'c> {
    cells: Cells<'c>,
    configuration: &'c Configuration,
    module: &'c Module,
    kinds: Vec<LayerKind>,
    preset: PresetParts,
}

/// Parts of the preset of a row. A row without a preset has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::configurations) struct PresetParts {
    /// `ffn` is then the width of layers without experts.
    pub has_experts: bool,
    pub has_window: bool,
}

/// Condition of each column that does not always have an effect.
const CONDITIONS: [(Column, Condition); 54] = [
    (GPUS_PER_NODE, |facts| when(facts.configuration.cluster.devices() == 1, "one device")),
    (LINK_GB_PER_S, |facts| when(facts.configuration.cluster.devices_per_node == 1, "one device per node")),
    (NETWORK_GB_PER_S, |facts| when(facts.configuration.cluster.nodes == 1, "one node")),
    (HOST_MEMORY_GIB, |facts| when(!facts.offloads(), "nothing is offloaded")),
    (KV_HEADS, |facts| when(facts.module.latent.is_some(), "latent attention has keys and values of all heads")),
    (QUERY_RANK, without_latent),
    (CONTENT_SIZE, without_latent),
    (ROTARY_SIZE, without_latent),
    (VALUE_SIZE, without_latent),
    (WINDOW, without_window),
    (FULL_EVERY, without_rule_of_windows),
    (TIED_EMBEDDINGS, without_vocabulary),
    (CHUNKED_LOSS, without_vocabulary),
    (IN_PLACE_LOSS, |facts| {
        without_vocabulary(facts)
            .or_else(|| when(facts.configuration.training.chunked_loss, "chunked_loss stores no logits"))
    }),
    (CAUSAL, without_masked_scores),
    (FUSED_WEIGHT_GRADIENTS, |facts| {
        when(facts.module.adapters.is_some(), "adapters: the weights have no gradients")
            .or_else(|| when(facts.configuration.training.zero_stage() == 3, "zero 3 accumulates reduced shards"))
    }),
    (FFN, without_ffn),
    (N_EXPERTS, |facts| without_experts(facts).filter(|_| facts.module.pattern.is_some())),
    (TOP_K, without_experts),
    (EXPERT_FFN, without_experts),
    (SHARED_EXPERT_FFN, without_experts),
    (DENSE_LAYERS, without_rule_of_experts),
    (EXPERTS_EVERY, without_rule_of_experts),
    (DENSE_FFN, |facts| without_experts(facts).or_else(|| without_dense_layers(facts))),
    (ROUTER_SKEW, without_expert_ranks),
    (EXPERT_OVERLAP, without_expert_ranks),
    (DISPATCH_BY_NODE, |facts| {
        let is_local =
            facts.configuration.cluster.nodes == 1 && facts.configuration.training.precision != Precision::Fp8;
        without_expert_ranks(facts).or_else(|| when(is_local, "one node"))
    }),
    (EP, without_experts),
    (ETP, |facts| without_experts(facts).or_else(|| without_tensor_ranks(facts))),
    (LORA_TARGETS, |facts| when(facts.module.adapters.is_none(), "no adapters")),
    (BASE_BITS, |facts| when(facts.module.adapters.is_none(), "no adapters")),
    (MASTER_WEIGHTS, |facts| {
        when(
            facts.configuration.training.precision == Precision::Fp32,
            "precision is fp32, which has no master weights",
        )
    }),
    (MOMENTS, |facts| {
        when(
            !facts.configuration.training.optimizer.has_moment_format(),
            "the optimizer has no moments of a chosen format",
        )
    }),
    (OPTIMIZER_OFFLOAD, |facts| {
        when(facts.configuration.training.offloads_parameters(), "parameter_offload includes the optimizer state")
    }),
    (PARAMETER_OFFLOAD, |facts| when(facts.configuration.training.zero_stage() < 3, "zero is below 3")),
    (VPP, without_stages),
    (MICROBATCHES_PER_FLUSH, |facts| {
        let Configuration { layout, training, global_batch, .. } = facts.configuration;
        let of_replica = global_batch / layout.data.saturating_mul(layout.microbatch).max(1);
        let is_longer = training.microbatches_per_flush.is_some_and(|flush| flush >= of_replica);
        without_stages(facts).or_else(|| when(is_longer, "a replica has no more microbatches"))
    }),
    (GROUPED_EXPERTS, |facts| {
        let loops = Training { grouped_experts: false, ..facts.configuration.training.clone() };
        let is_grouped = loops.profile().experts != Experts::OneByOne;
        without_experts(facts).or_else(|| when(is_grouped, "the framework groups experts"))
    }),
    (UNSHARDED_GRADIENTS, |facts| {
        let is_whole = facts.configuration.training.zero_stage() < 2;
        without_replicas(facts).or_else(|| when(is_whole, "zero below 2 does not shard gradients"))
    }),
    (LAYERS_PER_STAGE, without_stages),
    (SEND_OVERLAP, without_stages),
    (SEQUENCE_PARALLEL, without_tensor_ranks),
    (TENSOR_OVERLAP, without_tensor_ranks),
    (CP_BALANCED, |facts| {
        let training = &facts.configuration.training;
        without_context_ranks(facts)
            .or_else(|| when(facts.module.mask == Mask::Full, "no causal mask"))
            .or_else(|| without_masked_scores(facts))
            .or_else(|| when(training.context_exchange == ContextExchange::AllToAll, "all_to_all splits heads"))
    }),
    (CP_EXCHANGE, without_context_ranks),
    (ZERO, |facts| without_replicas(facts).filter(|_| !facts.configuration.training.offloads_parameters())),
    (SHARD_DEGREE, without_replicas),
    (DATA_OVERLAP, without_replicas),
    (FP8_RECIPE, without_fp8),
    (FP8_WEIGHTS, without_fp8_weights),
    (FP8_ACTIVATION_INPUT, without_fp8),
    (RECOMPUTE, without_repeated_modules),
    (RECOMPUTE_LAYERS, without_further_layers),
    (RECOMPUTE_MODULES, without_modules),
];

fn when(has_no_effect: bool, reason: &'static str) -> Reason {
    has_no_effect.then_some(Cow::Borrowed(reason))
}

impl<'c> Facts<'c> {
    /// Collects the facts of a row.
    pub(in crate::configurations) fn new(
        cells: Cells<'c>,
        configuration: &'c Configuration,
        preset: PresetParts,
    ) -> Self {
        let module = &configuration.model.modules[0];
        Self { cells, configuration, module, kinds: module.layer_kinds(), preset }
    }

    /// Returns the reason why a column has no effect in the row.
    pub(in crate::configurations) fn reason(&self, column: Column) -> Reason {
        let (_, condition) = CONDITIONS.iter().find(|(known, _)| known.name == column.name)?;
        condition(self)
    }

    fn offloads(&self) -> bool {
        let training = &self.configuration.training;
        training.activation_offload > 0.0 || training.offloaded_optimizer() > 0.0
    }
}

fn without_latent(facts: &Facts<'_>) -> Reason {
    when(facts.module.latent.is_none(), "no latent attention")
}

fn without_window(facts: &Facts<'_>) -> Reason {
    when(!facts.kinds.iter().any(|kind| kind.mixer == Some(Mixer::Window)), "no layer has a window")
        .filter(|_| facts.module.window.is_some())
        .or_else(|| without_shorter_window(facts))
}

fn without_rule_of_windows(facts: &Facts<'_>) -> Reason {
    let is_linear = facts.module.linear.is_some_and(|linear| linear.full_every == 0);
    when(facts.module.window.is_none(), "no window")
        .or_else(|| when(facts.module.pattern.is_some() || is_linear, "no layer has a window"))
        .or_else(|| without_shorter_window(facts))
}

/// A long window has no effect, unless it replaces the shorter one of a preset.
fn without_shorter_window(facts: &Facts<'_>) -> Reason {
    let window = facts.module.window.filter(|_| !facts.preset.has_window)?;
    when(window.tokens >= facts.configuration.sequence_length, "the window is not below seq_len")
}

fn without_vocabulary(facts: &Facts<'_>) -> Reason {
    when(facts.module.vocab == 0, "vocab is 0")
}

fn without_experts(facts: &Facts<'_>) -> Reason {
    when(!facts.kinds.iter().any(|kind| kind.mlp == Some(MlpKind::Experts)), "no experts")
}

fn without_dense_layers(facts: &Facts<'_>) -> Reason {
    when(!facts.kinds.iter().any(|kind| kind.mlp == Some(MlpKind::Dense)), "no layers without experts")
}

fn without_rule_of_experts(facts: &Facts<'_>) -> Reason {
    without_experts(facts).or_else(|| when(facts.module.pattern.is_some(), "the model has a pattern of layers"))
}

/// `ffn` is the width of layers without experts, and without a preset also of experts.
fn without_ffn(facts: &Facts<'_>) -> Reason {
    facts.module.moe?;
    if facts.preset.has_experts {
        return without_dense_layers(facts);
    }
    let is_stated = |column: Column| facts.cells.text(column).is_some();
    if !is_stated(EXPERT_FFN) {
        return None;
    }
    without_dense_layers(facts).or_else(|| when(is_stated(DENSE_FFN), "expert_ffn and dense_ffn replace it"))
}

fn without_expert_ranks(facts: &Facts<'_>) -> Reason {
    without_experts(facts).or_else(|| when(facts.configuration.training.expert_parallel == 1, "EP is 1"))
}

fn without_tensor_ranks(facts: &Facts<'_>) -> Reason {
    when(facts.configuration.layout.tensor == 1, "TP is 1")
}

fn without_stages(facts: &Facts<'_>) -> Reason {
    when(facts.configuration.layout.pipeline == 1, "PP is 1")
}

fn without_context_ranks(facts: &Facts<'_>) -> Reason {
    when(facts.configuration.training.context_parallel == 1, "CP is 1")
}

fn without_replicas(facts: &Facts<'_>) -> Reason {
    let replicas = facts.configuration.layout.data.saturating_mul(facts.configuration.training.context_parallel);
    when(replicas == 1, "one replica")
}

fn without_fp8(facts: &Facts<'_>) -> Reason {
    when(facts.configuration.training.precision != Precision::Fp8, "precision is not fp8")
}

/// fp8 weights take less memory if the device needs one copy of them, and less time in gathers.
fn without_fp8_weights(facts: &Facts<'_>) -> Reason {
    let Configuration { training, cluster, .. } = facts.configuration;
    let adapters = facts.module.adapters;
    let is_gathered = without_replicas(facts).is_none() && (adapters.is_none() || training.zero_stage() == 3);
    let has_two_copies = !training.has_single_fp8_copy(&cluster.device);
    without_fp8(facts)
        .or_else(|| when(adapters.is_some_and(|adapters| adapters.base_bits.is_some()), "base_bits replaces it"))
        .or_else(|| when(has_two_copies && !is_gathered, "the device stores two copies in fp8, and gathers none"))
}

fn without_masked_scores(facts: &Facts<'_>) -> Reason {
    when(!facts.configuration.training.attention.is_fused(), "unfused attention computes all scores")
}

fn without_further_layers(facts: &Facts<'_>) -> Reason {
    let stated = facts.configuration.training.recompute_layers?;
    let stages = facts.configuration.layout.pipeline.saturating_mul(facts.configuration.layout.chunks).max(1);
    let even = facts.module.layers.div_ceil(stages);
    let most = facts.configuration.layers_per_stage.iter().copied().max().unwrap_or(even);
    (stated > most).then(|| Cow::Owned(format!("a stage has at most {most} layers")))
}

/// Selective recomputation repeats the attention core, or the stated modules.
fn without_repeated_modules(facts: &Facts<'_>) -> Reason {
    let training = &facts.configuration.training;
    if training.recompute != Recompute::Selective {
        return None;
    }
    if training.recompute_modules.is_empty() {
        return when(training.attention.is_fused(), "fused attention stores no scores");
    }
    let is_nothing = missing_modules(facts).len() == training.recompute_modules.len();
    when(is_nothing, "nothing of recompute_modules is stored")
}

fn without_modules(facts: &Facts<'_>) -> Reason {
    let missing: Vec<&str> = missing_modules(facts).into_iter().map(RecomputedModule::id).collect();
    (!missing.is_empty()).then(|| Cow::Owned(format!("nothing of {} is stored", missing.join(" and "))))
}

/// Stated modules that the model does not have, or whose outputs are not stored.
fn missing_modules(facts: &Facts<'_>) -> Vec<RecomputedModule> {
    let training = &facts.configuration.training;
    let has = |kind: MlpKind| facts.kinds.iter().any(|it| it.mlp == Some(kind));
    let is_missing = |module: &RecomputedModule| match module {
        RecomputedModule::CoreAttn | RecomputedModule::Layernorm => false,
        RecomputedModule::MlaUpProj => facts.module.latent.is_none(),
        RecomputedModule::Mlp => !has(MlpKind::Dense),
        RecomputedModule::Moe | RecomputedModule::MoeAct => !has(MlpKind::Experts),
        RecomputedModule::SharedExperts => facts.module.moe.is_none_or(|moe| moe.shared_width == 0),
    };
    training.recompute_modules.iter().copied().filter(is_missing).collect()
}
