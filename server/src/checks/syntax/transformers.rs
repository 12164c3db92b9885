//! Keys of Hugging Face `TrainingArguments`, LLaMA-Factory and axolotl, and of the files of DeepSpeed and accelerate.

mod offload;
mod sharding;

use api::job_config::ConfigFormat;
use planner::scenario::Scenario;
use planner::training::{AttentionKernel, ContextExchange, Execution, GradientFormat, Recompute};
use serde_json::Value;

use super::{Job, Setting, Target};
use crate::checks::expected::{GLOBAL_BATCH, REPLICAS};

const MICROBATCH: [&str; 3] =
    ["per_device_train_batch_size", "micro_batch_size", "deepspeed.train_micro_batch_size_per_gpu"];
const ACCUMULATION: [&str; 4] = [
    "gradient_accumulation_steps",
    "deepspeed.gradient_accumulation_steps",
    "accelerate.gradient_accumulation_steps",
    "accelerate.deepspeed_config.gradient_accumulation_steps",
];
const TENSOR: [&str; 5] = [
    "tensor_parallel_size",
    "tensor_model_parallel_size",
    "tp_size",
    "accelerate.parallelism_config.parallelism_config_tp_size",
    "deepspeed.tensor_parallel.autotp_size",
];
const PIPELINE: [&str; 3] = ["pipeline_model_parallel_size", "pipeline_parallel_size", "deepspeed.pipeline.stages"];
const CONTEXT: [&str; 4] = [
    "context_parallel_size",
    "sequence_parallel_degree",
    "cp_size",
    "accelerate.parallelism_config.parallelism_config_cp_size",
];
const ULYSSES: [&str; 3] = [
    "sequence_parallel_size",
    "accelerate.parallelism_config.parallelism_config_sp_size",
    "deepspeed.sequence_parallel_size",
];
const EXPERT: [&str; 3] = ["expert_parallel_size", "expert_model_parallel_size", "ep_size"];
const SHARDED: [&str; 2] = ["dp_shard_size", "accelerate.parallelism_config.parallelism_config_dp_shard_size"];
const REPLICATED: [&str; 2] =
    ["dp_replicate_size", "accelerate.parallelism_config.parallelism_config_dp_replicate_size"];
const CHECKPOINTING: [&str; 2] = ["gradient_checkpointing", "enable_gradient_checkpointing"];
const FSDP_CHECKPOINTING: [&str; 3] = [
    "accelerate.fsdp_config.fsdp_activation_checkpointing",
    "fsdp_config.fsdp_activation_checkpointing",
    "fsdp_config.activation_checkpointing",
];
const DEEPSPEED_CHECKPOINTING: [&str; 3] = [
    "deepspeed.activation_checkpointing.partition_activations",
    "deepspeed.activation_checkpointing.cpu_checkpointing",
    "deepspeed.activation_checkpointing.contiguous_memory_optimization",
];

pub(super) fn settings(job: &Job<'_>, target: &Target, field: &str) -> Option<Vec<Setting>> {
    let Scenario { layout, training, .. } = &target.scenario;
    let is_axolotl = job.format == ConfigFormat::Axolotl;
    // The other trainers have such a degree only if a file states it.
    let degree = |keys: &[&str], value: u32| {
        Some(vec![if is_axolotl { Setting::set(keys, value) } else { Setting::if_stated(keys, value) }])
    };
    match field {
        "/layout/microbatch" => {
            let keys = if is_axolotl { &MICROBATCH[1..] } else { &MICROBATCH };
            Some(vec![Setting::set(keys, layout.microbatch?)])
        }
        GLOBAL_BATCH => Some(vec![Setting::set(&ACCUMULATION, target.accumulation()?)]),
        REPLICAS => {
            let replicated = REPLICATED.iter().find_map(|key| job.value(key)?.parse().ok()).unwrap_or(1_u32);
            // axolotl divides the experts over devices that the sharding degree does not count.
            let expert = if is_axolotl { training.expert_parallel } else { 1 };
            let others = replicated.checked_mul(expert)?;
            let is_whole = others > 0 && target.replicas().is_multiple_of(others);
            is_whole.then(|| vec![Setting::if_stated(&SHARDED, target.replicas() / others)])
        }
        "/layout/tensor" => degree(&TENSOR, layout.tensor?),
        "/layout/pipeline" => Some(vec![Setting::if_stated(&PIPELINE, layout.pipeline?)]),
        "/layout/chunks" => {
            Some(vec![Setting::if_stated(&["virtual_pipeline_model_parallel_size"], layout.chunks.unwrap_or(1))])
        }
        "/training/context_parallel" | "/training/context_exchange" => {
            let size = training.context_parallel;
            let is_ulysses = training.context_exchange == ContextExchange::AllToAll;
            let mode = Setting::if_stated(&["cp_mode"], if is_ulysses { "ulysses" } else { "ring" });
            Some(if is_ulysses && job.states(&ULYSSES) {
                vec![mode, Setting::if_stated(&ULYSSES, size), Setting::if_stated(&CONTEXT, 1)]
            } else {
                [vec![mode, Setting::if_stated(&ULYSSES, 1)], degree(&CONTEXT, size)?].concat()
            })
        }
        "/training/expert_parallel" => degree(&EXPERT, training.expert_parallel),
        "/training/sequence_parallel" => {
            Some(vec![Setting::if_stated(&["sequence_parallel"], training.sequence_parallel)])
        }
        "/training/recompute" | "/training/recompute_layers" if training.recompute_layers.is_none() => {
            Some(recompute(job, training.recompute))
        }
        "/training/zero" | "/training/distributed_optimizer" => sharding::settings(job, training.zero_stage()),
        "/training/shard_degree" => sharding::hybrid(job, target),
        "/training/unsharded_gradients" if !training.unsharded_gradients => sharding::gradients(job),
        // Liger-Kernel; axolotl needs a plugin.
        "/training/chunked_loss" if training.chunked_loss => match job.format {
            ConfigFormat::LlamaFactory => Some(vec![Setting::set(&["enable_liger_kernel"], true)]),
            ConfigFormat::TrainingArguments | ConfigFormat::Accelerate | ConfigFormat::Trl | ConfigFormat::Swift => {
                Some(vec![Setting::set(&["use_liger_kernel"], true)])
            }
            _ => None,
        },
        "/training/optimizer_offload" => offload::optimizer(job, training.optimizer_offload),
        "/training/parameter_offload" => offload::parameters(job, training.parameter_offload),
        "/training/data_overlap" => {
            let is_overlapped = training.data_overlap > 0.0;
            Some(vec![Setting::set(&["deepspeed.zero_optimization.overlap_comm"], is_overlapped)])
        }
        "/training/gradients" => {
            let format = if training.gradients == GradientFormat::Bf16 { "bf16" } else { "fp32" };
            let key = ["deepspeed.data_types.grad_accum_dtype"];
            let is_file = job.has_section("deepspeed.");
            Some(vec![if is_file { Setting::set(&key, format) } else { Setting::if_stated(&key, format) }])
        }
        "/training/attention" if matches!(training.attention, AttentionKernel::Flash | AttentionKernel::Flash2) => {
            Some(vec![
                Setting::if_stated(&["attn_implementation", "_attn_implementation"], "flash_attention_2"),
                Setting::if_stated(&["flash_attn"], "fa2"),
                Setting::if_stated(&["attn_impl"], "flash_attn"),
                Setting::if_stated(&["eager_attention"], false),
            ])
        }
        // TrainingArguments have no such setting, and a script need not have the argument.
        "/training/attention" if matches!(job.format, ConfigFormat::TrainingArguments | ConfigFormat::Accelerate) => {
            let name = match training.attention {
                AttentionKernel::Flash3 => "flash_attention_3",
                _ => return None,
            };
            Some(vec![Setting::if_stated(&["attn_implementation"], name)])
        }
        "/training/attention" if training.attention == AttentionKernel::Flash3 => Some(vec![match job.format {
            ConfigFormat::Swift => Setting::set(&["attn_impl"], "flash_attention_3"),
            ConfigFormat::LlamaFactory => Setting::set(&["flash_attn"], "fa3"),
            // axolotl refuses both names.
            _ if job.states(&["flash_attention"]) => return None,
            _ => Setting::set(&["attn_implementation", "_attn_implementation"], "flash_attention_3"),
        }]),
        // Liger-Kernel has fused kernels and a loss in chunks.
        "/training/execution" if training.chunked_loss && job.format != ConfigFormat::Axolotl => Some(Vec::new()),
        "/training/execution" if training.execution == Some(Execution::Compiled) => {
            Some(vec![Setting::set(&["torch_compile"], true)])
        }
        _ => None,
    }
}

/// Returns the settings of layers that Megatron-LM recomputes: it needs a method for whole layers, and refuses a number of
/// layers for others.
fn megatron_recompute(granularity: Value) -> Vec<Setting> {
    let is_full = granularity == "full";
    let value = |name: &str, value: Value| {
        if is_full { Setting::set(&[name], value) } else { Setting::if_stated(&[name], Value::Null) }
    };
    vec![
        Setting::if_stated(&["recompute_granularity"], granularity),
        value("recompute_method", "uniform".into()),
        value("recompute_num_layers", 1.into()),
    ]
}

fn recompute(job: &Job<'_>, recompute: Recompute) -> Vec<Setting> {
    let granularity = ["recompute_granularity"];
    let off = |keys: &[&str]| Setting::if_stated(keys, false);
    let is_llama_factory = job.format == ConfigFormat::LlamaFactory;
    let opt_out = ["disable_gradient_checkpointing"];
    match recompute {
        Recompute::Selective | Recompute::Operators => megatron_recompute("selective".into()),
        Recompute::Full if job.states(&granularity) => megatron_recompute("full".into()),
        // Recomputation is the default of LLaMA-Factory.
        Recompute::Full if is_llama_factory => vec![Setting::if_stated(&CHECKPOINTING, true), off(&opt_out)],
        // The trainer refuses both.
        Recompute::Full if job.states(&FSDP_CHECKPOINTING) => {
            vec![Setting::if_stated(&FSDP_CHECKPOINTING, true), off(&CHECKPOINTING)]
        }
        Recompute::Full => vec![Setting::set(&[CHECKPOINTING[0], CHECKPOINTING[1], FSDP_CHECKPOINTING[0]], true)],
        Recompute::None => {
            let mut settings = megatron_recompute(Value::Null);
            settings.extend([off(&CHECKPOINTING), off(&FSDP_CHECKPOINTING), off(&DEEPSPEED_CHECKPOINTING)]);
            if is_llama_factory && !job.states(&CHECKPOINTING) {
                settings.push(Setting::set(&opt_out, true));
            }
            // Recomputation is the default of these programs too.
            if matches!(job.format, ConfigFormat::Trl | ConfigFormat::Swift) {
                settings.push(Setting::set(&CHECKPOINTING[..1], false));
            }
            settings
        }
    }
}
