//! Every change that a format supports, with its settings. The edited files are read again.

mod megatron;
mod megatron_yaml;

use super::*;

const ACCELERATE: &str = include_str!("accelerate.yaml");
const ARGUMENTS: &str = include_str!("arguments.json");
const AXOLOTL: &str = include_str!("axolotl.yaml");
const GPT_NEOX: &str = include_str!("gpt_neox.yaml");
const DEEPSPEED: &str = include_str!("deepspeed.json");
const LLAMA_FACTORY: &str = include_str!("llama_factory.yaml");
const LLM_FOUNDRY: &str = include_str!("llm_foundry.yaml");
const MAXTEXT: &str = include_str!("maxtext.yaml");
const MODEL: &str = include_str!("model.json");
const NANOTRON: &str = include_str!("nanotron.yaml");
const OLMO: &str = include_str!("olmo.yaml");
const PRIMUS_MAXTEXT: &str = include_str!("primus_maxtext.yaml");
const TRAINER: &str = "per_device_train_batch_size: 2\ngradient_checkpointing: false\n";
const VERL: &str = include_str!("verl.sh");

/// Changes of a scenario. `layout` with a value is one that was free.
const CHANGES: [(&str, &str); 35] = [
    ("microbatch 1", r#"[["/layout/microbatch", 1]]"#),
    ("microbatch 4", r#"[["/layout/microbatch", 4]]"#),
    ("tp 1", r#"[["/layout/tensor", 1]]"#),
    ("tp 2", r#"[["/layout/tensor", 2]]"#),
    ("tp 4", r#"[["/layout/tensor", 4]]"#),
    ("pp 1", r#"[["/layout/pipeline", 1]]"#),
    ("pp 2", r#"[["/layout/pipeline", 2]]"#),
    ("vpp 1", r#"[["/layout/chunks", 1]]"#),
    ("vpp 6", r#"[["/layout/chunks", 6]]"#),
    ("interleaved 6", r#"[["/planners", ["interleaved"]], ["/layout/chunks", 6]]"#),
    ("layout", r#"[["/layout", {}]]"#),
    ("cp ring", r#"[["/training/context_parallel", 2], ["/training/context_exchange", "ring"]]"#),
    ("cp a2a", r#"[["/training/context_parallel", 2], ["/training/context_exchange", "all_to_all"]]"#),
    ("ep 2", r#"[["/training/expert_parallel", 2]]"#),
    ("sp", r#"[["/training/sequence_parallel", true]]"#),
    ("none", r#"[["/training/recompute", "none"], ["/training/recompute_layers", null]]"#),
    ("selective", r#"[["/training/recompute", "selective"], ["/training/recompute_layers", null]]"#),
    ("operators", r#"[["/training/recompute", "operators"], ["/training/recompute_layers", null]]"#),
    ("full", r#"[["/training/recompute", "full"], ["/training/recompute_layers", null]]"#),
    ("full 8", r#"[["/training/recompute", "full"], ["/training/recompute_layers", 8]]"#),
    ("zero 0", r#"[["/training/zero", 0]]"#),
    ("zero 1", r#"[["/training/zero", 1]]"#),
    ("zero 2", r#"[["/training/zero", 2]]"#),
    ("zero 3", r#"[["/training/zero", 3]]"#),
    ("hybrid 2", r#"[["/training/shard_degree", 2]]"#),
    ("hybrid 8", r#"[["/training/shard_degree", 8]]"#),
    ("offload states", r#"[["/training/parameter_offload", true], ["/training/zero", 3]]"#),
    ("liger", r#"[["/training/chunked_loss", true], ["/training/execution", "compiled"]]"#),
    ("dp overlap", r#"[["/training/data_overlap", 1.0]]"#),
    ("tp overlap", r#"[["/training/tensor_overlap", 1.0], ["/training/sequence_parallel", true]]"#),
    ("bf16 gradients", r#"[["/training/gradients", "bf16"]]"#),
    ("bf16 moments", r#"[["/training/moments", "bf16"]]"#),
    ("flash", r#"[["/training/attention", "flash"]]"#),
    ("compiled", r#"[["/training/execution", "compiled"]]"#),
    ("offload", r#"[["/training/activation_offload", 0.5]]"#),
];

/// Checks that the listed changes have these settings and all others none. Every edited job is the simulated one.
#[track_caller]
pub(super) fn check(texts: &[&str], expected: &[(&str, &[&str])]) {
    let (_, valid) = valid(texts);
    let mut found = Vec::new();
    for (title, fields) in CHANGES {
        let fields: Vec<(String, Value)> = serde_json::from_str(fields).unwrap();
        let fields: Vec<(&str, Value)> =
            fields.iter().map(|(pointer, value)| (pointer.as_str(), value.clone())).collect();
        let change = change(layout(1, 2, 8, 1), &fields);
        let (settings, files) = edited_files(texts, &change);
        if settings.is_empty() {
            continue;
        }
        found.push((title, settings));
        let files: Vec<(&str, &str)> = files.iter().map(|text| ("", text.as_str())).collect();
        let again = read(&files, HARDWARE).unwrap().scenario;
        let (target, _) = Target::new(valid.scenario(), &change).unwrap();
        assert_eq!(target.differences(&again), Vec::<String>::new(), "{title}");
        assert_eq!(again.workload, valid.scenario().workload, "{title}");
    }
    let found: Vec<(&str, Vec<&str>)> =
        found.iter().map(|(title, settings)| (*title, settings.iter().map(String::as_str).collect())).collect();
    let expected: Vec<(&str, Vec<&str>)> =
        expected.iter().map(|(title, settings)| (*title, settings.to_vec())).collect();
    assert_eq!(found, expected);
}

#[test]
fn nanotron() {
    check(
        &[NANOTRON],
        &[
            ("microbatch 1", &["micro_batch_size: 1", "batch_accumulation_per_replica: 8"]),
            ("microbatch 4", &["micro_batch_size: 4", "batch_accumulation_per_replica: 2"]),
            ("tp 1", &["tp: 1", "dp: 16", "batch_accumulation_per_replica: 2"]),
            ("tp 4", &["tp: 4", "dp: 4", "batch_accumulation_per_replica: 8"]),
            ("pp 2", &["pp: 2", "dp: 4", "batch_accumulation_per_replica: 8"]),
            ("layout", &["micro_batch_size: 1", "pp: 2", "tp: 1", "batch_accumulation_per_replica: 8"]),
            ("cp ring", &["context_parallel_size: 2", "dp: 4", "batch_accumulation_per_replica: 8"]),
            ("ep 2", &["expert_parallel_size: 2"]),
            ("sp", &["tp_mode: REDUCE_SCATTER"]),
            ("full", &["recompute_layer: true"]),
            ("zero 1", &["zero_stage: 1"]),
            ("flash", &["_attn_implementation: flash_attention_2"]),
        ],
    );
}

#[test]
fn gpt_neox() {
    check(
        &[GPT_NEOX],
        &[
            ("microbatch 1", &["train_micro_batch_size_per_gpu: 1", "gradient_accumulation_steps: 8"]),
            ("microbatch 4", &["train_micro_batch_size_per_gpu: 4", "gradient_accumulation_steps: 2"]),
            ("tp 1", &["model_parallel_size: 1", "gradient_accumulation_steps: 2"]),
            ("tp 4", &["model_parallel_size: 4", "gradient_accumulation_steps: 8"]),
            ("pp 2", &["pipe_parallel_size: 2", "gradient_accumulation_steps: 8"]),
            (
                "layout",
                &[
                    "train_micro_batch_size_per_gpu: 1",
                    "pipe_parallel_size: 2",
                    "model_parallel_size: 1",
                    "gradient_accumulation_steps: 8",
                ],
            ),
            ("full", &["checkpoint_activations: true"]),
            ("zero 2", &["stage: 2"]),
            ("zero 3", &["stage: 3"]),
        ],
    );
}

#[test]
fn primus_with_maxtext() {
    check(
        &[PRIMUS_MAXTEXT],
        &[
            ("microbatch 1", &["per_device_batch_size: 1", "gradient_accumulation_steps: 4"]),
            (
                "tp 2",
                &[
                    "ici_tensor_parallelism: 2",
                    "ici_fsdp_parallelism: 4",
                    "per_device_batch_size: 2",
                    "gradient_accumulation_steps: 2",
                ],
            ),
            (
                "tp 4",
                &[
                    "ici_tensor_parallelism: 4",
                    "ici_fsdp_parallelism: 2",
                    "per_device_batch_size: 1",
                    "gradient_accumulation_steps: 4",
                ],
            ),
            (
                "cp ring",
                &[
                    "ici_context_parallelism: 2",
                    "ici_fsdp_parallelism: 4",
                    "per_device_batch_size: 2",
                    "gradient_accumulation_steps: 2",
                ],
            ),
            ("ep 2", &["ici_expert_parallelism: 2", "ici_fsdp_parallelism: 4"]),
            ("none", &["remat_policy: none"]),
            ("operators", &["remat_policy: minimal"]),
            ("hybrid 8", &["dcn_data_parallelism: 2", "dcn_fsdp_parallelism: 1"]),
        ],
    );
}

#[test]
fn maxtext() {
    check(
        &[MAXTEXT],
        &[
            ("microbatch 1", &["per_device_batch_size: 0.5", "gradient_accumulation_steps: 4"]),
            ("tp 4", &["ici_tensor_parallelism: 4", "per_device_batch_size: 1", "gradient_accumulation_steps: 2"]),
            ("cp ring", &["ici_context_parallelism: 2", "per_device_batch_size: 1", "gradient_accumulation_steps: 2"]),
            ("ep 2", &["ici_expert_parallelism: 2"]),
            ("none", &["remat_policy: none"]),
            ("operators", &["remat_policy: minimal"]),
            ("flash", &["attention: cudnn_flash_te"]),
        ],
    );
}

#[test]
fn olmo() {
    check(
        &[OLMO],
        &[
            ("microbatch 1", &["device_train_microbatch_size: 1"]),
            ("microbatch 4", &["device_train_microbatch_size: 4"]),
            ("none", &["activation_checkpointing: null"]),
            ("selective", &["activation_checkpointing: fine_grained"]),
            ("full 8", &["activation_checkpointing: one_in_two"]),
            ("zero 0", &["sharding_strategy: NO_SHARD"]),
            ("zero 3", &["sharding_strategy: FULL_SHARD"]),
            ("bf16 gradients", &["precision: pure"]),
            ("flash", &["flash_attention: true"]),
        ],
    );
}

#[test]
fn llm_foundry() {
    check(
        &[LLM_FOUNDRY],
        &[
            ("microbatch 1", &["device_train_microbatch_size: 1"]),
            ("microbatch 4", &["device_train_microbatch_size: 4"]),
            ("full", &["activation_checkpointing: true"]),
            ("zero 0", &["sharding_strategy: NO_SHARD"]),
            ("zero 2", &["sharding_strategy: SHARD_GRAD_OP"]),
            ("bf16 gradients", &["mixed_precision: PURE"]),
            ("flash", &["attn_impl: flash"]),
        ],
    );
}

#[test]
fn axolotl() {
    check(
        &[AXOLOTL],
        &[
            ("microbatch 1", &["micro_batch_size: 1", "gradient_accumulation_steps: 8"]),
            ("microbatch 4", &["micro_batch_size: 4", "gradient_accumulation_steps: 2"]),
            ("tp 1", &["tensor_parallel_size: 1", "dp_shard_size: 16", "gradient_accumulation_steps: 2"]),
            ("tp 4", &["tensor_parallel_size: 4", "dp_shard_size: 4", "gradient_accumulation_steps: 8"]),
            ("cp ring", &["context_parallel_size: 2", "dp_shard_size: 4", "gradient_accumulation_steps: 8"]),
            ("ep 2", &["expert_parallel_size: 2"]),
            ("none", &["gradient_checkpointing: false"]),
            ("zero 2", &["reshard_after_forward: false"]),
            ("offload states", &["fsdp_offload_params: true"]),
            ("compiled", &["torch_compile: true"]),
        ],
    );
}

#[test]
fn llama_factory_with_deepspeed() {
    check(
        &[LLAMA_FACTORY, DEEPSPEED],
        &[
            ("microbatch 1", &["per_device_train_batch_size: 1", "gradient_accumulation_steps: 8"]),
            ("microbatch 4", &["per_device_train_batch_size: 4", "gradient_accumulation_steps: 2"]),
            ("none", &["disable_gradient_checkpointing: true"]),
            ("zero 0", &["\"stage\": 0", "\"data_types.grad_accum_dtype\": \"bf16\""]),
            ("zero 1", &["\"stage\": 1"]),
            ("zero 3", &["\"stage\": 3", "\"overlap_comm\": false"]),
            (
                "offload states",
                &[
                    "\"zero_optimization.offload_param.device\": \"cpu\"",
                    "\"zero_optimization.offload_optimizer.device\": \"cpu\"",
                    "\"stage\": 3",
                    "\"overlap_comm\": false",
                ],
            ),
            ("liger", &["enable_liger_kernel: true"]),
            ("dp overlap", &["\"overlap_comm\": true"]),
            ("flash", &["flash_attn: fa2"]),
            ("compiled", &["torch_compile: true"]),
        ],
    );
}

#[test]
fn training_arguments() {
    check(
        &[MODEL, ARGUMENTS],
        &[
            ("microbatch 1", &["\"per_device_train_batch_size\": 1", "\"gradient_accumulation_steps\": 8"]),
            ("microbatch 4", &["\"per_device_train_batch_size\": 4", "\"gradient_accumulation_steps\": 2"]),
            ("full", &["\"gradient_checkpointing\": true"]),
            ("zero 0", &["\"fsdp\": \"no_shard auto_wrap\""]),
            ("zero 2", &["\"fsdp\": \"shard_grad_op auto_wrap\""]),
            ("offload states", &["\"fsdp\": \"full_shard auto_wrap offload\""]),
            ("liger", &["\"use_liger_kernel\": true"]),
            ("compiled", &["\"torch_compile\": true"]),
        ],
    );
}

#[test]
fn training_arguments_with_accelerate() {
    check(
        &[MODEL, ACCELERATE, TRAINER],
        &[
            ("microbatch 1", &["per_device_train_batch_size: 1", "gradient_accumulation_steps: 2"]),
            ("full", &["fsdp_activation_checkpointing: true"]),
            ("zero 0", &["fsdp_sharding_strategy: NO_SHARD"]),
            ("zero 2", &["fsdp_sharding_strategy: SHARD_GRAD_OP"]),
            ("hybrid 8", &["fsdp_sharding_strategy: HYBRID_SHARD"]),
            ("offload states", &["fsdp_offload_params: true"]),
            ("liger", &["use_liger_kernel: true"]),
            ("compiled", &["torch_compile: true"]),
        ],
    );
}

#[test]
fn verl() {
    check(
        &[VERL],
        &[
            ("microbatch 1", &["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1"]),
            ("cp a2a", &["actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"]),
            ("none", &["actor_rollout_ref.model.enable_gradient_checkpointing=false"]),
            ("zero 2", &["actor_rollout_ref.actor.fsdp_config.reshard_after_forward=false"]),
            ("hybrid 2", &["actor_rollout_ref.actor.fsdp_config.fsdp_size=2"]),
            ("hybrid 8", &["actor_rollout_ref.actor.fsdp_config.fsdp_size=8"]),
            ("liger", &["actor_rollout_ref.model.use_liger=true"]),
        ],
    );
}

#[test]
fn torchtitan() {
    check(
        &[JOB],
        &[
            ("microbatch 1", &["local_batch_size = 1", "[training] global_batch_size = 32"]),
            ("tp 2", &["tensor_parallel_degree = 2", "[training] global_batch_size = 32"]),
            ("tp 4", &["tensor_parallel_degree = 4", "[training] global_batch_size = 32"]),
            (
                "pp 2",
                &[
                    "[parallelism] pipeline_parallel_degree = 2",
                    "[parallelism] pipeline_parallel_microbatch_size = 2",
                    "[parallelism] fsdp_reshard_after_forward = \"always\"",
                    "local_batch_size = 4",
                ],
            ),
            (
                "layout",
                &[
                    "[parallelism] pipeline_parallel_microbatch_size = 1",
                    "[parallelism] pipeline_parallel_degree = 2",
                    "[parallelism] fsdp_reshard_after_forward = \"always\"",
                    "local_batch_size = 4",
                ],
            ),
            ("cp ring", &["[parallelism] context_parallel_degree = 2", "[training] global_batch_size = 32"]),
            ("ep 2", &["[parallelism] expert_parallel_degree = 2"]),
            ("none", &["mode = \"none\""]),
            ("operators", &["mode = \"selective\"", "[activation_checkpoint] selective_ac_option = \"op\""]),
            ("zero 2", &["[parallelism] fsdp_reshard_after_forward = \"never\""]),
            (
                "hybrid 2",
                &["[parallelism] data_parallel_shard_degree = 2", "[parallelism] data_parallel_replicate_degree = 8"],
            ),
            (
                "hybrid 8",
                &["[parallelism] data_parallel_shard_degree = 8", "[parallelism] data_parallel_replicate_degree = 2"],
            ),
            ("offload states", &["[training] enable_cpu_offload = true"]),
            ("compiled", &["[compile] enable = true"]),
        ],
    );
}

/// torchtitan refuses an interleaved schedule with one stage per rank.
#[test]
fn a_pipeline_of_single_stages_has_no_interleaved_schedule() {
    let key = "tensor_parallel_degree = 1";
    let text = JOB.replace(key, &format!("{key}\npipeline_parallel_schedule = \"Interleaved1F1B\""));
    let (settings, edited) = edited(&text, &change(layout(1, 4, 4, 1), &[("/layout/pipeline", json!(4))]));
    assert!(settings.iter().any(|line| line.contains("pipeline_parallel_schedule = \"1F1B\"")), "{settings:?}");
    assert!(!edited.contains("Interleaved1F1B"), "{edited}");
}
