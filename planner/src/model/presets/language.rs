//! Language models. Sources: their own papers and released configurations.

use crate::model::{Bias, Mask, Module, ModuleRole, Moe, Norm};

/// The figures in which Llama-style models differ.
pub(super) struct Llama {
    pub layers: u32,
    pub hidden: u32,
    pub heads: u32,
    pub kv_heads: u32,
    pub ffn: u32,
    pub vocab: u32,
}

impl Llama {
    /// A Llama-style backbone: RMS norms, rotary positions, gated MLP, no biases, own output head.
    pub(super) fn named(self, name: &str) -> Module {
        let Self { layers, hidden, heads, kv_heads, ffn, vocab } = self;
        Module {
            name: name.into(),
            role: ModuleRole::Backbone,
            layers,
            hidden,
            heads,
            kv_heads,
            ffn,
            gated: true,
            mask: Mask::Causal,
            norm: Norm::Rms,
            bias: Bias::None,
            dropout: false,
            vocab,
            tied_embeddings: false,
            learned_positions: 0,
            headless: false,
            patch: None,
            moe: None,
            audio: None,
            video: None,
            diffusion: None,
            frozen: false,
            head_size: None,
        }
    }
}

/// Without its output head, as the text encoder of a generator.
pub(super) fn text_encoder(module: Module) -> Module {
    Module { headless: true, ..module }
}

pub(super) fn llama_2_7b() -> Module {
    Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 11_008, vocab: 32_000 }.named("Llama-2 7B")
}

pub(super) fn llama_2_13b() -> Module {
    Llama { layers: 40, hidden: 5120, heads: 40, kv_heads: 40, ffn: 13_824, vocab: 32_000 }.named("Llama-2 13B")
}

/// The 32B of Hydraulis' experiments (PKU-DAIR/Hetu, its training scripts): LLaMA 33B with 64 heads in place of 52, which TP 8 and 16
/// do not divide.
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

/// Table 3 of The Llama 3 Herd of Models.
pub(super) fn llama_3_405b() -> Module {
    Llama { layers: 126, hidden: 16_384, heads: 128, kv_heads: 8, ffn: 53_248, vocab: 128_256 }.named("Llama-3 405B")
}

pub(super) fn mixtral_8x7b() -> Module {
    let dense = Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 8, ffn: 14_336, vocab: 32_000 };
    Module { moe: Some(Moe { experts: 8, top_k: 2 }), ..dense.named("Mixtral 8x7B") }
}

pub(super) fn mixtral_8x22b() -> Module {
    let dense = Llama { layers: 56, hidden: 6144, heads: 48, kv_heads: 8, ffn: 16_384, vocab: 32_000 };
    Module { moe: Some(Moe { experts: 8, top_k: 2 }), ..dense.named("Mixtral 8x22B") }
}

/// Qwen3 30B-A3B: 128 experts of width 768, of which a token meets 8; 32 heads of 128, together wider than its width of 2,048.
pub(super) fn qwen3_30b_a3b() -> Module {
    let figures = Llama { layers: 48, hidden: 2048, heads: 32, kv_heads: 4, ffn: 768, vocab: 151_936 };
    Module { moe: Some(Moe { experts: 128, top_k: 8 }), head_size: Some(128), ..figures.named("Qwen3 30B-A3B") }
}

/// Released as Qwen2.5 1.5B, in InternVL3-2B.
pub(super) fn qwen2_1_5b() -> Module {
    qwen(Llama { layers: 28, hidden: 1536, heads: 12, kv_heads: 2, ffn: 8960, vocab: 151_936 }, "Qwen2.5 1.5B")
}

/// Released as Qwen2.5 3B, in InternVL2.5-4B, with two key-value heads; table 5 of DHP says eight.
pub(super) fn qwen2_3b() -> Module {
    qwen(Llama { layers: 36, hidden: 2048, heads: 16, kv_heads: 2, ffn: 11_008, vocab: 151_936 }, "Qwen2.5 3B")
}

/// With the words of InternVL2.5 and InternVL3 and an output head of its own, whatever the size.
pub(super) fn of_internvl(module: Module) -> Module {
    Module { vocab: 151_674, tied_embeddings: false, ..module }
}

/// Qwen3 1.7B, in Qwen3-VL-2B.
pub(super) fn qwen3_1_7b() -> Module {
    let figures = Llama { layers: 28, hidden: 2048, heads: 16, kv_heads: 8, ffn: 6144, vocab: 151_936 };
    Module { tied_embeddings: true, ..figures.named("Qwen3 1.7B") }
}

/// Qwen3 4B, in Qwen3-VL-4B: 32 heads of 128, together wider than its width of 2,560.
pub(super) fn qwen3_4b() -> Module {
    let figures = Llama { layers: 36, hidden: 2560, heads: 32, kv_heads: 8, ffn: 9728, vocab: 151_936 };
    Module { tied_embeddings: true, head_size: Some(128), ..figures.named("Qwen3 4B") }
}

/// Qwen3 8B, in Qwen3-VL-8B.
pub(super) fn qwen3_8b() -> Module {
    Llama { layers: 36, hidden: 4096, heads: 32, kv_heads: 8, ffn: 12_288, vocab: 151_936 }.named("Qwen3 8B")
}

/// Qwen2 and Qwen2.5 have the same architecture in the sizes that both have been released in.
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

/// The first Qwen, in Qwen2-Audio.
pub(super) fn qwen_7b() -> Module {
    qwen(Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 11_008, vocab: 156_032 }, "Qwen 7B")
}

fn qwen(figures: Llama, name: &str) -> Module {
    Module { bias: Bias::Qkv, ..figures.named(name) }
}

pub(super) fn gpt_3_175b() -> Module {
    gpt("GPT-3 175B", 96, 12_288, 96)
}

/// The 530-billion model of Megatron-Turing NLG (Smith et al. 2022): 105 layers of width 20,480 with 128 heads.
pub(super) fn gpt_3_530b() -> Module {
    gpt("MT-NLG 530B", 105, 20_480, 128)
}

/// The trillion-parameter model of Narayanan et al. 2021, table 1: 128 layers of width 25,600 with 160 heads.
pub(super) fn gpt_3_1t() -> Module {
    gpt("GPT 1T", 128, 25_600, 160)
}

/// A GPT-3-style backbone: layer norms, learned positions, biases, an MLP of four widths, the vocabulary padded to
/// 51,200 and shared with the output head.
fn gpt(name: &str, layers: u32, hidden: u32, heads: u32) -> Module {
    let figures = Llama { layers, hidden, heads, kv_heads: heads, ffn: 4 * hidden, vocab: 51_200 };
    Module {
        gated: false,
        norm: Norm::Layer,
        bias: Bias::All,
        dropout: true,
        tied_embeddings: true,
        learned_positions: 2048,
        ..figures.named(name)
    }
}

/// A language model of 5 billion parameters of which only the size has been published (PipeWeaver, table 1): we take a
/// Llama-style one of 32 layers, width 3,584, MLP 9,216 and 32,000 words.
pub(super) fn lm_5b() -> Module {
    Llama { layers: 32, hidden: 3584, heads: 28, kv_heads: 28, ffn: 9216, vocab: 32_000 }.named("LM 5B")
}

/// Likewise of 7 billion: 32 layers, width 4,096, MLP 11,776.
pub(super) fn lm_7b() -> Module {
    Llama { layers: 32, hidden: 4096, heads: 32, kv_heads: 32, ffn: 11_776, vocab: 32_000 }.named("LM 7B")
}
