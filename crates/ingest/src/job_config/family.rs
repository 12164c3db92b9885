//! Architecture features for each Hugging Face `model_type` that the file does not contain.
//!
//! Source: the transformers 5 classes for these types.

use planner::model::{Bias, Norm};

/// Common features of models with the same `model_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) gated: bool,
    pub(super) norm: Norm,
    /// Bias if the file does not define it.
    pub(super) bias: Bias,
    /// `tie_word_embeddings` if the file does not define it.
    pub(super) tied: bool,
    pub(super) learned_positions: bool,
    /// Default dimensions in the transformers class.
    pub(super) sizes: Option<Sizes>,
}

/// Default dimensions in a transformers class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) ffn: u32,
    pub(super) vocab: u32,
    /// `None` if equal to hidden size / heads.
    pub(super) head_size: Option<u32>,
}

/// Dimensions for a model with 32 layers, hidden size 4,096 and 32 heads.
const fn sizes_7b(kv_heads: u32, ffn: u32, vocab: u32) -> Sizes {
    Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads, ffn, vocab, head_size: None }
}

const fn family(name: &'static str, norm: Norm, bias: Bias, tied: bool) -> Family {
    Family { name, gated: true, norm, bias, tied, learned_positions: false, sizes: None }
}

const fn ungated(name: &'static str, bias: Bias, tied: bool, learned_positions: bool) -> Family {
    Family { name, gated: false, norm: Norm::Layer, bias, tied, learned_positions, sizes: None }
}

const GEMMA_3: Sizes =
    Sizes { layers: 26, hidden: 2304, heads: 8, kv_heads: 4, ffn: 9216, vocab: 262_208, head_size: Some(256) };

const FAMILIES: [Family; 74] = [
    Family { sizes: Some(sizes_7b(32, 11_008, 32_000)), ..family("llama", Norm::Rms, Bias::None, false) },
    Family { sizes: Some(sizes_7b(8, 14_336, 32_000)), ..family("mistral", Norm::Rms, Bias::None, false) },
    family("ministral", Norm::Rms, Bias::None, false),
    Family { sizes: Some(sizes_7b(8, 14_336, 32_000)), ..family("mixtral", Norm::Rms, Bias::None, false) },
    family("baichuan", Norm::Rms, Bias::None, false),
    family("internlm2", Norm::Rms, Bias::None, false),
    family("internlm3", Norm::Rms, Bias::None, false),
    family("minimax_m2", Norm::Rms, Bias::None, false),
    family("qwen", Norm::Rms, Bias::Qkv, false),
    Family { sizes: Some(sizes_7b(32, 22_016, 151_936)), ..family("qwen2", Norm::Rms, Bias::Qkv, false) },
    family("qwen2_moe", Norm::Rms, Bias::Qkv, false),
    family("qwen2_vl", Norm::Rms, Bias::Qkv, false),
    family("qwen2_5_vl", Norm::Rms, Bias::Qkv, false),
    family("mimo", Norm::Rms, Bias::Qkv, false),
    family("qwen3", Norm::Rms, Bias::None, false),
    family("qwen3_moe", Norm::Rms, Bias::None, false),
    family("qwen3_vl", Norm::Rms, Bias::None, true),
    family("qwen3_vl_moe", Norm::Rms, Bias::None, false),
    family("gemma", Norm::Rms, Bias::None, true),
    family("gemma2", Norm::Rms, Bias::None, true),
    Family { sizes: Some(GEMMA_3), ..family("gemma3", Norm::Rms, Bias::None, true) },
    family("phi3", Norm::Rms, Bias::None, false),
    family("phimoe", Norm::Layer, Bias::Qkv, false),
    family("stablelm", Norm::Layer, Bias::None, false),
    // A layer norm without bias has the same parameter count as an RMS norm.
    family("dbrx", Norm::Rms, Bias::None, false),
    family("cohere", Norm::Rms, Bias::None, true),
    family("cohere2", Norm::Rms, Bias::None, true),
    family("bitnet", Norm::Rms, Bias::None, true),
    family("deepseek_v2", Norm::Rms, Bias::None, false),
    family("deepseek_v3", Norm::Rms, Bias::None, false),
    family("kimi_k2", Norm::Rms, Bias::None, false),
    family("llama4", Norm::Rms, Bias::None, false),
    family("qwen3_next", Norm::Rms, Bias::None, false),
    family("qwen3_5", Norm::Rms, Bias::None, false),
    family("qwen3_5_moe", Norm::Rms, Bias::None, false),
    family("jamba", Norm::Rms, Bias::None, false),
    family("chatglm", Norm::Rms, Bias::None, false),
    family("glm4", Norm::Rms, Bias::None, false),
    family("glm4_moe", Norm::Rms, Bias::Qkv, false),
    family("gpt_oss", Norm::Rms, Bias::All, false),
    // The norms of the first OLMo have no parameters.
    family("olmo", Norm::Rms, Bias::None, false),
    family("olmo2", Norm::Rms, Bias::None, false),
    family("olmo3", Norm::Rms, Bias::None, false),
    family("olmoe", Norm::Rms, Bias::None, false),
    family("smollm3", Norm::Rms, Bias::None, true),
    family("granite", Norm::Rms, Bias::None, false),
    family("granitemoe", Norm::Rms, Bias::None, false),
    family("granitemoeshared", Norm::Rms, Bias::None, false),
    family("exaone", Norm::Rms, Bias::None, false),
    family("exaone4", Norm::Rms, Bias::None, false),
    family("seed_oss", Norm::Rms, Bias::Qkv, false),
    family("ernie4_5", Norm::Rms, Bias::None, true),
    family("ernie4_5_moe", Norm::Rms, Bias::None, true),
    family("glm", Norm::Rms, Bias::None, false),
    family("glm4_moe_lite", Norm::Rms, Bias::None, false),
    family("dots1", Norm::Rms, Bias::None, false),
    family("bailing_moe", Norm::Rms, Bias::None, false),
    family("bailing_moe_v2", Norm::Rms, Bias::None, false),
    ungated("gpt2", Bias::All, true, true),
    ungated("gpt_neox", Bias::All, false, false),
    ungated("opt", Bias::All, true, true),
    ungated("bloom", Bias::All, true, false),
    ungated("falcon", Bias::None, true, false),
    ungated("starcoder2", Bias::All, true, false),
    ungated("phi", Bias::All, false, false),
    ungated("gptj", Bias::None, false, false),
    ungated("codegen", Bias::None, false, false),
    ungated("gpt_neo", Bias::All, true, true),
    ungated("gpt_bigcode", Bias::All, true, true),
    ungated("nemotron", Bias::None, false, false),
    Family { norm: Norm::Rms, ..ungated("nemotron_h", Bias::None, false, false) },
    Family { norm: Norm::Rms, ..ungated("arcee", Bias::None, false, false) },
    Family { norm: Norm::Rms, ..ungated("apertus", Bias::None, false, false) },
    ungated("mpt", Bias::None, true, true),
];

/// Families with attention and MLP of a layer in parallel.
const PARALLEL: [&str; 7] = ["codegen", "cohere", "cohere2", "falcon", "gpt_neox", "gptj", "phi"];

impl Family {
    /// True if attention and MLP of a layer run in parallel, unless the file states otherwise.
    pub(super) fn is_parallel(&self) -> bool {
        PARALLEL.contains(&self.name)
    }

    /// True if only the MLP has a bias.
    pub(super) fn has_mlp_bias_only(&self) -> bool {
        matches!(self.name, "codegen" | "gptj")
    }
}

/// Finds the family of a `model_type`. Nested language models have the suffix `_text`.
pub(super) fn find(model_type: &str) -> Option<Family> {
    let name = model_type.strip_suffix("_text").unwrap_or(model_type);
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// Gated MLP, RMS norms, no bias, rotary positions, untied embeddings.
pub(super) const fn llama() -> Family {
    FAMILIES[0]
}
