//! Architectures by the `model_type` of a Hugging Face configuration, beyond the sizes in the file.
//!
//! Source: the classes of transformers 5 of the named types.

use planner::model::{Bias, Norm};

/// What the models of a `model_type` have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Family {
    /// `model_type`.
    pub(super) name: &'static str,
    pub(super) gated: bool,
    pub(super) norm: Norm,
    /// Bias where no key of the file states it.
    pub(super) bias: Bias,
    /// `tie_word_embeddings` where the file does not state it.
    pub(super) tied: bool,
    /// Positions are learned.
    pub(super) learned_positions: bool,
    /// Sizes that the class has by default.
    pub(super) sizes: Option<Sizes>,
}

/// Default sizes of a class of transformers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) layers: u32,
    pub(super) hidden: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) ffn: u32,
    pub(super) vocab: u32,
    /// Where it is not the width over the heads.
    pub(super) head_size: Option<u32>,
}

/// Sizes of a model with 32 layers of width 4,096 and 32 heads.
const fn of_7b(kv_heads: u32, ffn: u32, vocab: u32) -> Sizes {
    Sizes { layers: 32, hidden: 4096, heads: 32, kv_heads, ffn, vocab, head_size: None }
}

const fn family(name: &'static str, norm: Norm, bias: Bias, tied: bool) -> Family {
    Family { name, gated: true, norm, bias, tied, learned_positions: false, sizes: None }
}

const fn ungated(name: &'static str, bias: Bias, tied: bool, learned_positions: bool) -> Family {
    Family { name, gated: false, norm: Norm::Layer, bias, tied, learned_positions, sizes: None }
}

/// Gemma3TextConfig.
const GEMMA_3: Sizes =
    Sizes { layers: 26, hidden: 2304, heads: 8, kv_heads: 4, ffn: 9216, vocab: 262_208, head_size: Some(256) };

const FAMILIES: [Family; 37] = [
    Family { sizes: Some(of_7b(32, 11_008, 32_000)), ..family("llama", Norm::Rms, Bias::None, false) },
    Family { sizes: Some(of_7b(8, 14_336, 32_000)), ..family("mistral", Norm::Rms, Bias::None, false) },
    family("ministral", Norm::Rms, Bias::None, false),
    Family { sizes: Some(of_7b(8, 14_336, 32_000)), ..family("mixtral", Norm::Rms, Bias::None, false) },
    family("baichuan", Norm::Rms, Bias::None, false),
    family("internlm2", Norm::Rms, Bias::None, false),
    family("internlm3", Norm::Rms, Bias::None, false),
    family("minimax_m2", Norm::Rms, Bias::None, false),
    Family { sizes: Some(of_7b(32, 22_016, 151_936)), ..family("qwen2", Norm::Rms, Bias::Qkv, false) },
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
    // A layer norm without shift has as many parameters as an RMS norm.
    family("cohere", Norm::Rms, Bias::None, true),
    family("chatglm", Norm::Rms, Bias::None, false),
    family("glm4", Norm::Rms, Bias::None, false),
    family("glm4_moe", Norm::Rms, Bias::Qkv, false),
    family("gpt_oss", Norm::Rms, Bias::All, false),
    family("olmo2", Norm::Rms, Bias::None, false),
    family("smollm3", Norm::Rms, Bias::None, true),
    ungated("gpt2", Bias::All, true, true),
    ungated("gpt_neox", Bias::All, false, false),
    ungated("opt", Bias::All, true, true),
    ungated("bloom", Bias::All, true, false),
    ungated("falcon", Bias::None, true, false),
    ungated("starcoder2", Bias::All, true, false),
    ungated("mpt", Bias::None, true, true),
];

/// The family of a `model_type`; the part of a larger model has the suffix `_text`.
pub(super) fn find(model_type: &str) -> Option<Family> {
    let name = model_type.strip_suffix("_text").unwrap_or(model_type);
    FAMILIES.into_iter().find(|family| family.name == name)
}

/// Gated MLP, RMS norms, no bias, rotary positions, an output head of its own.
pub(super) const fn llama() -> Family {
    FAMILIES[0]
}
