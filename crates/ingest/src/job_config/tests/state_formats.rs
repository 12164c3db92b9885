//! Tests of the formats of weights, gradients and moments.

use super::*;
use planner::training::{Fp8Recipe, GradientFormat, MasterWeights, MomentFormat};

/// Formats of master weights, moments and gradients.
type Formats = (MasterWeights, MomentFormat, GradientFormat);

const PURE: Formats = (MasterWeights::None, MomentFormat::Bf16, GradientFormat::Bf16);
const MIXED: Formats = (MasterWeights::Fp32, MomentFormat::Fp32, GradientFormat::Fp32);

fn formats(text: &str) -> Formats {
    let training = config(text).scenario.training;
    (training.master_weights, training.moments, training.gradients)
}

#[test]
fn the_precision_aware_optimizer_of_megatron_has_formats() {
    let plain = "x --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2 --bf16 \
                 --global-batch-size 64 --use-distributed-optimizer";
    assert_eq!(formats(plain), MIXED);
    let optimizer = "--use-precision-aware-optimizer --main-params-dtype fp16";
    let (half, fp32) = (MasterWeights::Half, GradientFormat::Fp32);
    for (dtype, moments) in [("bf16", MomentFormat::Bf16), ("fp16", MomentFormat::Bf16), ("fp8", MomentFormat::Fp8)] {
        let job = config(&format!("{plain} {optimizer} --exp-avg-dtype {dtype} --exp-avg-sq-dtype {dtype}"));
        let training = &job.scenario.training;
        assert_eq!((training.master_weights, training.moments, training.gradients), (half, moments, fp32));
        assert_eq!((job.unknown, job.not_modelled), (Vec::new(), Vec::new()), "{dtype}");
    }
    // SGD has a moment in the format; Adafactor has none.
    let bf16 = "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16";
    assert_eq!(formats(&format!("{plain} {bf16} --optimizer sgd")).1, MomentFormat::Bf16);
    assert_eq!(formats(&format!("{plain} {bf16} --optimizer adafactor")).1, MomentFormat::Fp32);
}

#[test]
fn yaml_files_state_pure_bf16() {
    let litgpt = "model_name: Llama-3.2-1B\nout_dir: out\nprecision: bf16-mixed\ndata: TinyLlama\ntrain:\n  \
                  global_batch_size: 512\n  micro_batch_size: 4\n  max_seq_length: 2048\ndevices: 8\nnum_nodes: 1\n";
    assert_eq!(formats(litgpt), MIXED);
    assert_eq!(formats(&litgpt.replace("bf16-mixed", "bf16-true")), PURE);
    let torchtune = "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  _component_: \
                     torchtune.models.llama3.llama3_tokenizer\n  max_seq_len: 8192\nbatch_size: 2\ndtype: bf16\n";
    assert_eq!(formats(torchtune), PURE);
    assert_eq!(formats(&torchtune.replace("bf16", "fp32")), MIXED);
    // 8-bit moments have no other format.
    let eight = format!("{torchtune}optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\n");
    assert_eq!(formats(&eight), (MasterWeights::None, MomentFormat::Fp32, GradientFormat::Bf16));
    let torchtitan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n";
    assert_eq!(formats(torchtitan), MIXED);
    assert_eq!(formats(&format!("{torchtitan}dtype = \"bfloat16\"\n")), PURE);
}

#[test]
fn trainers_update_the_loaded_weights_without_deepspeed() {
    let axolotl = "base_model: meta-llama/Llama-3.1-8B\ndatasets:\n  - path: x\nmicro_batch_size: 1\nsequence_len: 4096\n\
                   gradient_accumulation_steps: 4\nnum_epochs: 1\nlearning_rate: 1e-5\n";
    assert_eq!(formats(&format!("{axolotl}bf16: full\n")), PURE);
    assert_eq!(formats(&format!("{axolotl}bf16: true\n")), MIXED);
    let factory = "stage: sft\nmodel_name_or_path: meta-llama/Llama-3.1-8B\nfinetuning_type: full\ncutoff_len: 4096\n\
                   per_device_train_batch_size: 1\n";
    assert_eq!(formats(&format!("{factory}pure_bf16: true\n")), PURE);
    let command = |more: &str| {
        formats(&format!("swift sft --model Qwen/Qwen2.5-7B --train_type full --max_length 4096 --dataset x {more}"))
    };
    assert_eq!(command("--torch_dtype bfloat16"), PURE);
    assert_eq!(command(""), PURE);
    assert_eq!(command("--torch_dtype float32"), MIXED);
    assert_eq!(command("--train_type lora").0, MasterWeights::Fp32, "adapters are fp32");
    let (sharded, ..) = command("--torch_dtype bfloat16 --deepspeed zero2");
    assert_eq!(sharded, MasterWeights::Fp32, "DeepSpeed has fp32 copies");
}

/// Recipes that differ from the usual one of the framework, and weights in fp8.
#[test]
fn recipes_of_fp8_are_read() {
    let fp8 = |text: &str| {
        let job = config(text);
        assert_eq!(job.unknown, Vec::<String>::new(), "{text}");
        (job.scenario.training.fp8_recipe, job.scenario.training.fp8_weights)
    };
    let megatron = |flags: &str| {
        fp8(&format!(
            "x --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2 --bf16 \
             --global-batch-size 64 {flags}"
        ))
    };
    assert_eq!(megatron("--fp8-format hybrid"), (None, false));
    assert_eq!(megatron("--fp8-format hybrid --fp8-recipe delayed"), (None, false));
    let both = "--fp8-format hybrid --fp8-recipe mxfp8 --fp8-param-gather";
    assert_eq!(megatron(both), (Some(Fp8Recipe::Mxfp8), true));
    assert_eq!(megatron("--fp8-recipe blockwise --fp8-param-gather"), (None, false), "without fp8");
    let torchtitan = |converter: &str, section: &str| {
        fp8(&format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = [\"{converter}\"]\n[training]\nlocal_batch_size = 1\n\
             seq_len = 8192\n{section}"
        ))
    };
    let gathered = "[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n";
    assert_eq!(torchtitan("float8", gathered), (None, true), "scales per tensor are usual");
    let switch = "[float8]\nenable_fsdp_float8_all_gather = \"\"\n";
    assert_eq!(torchtitan("float8", switch), (None, true), "a switch without a value");
    assert_eq!(torchtitan("quantize.grouped_mm.float8", gathered), (None, false), "experts only");
    let rowwise = "[float8]\nrecipe_name = \"rowwise\"\nenable_fsdp_float8_all_gather = true\n";
    assert_eq!(torchtitan("float8", rowwise), (Some(Fp8Recipe::Rowwise), false));
    assert_eq!(torchtitan("mx", ""), (Some(Fp8Recipe::Mxfp8), false));
}

/// The names of recipes of Megatron-Bridge include weights in fp8.
#[test]
fn recipes_of_megatron_bridge_store_weights_in_fp8() {
    let bridge = |precision: &str| {
        let training = config(&format!(
            "model:\n  seq_length: 8192\n  num_layers: 8\n  hidden_size: 1024\n  num_attention_heads: 16\n  \
             tensor_model_parallel_size: 4\n{precision}\ntrain:\n  global_batch_size: 128\n  micro_batch_size: 1\n"
        ))
        .scenario
        .training;
        (training.precision, training.fp8_recipe, training.fp8_weights)
    };
    let current = bridge("mixed_precision: bf16_with_fp8_current_scaling_mixed");
    assert_eq!(current, (Precision::Fp8, Some(Fp8Recipe::Tensorwise), true));
    assert_eq!(bridge("mixed_precision: bf16_mixed"), (Precision::Bf16, None, false));
    let class = bridge("mixed_precision:\n  bf16: true\n  fp8: hybrid");
    assert_eq!(class, (Precision::Fp8, Some(Fp8Recipe::Tensorwise), false));
}
