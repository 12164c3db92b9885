//! Arguments of OpenRLHF.

use planner::scenario::Scenario;
use planner::training::{AttentionKernel, ContextExchange, GradientFormat, Recompute};

use super::{Job, Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, workload, .. } = &target.scenario;
    let is_ring = training.context_exchange == ContextExchange::Ring || training.context_parallel == 1;
    match field {
        "/layout/microbatch" => Some(vec![Setting::set(&["micro_train_batch_size"], layout.microbatch?)]),
        "/layout/tensor" => Some(vec![Setting::if_stated(&["ds_tensor_parallel_size"], layout.tensor?)]),
        GLOBAL_BATCH => Some(vec![Setting::set(&["train_batch_size"], workload.global_batch)]),
        REPLICAS => Some(Vec::new()),
        // Ring attention needs packed sequences.
        "/training/context_parallel" | "/training/context_exchange" if is_ring && job.states(&["packing_samples"]) => {
            Some(vec![Setting::set(&["ring_attn_size"], training.context_parallel)])
        }
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            match training.recompute {
                Recompute::None => Some(vec![Setting::if_stated(&["gradient_checkpointing"], false)]),
                Recompute::Full => Some(vec![Setting::set(&["gradient_checkpointing"], true)]),
                Recompute::Selective | Recompute::Operators => None,
            }
        }
        "/training/zero" | "/training/distributed_optimizer" => {
            Some(vec![Setting::set(&["zero_stage"], training.zero_stage())])
        }
        "/training/data_overlap" => Some(if training.data_overlap > 0.0 {
            vec![Setting::set(&["overlap_comm"], true)]
        } else {
            vec![Setting::if_stated(&["overlap_comm"], false)]
        }),
        "/training/gradients" => {
            let format = if training.gradients == GradientFormat::Bf16 { "bf16" } else { "fp32" };
            Some(vec![Setting::set(&["grad_accum_dtype"], format)])
        }
        "/training/optimizer_offload" if training.optimizer_offload >= 1.0 => {
            Some(vec![Setting::set(&["adam_offload"], true)])
        }
        "/training/optimizer_offload" if training.optimizer_offload <= 0.0 => {
            Some(vec![Setting::if_stated(&["adam_offload"], false)])
        }
        // Liger-Kernel has fused kernels and a loss in chunks.
        "/training/chunked_loss" if training.chunked_loss => Some(vec![Setting::set(&["use_liger_kernel"], true)]),
        "/training/execution" if training.chunked_loss => Some(Vec::new()),
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            Some(vec![Setting::set(&["flash_attn"], true)])
        }
        _ => None,
    }
}
