//! Files of the user.

use api::check::CheckRequest;
use api::job_config::ConfigFormat;
use harness::TestServer;

use crate::{LLAMA_3_8B, check, job};

/// Question 28. The same model from `config.json`, from arguments and from TOML has the same parameters; each format is named.
#[tokio::test(flavor = "multi_thread")]
async fn can_i_start_from_my_config_json_my_arguments_or_my_toml() {
    let config = r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192}"#;
    let toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n";
    let arguments =
        format!("{LLAMA_3_8B} --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --micro-batch-size 1");
    let mut parameters = Vec::new();
    for (text, format) in [
        (config, ConfigFormat::HuggingFaceModel),
        (arguments.as_str(), ConfigFormat::Megatron),
        (toml, ConfigFormat::Torchtitan),
    ] {
        let checked = check(&job(text, 8)).await;
        assert_eq!(checked.format, Some(format));
        assert!(checked.unknown.is_empty(), "{:?}", checked.unknown);
        let module = &checked.scenario.model.modules[0];
        parameters.push(f64::from(module.layers) * module.layer_parameters() as f64);
        assert_eq!((module.layers, module.hidden, module.kv_heads, module.vocab), (32, 4096, 8, 128_256));
    }
    assert!(parameters.iter().all(|other| other.to_bits() == parameters[0].to_bits()), "{parameters:?}");
}

/// Question 27. Clusters with several device types are not modelled; the message says what to do.
#[tokio::test]
async fn can_i_mix_h100_and_a100() {
    let server = TestServer::open().await;
    let request = CheckRequest { device: Some("h100+a100-80gb".to_owned()), ..job("{}", 16) };
    let problem = server.post(api::path::CHECKS, serde_json::to_string(&request).unwrap()).await.problem();
    assert_eq!((problem.status, problem.errors[0].pointer.as_str()), (422, "/device"));
    let detail = &problem.errors[0].detail;
    assert!(
        detail.contains("mixed devices are not modelled") && detail.contains("check h100 and the other types"),
        "{detail}"
    );
}
