//! Published architectures by name.
//!
//! Sources: the models' papers and released configurations; the modules in PipeWeaver Table 3 and
//! the combinations in Tables 1, 4 and 6; the models in DHP Table 5. The module docs state
//! assumptions for unspecified values.

mod current;
mod encoders;
mod generators;
mod language;

use current::{
    deepseek_v3, gemma_3_12b, gemma_3_27b, glm_4_5, glm_4_5_air, gpt_oss_20b, gpt_oss_120b, kimi_k2, llama_4_maverick,
    llama_4_scout, minimax_m2, nemotron_h_8b, qwen3_0_6b, qwen3_14b, qwen3_32b, qwen3_235b_a22b, qwen3_next_80b_a3b,
};
use encoders::{
    dflop_internvit, dflop_siglip, internvit_6b, internvit_300m, qwen2_vl_encoder, qwen3_vl_encoder_300m,
    qwen3_vl_encoder_400m, siglip_so400m, siglip_so400m_frames, vit_2b, vit_5b, vit_22b, whisper_large,
};
use generators::{dit_5b, dit_30b, dit_xl_2};
use language::{
    gpt_3_1t, gpt_3_175b, gpt_3_530b, llama_2_7b, llama_2_13b, llama_2_70b, llama_3_8b, llama_3_70b, llama_3_405b,
    llama_32b, lm_5b, lm_7b, mixtral_8x7b, mixtral_8x22b, qwen_7b, qwen2_1_5b, qwen2_3b, qwen2_7b, qwen2_32b,
    qwen2_72b, qwen3_1_7b, qwen3_4b, qwen3_8b, qwen3_30b_a3b, text_encoder, with_internvl_vocabulary,
};

use super::{Model, Module};

/// A named model.
#[derive(Debug, Clone)]
pub struct ModelPreset {
    /// Stable identifier used in scenarios.
    pub id: &'static str,
    /// The model.
    pub model: Model,
}

/// Returns all model presets in display order.
pub fn models() -> Vec<ModelPreset> {
    let text = |module: fn() -> Module| text_encoder(module());
    vec![
        single("llama-2-7b", llama_2_7b()),
        single("llama-2-13b", llama_2_13b()),
        single("llama-32b", llama_32b()),
        single("llama-2-70b", llama_2_70b()),
        single("llama-3-8b", llama_3_8b()),
        single("llama-3-70b", llama_3_70b()),
        single("llama-3-405b", llama_3_405b()),
        single("mixtral-8x7b", mixtral_8x7b()),
        single("mixtral-8x22b", mixtral_8x22b()),
        single("qwen2-7b", qwen2_7b()),
        single("qwen2-32b", qwen2_32b()),
        single("qwen2-72b", qwen2_72b()),
        single("qwen3-0.6b", qwen3_0_6b()),
        single("qwen3-1.7b", qwen3_1_7b()),
        single("qwen3-4b", qwen3_4b()),
        single("qwen3-8b", qwen3_8b()),
        single("qwen3-14b", qwen3_14b()),
        single("qwen3-32b", qwen3_32b()),
        single("qwen3-30b-a3b", qwen3_30b_a3b()),
        single("qwen3-235b-a22b", qwen3_235b_a22b()),
        single("qwen3-next-80b-a3b", qwen3_next_80b_a3b()),
        single("deepseek-v3", deepseek_v3()),
        single("kimi-k2", kimi_k2()),
        single("glm-4.5", glm_4_5()),
        single("glm-4.5-air", glm_4_5_air()),
        single("minimax-m2", minimax_m2()),
        single("llama-4-scout", llama_4_scout()),
        single("llama-4-maverick", llama_4_maverick()),
        single("gpt-oss-20b", gpt_oss_20b()),
        single("gpt-oss-120b", gpt_oss_120b()),
        single("gemma-3-12b", gemma_3_12b()),
        single("gemma-3-27b", gemma_3_27b()),
        single("nemotron-h-8b", nemotron_h_8b()),
        single("lm-5b", lm_5b()),
        single("lm-7b", lm_7b()),
        single("gpt-3-175b", gpt_3_175b()),
        single("gpt-3-530b", gpt_3_530b()),
        single("gpt-3-1t", gpt_3_1t()),
        single("vit-2b", vit_2b()),
        single("vit-5b", vit_5b()),
        single("vit-22b", vit_22b()),
        single("internvit-6b", internvit_6b()),
        single("siglip-so400m", siglip_so400m()),
        single("dit-xl-2", dit_xl_2()),
        single("dit-5b", dit_5b()),
        single("dit-30b", dit_30b()),
        several("vlm-7b", "VLM-7B (ViT 2B + LM 5B)", vec![vit_2b(), lm_5b()]),
        several("llava-ov-7b", "LLaVA-OneVision 7B", vec![siglip_so400m(), qwen2_7b()]),
        several(
            "llava-ov-so400m-llama-3-8b",
            "LLaVA-OV (SO400M + Llama-3 8B)",
            vec![siglip_so400m_frames(), llama_3_8b()],
        ),
        several("llava-ov-llama-3-8b", "LLaVA-OV (SigLIP 2.4B + Llama-3 8B)", vec![dflop_siglip(), llama_3_8b()]),
        several("llava-ov-llama-3-70b", "LLaVA-OV (SigLIP 2.4B + Llama-3 70B)", vec![dflop_siglip(), llama_3_70b()]),
        several("llava-ov-qwen2.5-7b", "LLaVA-OV (SigLIP 2.4B + Qwen2.5 7B)", vec![dflop_siglip(), qwen2_7b()]),
        several("llava-ov-qwen2.5-32b", "LLaVA-OV (SigLIP 2.4B + Qwen2.5 32B)", vec![dflop_siglip(), qwen2_32b()]),
        several("llava-ov-qwen2.5-72b", "LLaVA-OV (SigLIP 2.4B + Qwen2.5 72B)", vec![dflop_siglip(), qwen2_72b()]),
        several(
            "internvl2.5-72b",
            "InternVL2.5 (InternViT 3.7B + Qwen2.5 72B)",
            vec![dflop_internvit(), with_internvl_vocabulary(qwen2_72b())],
        ),
        several("internvl3-2b", "InternVL3-2B", vec![internvit_300m(1536), with_internvl_vocabulary(qwen2_1_5b())]),
        several("internvl2.5-4b", "InternVL2.5-4B", vec![internvit_300m(2048), with_internvl_vocabulary(qwen2_3b())]),
        several("internvl3-8b", "InternVL3-8B", vec![internvit_300m(3584), with_internvl_vocabulary(qwen2_7b())]),
        several("qwen3-vl-2b", "Qwen3-VL-2B", vec![qwen3_vl_encoder_300m(2048, 3), qwen3_1_7b()]),
        several("qwen3-vl-4b", "Qwen3-VL-4B", vec![qwen3_vl_encoder_300m(2560, 3), qwen3_4b()]),
        several("qwen3-vl-8b", "Qwen3-VL-8B", vec![qwen3_vl_encoder_400m(4096, 3), qwen3_8b()]),
        several("qwen3-vl-32b", "Qwen3-VL-32B", vec![qwen3_vl_encoder_400m(5120, 3), qwen3_32b()]),
        several("qwen3-vl-30b-a3b", "Qwen3-VL-30B-A3B", vec![qwen3_vl_encoder_400m(2048, 3), qwen3_30b_a3b()]),
        several("qwen3-vl-235b-a22b", "Qwen3-VL-235B-A22B", vec![qwen3_vl_encoder_400m(4096, 3), qwen3_235b_a22b()]),
        several("internvl3.5-8b", "InternVL3.5-8B", vec![internvit_300m(4096), qwen3_8b()]),
        several("internvl3.5-14b", "InternVL3.5-14B", vec![internvit_300m(5120), qwen3_14b()]),
        several("internvl3.5-30b-a3b", "InternVL3.5-30B-A3B", vec![internvit_300m(2048), qwen3_30b_a3b()]),
        several("vlm-s", "VLM-S (ViT 5B + Llama-3 8B)", vec![vit_5b(), llama_3_8b()]),
        several("vlm-m", "VLM-M (ViT 5B + Qwen2 32B)", vec![vit_5b(), qwen2_32b()]),
        several("vlm-l", "VLM-L (ViT 22B + Qwen2 72B)", vec![vit_22b(), qwen2_72b()]),
        several("vlm-xl", "VLM-XL (ViT 22B + GPT-3 175B)", vec![vit_22b(), gpt_3_175b()]),
        several("t2v-s", "T2V-S (Llama-3 8B + DiT 5B)", vec![text(llama_3_8b), dit_5b()]),
        several("t2v-l", "T2V-L (Qwen2 32B + DiT 30B)", vec![text(qwen2_32b), dit_30b()]),
        several("t2v-xl", "T2V-XL (Qwen2 72B + DiT 30B)", vec![text(qwen2_72b), dit_30b()]),
        several("qwen2-audio-7b", "Qwen2-Audio 7B", vec![whisper_large(), qwen_7b()]),
        several(
            "omni-7b",
            "Omni 7B (ViT 675M + Whisper + Qwen2 7B)",
            vec![qwen2_vl_encoder(), whisper_large(), qwen2_7b()],
        ),
    ]
}

/// Replaced presets that stored setups still name. They are not listed for selection.
///
/// The DHP setups use Qwen3-VL without DeepStack mergers. Their identifiers are stable.
fn replaced() -> Vec<ModelPreset> {
    vec![
        several("qwen3-vl-2b-without-deepstack", "Qwen3-VL-2B", vec![qwen3_vl_encoder_300m(2048, 0), qwen3_1_7b()]),
        several("qwen3-vl-4b-without-deepstack", "Qwen3-VL-4B", vec![qwen3_vl_encoder_300m(2560, 0), qwen3_4b()]),
        several("qwen3-vl-8b-without-deepstack", "Qwen3-VL-8B", vec![qwen3_vl_encoder_400m(4096, 0), qwen3_8b()]),
    ]
}

/// Returns the model preset with this identifier.
pub fn model(id: &str) -> Option<Model> {
    models().into_iter().chain(replaced()).find(|preset| preset.id == id).map(|preset| preset.model)
}

fn single(id: &'static str, module: Module) -> ModelPreset {
    ModelPreset { id, model: Model { name: module.name.clone(), modules: vec![module] } }
}

fn several(id: &'static str, name: &str, modules: Vec<Module>) -> ModelPreset {
    ModelPreset { id, model: Model { name: name.into(), modules } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameter counts of released checkpoints. GPT-3 has a vocabulary padded to 51,200, as
    /// Megatron-LM trains it: 96 (12 h² + 13 h) + h (51,200 + 2,048) + 2 h.
    #[test]
    fn parameter_counts_match_released_checkpoints() {
        for (id, parameters) in [
            ("llama-2-7b", 6_738_415_616),
            ("llama-2-70b", 68_976_648_192),
            ("llama-3-8b", 8_030_261_248),
            ("qwen2-32b", 32_763_876_352),
            ("llama-3-70b", 70_553_706_496),
            ("mixtral-8x7b", 46_702_792_704),
            ("mixtral-8x22b", 140_620_634_112),
            // Without query and key norms, 2 x 128 per layer.
            ("qwen3-4b", 4_022_468_096 - 36 * 256),
            ("qwen3-30b-a3b", 30_532_122_624 - 48 * 256),
            ("llama-2-13b", 13_015_864_320),
            // LLaMA 33B: 60 (4 h² + 3 h 17,920 + 2 h) + 2 h 32,000 + h with h = 6656.
            ("llama-32b", 32_528_943_616),
            ("llama-3-405b", 405_853_388_800),
            ("qwen2-7b", 7_615_616_512),
            ("qwen2-72b", 72_706_203_648),
            ("gpt-3-175b", 96 * (12 * 12_288_u64.pow(2) + 13 * 12_288) + 12_288 * 53_248 + 2 * 12_288),
        ] {
            assert_eq!(model(id).unwrap().parameters(), parameters, "{id}");
        }
    }

    /// Published parameter counts in billions, within 0.5 %. Text models only; DeepSeek-V3 with the
    /// layer that predicts a second token (671.0 + 11.6, embedding and head shared).
    #[test]
    fn current_models_have_their_published_size() {
        for (id, billions) in [
            ("qwen3-0.6b", 0.596),
            ("qwen3-14b", 14.768),
            ("qwen3-32b", 32.762),
            ("qwen3-235b-a22b", 235.094),
            ("qwen3-next-80b-a3b", 79.67),
            ("deepseek-v3", 682.6),
            ("kimi-k2", 1026.4),
            ("glm-4.5", 352.8),
            ("glm-4.5-air", 106.9),
            ("minimax-m2", 228.7),
            ("llama-4-scout", 107.77),
            ("llama-4-maverick", 400.71),
            ("gpt-oss-20b", 20.91),
            ("gpt-oss-120b", 116.83),
            ("gemma-3-12b", 11.77),
            ("gemma-3-27b", 27.01),
            ("nemotron-h-8b", 8.1),
        ] {
            let counted = model(id).unwrap().parameters() as f64 * 1e-9;
            assert!((counted / billions - 1.0).abs() < 0.005, "{id}: {counted} against {billions}");
        }
    }

    /// Parameter counts of released checkpoints, computed from their configurations, within 0.5 %.
    /// The model omits the second frame in the patch projection, the norms in mergers, queries and
    /// keys, and additional learned positions.
    #[test]
    fn qwen3_vl_has_its_deepstack_mergers() {
        for (id, parameters) in
            [("qwen3-vl-2b", 2_127_532_032_u64), ("qwen3-vl-4b", 4_437_815_808), ("qwen3-vl-8b", 8_767_123_696)]
        {
            let counted = model(id).unwrap().parameters();
            let error = (counted as f64 / parameters as f64 - 1.0).abs();
            assert!(error < 0.005, "{id}: {counted} against {parameters}, {:.2} %", 100.0 * error);
            // A merger has (4 h)² + 4 h + 4 h w + w parameters. There are three mergers.
            let (with, without) = (model(id).unwrap(), model(&format!("{id}-without-deepstack")).unwrap());
            let (h, w) = (u64::from(with.modules[0].hidden), u64::from(with.modules[1].hidden));
            assert_eq!(with.parameters() - without.parameters(), 3 * (16 * h * h + 4 * h + 4 * h * w + w));
        }
    }

    /// Published sizes within 2 %. The checkpoints contain parts that are not modelled (fourth
    /// latent channel, timestep embeddings).
    #[test]
    fn encoders_and_generators_have_about_their_published_size() {
        for (id, module, millions) in [("dit-xl-2", 0, 675.0), ("vit-22b", 0, 21_743.0), ("qwen2-audio-7b", 0, 637.0)] {
            let parameters = model(id).unwrap().modules[module].parameters() as f64 * 1e-6;
            assert!((parameters / millions - 1.0).abs() < 0.02, "{id}: {parameters}");
        }
    }

    /// Sizes in published names within 4 %, in billions, with text encoder heads included. The
    /// published ViT 5B figures give 4.3 billion.
    #[test]
    fn models_have_about_the_size_in_their_name() {
        for (id, billions) in [
            ("gpt-3-530b", &[530.0][..]),
            ("gpt-3-1t", &[1008.0]),
            ("lm-5b", &[5.0]),
            ("lm-7b", &[7.0]),
            ("vit-2b", &[2.0]),
            ("vit-5b", &[4.3]),
            ("internvit-6b", &[5.9]),
            ("siglip-so400m", &[0.4]),
            // 40 (4 x 2,304² + 2 x 2,304 x 8,608) and 30 x 12 x 3,200².
            ("llava-ov-llama-3-8b", &[2.44, 8.03]),
            ("internvl2.5-72b", &[3.69, 72.7]),
            ("dit-5b", &[5.0]),
            ("dit-30b", &[30.0]),
            ("vlm-7b", &[2.0, 5.0]),
            ("llava-ov-7b", &[0.4, 7.6]),
            ("vlm-m", &[4.3, 32.8]),
            ("vlm-l", &[22.0, 72.7]),
            ("vlm-xl", &[22.0, 175.0]),
            ("t2v-s", &[8.0, 5.0]),
            ("t2v-l", &[32.8, 30.0]),
            ("t2v-xl", &[72.7, 30.0]),
            ("omni-7b", &[0.675, 0.64, 7.6]),
            // 304 and 412 million, plus a merger with 4 h (4 h + width) parameters.
            ("internvl3-2b", &[0.327, 1.78]),
            ("internvl2.5-4b", &[0.329, 3.4]),
            ("internvl3-8b", &[0.335, 7.61]),
            ("qwen3-vl-2b-without-deepstack", &[0.329, 1.72]),
            ("qwen3-vl-8b-without-deepstack", &[0.452, 8.19]),
        ] {
            let model = model(id).unwrap();
            assert_eq!(model.modules.len(), billions.len(), "{id}");
            for (module, billions) in model.modules.iter().zip(billions) {
                let head = if module.headless { u64::from(module.hidden) * u64::from(module.vocab) } else { 0 };
                let parameters = (module.parameters() + head) as f64 * 1e-9;
                assert!((parameters / billions - 1.0).abs() < 0.04, "{id}, {}: {parameters}", module.name);
            }
        }
    }

    #[test]
    fn vlm_parameters_are_the_sum_over_modules() {
        let vlm = model("vlm-s").unwrap();
        assert_eq!(vlm.parameters(), model("vit-5b").unwrap().parameters() + 8_030_261_248);
        assert_eq!(vlm.layers(), 95);
        assert_eq!(vlm.tokens_per_image(), 169);
    }

    #[test]
    fn each_modality_has_separate_tokens() {
        for (id, image, clip, second) in [
            ("vlm-s", 169, 0, None),
            ("omni-7b", 256, 750, None),
            ("internvl3-8b", 256, 0, None),
            ("qwen3-vl-8b", 196, 0, None),
            ("qwen2-audio-7b", 0, 750, None),
            ("t2v-s", 0, 0, Some(512)),
        ] {
            let model = model(id).unwrap();
            let video = model.video().map(|video| video.tokens_per_second);
            assert_eq!((model.tokens_per_image(), model.tokens_per_clip(), video), (image, clip, second), "{id}");
        }
    }

    /// 6 N operations per token for forward and backward. N excludes the embedding table.
    #[test]
    fn linear_flops_are_two_per_matrix_parameter_and_token() {
        let module = &model("llama-2-7b").unwrap().modules[0];
        let matrices = module.layer_parameters() - 2 * 4096;
        assert!((module.layer_linear_flops(10.0).get() - 20.0 * matrices as f64).abs() < 1.0);
    }
}
