mod branches;
mod command_lines;
mod commands;
mod defaults;
mod families;
mod fp8;
mod frameworks;
mod launched_jobs;
mod launchers;
mod newer_files;
mod notations;
mod programs;
mod refusals;
mod reported_files;
mod silent_settings;
mod state_formats;
mod trained_parts;
mod trainers;
mod unmodelled;
mod wrappers;
mod yaml_programs;

use planner::model::{Bias, LatentAttention, Moe, Norm, Window};
use planner::training::{AttentionKernel, Framework, Optimizer, Precision, Recompute};

use super::*;

fn config(text: &str) -> JobConfig {
    read("runs/train.sh", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    read("file", text.as_bytes()).expect_err("an error").to_string()
}

const TITAN: &str = r#"
[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 4
seq_len = 8192
[parallelism]
data_parallel_shard_degree = 8
tensor_parallel_degree = 4
pipeline_parallel_degree = 2
[activation_checkpoint]
mode = "full"
[optimizer]
lr = 1e-4
[made_up]
password = "hunter2"
"#;

#[test]
fn a_torchtitan_job_is_read() {
    let job = config(TITAN);
    assert_eq!(job.format, ConfigFormat::Torchtitan);
    let scenario = &job.scenario;
    assert_eq!(scenario.model.parameters(), 70_553_706_496);
    assert_eq!((scenario.layout.tensor, scenario.layout.pipeline), (Some(4), Some(2)));
    assert_eq!((scenario.layout.microbatch, scenario.workload.global_batch), (Some(1), 32));
    assert_eq!(scenario.cluster.devices(), 64);
    // With a pipeline, gathered weights and unreduced gradients stay in memory.
    assert_eq!(scenario.training.zero_stage(), 1);
    assert_eq!(scenario.training.framework, Framework::Torchtitan);
    assert_eq!(scenario.training.attention, AttentionKernel::Flash2);
    assert_eq!(scenario.training.recompute, Recompute::Full);
    assert!(job.assumed.iter().any(|sentence| sentence.contains("4 sequences times 8 data-parallel replicas, 32")));
    let read = job.read.iter().find(|setting| setting.key == "parallelism.tensor_parallel_degree").unwrap();
    assert_eq!((read.value.as_str(), read.setting.as_str()), ("4", "tensor parallelism"));
    // The report contains the key but not the value.
    assert_eq!(job.unknown, ["made_up.password"]);
    assert!(!format!("{job:?}").contains("hunter2"));
}

#[test]
fn megatron_arguments_are_read_with_megatron_defaults() {
    let job = config(
        "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \\\n \
         --seq-length 2048 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 4 \\\n \
         --swiglu --normalization RMSNorm --disable-bias-linear --fp8-format hybrid --recompute-granularity selective \\\n \
         --position-embedding-type rope --untie-embeddings-and-output-weights --use-distributed-optimizer --vocab-size 32000 \\\n \
         --num-distributed-optimizer-instances 2 --cpu-offloading --cpu-offloading-num-layers 3",
    );
    let module = &job.scenario.model.modules[0];
    assert_eq!((module.ffn, module.kv_heads, module.vocab), (5440, 16, 32_000));
    assert_eq!((module.norm, module.bias, module.learned_positions), (Norm::Rms, Bias::None, 0));
    assert!(module.gated && !module.tied_embeddings && module.dropout);
    assert_eq!((job.scenario.cluster.nodes, job.scenario.cluster.devices_per_node), (4, 8));
    // 32 devices form 8 replicas with 4 sequences each.
    assert_eq!(job.scenario.workload.global_batch, 32);
    assert_eq!(job.scenario.training.precision, Precision::Fp8);
    assert_eq!(job.scenario.training.zero_stage(), 1);
    // Two copies on eight replicas; three of the twelve layers of a device.
    assert_eq!((job.scenario.training.shard_degree, job.scenario.training.activation_offload), (Some(4), 0.25));
    assert!(job.not_modelled.is_empty() && job.unknown.is_empty(), "{job:?}");
}

#[test]
fn a_model_configuration_leaves_the_layout_free() {
    let job = config(
        r#"{"model_type": "qwen3", "num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16,
            "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
            "tie_word_embeddings": true, "attention_bias": false, "hidden_act": "silu", "rope_theta": 1000000}"#,
    );
    assert_eq!(job.format, ConfigFormat::HuggingFaceModel);
    // The published count is 596,049,920; query and key norms (28 x 256 parameters) are not
    // modelled.
    assert_eq!(job.scenario.model.parameters(), 596_049_920 - 28 * 256);
    assert_eq!(job.scenario.layout, planner::training::LayoutRequest::default());
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    assert!(job.assumed.iter().any(|sentence| sentence.starts_with("The global batch is not stated")));
}

#[test]
fn images_and_short_positions_are_read() {
    let job = config(
        r#"{"model_type": "gemma3", "mm_tokens_per_image": 256,
            "text_config": {"model_type": "gemma3_text", "hidden_size": 3840, "intermediate_size": 15360, "head_dim": 256,
                "num_attention_heads": 16, "num_hidden_layers": 48, "num_key_value_heads": 8, "vocab_size": 262208,
                "max_position_embeddings": 2048},
            "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
                "num_hidden_layers": 27, "patch_size": 14}}"#,
    );
    let patch = job.scenario.model.modules[0].patch.unwrap();
    assert_eq!((patch.patches_per_image, patch.tokens_per_image), (4096, 256));
    assert_eq!(job.scenario.workload.context_length, 2048);
    assert!(job.assumed.contains(&"A sample has one image, of 256 tokens in the backbone.".to_owned()));
}

#[test]
fn latent_attention_and_experts_are_read() {
    let job = config(
        r#"{"model_type": "deepseek_v3", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4,
            "intermediate_size": 512, "moe_intermediate_size": 128, "n_routed_experts": 8, "num_experts_per_tok": 2,
            "n_shared_experts": 1, "first_k_dense_replace": 1, "kv_lora_rank": 64, "vocab_size": 1000}"#,
    );
    let module = &job.scenario.model.modules[0];
    let moe = Moe { expert_width: Some(128), shared_width: 128, dense_layers: 1, ..Moe::new(8, 2) };
    assert_eq!((module.moe, module.ffn, module.kv_heads), (Some(moe), 512, 4));
    let latent = LatentAttention { query_rank: 0, kv_rank: 64, content_size: 128, rotary_size: 64, value_size: 128 };
    assert_eq!(module.latent, Some(latent));
    assert!(job.not_modelled.is_empty(), "{:?}", job.not_modelled);
    // 4096 / 96 is not an integer: transformers rounds down.
    assert_eq!(model_config::distinct_head_size(4096, 96, None), Some(42));
    assert_eq!(model_config::distinct_head_size(4096, 32, Some(128)), None);
}

#[test]
fn a_file_that_cannot_be_read_names_the_key_and_the_remedy() {
    for (text, message) in [
        ("", "empty"),
        ("just some text", "it reads scenario JSON files"),
        ("{\"zero_optimization\": {\"stage\": 3}}", "states no model; add config.json"),
        ("{\"model_type\": ", "not valid JSON"),
        ("[model]\nname = ", "not valid TOML"),
        ("[model]\nname = \"llama3\"\nflavor = \"9B\"", "llama3 70B"),
        ("{\"model_type\": \"llama\", \"hidden_size\": 64}", "does not state heads"),
        (
            "{\"model_type\": \"llama\", \"hidden_size\": \"wide\", \"num_attention_heads\": 4}",
            "hidden_size: the value is not a whole number",
        ),
        ("--num-layers $L --hidden-size 64 --num-attention-heads 4", "num-layers: $L is a variable"),
        ("--num-layers 2.5 --hidden-size 64 --num-attention-heads 4", "is not a whole number"),
    ] {
        assert!(error(text).contains(message), "{text:?}: {}", error(text));
    }
    assert_eq!(read("file", &[0x80]), Err(JobConfigError::NotText { byte: 0 }));
    assert_eq!(read("file", &vec![b' '; MAX_BYTES + 1]), Err(JobConfigError::TooLarge));
    let many = (0..=MAX_KEYS).map(|index| format!("--a{index} 1")).collect::<Vec<_>>().join("\n");
    assert_eq!(read("file", many.as_bytes()), Err(JobConfigError::TooManyKeys));
}

/// Gemma 3 4B omits the heads. Class defaults: 8 heads with size 256, 4 key-value heads.
#[test]
fn gemma_3_defaults_are_filled_in() {
    let job = config(
        r#"{"model_type": "gemma3", "mm_tokens_per_image": 256,
            "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                "num_hidden_layers": 34, "sliding_window": 1024},
            "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
                "num_hidden_layers": 27, "patch_size": 14}}"#,
    );
    let module = job.scenario.model.backbone().unwrap();
    assert_eq!((module.heads, module.kv_heads, module.head_size, module.vocab), (8, 4, Some(256), 262_208));
    assert!(job.assumed.iter().any(|sentence| sentence.starts_with("num_attention_heads is not stated")));
    // The published count is 4,300,079,472, with positions of the encoder and the norms of queries and keys.
    let billion = job.scenario.model.parameters() as f64 / 1e9;
    assert!((billion / 4.300 - 1.0).abs() < 0.005, "{billion}");
}

/// The Qwen2.5-VL encoder has three 1280 x 3420 matrices in each of 32 layers, 0.42 billion
/// parameters.
#[test]
fn qwen_2_5_vl_encoder_is_gated() {
    let job = config(
        r#"{"model_type": "qwen2_5_vl", "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
            "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, "max_position_embeddings": 128000,
            "vision_config": {"depth": 32, "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                "patch_size": 14, "spatial_merge_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]}}"#,
    );
    let encoder = &job.scenario.model.modules[0];
    assert!(encoder.gated && encoder.norm == Norm::Rms);
    assert!(
        job.not_modelled.iter().any(|sentence| sentence.contains("encoder with a window")),
        "{:?}",
        job.not_modelled
    );
}

#[test]
fn non_causal_models_are_rejected() {
    for text in [
        r#"{"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}"#,
        r#"{"model_type": "t5", "d_model": 512, "num_layers": 6, "num_heads": 8, "d_ff": 2048, "vocab_size": 32128}"#,
        r#"{"model_type": "made_up", "is_encoder_decoder": true, "d_model": 512}"#,
        "torchrun pretrain_bert.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16",
        "python x/pretrain_t5.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16",
    ] {
        assert!(error(text).contains("is no causal language model"), "{}", error(text));
    }
}

/// The script specifies a SLURM device, an attention window, an optimizer, and fp8 inside a branch.
#[test]
fn script_parts_are_in_a_list() {
    let job = config(
        "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4 -C a100-80gb\nARGS=(--num-layers 24 --hidden-size 1024)\n\
         if [ $FP8 = 1 ]; then\n  ARGS+=(--fp8-format hybrid)\nfi\n\
         torchrun pretrain_gpt.py ${ARGS[@]} --num-attention-heads 16 --seq-length 2048 --bf16 --window-size 4096,0 \\\n \
         --optimizer sgd --spec my.module layer_spec --global-batch-size 64",
    );
    assert_eq!((job.scenario.cluster.name.as_str(), job.scenario.cluster.devices()), ("A100-80GB", 8));
    assert!(job.not_modelled.iter().any(|sentence| sentence.contains("layer specification")), "{:?}", job.not_modelled);
    assert_eq!(job.scenario.training.optimizer, Optimizer::Sgd);
    let window = Window { tokens: 4097, full_every: 0, chunked: false };
    assert_eq!(job.scenario.model.modules[0].window, Some(window));
    let said = "fp8-format is in a branch (if, case) and is read as if that branch runs.";
    assert!(job.assumed.iter().any(|sentence| sentence == said), "{:?}", job.assumed);
    let plain =
        config("--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --optimizer adam --window-size None");
    assert!(plain.not_modelled.is_empty(), "{:?}", plain.not_modelled);
}
