//! Changes of a YAML file of Megatron-LM.

use super::check;

#[test]
fn changes_have_lines_in_both_sections() {
    check(
        &[include_str!("../megatron.yaml")],
        &[
            ("microbatch 1", &["micro_batch_size: 1"]),
            ("microbatch 4", &["micro_batch_size: 4"]),
            ("tp 1", &["tensor_model_parallel_size: 1"]),
            ("tp 2", &["tensor_model_parallel_size: 2"]),
            ("pp 1", &["pipeline_model_parallel_size: 1"]),
            ("layout", &["micro_batch_size: 1", "tensor_model_parallel_size: 1"]),
            ("cp ring", &["context_parallel_size: 2"]),
            ("cp a2a", &["cp_comm_type: a2a", "context_parallel_size: 2"]),
            ("ep 2", &["expert_model_parallel_size: 2"]),
            ("sp", &["sequence_parallel: true"]),
            ("none", &["recompute_granularity: null", "recompute_method: null", "recompute_num_layers: null"]),
            ("full 8", &["recompute_method: block", "recompute_num_layers: 8"]),
            ("zero 1", &["use_distributed_optimizer: true"]),
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
            ("dp overlap", &["overlap_grad_reduce: true"]),
            ("tp overlap", &["sequence_parallel: true", "tp_comm_overlap: true"]),
            ("bf16 gradients", &["grad_reduce_in_bf16: true"]),
        ],
    );
}
