//! Names, values and defaults of the columns.

use super::{Column, Holds};

/// Maximum device count, 4,096 nodes with 256 devices, as in scenarios.
const MAX_DEVICES: u32 = 4096 * 256;

const fn integer(name: &'static str, min: u32, max: u32, default: &'static str) -> Column {
    Column { name, holds: Holds::Integer(min, max), default }
}

const fn number(name: &'static str, min: f64, max: f64, default: &'static str) -> Column {
    Column { name, holds: Holds::Number(min, max), default }
}

const fn flag(name: &'static str, default: &'static str) -> Column {
    Column { name, holds: Holds::Flag, default }
}

const fn word(name: &'static str, terms: &'static [&'static str], default: &'static str) -> Column {
    Column { name, holds: Holds::Word(terms), default }
}

const fn name(name: &'static str, description: &'static str, default: &'static str) -> Column {
    Column { name, holds: Holds::Name(description), default }
}

pub(in crate::configurations) const GPU: Column =
    name("gpu", "a cluster preset, or a usual name such as H100-SXM", "a100-80gb");
pub(in crate::configurations) const N_GPUS: Column = integer("n_gpus", 1, MAX_DEVICES, "tp x pp x cp x dp");
pub(in crate::configurations) const GPUS_PER_NODE: Column =
    integer("gpus_per_node", 1, 256, "value in the preset, 8; n_gpus if smaller");
pub(in crate::configurations) const MODEL: Column = name(
    "model",
    "a known model, whose values stated columns replace; a label if it is unknown and layers and hidden are given",
    "none",
);
pub(in crate::configurations) const PRESET: Column = name("preset", "a known model; model is then a label", "none");
pub(in crate::configurations) const LAYERS: Column = integer("layers", 1, 1024, "32");
pub(in crate::configurations) const HIDDEN: Column = integer("hidden", 16, 131_072, "4096");
pub(in crate::configurations) const HEADS: Column = integer("heads", 1, 1024, "hidden / 128, at least 1");
pub(in crate::configurations) const KV_HEADS: Column = integer("kv_heads", 1, 1024, "heads");
pub(in crate::configurations) const FFN: Column =
    integer("ffn", 16, 1_048_576, "4 x hidden; gated: 8/3 x hidden, rounded up to a multiple of 256");
pub(in crate::configurations) const VOCAB: Column = integer("vocab", 0, 4_194_304, "51200");
pub(in crate::configurations) const HEAD_SIZE: Column = integer("head_size", 1, 4096, "hidden / heads");
pub(in crate::configurations) const NORM: Column =
    word("norm", &["preset", "rms", "layer"], "rms if gated, else layer");
pub(in crate::configurations) const BIAS: Column =
    word("bias", &["preset", "none", "qkv", "all"], "none if gated, else all");
pub(in crate::configurations) const POSITIONS: Column =
    word("positions", &["preset", "rotary", "learned"], "rotary if gated, else learned");
pub(in crate::configurations) const WINDOW: Column =
    integer("window", 0, 16_777_216, "0: no window; tokens that a token attends to");
pub(in crate::configurations) const FULL_EVERY: Column =
    integer("full_every", 0, 1024, "0: all layers have the window; every n-th attends to all tokens");
pub(in crate::configurations) const QUERY_RANK: Column =
    integer("q_lora_rank", 0, 131_072, "0; latent attention (MLA), needs kv_lora_rank");
pub(in crate::configurations) const KV_RANK: Column =
    integer("kv_lora_rank", 0, 131_072, "0: no latent attention (MLA)");
pub(in crate::configurations) const CONTENT_SIZE: Column =
    integer("qk_nope_head_size", 1, 4096, "128; of latent attention, as the next two");
pub(in crate::configurations) const ROTARY_SIZE: Column = integer("qk_rope_head_size", 0, 4096, "64");
pub(in crate::configurations) const VALUE_SIZE: Column = integer("v_head_size", 1, 4096, "128");
pub(in crate::configurations) const DENSE_FFN: Column =
    integer("dense_ffn", 16, 1_048_576, "ffn; of the layers without experts, if ffn is that of an expert");
pub(in crate::configurations) const EXPERTS_EVERY: Column =
    integer("experts_every", 1, 1024, "1; every n-th layer after the dense ones has experts");
pub(in crate::configurations) const PREDICTED_AHEAD: Column = integer("mtp_layers", 0, 16, "0; multi-token prediction");
pub(in crate::configurations) const GATED: Column = flag("gated", "false");
pub(in crate::configurations) const SEQ_LEN: Column = integer("seq_len", 1, 16_777_216, "2048");
pub(in crate::configurations) const CAUSAL: Column = flag("causal", "true");
pub(in crate::configurations) const N_EXPERTS: Column = integer("n_experts", 0, 1024, "0; 0 and 1 are a dense model");
pub(in crate::configurations) const TOP_K: Column = integer("top_k", 0, 1024, "2");
pub(in crate::configurations) const EXPERT_FFN: Column = integer("expert_ffn", 16, 1_048_576, "ffn");
pub(in crate::configurations) const SHARED_EXPERT_FFN: Column =
    integer("shared_expert_ffn", 0, 1_048_576, "0; all shared experts");
pub(in crate::configurations) const DENSE_LAYERS: Column =
    integer("dense_layers", 0, 1023, "0; first layers without experts");
pub(in crate::configurations) const ROUTER_SKEW: Column =
    number("router_skew", 1.0, 1024.0, "1; most over mean tokens of an EP rank, at most ep");
pub(in crate::configurations) const EXPERT_OVERLAP: Column =
    number("expert_overlap", 0.0, 1.0, "0; hidden share of the exchange");
pub(in crate::configurations) const DISPATCH_BY_NODE: Column = flag("dispatch_by_node", "false; true as with DeepEP");
pub(in crate::configurations) const LORA_RANK: Column = integer("lora_rank", 0, 4096, "0: all parameters are trained");
pub(in crate::configurations) const LORA_TARGETS: Column =
    word("lora_targets", &["all", "attention"], "all linear layers");
pub(in crate::configurations) const BASE_BITS: Column = integer("base_bits", 4, 8, "as precision; 4 or 8 as in QLoRA");
pub(in crate::configurations) const RECOMPUTE_MODULES: Column = name(
    "recompute_modules",
    "names of Megatron-LM, such as core_attn layernorm; needs recompute selective",
    "core_attn",
);
pub(in crate::configurations) const ACTIVATION_OFFLOAD: Column =
    number("activation_offload", 0.0, 1.0, "0; share of stored activations in host memory");
pub(in crate::configurations) const FP8_RECIPE: Column = word(
    "fp8_recipe",
    &["framework", "delayed", "tensorwise", "rowwise", "blockwise", "mxfp8"],
    "tensorwise for torchtitan and fsdp, else delayed",
);
pub(in crate::configurations) const FP8_WEIGHTS: Column =
    flag("fp8_weights", "false; weights stored and gathered in fp8");
pub(in crate::configurations) const FP8_ACTIVATION_INPUT: Column =
    flag("fp8_activation_input", "false; input of the MLP's activation function stored in fp8");
pub(in crate::configurations) const CP_EXCHANGE: Column = word("cp_exchange", &["ring", "all_to_all"], "ring");
pub(in crate::configurations) const SEND_OVERLAP: Column =
    flag("send_overlap", "true if vpp > 1 and the device has fp8");
pub(in crate::configurations) const OPTIMIZER: Column =
    word("optimizer", &["adam", "adam_8bit", "muon", "adafactor", "sgd"], "adam");
pub(in crate::configurations) const MASTER_WEIGHTS: Column =
    word("master_weights", &["fp32", "half", "none"], "fp32; none with precision bf16-true or 16-true");
pub(in crate::configurations) const MOMENTS: Column = word("moments", &["fp32", "bf16", "fp8"], "fp32");
pub(in crate::configurations) const OPTIMIZER_OFFLOAD: Column =
    number("optimizer_offload", 0.0, 1.0, "0; share in host memory");
pub(in crate::configurations) const TP: Column = integer("tp", 1, MAX_DEVICES, "1");
pub(in crate::configurations) const PP: Column = integer("pp", 1, MAX_DEVICES, "1");
pub(in crate::configurations) const DP: Column = integer("dp", 1, MAX_DEVICES, "n_gpus / (tp x pp x cp)");
pub(in crate::configurations) const CP: Column = integer("cp", 1, MAX_DEVICES, "1");
pub(in crate::configurations) const EP: Column = integer("ep", 1, MAX_DEVICES, "1");
pub(in crate::configurations) const ETP: Column = integer("etp", 1, 64, "tp; or 1: whole experts");
pub(in crate::configurations) const VPP: Column = integer("vpp", 1, 1024, "1");
pub(in crate::configurations) const LAYERS_PER_STAGE: Column = name(
    "layers_per_stage",
    "pp x vpp numbers, such as 7 8*6 9",
    "as the framework splits the layers; otherwise the first stages have one more",
);
pub(in crate::configurations) const MICROBATCH: Column = integer("microbatch", 1, 65_536, "1");
pub(in crate::configurations) const GLOBAL_BATCH: Column =
    integer("global_batch", 1, 1_048_576, "dp x microbatch x 4 x pp");
pub(in crate::configurations) const RECOMPUTE: Column =
    word("recompute", &["none", "selective", "operators", "full"], "none");
pub(in crate::configurations) const RECOMPUTE_LAYERS: Column =
    integer("recompute_layers", 1, 1024, "all layers of a stage; needs recompute full");
pub(in crate::configurations) const SEQUENCE_PARALLEL: Column =
    flag("sequence_parallel", "true if tp > 1 and the framework has it");
pub(in crate::configurations) const ZERO: Column =
    integer("zero", 0, 3, "1 if dp x cp > 1 (3 with framework torchtitan or fsdp), else 0");
pub(in crate::configurations) const SHARD_DEGREE: Column =
    integer("shard_degree", 1, 131_072, "dp x cp; needs zero >= 1");
pub(in crate::configurations) const CHUNKED_LOSS: Column = flag("chunked_loss", "false");
pub(in crate::configurations) const IN_PLACE_LOSS: Column = flag("in_place_loss", "false");
pub(in crate::configurations) const MICROBATCHES_PER_FLUSH: Column = integer(
    "microbatches_per_flush",
    1,
    1_000_000,
    "all microbatches of a replica; the pipeline is flushed after as many",
);
pub(in crate::configurations) const GROUPED_EXPERTS: Column = flag("grouped_experts", "false");
pub(in crate::configurations) const UNSHARDED_GRADIENTS: Column = flag("unsharded_gradients", "false");
pub(in crate::configurations) const PARAMETER_OFFLOAD: Column = flag("parameter_offload", "false; needs zero 3");
pub(in crate::configurations) const PRECISION: Column = word("precision", &["bf16", "fp16", "fp8", "fp32"], "bf16");
pub(in crate::configurations) const FSDP: Column = flag("fsdp", "false; true means zero 3 if zero is not stated");
pub(in crate::configurations) const FRAMEWORK: Column = name(
    "framework",
    "megatron, megatron_deepspeed, torchtitan, fsdp, nanotron, hugging_face, deepspeed or internevo",
    "fsdp if fsdp is true, else megatron",
);
pub(in crate::configurations) const EXECUTION: Column =
    word("execution", &["framework", "eager", "compiled", "cuda_graph"], "as usual in the framework");
pub(in crate::configurations) const ATTENTION: Column = word(
    "attention",
    &["default", "flash", "unfused", "flash1", "flash2", "flash3", "cudnn"],
    "by framework and device",
);
pub(in crate::configurations) const DROPOUT: Column =
    flag("dropout", "true if attention is unfused and the model is not gated");
pub(in crate::configurations) const TIED_EMBEDDINGS: Column = flag("tied_embeddings", "true if the model is not gated");
pub(in crate::configurations) const GRADIENTS: Column =
    word("gradients", &["fp32", "bf16"], "bf16 for internevo, else fp32");
pub(in crate::configurations) const CP_BALANCED: Column = flag("cp_balanced", "true");
pub(in crate::configurations) const FUSED_WEIGHT_GRADIENTS: Column =
    flag("fused_weight_gradients", "true for megatron, else false");
pub(in crate::configurations) const TENSOR_OVERLAP: Column = number("tensor_overlap", 0.0, 1.0, "0");
pub(in crate::configurations) const DATA_OVERLAP: Column =
    number("data_overlap", 0.0, 1.0, "1 if zero >= 1, except nanotron");
pub(in crate::configurations) const LINK_GB_PER_S: Column =
    number("link_gb_per_s", 0.1, 100_000.0, "value in the preset");
pub(in crate::configurations) const NETWORK_GB_PER_S: Column =
    number("network_gb_per_s", 0.1, 100_000.0, "value in the preset");
pub(in crate::configurations) const HOST_MEMORY_GIB: Column =
    number("host_memory_gib", 0.0, 1_048_576.0, "256 per device; per node");
pub(in crate::configurations) const MEMORY_RESERVE_GIB: Column = number("memory_reserve_gib", 0.0, 1000.0, "4");
