//! Tests of stated features that a scenario cannot represent.

use super::*;

fn says(job: &JobConfig, text: &str) -> bool {
    job.not_modelled.iter().any(|sentence| sentence.contains(text))
}

#[test]
fn options_without_a_model_are_named_with_their_consequence() {
    let job = config(
        "torchrun --nproc_per_node 8 --max_restarts 0 --tee 3 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
         --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 128 --bf16 --num-experts 8 \
         --moe-expert-capacity-factor 1.25 --use-cpu-initialization --no-async-tensor-model-parallel-allreduce\n",
    );
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    assert!(says(&job, "no token is dropped"), "{:?}", job.not_modelled);

    let job = config(
        "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  max_seq_len: 4096\nbatch_size: 1\n\
         dtype: bf16\noptimizer_in_bwd: true\noptimizer:\n  _component_: torch.optim.AdamW\n",
    );
    assert!(says(&job, "memory of the gradients is an upper bound"), "{:?}", job.not_modelled);
}

#[test]
fn adapters_of_routed_experts_are_named() {
    let read = |model: &str| {
        config(&format!(
            "model_name_or_path: {model}\nstage: sft\nfinetuning_type: lora\nlora_rank: 16\nlora_target: all\n\
             cutoff_len: 4096\nper_device_train_batch_size: 1\nbf16: true\n"
        ))
    };
    assert!(says(&read("mistralai/Mixtral-8x7B-v0.1"), "Adapters of routed experts"));
    assert!(!says(&read("meta-llama/Llama-3.1-8B"), "Adapters of routed experts"));
}
