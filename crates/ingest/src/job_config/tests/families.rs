//! Positions, gates, biases and norms of model families.

use planner::model::Module;

use super::*;

fn sized(model_type: &str, more: &str) -> JobConfig {
    config(&format!(
        r#"{{"model_type": "{model_type}", "hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16,
            "intermediate_size": 4096, "vocab_size": 32000, "max_position_embeddings": 2048{more}}}"#
    ))
}

fn backbone(job: &JobConfig) -> Module {
    job.scenario.model.backbone().expect("a language model").clone()
}

fn has_sentence(job: &JobConfig, start: &str) -> bool {
    job.not_modelled.iter().chain(&job.assumed).any(|sentence| sentence.starts_with(start))
}

/// 50,432 x 4,096 embeddings, 32 layers with 12 x 4,096^2 weights, norms without bias.
#[test]
fn mpt_with_alibi_has_no_learned_positions() {
    let mpt = |attention: &str| {
        config(&format!(
            r#"{{"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4, "no_bias": true,
                "max_seq_len": 2048, "vocab_size": 50432, "norm_type": "low_precision_layernorm"{attention}}}"#
        ))
    };
    for attention in [r#", "learned_pos_emb": true, "attn_config": {"alibi": true, "attn_impl": "torch"}"#, ""] {
        let job = mpt(attention);
        assert_eq!(job.scenario.model.parameters(), 6_649_286_656, "{attention}");
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    }
    let learned = mpt(r#", "attn_config": {"alibi": false}"#);
    assert_eq!(backbone(&learned).learned_positions, 2048);
    assert_eq!(backbone(&mpt(r#", "attn_config": {"alibi": false, "rope": true}"#)).learned_positions, 0);
    let grouped = mpt(r#", "attn_config": {"alibi": true, "attn_type": "grouped_query_attention", "kv_n_heads": 8}"#);
    assert_eq!(backbone(&grouped).kv_heads, 8);
    // Other models without learned positions, and with them.
    for (model_type, positions) in [("bloom", 0), ("falcon", 0), ("gpt_neox", 0), ("gpt2", 2048), ("opt", 2048)] {
        assert_eq!(backbone(&sized(model_type, r#", "alibi": false"#)).learned_positions, positions, "{model_type}");
    }
}

#[test]
fn squared_relu_has_no_gate() {
    let act = r#", "hidden_act": "relu2""#;
    for (model_type, gated) in
        [("nemotron", false), ("nemotron_h", false), ("arcee", false), ("made_up", false), ("bitnet", true)]
    {
        let job = sized(model_type, act);
        assert_eq!(backbone(&job).gated, gated, "{model_type}");
        assert_eq!(has_sentence(&job, "The activation is a squared ReLU"), model_type == "made_up");
    }
    assert_eq!(backbone(&sized("nemotron", act)).norm, Norm::Layer);
    // Llama models with ReLU keep their gate.
    assert!(backbone(&sized("llama", r#", "hidden_act": "relu""#)).gated);
    assert!(backbone(&sized("made_up", r#", "hidden_act": "silu""#)).gated);
}

/// Gate, norm, bias and shared embedding of transformers classes; attention and MLP in parallel.
#[test]
fn families_follow_their_classes() {
    for (model_type, gated, norm, bias, tied, parallel) in [
        ("bloom", false, Norm::Layer, Bias::All, true, false),
        ("falcon", false, Norm::Layer, Bias::None, true, true),
        ("gptj", false, Norm::Layer, Bias::None, false, true),
        ("gpt_neox", false, Norm::Layer, Bias::All, false, true),
        ("gpt_bigcode", false, Norm::Layer, Bias::All, true, false),
        ("phi", false, Norm::Layer, Bias::All, false, true),
        ("starcoder2", false, Norm::Layer, Bias::All, true, false),
        ("olmo2", true, Norm::Rms, Bias::None, false, false),
        ("cohere", true, Norm::Rms, Bias::None, true, true),
        ("stablelm", true, Norm::Layer, Bias::None, false, false),
    ] {
        let job = sized(model_type, "");
        let module = backbone(&job);
        let seen = (module.gated, module.norm, module.bias, module.tied_embeddings);
        assert_eq!(seen, (gated, norm, bias, tied), "{model_type}");
        assert_eq!(has_sentence(&job, "Attention and MLP in parallel"), parallel, "{model_type}");
        assert!(!has_sentence(&job, "The architecture"), "{model_type}");
    }
    let serial = sized("gpt_neox", r#", "use_parallel_residual": false"#);
    assert!(!has_sentence(&serial, "Attention and MLP in parallel"));
    assert!(has_sentence(&sized("gptj", ""), "The biases of the MLP are left out."));
}

/// 2 x 51,200 x 2,560 embeddings and 32 layers with 12 x 2,560^2 weights.
#[test]
fn phi_2_has_its_published_parameters() {
    let job = config(
        r#"{"model_type": "phi", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32, "hidden_act": "gelu_new",
            "intermediate_size": 10240, "vocab_size": 51200, "max_position_embeddings": 2048}"#,
    );
    let parameters = job.scenario.model.parameters() as f64;
    assert!((parameters / 2_779_683_840.0 - 1.0).abs() < 1e-3, "{parameters}");
}

#[test]
fn sizes_of_bloom_and_falcon_have_their_keys() {
    let bloom = config(
        r#"{"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "vocab_size": 250880}"#,
    );
    let parameters = bloom.scenario.model.parameters() as f64;
    assert!((parameters / 176_247_271_424.0 - 1.0).abs() < 1e-3, "{parameters}");
    let falcon = sized("falcon", r#", "multi_query": true, "new_decoder_architecture": true, "n_head_kv": 8"#);
    assert_eq!(backbone(&falcon).kv_heads, 8);
    assert_eq!(backbone(&sized("falcon", r#", "multi_query": true"#)).kv_heads, 1);
}

#[test]
fn layers_of_jamba_without_attention_are_named() {
    let job = sized(
        "jamba",
        r#", "attn_layer_period": 8, "attn_layer_offset": 4, "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 16,
            "num_experts_per_tok": 2, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2"#,
    );
    assert!(has_sentence(&job, "State-space (Mamba) layers are read as transformer layers."));
    assert_eq!(backbone(&job).moe.map(|moe| moe.every), Some(2));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

fn of_published_size(job: &JobConfig, published: f64) {
    let parameters = job.scenario.model.parameters() as f64;
    let name = &job.scenario.model.name;
    assert!((parameters / published - 1.0).abs() < 5e-3, "{name}: {parameters}");
    assert!(!has_sentence(job, "The architecture") && job.unknown.is_empty(), "{name}: {:?}", job.unknown);
}

/// Parameters of the model cards, without layers that predict further tokens.
#[test]
fn newer_families_have_their_published_parameters() {
    let cases: [(&str, &str, f64); 13] = [
        (
            "granite",
            r#""hidden_size": 4096, "intermediate_size": 12800, "num_hidden_layers": 40, "num_attention_heads": 32,
                "num_key_value_heads": 8, "vocab_size": 49159, "tie_word_embeddings": true, "attention_bias": false, "mlp_bias": false,
                "attention_multiplier": 0.0078125, "embedding_multiplier": 12.0, "logits_scaling": 16.0, "residual_multiplier": 0.22"#,
            8.17e9,
        ),
        (
            "granitemoe",
            r#""hidden_size": 1536, "intermediate_size": 512, "num_hidden_layers": 32, "num_attention_heads": 24,
                "num_key_value_heads": 8, "vocab_size": 49155, "tie_word_embeddings": true, "num_local_experts": 40,
                "num_experts_per_tok": 8, "router_aux_loss_coef": 0.0"#,
            3.30e9,
        ),
        (
            "exaone",
            r#""hidden_size": 4096, "intermediate_size": 14336, "num_layers": 32, "num_attention_heads": 32, "head_dim": 128,
                "num_key_value_heads": 8, "vocab_size": 102400, "tie_word_embeddings": false, "activation_function": "silu""#,
            7.82e9,
        ),
        (
            "exaone4",
            r#""hidden_size": 5120, "intermediate_size": 27392, "num_hidden_layers": 64, "num_attention_heads": 40,
                "num_key_value_heads": 8, "vocab_size": 102400, "sliding_window": 4096, "sliding_window_pattern": "LLLG""#,
            32.0e9,
        ),
        (
            "seed_oss",
            r#""hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64, "num_attention_heads": 80, "head_dim": 128,
                "num_key_value_heads": 8, "vocab_size": 155136, "attention_bias": true, "attention_out_bias": false, "mlp_bias": false"#,
            36.15e9,
        ),
        (
            "ernie4_5",
            r#""hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18, "num_attention_heads": 16, "head_dim": 128,
                "num_key_value_heads": 2, "vocab_size": 103424, "use_bias": false"#,
            0.3607e9,
        ),
        (
            "ernie4_5_moe",
            r#""hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28, "num_attention_heads": 20,
                "num_key_value_heads": 4, "vocab_size": 103424, "tie_word_embeddings": true, "moe_num_experts": 64, "moe_k": 6,
                "moe_intermediate_size": 1536, "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "moe_layer_end_index": 27,
                "moe_layer_interval": 1, "moe_use_aux_free": true, "moe_capacity": [64, 64, 64]"#,
            21.83e9,
        ),
        (
            "ernie4_5_moe",
            r#""hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 54, "num_attention_heads": 64,
                "num_key_value_heads": 8, "vocab_size": 103424, "moe_num_experts": 64, "moe_k": 8, "moe_intermediate_size": 3584,
                "moe_num_shared_experts": 0, "moe_layer_start_index": 3, "moe_layer_end_index": -1"#,
            299e9,
        ),
        (
            "glm4",
            r#""hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40, "num_attention_heads": 32, "head_dim": 128,
                "num_key_value_heads": 2, "vocab_size": 151552, "attention_bias": true, "partial_rotary_factor": 0.5"#,
            9.4e9,
        ),
        (
            "glm4_moe",
            r#""hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 46, "num_attention_heads": 96, "head_dim": 128,
                "num_key_value_heads": 8, "vocab_size": 151552, "attention_bias": true, "moe_intermediate_size": 1408,
                "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
                "num_nextn_predict_layers": 1"#,
            106.85e9,
        ),
        (
            "dots1",
            r#""hidden_size": 4096, "intermediate_size": 10944, "num_hidden_layers": 62, "num_attention_heads": 32,
                "num_key_value_heads": 32, "vocab_size": 152064, "moe_intermediate_size": 1408, "n_routed_experts": 128,
                "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1"#,
            142.77e9,
        ),
        (
            "apertus",
            r#""hidden_size": 4096, "intermediate_size": 21504, "num_hidden_layers": 32, "num_attention_heads": 32,
                "num_key_value_heads": 8, "vocab_size": 131072, "hidden_act": "xielu", "qk_norm": true, "post_norm": false"#,
            8.05e9,
        ),
        (
            "apertus",
            r#""hidden_size": 8192, "intermediate_size": 43008, "num_hidden_layers": 80, "num_attention_heads": 64,
                "num_key_value_heads": 8, "vocab_size": 131072, "hidden_act": "xielu", "qk_norm": true"#,
            70.6e9,
        ),
    ];
    for (model_type, sizes, published) in cases {
        of_published_size(&config(&format!(r#"{{"model_type": "{model_type}", {sizes}}}"#)), published);
    }
    let window = sized("exaone4", r#", "sliding_window": 4096, "sliding_window_pattern": "LLLG""#);
    assert_eq!(backbone(&window).window.map(|window| (window.tokens, window.full_every)), Some((4096, 4)));
}

/// `moe_k` and the first layer with experts of ERNIE 4.5.
#[test]
fn layers_with_experts_of_ernie_have_indices() {
    let job = sized(
        "ernie4_5_moe",
        r#", "moe_num_experts": 8, "moe_k": 3, "moe_intermediate_size": 512, "moe_layer_start_index": 1, "moe_layer_interval": 1"#,
    );
    let moe = backbone(&job).moe.unwrap();
    assert_eq!((moe.experts, moe.top_k, moe.dense_layers, moe.every), (8, 3, 1, 1));
}

/// The two products of the projectors, with the width of the backbone between them.
#[test]
fn projectors_of_llava_and_internvl_have_the_width_of_the_backbone() {
    let llava = config(
        r#"{"model_type": "llava", "image_seq_length": 576, "projector_hidden_act": "gelu", "vision_feature_layer": -2,
            "text_config": {"model_type": "llama", "vocab_size": 32064},
            "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
                "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}}"#,
    );
    let parameters = llava.scenario.model.parameters() as f64;
    assert!((parameters / 7_063.4e6 - 1.0).abs() < 1e-3, "{parameters}");
    let patch = llava.scenario.model.modules[0].patch.unwrap();
    assert_eq!((patch.tokens_per_image, patch.inner_width), (576, Some(4096)));
    // InternVL2.5-26B: 3,200 x 4 merged values, 6,144 values of the backbone.
    let internvl = config(
        r#"{"model_type": "internvl_chat", "downsample_ratio": 0.5,
            "llm_config": {"model_type": "internlm2", "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 48,
                "num_attention_heads": 48, "num_key_value_heads": 8, "vocab_size": 92553},
            "vision_config": {"hidden_size": 3200, "image_size": 448, "intermediate_size": 12800, "num_attention_heads": 25,
                "num_hidden_layers": 45, "patch_size": 14}}"#,
    );
    let parameters = internvl.scenario.model.parameters() as f64;
    assert!((parameters / 25_514.0e6 - 1.0).abs() < 1e-3, "{parameters}");
}

#[test]
fn mistral_3_states_merged_patches_next_to_the_encoder() {
    let job = config(
        r#"{"model_type": "mistral3", "spatial_merge_size": 2, "vision_feature_layer": -1, "projector_hidden_act": "gelu",
            "multimodal_projector_bias": false,
            "text_config": {"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
                "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072},
            "vision_config": {"model_type": "pixtral", "hidden_act": "silu", "hidden_size": 1024, "image_size": 1540,
                "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14}}"#,
    );
    let patch = job.scenario.model.modules[0].patch.unwrap();
    assert_eq!((patch.patches_per_image, patch.tokens_per_image), (12_100, 3025));
    let parameters = job.scenario.model.parameters() as f64;
    assert!((parameters / 24_011.4e6 - 1.0).abs() < 1e-3, "{parameters}");
}
