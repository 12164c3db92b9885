//! Devices, lengths and sizes of jobs as their launchers and programs see them.

use super::*;

const DEEPSPEED: &str = "pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
                         --micro-batch-size 4 --global-batch-size 256 --deepspeed --zero-stage 1 --fp16";

fn says(sentences: &[String], text: &str) -> bool {
    sentences.iter().any(|sentence| sentence.contains(text))
}

fn devices(job: &JobConfig) -> (u32, u32) {
    (job.scenario.cluster.nodes, job.scenario.cluster.devices_per_node)
}

#[test]
fn deepspeed_starts_a_process_for_each_device_of_a_node() {
    for (launcher, expected) in [
        ("deepspeed --num_gpus 4", (1, 4)),
        ("deepspeed --num_nodes 2 --num_gpus 4", (2, 4)),
        ("deepspeed --include localhost:0,1,2,3", (1, 4)),
        ("deepspeed --include one:0,1@two:0,1", (2, 2)),
    ] {
        assert_eq!(devices(&config(&format!("{launcher} {DEEPSPEED}\n"))), expected, "{launcher}");
    }
}

#[test]
fn directives_of_slurm_set_variables() {
    let text = format!(
        "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus-per-node=4\n#SBATCH --ntasks-per-node=4\n\
         WORLD=$((SLURM_GPUS_ON_NODE*SLURM_NNODES))\nTP=$SLURM_NTASKS_PER_NODE\n\
         srun {} --tensor-model-parallel-size $TP --global-batch-size $((WORLD*8))\n",
        DEEPSPEED.replace("--global-batch-size 256 ", "")
    );
    let job = config(&text);
    assert_eq!((devices(&job), job.scenario.layout.tensor), ((4, 4), Some(4)));
    assert_eq!(job.scenario.workload.global_batch, 128);
}

/// Without arguments of the caller, a script uses its defaults.
#[test]
fn arguments_of_a_script_do_not_replace_its_defaults() {
    for change in [
        "if [ -n \"$6\" ]; then\n  TP=$6\nfi",
        "if [ $# -ge 1 ]; then TP=$1; fi",
        "while [[ $# -gt 0 ]]; do\n  case $1 in\n    --tp) TP=\"$2\"; shift ;;\n  esac\ndone",
        "while getopts t: opt; do\n  case $opt in\n    t) TP=$OPTARG ;;\n  esac\ndone",
    ] {
        let text =
            format!("TP=2\n{change}\ntorchrun --nproc_per_node 8 {DEEPSPEED} --tensor-model-parallel-size $TP\n");
        assert_eq!(config(&text).scenario.layout.tensor, Some(2), "{change}");
    }
    let text = format!("TP=2\nTP=$1\ntorchrun --nproc_per_node 8 {DEEPSPEED} --tensor-model-parallel-size $TP\n");
    assert!(error(&text).contains("$1"), "{}", error(&text));
}

/// 64 experts on 8 data-parallel ranks.
#[test]
fn megablocks_has_experts() {
    let dense = DEEPSPEED.replace(" --deepspeed --zero-stage 1", "");
    let job = config(&format!(
        "torchrun --nproc_per_node 8 {dense} --moe-num-experts=64 --moe-top-k=1 --moe-expert-model-parallelism --glu\n"
    ));
    let module = &job.scenario.model.modules[0];
    assert_eq!(module.moe.map(|moe| (moe.experts, moe.top_k)), Some((64, 1)));
    assert_eq!((job.scenario.training.expert_parallel, module.gated), (8, true));
}

const NEOX: &str = "{\"pipe-parallel-size\": 1, \"model-parallel-size\": 2, \"num-layers\": 32, \"hidden-size\": 4096,\n \
                    \"num-attention-heads\": 32, \"seq-length\": 2048, \"max-position-embeddings\": 2048";

/// A gated MLP has a third of the stated width: 32,768 is 10,923, in multiples of 256.
#[test]
fn gated_widths_of_neox_are_divided() {
    let of = |rest: &str| {
        let job = config(&format!("{NEOX}, \"train_micro_batch_size_per_gpu\": 4, {rest}}}"));
        let module = &job.scenario.model.modules[0];
        (module.ffn, module.gated)
    };
    assert_eq!(
        of("\"activation\": \"swiglu\", \"intermediate_size\": 32768, \"mlp_multiple_of\": 256"),
        (11_008, true)
    );
    assert_eq!(of("\"activation\": \"swiglu\""), (5461, true));
    assert_eq!(of("\"mlp_type\": \"llama\""), (11_008, true));
    assert_eq!(of("\"intermediate_size\": 12288"), (12_288, false));
    assert_eq!(of("\"activation\": \"gelu\""), (16_384, false));
}

#[test]
fn files_of_a_neox_job_are_joined() {
    let rest = "{\n  # batch\n  \"train_micro_batch_size_per_gpu\": 2,\n  \"gradient_accumulation_steps\": 4,\n  \
                \"zero_optimization\": {\"stage\": 1, \"overlap_comm\": True,},\n  \"checkpoint_activations\": true,\n  \
                \"bf16\": {\"enabled\": true},\n}\n";
    let model = format!("{NEOX}\n}}");
    let both: [(&str, &[u8]); 2] = [("7B.yml", model.as_bytes()), ("train.yml", rest.as_bytes())];
    let job = read_files(&both, Hardware::default()).unwrap();
    assert_eq!(job.format, ConfigFormat::GptNeox);
    assert_eq!((job.scenario.layout.tensor, job.scenario.layout.microbatch), (Some(2), Some(2)));
    assert_eq!(job.scenario.training.recompute, Recompute::Full);
}

/// A sequence of GRPO is a prompt with its answer.
#[test]
fn job_files_of_trl_state_prompt_and_answer() {
    let yaml = "model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct\nbf16: true\ngradient_checkpointing: true\n\
                per_device_train_batch_size: 16\noutput_dir: x\nnum_generations: 7\nmax_prompt_length: 512\n\
                max_completion_length: 1024\n";
    let job = config(yaml);
    assert_eq!(job.scenario.workload.context_length, 1536);
    assert!(says(&job.not_modelled, "generation of answers"), "{:?}", job.not_modelled);
    let pairs = config(&yaml.replace("max_completion_length: 1024\n", "max_length: 2048\nbeta: 0.1\n"));
    assert_eq!(pairs.scenario.workload.context_length, 2048);
    assert!(says(&pairs.not_modelled, "A pair of answers"), "{:?}", pairs.not_modelled);
    let script = config(
        "accelerate launch --num_processes 8 scripts/run_orpo.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 \
         --per_device_train_batch_size 1 --max_length 2048 --output_dir x\n",
    );
    assert!(says(&script.not_modelled, "A pair of answers"), "{:?}", script.not_modelled);
}

#[test]
fn mason_starts_processes_on_all_nodes() {
    let job = config(
        "python mason.py --num_nodes 8 --gpus 8 -- accelerate launch --num_processes 8 --use_deepspeed \\\n  \
         open_instruct/finetune.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 \\\n  \
         --gradient_accumulation_steps 2 --max_seq_length 4096 --mixed_precision bf16\n",
    );
    assert_eq!(job.scenario.cluster.devices(), 64);
    assert_eq!(job.scenario.workload.global_batch, 128);
}

/// slime packs 9,216 tokens of a device: two sequences of 4,096.
#[test]
fn tokens_of_a_device_are_a_microbatch() {
    let of = |context: u32| {
        let job = config(&format!(
            "python3 train.py --actor-num-nodes 4 --actor-num-gpus-per-node 8 --num-layers 24 --hidden-size 2048 \
             --num-attention-heads 16 --ffn-hidden-size 8192 --seq-length 4096 --rollout-batch-size 128 \
             --global-batch-size 128 --use-dynamic-batch-size --max-tokens-per-gpu 9216 --context-parallel-size {context}\n"
        ));
        job.scenario.layout.microbatch
    };
    assert_eq!((of(1), of(2)), (Some(2), Some(4)));
}

#[test]
fn names_of_models_and_adapters_in_scripts_are_read() {
    let job = config(
        "torchrun --nproc_per_node 8 train/sft.py --block_size 4096 --per_device_train_batch_size 1 --bf16 True \\\n  \
         --model_name Qwen/Qwen2.5-32B-Instruct --output_dir x\n",
    );
    assert!(says(&job.assumed, "known by its name (--model_name)"), "{:?}", job.assumed);
    let adapted = config(
        "torchrun --nproc_per_node 8 fine-tune.py --model_name_or_path Qwen/Qwen2.5-7B --low_rank_training True --bf16 True \\\n  \
         --per_device_train_batch_size 1 --model_max_length 8192 --output_dir x\n",
    );
    assert!(adapted.scenario.model.modules[0].adapters.is_some());
}

#[test]
fn levanter_has_the_length_of_a_model_of_the_hub() {
    let job = config(
        "trainer:\n  mp: p=f32,c=bfloat16\n  train_batch_size: 256\n  num_train_steps: 10\nmodel:\n  type: llama\n\
         initialize_from_hf: meta-llama/Llama-2-7b-hf\nuse_hf_model_config: true\n",
    );
    assert_eq!(job.scenario.workload.context_length, 4096);
}

#[test]
fn sections_of_flagscale_are_arguments() {
    let job = config(
        "system:\n  tensor_model_parallel_size: 2\n  disable_bias_linear: True\n  use_flash_attn: True\n  \
         use_distributed_optimizer: True\n  precision:\n    fp16: True\nmodel:\n  num_layers: 32\n  hidden_size: 4096\n  \
         num_attention_heads: 32\n  seq_length: 2048\n  swiglu: true\n  multiple_of: 256\n  micro_batch_size: 2\n  \
         global_batch_size: 1728\ndata:\n  tokenizer:\n    vocab_size: 100008\n",
    );
    let Scenario { model, training, layout, .. } = &job.scenario;
    assert_eq!((job.format, layout.tensor, training.zero_stage()), (ConfigFormat::Megatron, Some(2), 1));
    assert_eq!((model.modules[0].ffn, model.modules[0].bias), (11_008, Bias::None));
    assert!(model.modules[0].vocab >= 100_008 && model.modules[0].vocab < 100_400);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}
