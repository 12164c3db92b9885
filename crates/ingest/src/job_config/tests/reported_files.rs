//! Readings of public files that an outsider's report found wrong.

use planner::training::{AttentionKernel, MasterWeights};

use super::*;

fn says(job: &JobConfig, text: &str) -> bool {
    job.assumed.iter().chain(&job.not_modelled).any(|sentence| sentence.contains(text))
}

#[test]
fn llama_factory_loads_weights_in_the_format_of_the_model() {
    let job = |lines: &str| {
        config(&format!(
            "model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct\ncutoff_len: 1024\nper_device_train_batch_size: 1\n{lines}\n"
        ))
    };
    let adapters = job("finetuning_type: lora\nlora_target: all");
    assert_eq!(adapters.scenario.training.precision, Precision::Bf16);
    let badam = job("finetuning_type: full\nuse_badam: true");
    let training = &badam.scenario.training;
    assert_eq!((training.precision, training.master_weights), (Precision::Bf16, MasterWeights::None));
    assert!(says(&badam, "LLaMA-Factory loads the weights in the format of the model"));
    // Trained weights are converted to fp32 otherwise.
    assert_eq!(job("finetuning_type: full").scenario.training.precision, Precision::Fp32);
}

#[test]
fn the_name_of_a_model_states_quantized_weights() {
    let bits = |name: &str| {
        let text = format!("model_name_or_path: {name}\nfinetuning_type: lora\ncutoff_len: 1024\nbf16: true\n");
        config(&text).scenario.model.modules[0].adapters.unwrap().base_bits
    };
    assert_eq!(bits("TechxGenus/Meta-Llama-3-8B-Instruct-AWQ"), Some(4));
    assert_eq!(bits("unsloth/Llama-3.2-3B-bnb-4bit"), Some(4));
    assert_eq!(bits("Qwen/Qwen2.5-14B-Instruct-GPTQ-Int8"), Some(8));
    assert_eq!(bits("meta-llama/Meta-Llama-3-8B-Instruct"), None);
}

#[test]
fn dbrx_is_known_by_name_and_by_its_file() {
    let text = "base_model: LnL-AI/dbrx-base-converted-v2\nload_in_8bit: false\nload_in_4bit: false\nsequence_len: 512\n\
                micro_batch_size: 1\nbf16: auto\n";
    let model = r#"{"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
        "max_seq_len": 32768, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "model_type": ""},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4, "model_type": ""}}"#;
    let named = config(text);
    let files: [(&str, &[u8]); 2] = [("job.yaml", text.as_bytes()), ("config.json", model.as_bytes())];
    let stated = read_files(&files, Hardware::default()).unwrap();
    for job in [named, stated] {
        // Published: 132 billion parameters.
        assert_eq!(job.scenario.model.parameters() / 1_000_000, 131_596);
        assert!(job.unknown.is_empty() && !says(&job, "is not known"), "{:?} {:?}", job.unknown, job.assumed);
    }
}

#[test]
fn ppo_of_openrlhf_has_prompt_and_answer() {
    let job = config(
        "ray job submit --no-wait -- python3 examples/train_ppo_ray.py --critic_num_nodes 1 --critic_num_gpus_per_node 4 \\\n\
         --actor_num_nodes 1 --actor_num_gpus_per_node 4 --vllm_num_engines 2 --pretrain meta-llama/Llama-2-70b-chat-hf \\\n\
         --micro_train_batch_size 1 --train_batch_size 128 --rollout_batch_size 1024 --prompt_max_len 1024 \\\n\
         --generate_max_len 3072 --zero_stage 3 --bf16 --actor_init_on_gpu --flash_attn --gradient_checkpointing\n",
    );
    assert_eq!((job.scenario.workload.context_length, job.scenario.cluster.devices()), (4096, 4));
    assert!(says(&job, "Only the training step is read.") && says(&job, "Only the devices of the actor are read."));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

#[test]
fn layers_for_multi_token_prediction_need_a_switch_or_megatron() {
    let verl = |options: &str| {
        let job = config(&format!(
            "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=deepseek-ai/DeepSeek-V3-0324 \
             data.max_prompt_length=1024 data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.actor.strategy=megatron {options}\n"
        ));
        job.scenario.model.modules[0].predicted_ahead
    };
    let (loaded, trained) =
        ("actor_rollout_ref.model.mtp.enable=True", "actor_rollout_ref.model.mtp.enable_train=True");
    assert_eq!((verl(""), verl(loaded), verl(&format!("{loaded} {trained}"))), (0, 0, 1));
    let trainer =
        config("model_name_or_path: deepseek-ai/DeepSeek-V3\nfinetuning_type: full\ncutoff_len: 1024\nbf16: true\n");
    assert_eq!(trainer.scenario.model.modules[0].predicted_ahead, 0);
}

#[test]
fn a_variable_as_the_model_is_named() {
    let text = "lm=$1\ndeepspeed train.py --model_name_or_path $lm --bf16 True --per_device_train_batch_size 4 --output_dir x\n";
    assert!(
        error(text).contains("--model_name_or_path: the value $1 has a variable that the file does not set"),
        "{}",
        error(text)
    );
}

#[test]
fn fp16_has_no_remark_about_missing_bf16() {
    let text = "#SBATCH --gres=gpu:v100:4\ntorchrun pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \
                --seq-length 128 --micro-batch-size 1 --global-batch-size 8 ";
    assert!(!says(&config(&format!("{text} --fp16\n")), "has no bf16"));
    assert!(says(&config(&format!("{text} --bf16\n")), "has no bf16"));
}

#[test]
fn settings_of_gpt_neox_for_gradients_and_transformer_engine_are_read() {
    let job = |lines: &str| {
        config(&format!(
            "pipe_parallel_size: 1\nmodel_parallel_size: 1\nnum_layers: 8\nhidden_size: 64\nnum_attention_heads: 4\n\
             seq_length: 128\nmax_position_embeddings: 128\ntrain_micro_batch_size_per_gpu: 1\n{lines}\n"
        ))
    };
    let engine = job(
        "te_mha: true\nte_layernorm_mlp: true\nte_fp8_format: hybrid\nfp32_allreduce: true\nzero_optimization: {stage: 1}",
    );
    assert_ne!(engine.scenario.training.attention, AttentionKernel::Unfused);
    assert!(
        says(&engine, "te_fp8_format states fp8 products") && says(&engine, "fp32_allreduce"),
        "{:?}",
        engine.not_modelled
    );
    assert!(says(&engine, "unless data_types.grad_accum_dtype is fp32") && !says(&engine, "--accumulate"));
    let long = job("data_types: {grad_accum_dtype: fp32}\nzero_optimization: {stage: 1}");
    assert_eq!(long.scenario.training.gradients, planner::training::GradientFormat::Fp32);
}

#[test]
fn a_degree_of_maxtext_takes_the_rest_of_a_node() {
    let job = |lines: &str| {
        config(&format!(
            "model_name: mixtral-8x7b\nper_device_batch_size: 1\nmax_target_length: 4096\ndcn_data_parallelism: -1\n\
             ici_fsdp_parallelism: 1\n{lines}\n"
        ))
    };
    let experts = job("ici_expert_parallelism: -1\nsparse_matmul: false\ncapacity_factor: 1.25");
    assert_eq!(experts.scenario.training.expert_parallel, 8);
    assert!(says(&experts, "The capacity of the experts is not applied"), "{:?}", experts.not_modelled);
    let tensor = job("ici_tensor_parallelism: -1\nici_expert_parallelism: 2\nsparse_matmul: false");
    assert_eq!((tensor.scenario.layout.tensor, tensor.scenario.training.expert_parallel), (Some(4), 2));
    assert!(says(&tensor, "all experts read all tokens"), "{:?}", tensor.not_modelled);
}

#[test]
fn a_variable_names_the_program_of_maxtext() {
    let job = config(
        "export EXECUTABLE=\"train.py\" # or train_compile.py\npython MaxText/$EXECUTABLE MaxText/configs/base.yml \
         model_name=llama2-70b per_device_batch_size=4 max_target_length=4096 remat_policy=full\n",
    );
    assert_eq!((job.format, job.scenario.workload.context_length), (ConfigFormat::Maxtext, 4096));
}

#[test]
fn fine_tuning_of_primus_is_read() {
    let job = config(
        "modules:\n  post_trainer:\n    framework: megatron_bridge\n    model: ${PRIMUS_MODEL:qwen3_30B_A3B}.yaml\n    overrides:\n      \
         hf_model_name_or_path: Qwen/Qwen3-30B-A3B\n      use_lora: true\n      lora_rank: 16\n      lora_alpha: 32\n      \
         lora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n      micro_batch_size: 1\n      global_batch_size: 32\n      \
         seq_length: 2048\n      expert_model_parallel_size: ${PRIMUS_EP:4}\n      bf16: true\n",
    );
    assert_eq!((job.format, job.scenario.training.expert_parallel), (ConfigFormat::Primus, 4));
    let adapters = job.scenario.model.modules[0].adapters.unwrap();
    assert_eq!((adapters.rank, adapters.mlp), (16, false));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

#[test]
fn variables_of_scripts_are_no_settings() {
    let job = config(
        "torchrun --nproc_per_node=\"${NUM_GPUS}\" --nnodes=\"${NNODES}\" train.py --model_name_or_path Qwen/Qwen2-7B --bf16 True \
         --per_device_train_batch_size 4 --output_dir x\n",
    );
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let job = config(
        "sp_size=4\nray job submit --no-wait -- python3 -m verl.trainer.main_ppo data.max_prompt_length=1024 \
         data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/Qwen2.5-32B \
         actor_rollout_ref.actor.ulysses_sequence_parallel_size=${sp_size} actor_rollout_ref.actor.ppo_mini_batch_size=64 \
         actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.nnodes=2 trainer.n_gpus_per_node=8\n",
    );
    assert_eq!(job.scenario.training.context_parallel, 4);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    // A list with one argument per line.
    let job = config(
        "-m verl.trainer.fsdp_sft_trainer\ndata.micro_batch_size_per_gpu=4\nmodel.partial_pretrain=Qwen/Qwen2.5-0.5B-Instruct\n\
         ulysses_sequence_parallel_size=2\nuse_remove_padding=true\n",
    );
    assert_eq!(job.scenario.training.context_parallel, 2);
}
