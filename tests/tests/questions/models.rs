//! Models: mixtures of experts, DeepSeek-V3, LoRA, optimizers.

use api::check::Verdict;
use serde_json::json;

use crate::{LLAMA_3_8B, LLAMA_3_70B_ARGUMENTS, Plans, changes, check, job, scenario, step_s, with};

/// Question 15. 30.5 billion parameters of 18 bytes and Adam over 32 devices. The planner finds the degree of expert
/// parallelism.
#[tokio::test(flavor = "multi_thread")]
async fn which_layout_for_qwen3_30b_a3b_on_32_h100() {
    let free = json!(["expert_parallel", "recompute", "zero"]);
    let searched = Plans::of(&with(scenario("qwen3-30b-a3b", 4, 4096), &[("/free", free)])).await;
    let fixed = |expert: u32| {
        let fields = [("/training", json!({"expert_parallel": expert})), ("/free", json!(["recompute", "zero"]))];
        with(scenario("qwen3-30b-a3b", 4, 4096), &fields)
    };
    let step = searched.step_s("1f1b");
    for expert in [2, 8] {
        let other = Plans::of(&fixed(expert)).await.step_s("1f1b");
        assert!(step <= other * 1.0001, "EP {expert}: {other} against {step}");
    }
    assert!(searched.metric("1f1b", "peak_memory_gib") < 76.0);
}

/// Question 15, second part. The check of a `config.json` searches the degree of expert parallelism with the layout.
#[tokio::test(flavor = "multi_thread")]
async fn which_layout_for_the_config_json_of_qwen3_30b_a3b() {
    let config = r#"{"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 40960}"#;
    let checked = check(&job(config, 32)).await;
    let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.fit.base.binding));
    let degree = checked.scenario.training.expert_parallel;
    assert!(degree > 1 && 32 % degree == 0, "{degree}");
    let sentence = format!("Expert parallelism is not stated. Degree {degree} is the fastest that fits.");
    assert!(checked.assumed.contains(&sentence), "{:?}", checked.assumed);
    assert!(plan.metrics.peak_memory_gib < 76.0);
    // No change of the degree alone is faster.
    let found = changes(&job(config, 32)).await;
    let titles: Vec<&str> = found.fit.changes.iter().map(|change| change.title.as_str()).collect();
    assert!(!titles.iter().any(|title| title.starts_with("EP ")), "{titles:?}");
}

/// Question 16. DeepSeek-V3 took 180 thousand H800 hours per trillion tokens (DeepSeek-AI 2024, Sec. 1): 1,543 tokens per second
/// and device, with PP 16, EP 64, ZeRO-1, fp8, 50 GB/s per device, tokens on at most four nodes, and a hidden exchange (Sec. 3.2).
#[tokio::test(flavor = "multi_thread")]
async fn how_fast_does_deepseek_v3_train_on_2048_h800() {
    let mut h800 = serde_json::to_value(planner::cluster::presets::cluster("h800").unwrap()).unwrap();
    (h800["nodes"], h800["inter_node"]["gb_per_s"]) = (json!(256), json!(50.0));
    let training = json!({
        "precision": "fp8", "expert_parallel": 64, "zero": 1, "dispatch_by_node": true, "expert_overlap": 1.0,
        "data_overlap": 1.0, "recompute": "full"
    });
    let fields = [
        ("/cluster", h800),
        ("/workload/global_batch", json!(15_360)),
        ("/training", training),
        ("/layout", json!({"tensor": 1, "pipeline": 16, "microbatch": 1})),
        ("/free", json!(["layers_per_stage"])),
        ("/planners", json!(["1f1b"])),
    ];
    let plans = Plans::of(&with(scenario("deepseek-v3", 256, 4096), &fields)).await;
    let tokens_per_s = 15_360.0 * 4096.0 / plans.step_s("1f1b") / 2048.0;
    assert!((0.7..1.5).contains(&(tokens_per_s / 1543.0)), "{tokens_per_s} tokens/s per device");
    assert!(plans.metric("1f1b", "peak_memory_gib") < 80.0);
}

/// Question 17. A router that gives one rank 1.5 times the mean makes the step slower, by less than half.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_expert_imbalance_cost() {
    let step = async |skew: f64| {
        let fields = [
            ("/model", json!({"preset": "qwen3-30b-a3b"})),
            ("/training", json!({"expert_parallel": 8})),
            ("/free", json!(["recompute", "zero"])),
        ];
        let mut scenario = with(scenario("qwen3-30b-a3b", 4, 4096), &fields);
        let model = planner::model::presets::model("qwen3-30b-a3b").unwrap();
        scenario["model"] = serde_json::to_value(model).unwrap();
        scenario["model"]["modules"][0]["moe"]["skew"] = json!(skew);
        Plans::of(&scenario).await.step_s("1f1b")
    };
    let ratio = step(1.5).await / step(1.0).await;
    assert!((1.05..1.5).contains(&ratio), "{ratio}");
}

/// Question 20. Full fine-tuning of Llama-3 70B needs 16 devices for its states alone. LoRA needs the 16-bit weights, 131 GiB,
/// over eight devices, and activations; QLoRA a quarter of the weights.
#[tokio::test(flavor = "multi_thread")]
async fn how_much_memory_does_lora_need() {
    let file = |adapter: &str| {
        format!(
            "base_model: meta-llama/Meta-Llama-3-70B\nsequence_len: 4096\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\n\
             gradient_checkpointing: true\nbf16: true\nfsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n{adapter}"
        )
    };
    let lora = "adapter: lora\nlora_r: 16\nlora_target_linear: true\n";
    let qlora = "adapter: qlora\nload_in_4bit: true\nlora_r: 16\nlora_target_linear: true\n";
    let full = check(&job(&file(""), 8)).await;
    assert_eq!(full.verdict, Verdict::DoesNotFit);
    let weights = async |adapter: &str| {
        let checked = check(&job(&file(adapter), 8)).await;
        assert_ne!(checked.verdict, Verdict::DoesNotFit, "{adapter}");
        let memory = &checked.fit.ranks[0].memory;
        // 207 million adapter parameters over eight devices.
        assert!(memory.optimizer_gib < 0.5 && memory.gradients_gib < 0.5, "{memory:?}");
        memory.weights_gib
    };
    let (lora, qlora) = (weights(lora).await, weights(qlora).await);
    assert!((lora / (131.4 / 8.0) - 1.0).abs() < 0.05, "{lora}");
    // Embedding and head stay in 16 bits.
    assert!(qlora < 0.32 * lora, "{qlora}");
}

/// Question 21. Half of the optimizer on the host frees half of 12 bytes per parameter of a device, and the step takes longer.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_an_optimizer_on_the_host_bring() {
    let degrees = "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --recompute-granularity full \
                   --recompute-method uniform --recompute-num-layers 1";
    let text = format!("{LLAMA_3_8B} {degrees}");
    let offloaded =
        format!("{text} --use-precision-aware-optimizer --optimizer-cpu-offload --optimizer-offload-fraction 0.5");
    let optimizer = async |text: &str| check(&job(text, 8)).await.fit.ranks[0].memory.optimizer_gib;
    let (device, half) = (optimizer(&text).await, optimizer(&offloaded).await);
    assert!((half / device - 0.5).abs() < 0.01, "{half} of {device}");
    assert!(step_s(&job(&offloaded, 8)).await > step_s(&job(&text, 8)).await);
    // The offload is among the changes of a job whose states do not fit, as a line of the script.
    let tight = format!("{LLAMA_3_70B_ARGUMENTS} --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2");
    let found = changes(&job(&tight, 16)).await;
    let index = found.fit.changes.iter().position(|change| change.title.contains("of the optimizer to host memory"));
    let index = index.unwrap_or_else(|| panic!("{:?}", found.fit.changes));
    let settings: Vec<&str> = found.edits[index].iter().map(|edit| edit.setting.as_str()).collect();
    assert!(settings.iter().any(|setting| setting.contains("optimizer-cpu-offload")), "{settings:?}");
}
