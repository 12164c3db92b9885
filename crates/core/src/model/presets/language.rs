//! Language models. Sources: papers and released configurations.

use crate::model::{Bias, Module, Moe, Norm};

/// Parameters that differ between Llama-style models.
pub(super) struct Llama {
    pub layers: u32,
    pub hidden: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub ffn: u32,
    pub vocab: u32,
}

impl Llama {
    /// Creates a Llama-style backbone: RMS norms, rotary embeddings, gated MLP, no biases, untied
    /// output head.
    pub(super) fn named(self, name: &str) -> Module {
        let Self { layers, hidden, heads, kv_heads, ffn, vocab } = self;
        Module { name: name.into(), layers, hidden, heads, kv_heads, ffn, vocab, ..Module::decoder() }
    }
}

/// Removes the output head, for a generator's text encoder.
pub(super) fn text_encoder(module: Module) -> Module {
    Module { headless: true, ..module }
}

pub(super) fn llama_2_7b() -> Module {
    Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 11_008, vocab: 32_000 }.named("Llama-2 7B")
}

pub(super) fn llama_2_13b() -> Module {
    Llama { layers: 40, hidden: 5120, heads: 40, kv_heads: 40, ffn: 13_824, vocab: 32_000 }.named("Llama-2 13B")
}

/// 32B model in the Hydraulis experiments (PKU-DAIR/Hetu training scripts): LLaMA 33B with 64
/// heads. The original 52 heads are not divisible by TP 8 and 16.
pub(super) fn llama_32b() -> Module {
    Llama { layers: 60, hidden: 6656, heads: 64, kv_heads: 64, ffn: 17_920, vocab: 32_000 }.named("LLaMA 32B")
}

pub(super) fn llama_2_70b() -> Module {
    Llama { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28_672, vocab: 32_000 }.named("Llama-2 70B")
}

pub(super) fn llama_3_8b() -> Module {
    Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14_336, vocab: 128_256 }.named("Llama-3 8B")
}

pub(super) fn llama_3_70b() -> Module {
    Llama { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 28_672, vocab: 128_256 }.named("Llama-3 70B")
}

/// Table 3 in "The Llama 3 Herd of Models".
pub(super) fn llama_3_405b() -> Module {
    Llama { layers: 126, hidden: 16_384, heads: 128, kv_heads: 8, ffn: 53_248, vocab: 128_256 }.named("Llama-3 405B")
}

pub(super) fn mixtral_8x7b() -> Module {
    let dense = Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14_336, vocab: 32_000 };
    Module { moe: Some(Moe::new(8, 2)), ..dense.named("Mixtral 8x7B") }
}

pub(super) fn mixtral_8x22b() -> Module {
    let dense = Llama { layers: 56, hidden: 6144, heads: 48, kv_heads: 8, ffn: 16_384, vocab: 32_000 };
    Module { moe: Some(Moe::new(8, 2)), ..dense.named("Mixtral 8x22B") }
}

/// Qwen3 30B-A3B: 128 experts with width 768, 8 per token; 32 heads with size 128, so the query
/// width exceeds the hidden size 2,048.
pub(super) fn qwen3_30b_a3b() -> Module {
    let dimensions = Llama { layers: 48, hidden: 2048, heads: 32, kv_heads: 4, ffn: 768, vocab: 151_936 };
    Module { moe: Some(Moe::new(128, 8)), head_size: Some(128), ..dimensions.named("Qwen3 30B-A3B") }
}

/// Released as Qwen2.5 1.5B, used in InternVL3-2B.
pub(super) fn qwen2_1_5b() -> Module {
    qwen(Llama { layers: 28, hidden: 1536, heads: 12, kv_heads: 2, ffn: 8960, vocab: 151_936 }, "Qwen2.5 1.5B")
}

/// Released as Qwen2.5 3B, used in InternVL2.5-4B, with two key-value heads. DHP Table 5 specifies
/// eight.
pub(super) fn qwen2_3b() -> Module {
    qwen(Llama { layers: 36, hidden: 2048, heads: 16, kv_heads: 2, ffn: 11_008, vocab: 151_936 }, "Qwen2.5 3B")
}

/// Sets the InternVL2.5 and InternVL3 vocabulary and an untied output head.
pub(super) fn with_internvl_vocabulary(module: Module) -> Module {
    Module { vocab: 151_674, tied_embeddings: false, ..module }
}

/// Qwen3 1.7B, used in Qwen3-VL-2B.
pub(super) fn qwen3_1_7b() -> Module {
    let dimensions = Llama { layers: 28, hidden: 2048, heads: 16, kv_heads: 8, ffn: 6144, vocab: 151_936 };
    Module { tied_embeddings: true, ..dimensions.named("Qwen3 1.7B") }
}

/// Qwen3 4B, used in Qwen3-VL-4B: 32 heads with size 128, so the query width exceeds the hidden
/// size 2,560.
pub(super) fn qwen3_4b() -> Module {
    let dimensions = Llama { layers: 36, hidden: 2560, heads: 32, kv_heads: 8, ffn: 9728, vocab: 151_936 };
    Module { tied_embeddings: true, head_size: Some(128), ..dimensions.named("Qwen3 4B") }
}

/// Qwen3 8B, used in Qwen3-VL-8B.
pub(super) fn qwen3_8b() -> Module {
    Llama { layers: 36, hidden: 4096, heads: 32, kv_heads: 8, ffn: 12_288, vocab: 151_936 }.named("Qwen3 8B")
}

/// Qwen2 and Qwen2.5 have the same architecture in common sizes.
pub(super) fn qwen2_7b() -> Module {
    qwen(Llama { layers: 28, hidden: 3584, heads: 28, kv_heads: 4, ffn: 18_944, vocab: 152_064 }, "Qwen2 7B")
}

/// Released as Qwen2.5 32B.
pub(super) fn qwen2_32b() -> Module {
    qwen(Llama { layers: 64, hidden: 5120, heads: 40, kv_heads: 8, ffn: 27_648, vocab: 152_064 }, "Qwen2 32B")
}

pub(super) fn qwen2_72b() -> Module {
    qwen(Llama { layers: 80, hidden: 8192, heads: 64, kv_heads: 8, ffn: 29_568, vocab: 152_064 }, "Qwen2 72B")
}

/// The first Qwen, used in Qwen2-Audio.
pub(super) fn qwen_7b() -> Module {
    qwen(Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 11_008, vocab: 156_032 }, "Qwen 7B")
}

fn qwen(dimensions: Llama, name: &str) -> Module {
    Module { bias: Bias::Qkv, ..dimensions.named(name) }
}

pub(super) fn gpt_3_175b() -> Module {
    gpt("GPT-3 175B", 96, 12_288, 96)
}

/// Megatron-Turing NLG 530B (Smith et al. 2022): 105 layers, hidden size 20,480, 128 heads.
pub(super) fn gpt_3_530b() -> Module {
    gpt("MT-NLG 530B", 105, 20_480, 128)
}

/// The trillion-parameter model in Narayanan et al. 2021, Table 1: 128 layers, hidden size 25,600,
/// 160 heads.
pub(super) fn gpt_3_1t() -> Module {
    gpt("GPT 1T", 128, 25_600, 160)
}

/// A GPT-3-style backbone: layer norms, learned positions, biases, MLP width 4 h, and a padded
/// vocabulary of 51,200 with tied embeddings.
fn gpt(name: &str, layers: u32, hidden: u32, heads: u32) -> Module {
    let dimensions = Llama { layers, hidden, heads, kv_heads: heads, ffn: 4 * hidden, vocab: 51_200 };
    Module {
        gated: false,
        norm: Norm::Layer,
        bias: Bias::All,
        dropout: true,
        tied_embeddings: true,
        learned_positions: 2048,
        ..dimensions.named(name)
    }
}

/// A 5B language model. PipeWeaver Table 1 specifies only the size. Assumption: Llama-style with 32
/// layers, hidden size 3,584, MLP width 9,216 and vocabulary 32,000.
pub(super) fn lm_5b() -> Module {
    Llama { layers: 32, hidden: 3584, heads: 28, kv_heads: 28, ffn: 9216, vocab: 32_000 }.named("LM 5B")
}

/// A 7B language model with the same assumption: 32 layers, hidden size 4,096, MLP width 11,776.
pub(super) fn lm_7b() -> Module {
    Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 11_776, vocab: 32_000 }.named("LM 7B")
}
