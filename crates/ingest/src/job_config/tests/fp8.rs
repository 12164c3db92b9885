//! Tests of fp8 of torchtune, verl and the LoRA benchmark of MLPerf.

use planner::training::Fp8Recipe;

use super::*;

const TUNE: &str = "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  max_seq_len: 8192\n\
                    batch_size: 2\ngradient_accumulation_steps: 1\nenable_activation_checkpointing: True\n\
                    tensor_parallel_dim: 2\n";

/// torchtune gathers weights in fp8 only without a named recipe.
#[test]
fn fp8_of_torchtune_has_a_recipe() {
    let of = |lines: &str| {
        let job = config(&format!("{TUNE}dtype: bf16\n{lines}"));
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
        let training = &job.scenario.training;
        (training.precision, training.fp8_recipe, training.fp8_weights)
    };
    let on = "enable_fp8_training: true\n";
    // Scales per tensor are usual with FSDP.
    assert_eq!(of(on), (Precision::Fp8, None, true));
    assert_eq!(of(&format!("{on}fp8_recipe_name: rowwise\n")), (Precision::Fp8, Some(Fp8Recipe::Rowwise), false));
    assert_eq!(of("fp8_recipe_name: rowwise\n"), (Precision::Bf16, None, false));
}

/// The actor of verl with Megatron-Core has fields of its fp8.
#[test]
fn verl_overrides_state_fp8_of_megatron() {
    let section = "+actor_rollout_ref.actor.megatron.override_transformer_config";
    let job = |fields: &str| {
        config(&format!(
            "python3 -m verl.trainer.main_ppo data.train_batch_size=128 actor_rollout_ref.model.path=Qwen/Qwen3-8B \
             actor_rollout_ref.actor.strategy=megatron actor_rollout_ref.actor.ppo_mini_batch_size=32 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.n_gpus_per_node=8 trainer.nnodes=1 {fields}\n"
        ))
    };
    let of = |job: &JobConfig| {
        let training = &job.scenario.training;
        (training.precision, training.fp8_recipe, job.unknown.clone())
    };
    let hybrid = job(&format!("{section}.fp8=hybrid {section}.fp8_recipe=blockwise"));
    assert_eq!(of(&hybrid), (Precision::Fp8, Some(Fp8Recipe::Blockwise), Vec::new()));
    assert_eq!(of(&job(&format!("{section}.fp8=False"))), (Precision::Bf16, None, Vec::new()));
}

/// The LoRA benchmark on eight B200 has 129 GiB of weights in bf16, and 14 f bytes per token of inputs of SwiGLU.
#[test]
fn variables_of_the_adapter_benchmark_state_fp8_storage() {
    let of = |lines: &str| {
        let job =
            config(&format!("DGXNNODES=1\nDGXNGPU=8\nTP=1\nPP=1\nCP=1\nMBS=1\nMINIBS=1\nLORA_A2A=1\nSP=0\n{lines}"));
        let training = &job.scenario.training;
        (training.fp8_weights, training.fp8_activation_input)
    };
    assert_eq!(of("FP8=True\nFP8_ACT=1\n"), (true, true));
    assert_eq!(of("FP8=True\nFP8_ACT=0\n"), (true, false));
    assert_eq!(of("FP8=False\nFP8_ACT=1\n"), (false, false));
}

#[test]
fn megatron_stores_inputs_of_activation_functions_in_fp8() {
    let of = |options: &str| {
        let job = config(&format!(
            "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 \\\n\
             --seq-length 2048 --micro-batch-size 4 --global-batch-size 256 --swiglu --bf16 {options}\n"
        ));
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
        job.scenario.training.fp8_activation_input
    };
    assert!(of("--fp8-format hybrid --activation-func-fp8-input-store"));
    assert!(!of("--fp8-format hybrid"));
}
