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
