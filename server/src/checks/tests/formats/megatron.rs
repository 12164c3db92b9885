//! Formats whose settings are arguments of Megatron-LM under their own or other names.

use super::*;

const BRIDGE: &str = include_str!("../bridge.yaml");
const NEMO: &str = include_str!("../nemo.yaml");
const PRIMUS: &str = include_str!("../primus.yaml");
const VERL_MEGATRON: &str = include_str!("../verl.yaml");

#[test]
fn nemo() {
    check(
        &[NEMO],
        &[
            ("microbatch 1", &["micro_batch_size: 1"]),
            ("microbatch 4", &["micro_batch_size: 4"]),
            ("tp 1", &["tensor_model_parallel_size: 1"]),
            ("tp 2", &["tensor_model_parallel_size: 2"]),
            ("vpp 1", &["virtual_pipeline_model_parallel_size: null"]),
            ("vpp 6", &["virtual_pipeline_model_parallel_size: 6"]),
            ("interleaved 6", &["virtual_pipeline_model_parallel_size: 6"]),
            (
                "layout",
                &["micro_batch_size: 1", "tensor_model_parallel_size: 1", "virtual_pipeline_model_parallel_size: null"],
            ),
            ("cp ring", &["context_parallel_size: 2"]),
            ("cp a2a", &["cp_comm_type: a2a", "context_parallel_size: 2"]),
            ("ep 2", &["expert_model_parallel_size: 2"]),
            ("sp", &["sequence_parallel: true"]),
            (
                "none",
                &[
                    "activations_checkpoint_granularity: null",
                    "activations_checkpoint_method: null",
                    "activations_checkpoint_num_layers: null",
                ],
            ),
            ("full 8", &["activations_checkpoint_method: block", "activations_checkpoint_num_layers: 8"]),
            ("zero 1", &["name: distributed_fused_adam"]),
            ("tp overlap", &["sequence_parallel: true", "ub_tp_comm_overlap: true"]),
        ],
    );
}

#[test]
fn megatron_bridge() {
    check(
        &[BRIDGE],
        &[
            ("microbatch 1", &["micro_batch_size: 1"]),
            ("microbatch 4", &["micro_batch_size: 4"]),
            ("tp 1", &["tensor_model_parallel_size: 1"]),
            ("tp 4", &["tensor_model_parallel_size: 4"]),
            ("pp 2", &["pipeline_model_parallel_size: 2"]),
            ("layout", &["micro_batch_size: 1", "pipeline_model_parallel_size: 2", "tensor_model_parallel_size: 1"]),
            ("cp ring", &["context_parallel_size: 2"]),
            ("cp a2a", &["cp_comm_type: a2a", "context_parallel_size: 2"]),
            ("ep 2", &["expert_model_parallel_size: 2"]),
            ("sp", &["sequence_parallel: true"]),
            ("full", &["recompute_granularity: full", "recompute_method: uniform", "recompute_num_layers: 1"]),
            ("full 8", &["recompute_granularity: full", "recompute_method: block", "recompute_num_layers: 8"]),
            ("zero 1", &["use_distributed_optimizer: true", "overlap_param_gather: true"]),
            (
                "zero 2",
                &[
                    "dist.use_megatron_fsdp: true",
                    "data_parallel_sharding_strategy: optim_grads",
                    "checkpoint.ckpt_format: fsdp_dtensor",
                    "overlap_param_gather: true",
                ],
            ),
            (
                "zero 3",
                &[
                    "dist.use_megatron_fsdp: true",
                    "data_parallel_sharding_strategy: optim_grads_params",
                    "checkpoint.ckpt_format: fsdp_dtensor",
                    "overlap_param_gather: true",
                ],
            ),
            ("tp overlap", &["sequence_parallel: true", "comm_overlap.tp_comm_overlap: true"]),
            ("bf16 gradients", &["grad_reduce_in_fp32: false"]),
        ],
    );
}

#[test]
fn primus_with_megatron() {
    check(
        &[PRIMUS],
        &[
            ("microbatch 1", &["micro_batch_size: 1"]),
            ("microbatch 4", &["micro_batch_size: 4"]),
            ("tp 2", &["tensor_model_parallel_size: 2"]),
            ("tp 4", &["tensor_model_parallel_size: 4"]),
            ("pp 1", &["pipeline_model_parallel_size: 1"]),
            ("layout", &["micro_batch_size: 1"]),
            ("cp ring", &["context_parallel_size: 2"]),
            ("cp a2a", &["cp_comm_type: a2a", "context_parallel_size: 2"]),
            ("ep 2", &["expert_model_parallel_size: 2"]),
            ("none", &["recompute_granularity: null", "recompute_method: null", "recompute_num_layers: null"]),
            ("full", &["recompute_method: uniform", "recompute_num_layers: 1"]),
            ("full 8", &["recompute_num_layers: 8"]),
            (
                "zero 2",
                &[
                    "use_megatron_fsdp: true",
                    "data_parallel_sharding_strategy: optim_grads",
                    "ckpt_format: fsdp_dtensor",
                ],
            ),
            (
                "zero 3",
                &[
                    "use_megatron_fsdp: true",
                    "data_parallel_sharding_strategy: optim_grads_params",
                    "ckpt_format: fsdp_dtensor",
                ],
            ),
            ("hybrid 2", &["num_distributed_optimizer_instances: 4"]),
            ("dp overlap", &["overlap_grad_reduce: true", "overlap_param_gather: true"]),
            ("bf16 gradients", &["grad_reduce_in_bf16: true"]),
            ("bf16 moments", &["use_precision_aware_optimizer: true", "exp_avg_dtype: bf16", "exp_avg_sq_dtype: bf16"]),
        ],
    );
}

#[test]
fn verl_with_megatron() {
    check(
        &[VERL_MEGATRON],
        &[
            ("microbatch 1", &["ppo_micro_batch_size_per_gpu: 1"]),
            ("tp 1", &["tensor_model_parallel_size: 1"]),
            ("tp 4", &["tensor_model_parallel_size: 4"]),
            ("pp 1", &["pipeline_model_parallel_size: 1"]),
            ("vpp 6", &["virtual_pipeline_model_parallel_size: 6"]),
            ("interleaved 6", &["virtual_pipeline_model_parallel_size: 6"]),
            ("layout", &["ppo_micro_batch_size_per_gpu: 1", "tensor_model_parallel_size: 1"]),
            ("cp ring", &["context_parallel_size: 2"]),
            ("ep 2", &["expert_model_parallel_size: 2"]),
            ("full", &["recompute_granularity: full", "recompute_method: uniform", "recompute_num_layers: 1"]),
        ],
    );
}

#[test]
fn megatron() {
    check(
        &[SCRIPT],
        &[
            ("microbatch 4", &["--micro-batch-size 4"]),
            ("tp 1", &["TP=1"]),
            ("tp 2", &["TP=2"]),
            ("pp 1", &["--pipeline-model-parallel-size 1"]),
            ("layout", &["TP=1"]),
            ("cp ring", &["--context-parallel-size 2"]),
            ("cp a2a", &["--cp-comm-type a2a", "--context-parallel-size 2"]),
            ("sp", &["--sequence-parallel"]),
            ("none", &["--recompute-activations"]),
            (
                "full",
                &[
                    "--recompute-activations",
                    "--recompute-granularity full",
                    "--recompute-method uniform",
                    "--recompute-num-layers 1",
                ],
            ),
            (
                "full 8",
                &[
                    "--recompute-activations",
                    "--recompute-granularity full",
                    "--recompute-method block",
                    "--recompute-num-layers 8",
                ],
            ),
            ("zero 1", &["--use-distributed-optimizer"]),
            (
                "zero 2",
                &["--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads", "--ckpt-format fsdp_dtensor"],
            ),
            (
                "zero 3",
                &[
                    "--use-megatron-fsdp",
                    "--data-parallel-sharding-strategy optim_grads_params",
                    "--ckpt-format fsdp_dtensor",
                ],
            ),
            ("dp overlap", &["--overlap-grad-reduce"]),
            ("tp overlap", &["--sequence-parallel", "--tp-comm-overlap"]),
            ("bf16 gradients", &["--grad-reduce-in-bf16"]),
        ],
    );
}
