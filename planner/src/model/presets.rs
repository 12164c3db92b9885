//! Published architectures by name.
//!
//! Sources: the models' own papers and released configurations; for ViT 5B, table 3 of PipeWeaver
//! (63 layers, width 1,792, MLP 15,360, 16 heads). The paper does not give the patch size: we take an image
//! of 728 x 728 pixels as 52 x 52 patches of 14 pixels, merged 4 x 4 to the 169 tokens that it counts.

use super::Model;
use super::module::{Audio, Bias, Diffusion, Mask, Module, ModuleRole, Moe, Norm, Patch};

/// A named model.
#[derive(Debug, Clone)]
pub struct ModelPreset {
    /// Stable identifier used in scenarios.
    pub id: &'static str,
    /// The model.
    pub model: Model,
}

/// Every model preset, in the order in which pickers list them.
pub fn models() -> Vec<ModelPreset> {
    vec![
        single("llama-2-7b", llama_2_7b()),
        single("llama-2-70b", llama_2_70b()),
        single("llama-3-8b", llama_3_8b()),
        single("llama-3-70b", llama_3_70b()),
        single("mixtral-8x7b", mixtral_8x7b()),
        single("qwen2-32b", qwen2_32b()),
        single("gpt-3-175b", gpt_3_175b()),
        single("vit-5b", vit_5b()),
        single("vit-22b", vit_22b()),
        single("dit-xl-2", dit_xl_2()),
        ModelPreset {
            id: "vlm-s",
            model: Model { name: "VLM-S (ViT 5B + Llama-3 8B)".into(), modules: vec![vit_5b(), llama_3_8b()] },
        },
        ModelPreset {
            id: "vlm-xl",
            model: Model { name: "VLM-XL (ViT 22B + GPT-3 175B)".into(), modules: vec![vit_22b(), gpt_3_175b()] },
        },
        ModelPreset {
            id: "qwen2-audio-7b",
            model: Model { name: "Qwen2-Audio 7B".into(), modules: vec![whisper_large(), qwen_7b()] },
        },
    ]
}

/// The model preset of that identifier.
pub fn model(id: &str) -> Option<Model> {
    models().into_iter().find(|preset| preset.id == id).map(|preset| preset.model)
}

fn single(id: &'static str, module: Module) -> ModelPreset {
    ModelPreset { id, model: Model { name: module.name.clone(), modules: vec![module] } }
}

/// A Llama-style backbone: RMS norms, rotary positions, gated MLP, no biases, own output head.
fn llama(name: &str, layers: u32, hidden: u32, heads: u32, kv_heads: u32, ffn: u32, vocab: u32) -> Module {
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
        patch: None,
        moe: None,
        audio: None,
        diffusion: None,
    }
}

fn llama_2_7b() -> Module {
    llama("Llama-2 7B", 32, 4096, 32, 32, 11_008, 32_000)
}

fn llama_2_70b() -> Module {
    llama("Llama-2 70B", 80, 8192, 64, 8, 28_672, 32_000)
}

fn llama_3_8b() -> Module {
    llama("Llama-3 8B", 32, 4096, 32, 8, 14_336, 128_256)
}

fn qwen2_32b() -> Module {
    Module { bias: Bias::Qkv, ..llama("Qwen2 32B", 64, 5120, 40, 8, 27_648, 152_064) }
}

fn gpt_3_175b() -> Module {
    Module {
        gated: false,
        norm: Norm::Layer,
        bias: Bias::All,
        dropout: true,
        tied_embeddings: true,
        learned_positions: 2048,
        ..llama("GPT-3 175B", 96, 12_288, 96, 96, 49_152, 51_200)
    }
}

fn vit_5b() -> Module {
    Module {
        role: ModuleRole::VisionEncoder,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        learned_positions: 2704,
        patch: Some(Patch { patch_px: 14, patches_per_image: 2704, tokens_per_image: 169, projected_width: None }),
        ..llama("ViT 5B", 63, 1792, 16, 16, 15_360, 0)
    }
}

fn llama_3_70b() -> Module {
    llama("Llama-3 70B", 80, 8192, 64, 8, 28_672, 128_256)
}

fn mixtral_8x7b() -> Module {
    Module { moe: Some(Moe { experts: 8, top_k: 2 }), ..llama("Mixtral 8x7B", 32, 4096, 32, 8, 14_336, 32_000) }
}

fn qwen_7b() -> Module {
    Module { bias: Bias::Qkv, ..llama("Qwen 7B", 32, 4096, 32, 32, 11_008, 156_032) }
}

/// With the images of ViT 5B, so that vision-language models of several sizes see the same data.
fn vit_22b() -> Module {
    Module { name: "ViT 22B".into(), layers: 48, hidden: 6144, heads: 48, kv_heads: 48, ffn: 24_576, ..vit_5b() }
}

/// The encoder of Whisper large-v3: clips of 30 s; Qwen2-Audio pools its 1,500 frames to 750 tokens.
fn whisper_large() -> Module {
    Module {
        role: ModuleRole::AudioEncoder,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        learned_positions: 1500,
        audio: Some(Audio { mel_bins: 128, frames_per_clip: 3000, tokens_per_clip: 750 }),
        ..llama("Whisper large-v3 encoder", 32, 1280, 20, 20, 5120, 0)
    }
}

/// DiT-XL/2 on latents of 32 x 32: 256 patches of 2 x 2, class-conditional, so without cross-attention.
fn dit_xl_2() -> Module {
    Module {
        role: ModuleRole::Generator,
        gated: false,
        mask: Mask::Full,
        norm: Norm::Layer,
        bias: Bias::All,
        learned_positions: 256,
        patch: Some(Patch { patch_px: 2, patches_per_image: 256, tokens_per_image: 1, projected_width: None }),
        diffusion: Some(Diffusion { text_tokens: 0, modulation: true }),
        ..llama("DiT-XL/2", 28, 1152, 16, 16, 4608, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameter counts of the released checkpoints; GPT-3's with the vocabulary padded to 51,200 as
    /// Megatron-LM trains it: 96 (12 h² + 13 h) + h (51,200 + 2,048) + 2 h.
    #[test]
    fn parameters_are_those_of_the_released_checkpoints() {
        for (id, parameters) in [
            ("llama-2-7b", 6_738_415_616),
            ("llama-2-70b", 68_976_648_192),
            ("llama-3-8b", 8_030_261_248),
            ("qwen2-32b", 32_763_876_352),
            ("llama-3-70b", 70_553_706_496),
            ("mixtral-8x7b", 46_702_792_704),
            ("gpt-3-175b", 96 * (12 * 12_288_u64.pow(2) + 13 * 12_288) + 12_288 * 53_248 + 2 * 12_288),
        ] {
            assert_eq!(model(id).unwrap().parameters(), parameters, "{id}");
        }
    }

    /// Published sizes of modules whose checkpoints hold parts that are not modelled (the latent's fourth channel,
    /// timestep embeddings): within two per cent.
    #[test]
    fn encoders_and_generators_have_about_their_published_size() {
        for (id, module, millions) in [("dit-xl-2", 0, 675.0), ("vit-22b", 0, 21_743.0), ("qwen2-audio-7b", 0, 637.0)] {
            let parameters = model(id).unwrap().modules[module].parameters() as f64 * 1e-6;
            assert!((parameters / millions - 1.0).abs() < 0.02, "{id}: {parameters}");
        }
    }

    #[test]
    fn a_vlm_is_the_sum_of_its_modules() {
        let vlm = model("vlm-s").unwrap();
        assert_eq!(vlm.parameters(), model("vit-5b").unwrap().parameters() + 8_030_261_248);
        assert_eq!(vlm.layers(), 95);
        assert_eq!(vlm.tokens_per_image(), 169);
    }

    /// 6 N operations per token for forward and backward, N without the embedding table.
    #[test]
    fn linear_flops_are_two_per_matrix_parameter_and_token() {
        let module = &model("llama-2-7b").unwrap().modules[0];
        let matrices = module.layer_parameters() - 2 * 4096;
        assert!((module.layer_linear_flops(10.0).get() - 20.0 * matrices as f64).abs() < 1.0);
    }
}
