//! Changes of command lines. The edited commands are read again.

use super::formats::check;

const MODEL: &str = include_str!("model.json");

#[test]
fn trainer() {
    check(
        &[
            MODEL,
            "torchrun run_clm.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 --block_size 4096 \\\n  \
             --gradient_checkpointing --fsdp \"full_shard auto_wrap\" --output_dir x\n",
        ],
        &[
            ("microbatch 1", &["--per_device_train_batch_size 1", "--gradient_accumulation_steps 8"]),
            ("microbatch 4", &["--per_device_train_batch_size 4", "--gradient_accumulation_steps 2"]),
            ("none", &["--gradient_checkpointing False"]),
            ("zero 0", &["--fsdp no_shard"]),
            ("zero 2", &["--fsdp shard_grad_op"]),
            ("offload states", &["--fsdp full_shard offload"]),
            ("liger", &["--use_liger_kernel True"]),
            ("compiled", &["--torch_compile True"]),
        ],
    );
}

#[test]
fn trl_with_accelerate() {
    check(
        &[
            MODEL,
            "accelerate launch --num_processes 16 --use_fsdp --fsdp_sharding_strategy FULL_SHARD -m trl.scripts.sft \\\n  \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --max_length 4096 --output_dir x\n",
        ],
        &[
            ("microbatch 1", &["--per_device_train_batch_size 1", "--gradient_accumulation_steps 8"]),
            ("microbatch 4", &["--per_device_train_batch_size 4", "--gradient_accumulation_steps 2"]),
            ("none", &["--gradient_checkpointing False"]),
            ("zero 0", &["--fsdp_sharding_strategy NO_SHARD"]),
            ("zero 2", &["--fsdp_sharding_strategy SHARD_GRAD_OP"]),
            ("hybrid 8", &["--fsdp_sharding_strategy HYBRID_SHARD"]),
            ("liger", &["--use_liger_kernel True"]),
            ("compiled", &["--torch_compile True"]),
        ],
    );
}

#[test]
fn llama_factory() {
    check(
        &[
            MODEL,
            "llamafactory-cli train --stage sft --finetuning_type full --cutoff_len 4096 --bf16 True \\\n  \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --output_dir x\n",
        ],
        &[
            ("microbatch 1", &["--per_device_train_batch_size 1", "--gradient_accumulation_steps 8"]),
            ("microbatch 4", &["--per_device_train_batch_size 4", "--gradient_accumulation_steps 2"]),
            ("none", &["--disable_gradient_checkpointing True"]),
            ("liger", &["--enable_liger_kernel True"]),
            ("compiled", &["--torch_compile True"]),
        ],
    );
}

/// Values of a command replace those of the file. Both change.
#[test]
fn llama_factory_with_overrides() {
    let yaml = "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: full\ncutoff_len: 2048\nbf16: true\n\
                per_device_train_batch_size: 1\ngradient_accumulation_steps: 4\n";
    check(
        &[yaml, "llamafactory-cli train x.yaml per_device_train_batch_size=2\n"],
        &[
            ("microbatch 1", &["per_device_train_batch_size=1", "gradient_accumulation_steps: 8"]),
            (
                "microbatch 4",
                &["per_device_train_batch_size: 4", "per_device_train_batch_size=4", "gradient_accumulation_steps: 2"],
            ),
            ("none", &["disable_gradient_checkpointing: true"]),
            ("liger", &["enable_liger_kernel: true"]),
            ("compiled", &["torch_compile: true"]),
        ],
    );
}

#[test]
fn swift() {
    check(
        &[
            MODEL,
            "NPROC_PER_NODE=8 swift sft --train_type full --torch_dtype bfloat16 --deepspeed zero3 --max_length 4096 \\\n  \
             --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --gradient_checkpointing true\n",
        ],
        &[
            ("microbatch 1", &["--per_device_train_batch_size 1", "--gradient_accumulation_steps 8"]),
            ("microbatch 4", &["--per_device_train_batch_size 4", "--gradient_accumulation_steps 2"]),
            ("none", &["--gradient_checkpointing False"]),
            ("liger", &["--use_liger_kernel True"]),
            ("compiled", &["--torch_compile True"]),
        ],
    );
}

#[test]
fn megatron_of_swift() {
    check(
        &[
            MODEL,
            "megatron sft --tensor_model_parallel_size 2 --pipeline_model_parallel_size 2 --max_length 4096 \\\n  \
             --micro_batch_size 2 --global_batch_size 128 --sequence_parallel true\n",
        ],
        &[
            ("microbatch 1", &["--micro_batch_size 1"]),
            ("microbatch 4", &["--micro_batch_size 4"]),
            ("tp 1", &["--tensor_model_parallel_size 1"]),
            ("tp 4", &["--tensor_model_parallel_size 4"]),
            ("pp 1", &["--pipeline_model_parallel_size 1"]),
            ("layout", &["--micro_batch_size 1", "--tensor_model_parallel_size 1"]),
            ("cp ring", &["--context_parallel_size 2"]),
            ("ep 2", &["--expert_model_parallel_size 2"]),
            ("full", &["--recompute_granularity full", "--recompute_method uniform", "--recompute_num_layers 1"]),
            ("full 8", &["--recompute_granularity full", "--recompute_method block", "--recompute_num_layers 8"]),
            ("hybrid 2", &["--num_distributed_optimizer_instances 2"]),
            ("dp overlap", &["--overlap_grad_reduce True", "--overlap_param_gather True"]),
            ("tp overlap", &["--tp_comm_overlap True"]),
            (
                "bf16 moments",
                &["--use_precision_aware_optimizer True", "--exp_avg_dtype bf16", "--exp_avg_sq_dtype bf16"],
            ),
        ],
    );
}

#[test]
fn open_rlhf() {
    check(
        &[
            MODEL,
            "deepspeed --module openrlhf.cli.train_sft --pretrain x --max_len 4096 --train_batch_size 128 \\\n  \
             --micro_train_batch_size 2 --zero_stage 2 --bf16 --flash_attn --packing_samples --gradient_checkpointing\n",
        ],
        &[
            ("microbatch 1", &["--micro_train_batch_size 1"]),
            ("microbatch 4", &["--micro_train_batch_size 4"]),
            ("cp ring", &["--ring_attn_size 2"]),
            ("none", &["--gradient_checkpointing"]),
            ("zero 0", &["--zero_stage 0", "--grad_accum_dtype bf16"]),
            ("zero 1", &["--zero_stage 1"]),
            ("zero 3", &["--zero_stage 3"]),
            ("liger", &["--use_liger_kernel"]),
            ("dp overlap", &["--overlap_comm"]),
        ],
    );
}

#[test]
fn litgpt() {
    check(
        &[
            MODEL,
            "checkpoint_dir: x\nprecision: bf16-true\ndevices: 8\nnum_nodes: 2\ntrain:\n  global_batch_size: 128\n  \
             micro_batch_size: 2\n  max_seq_length: 2048\n",
        ],
        &[("microbatch 1", &["micro_batch_size: 1"]), ("microbatch 4", &["micro_batch_size: 4"])],
    );
}

#[test]
fn torchtune() {
    check(
        &[
            MODEL,
            "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  max_seq_len: 4096\nbatch_size: 2\n\
             gradient_accumulation_steps: 4\nenable_activation_checkpointing: True\ndtype: bf16\n",
        ],
        &[
            ("microbatch 1", &["batch_size: 1", "gradient_accumulation_steps: 8"]),
            ("microbatch 4", &["batch_size: 4", "gradient_accumulation_steps: 2"]),
            ("none", &["enable_activation_checkpointing: false"]),
            ("zero 2", &["fsdp_reshard_after_forward: false"]),
            ("hybrid 2", &["data_parallel_shard_dim: 2", "data_parallel_replicate_dim: 8"]),
            ("hybrid 8", &["data_parallel_shard_dim: 8", "data_parallel_replicate_dim: 2"]),
            ("offload states", &["fsdp_cpu_offload: true"]),
            ("compiled", &["compile: true"]),
        ],
    );
}

#[test]
fn olmo_core() {
    check(
        &[
            r#"{"model": {"d_model": 2048, "vocab_size": 32000, "n_layers": 24, "block": {"attention": {"n_heads": 16}, "feed_forward":
            {"hidden_size": 5632}}}, "dataset": {"sequence_length": 2048}, "data_loader": {"global_batch_size": 262144},
            "train_module": {"rank_microbatch_size": 4096, "dp_config": {"name": "fsdp", "param_dtype": "bfloat16"}}}"#,
        ],
        &[
            ("microbatch 1", &["\"rank_microbatch_size\": 2048"]),
            ("microbatch 4", &["\"rank_microbatch_size\": 8192"]),
            ("compiled", &["\"compile_model\": true"]),
        ],
    );
}

#[test]
fn levanter() {
    check(
        &[
            "model:\n  type: llama\n  seq_len: 2048\n  num_layers: 24\n  hidden_dim: 2048\n  intermediate_dim: 5632\n  num_heads: 16\n  num_kv_heads: 16\n\
           trainer:\n  mp: p=f32,c=bfloat16\n  train_batch_size: 128\n  per_device_parallelism: 2\n",
        ],
        &[
            ("microbatch 1", &["per_device_parallelism: 1"]),
            ("microbatch 4", &["per_device_parallelism: 4"]),
            ("none", &["gradient_checkpointing: false"]),
        ],
    );
}
