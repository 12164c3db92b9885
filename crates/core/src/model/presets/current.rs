//! Models published since 2024. Sources: released configurations and the models' reports.

use super::language::Llama;
use crate::model::{Bias, LatentAttention, LinearAttention, Module, Moe, Recurrence, Window};

/// Latent attention of DeepSeek-V3 and Kimi K2.
const LATENT: LatentAttention =
    LatentAttention { query_rank: 1536, kv_rank: 512, content_size: 128, rotary_size: 64, value_size: 128 };

/// DeepSeek-V3 (2024): 671 billion parameters, and 12 billion in the layer that predicts a second
/// token.
pub(super) fn deepseek_v3() -> Module {
    let sizes = Llama { layers: 61, hidden: 7168, heads: 128, kv_heads: 128, ffn: 18_432, vocab: 129_280 };
    let moe = Moe { expert_width: Some(2048), shared_width: 2048, dense_layers: 3, node_limit: 4, ..Moe::new(256, 8) };
    Module { latent: Some(LATENT), moe: Some(moe), predicted_ahead: 1, ..sizes.named("DeepSeek-V3 671B") }
}

/// Kimi K2 (2025): one trillion parameters.
pub(super) fn kimi_k2() -> Module {
    let sizes = Llama { layers: 61, hidden: 7168, heads: 64, kv_heads: 64, ffn: 18_432, vocab: 163_840 };
    let moe = Moe { expert_width: Some(2048), shared_width: 2048, dense_layers: 1, ..Moe::new(384, 8) };
    Module { latent: Some(LATENT), moe: Some(moe), ..sizes.named("Kimi K2 1T") }
}

/// GLM-4.5 (2025): 355 billion parameters.
pub(super) fn glm_4_5() -> Module {
    let sizes = Llama { layers: 92, hidden: 5120, heads: 96, kv_heads: 8, ffn: 12_288, vocab: 151_552 };
    let moe = Moe { expert_width: Some(1536), shared_width: 1536, dense_layers: 3, ..Moe::new(160, 8) };
    Module { head_size: Some(128), bias: Bias::Qkv, moe: Some(moe), ..sizes.named("GLM-4.5 355B") }
}

/// GLM-4.5-Air (2025): 106 billion parameters.
pub(super) fn glm_4_5_air() -> Module {
    let sizes = Llama { layers: 46, hidden: 4096, heads: 96, kv_heads: 8, ffn: 10_944, vocab: 151_552 };
    let moe = Moe { expert_width: Some(1408), shared_width: 1408, dense_layers: 1, ..Moe::new(128, 8) };
    Module { head_size: Some(128), bias: Bias::Qkv, moe: Some(moe), ..sizes.named("GLM-4.5-Air 106B") }
}

/// MiniMax-M2 (2025): 229 billion parameters.
pub(super) fn minimax_m2() -> Module {
    let sizes = Llama { layers: 62, hidden: 3072, heads: 48, kv_heads: 8, ffn: 1536, vocab: 200_064 };
    Module { head_size: Some(128), moe: Some(Moe::new(256, 8)), ..sizes.named("MiniMax-M2 229B") }
}

/// Llama 4 (2025) with 16 (Scout) or 128 (Maverick) experts. In Maverick, every second layer has
/// experts. Three of four layers attend to chunks of 8,192 tokens.
fn llama_4(name: &str, experts: u32, every: u32) -> Module {
    // Dense layers are twice as wide as an expert. Scout has none.
    let (ffn, expert_width) = if every > 1 { (16_384, Some(8192)) } else { (8192, None) };
    let sizes = Llama { layers: 48, hidden: 5120, heads: 40, kv_heads: 8, ffn, vocab: 202_048 };
    let moe = Moe { expert_width, shared_width: 8192, every, ..Moe::new(experts, 1) };
    let window = Window { tokens: 8192, full_every: 4, chunked: true };
    Module { moe: Some(moe), window: Some(window), ..sizes.named(name) }
}

pub(super) fn llama_4_scout() -> Module {
    llama_4("Llama 4 Scout 109B", 16, 1)
}

pub(super) fn llama_4_maverick() -> Module {
    llama_4("Llama 4 Maverick 400B", 128, 2)
}

/// GPT-OSS (2025): every second layer attends to 128 tokens.
fn gpt_oss(name: &str, layers: u32, experts: u32) -> Module {
    let sizes = Llama { layers, hidden: 2880, heads: 64, kv_heads: 8, ffn: 2880, vocab: 201_088 };
    Module {
        head_size: Some(64),
        bias: Bias::All,
        moe: Some(Moe::new(experts, 4)),
        window: Some(Window { tokens: 128, full_every: 2, chunked: false }),
        ..sizes.named(name)
    }
}

pub(super) fn gpt_oss_20b() -> Module {
    gpt_oss("GPT-OSS 20B", 24, 32)
}

pub(super) fn gpt_oss_120b() -> Module {
    gpt_oss("GPT-OSS 120B", 36, 128)
}

/// Gemma 3 (2025): five of six layers attend to 1,024 tokens.
fn gemma_3(sizes: Llama, head_size: u32, name: &str) -> Module {
    Module {
        head_size: Some(head_size),
        tied_embeddings: true,
        window: Some(Window { tokens: 1024, full_every: 6, chunked: false }),
        ..sizes.named(name)
    }
}

pub(super) fn gemma_3_12b() -> Module {
    let sizes = Llama { layers: 48, hidden: 3840, heads: 16, kv_heads: 8, ffn: 15_360, vocab: 262_208 };
    gemma_3(sizes, 256, "Gemma 3 12B")
}

pub(super) fn gemma_3_27b() -> Module {
    let sizes = Llama { layers: 62, hidden: 5376, heads: 32, kv_heads: 16, ffn: 21_504, vocab: 262_208 };
    gemma_3(sizes, 128, "Gemma 3 27B")
}

pub(super) fn qwen3_0_6b() -> Module {
    let sizes = Llama { layers: 28, hidden: 1024, heads: 16, kv_heads: 8, ffn: 3072, vocab: 151_936 };
    Module { head_size: Some(128), tied_embeddings: true, ..sizes.named("Qwen3 0.6B") }
}

pub(super) fn qwen3_14b() -> Module {
    Llama { layers: 40, hidden: 5120, heads: 40, kv_heads: 8, ffn: 17_408, vocab: 151_936 }.named("Qwen3 14B")
}

pub(super) fn qwen3_32b() -> Module {
    let sizes = Llama { layers: 64, hidden: 5120, heads: 64, kv_heads: 8, ffn: 25_600, vocab: 151_936 };
    Module { head_size: Some(128), ..sizes.named("Qwen3 32B") }
}

pub(super) fn qwen3_235b_a22b() -> Module {
    let sizes = Llama { layers: 94, hidden: 4096, heads: 64, kv_heads: 4, ffn: 1536, vocab: 151_936 };
    Module { head_size: Some(128), moe: Some(Moe::new(128, 8)), ..sizes.named("Qwen3 235B-A22B") }
}

/// Qwen3-Next (2025): three of four layers have a gated delta rule.
pub(super) fn qwen3_next_80b_a3b() -> Module {
    let sizes = Llama { layers: 48, hidden: 2048, heads: 16, kv_heads: 2, ffn: 512, vocab: 151_936 };
    Module {
        head_size: Some(256),
        moe: Some(Moe { shared_width: 512, ..Moe::new(512, 10) }),
        linear: Some(LinearAttention {
            recurrence: Recurrence::GatedDelta,
            key_heads: 16,
            value_heads: 32,
            key_size: 128,
            value_size: 128,
            convolution: 4,
            full_every: 4,
        }),
        ..sizes.named("Qwen3-Next 80B-A3B")
    }
}

/// Nemotron-H 8B (2025): 24 layers of Mamba-2, 24 of MLP and four of attention.
pub(super) fn nemotron_h_8b() -> Module {
    let sizes = Llama { layers: 52, hidden: 4096, heads: 32, kv_heads: 8, ffn: 21_504, vocab: 131_072 };
    Module {
        gated: false,
        linear: Some(LinearAttention {
            recurrence: Recurrence::StateSpace,
            key_heads: 8,
            value_heads: 128,
            key_size: 128,
            value_size: 64,
            convolution: 4,
            full_every: 0,
        }),
        pattern: Some("M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-".to_owned()),
        ..sizes.named("Nemotron-H 8B")
    }
}
