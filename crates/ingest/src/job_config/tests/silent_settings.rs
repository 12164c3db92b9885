//! Settings that change the job and were read wrongly, or not at all, without a note.

use planner::training::AttentionKernel;

use super::*;

const MODEL: &str = r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false}"#;

fn says(job: &JobConfig, text: &str) -> bool {
    job.not_modelled.iter().any(|sentence| sentence.contains(text))
}

fn with_model(text: &str) -> JobConfig {
    let files: [(&str, &[u8]); 2] = [("job", text.as_bytes()), ("config.json", MODEL.as_bytes())];
    read_files(&files, Hardware::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn slime_states_the_batch_by_rollouts() {
    let job = config(
        "MOE_LAYER_FREQ=\"[\"\nprintf -v MOE_LAYER_FREQ '%s]' x\nray job submit -- python3 train.py --actor-num-nodes 1 \\\n\
         --actor-num-gpus-per-node 8 --num-layers 27 --hidden-size 2048 --num-attention-heads 16 --ffn-hidden-size 11264 \\\n\
         --num-experts 64 --moe-ffn-hidden-size 1408 --moe-layer-freq $FREQUENCY --rollout-batch-size 128 \\\n\
         --n-samples-per-prompt 8 --num-steps-per-rollout 2 --rollout-max-response-len 16384 --swiglu\n",
    );
    let workload = &job.scenario.workload;
    assert_eq!((workload.global_batch, workload.context_length), (512, 16_384));
    assert!(says(&job, "The layers with experts are not known"), "{:?}", job.not_modelled);
}

#[test]
fn verl_overrides_fields_of_megatron_core() {
    let job = with_model(
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.actor.strategy=megatron data.max_prompt_length=1024 \\\n\
         data.max_response_length=1024 actor_rollout_ref.actor.ppo_mini_batch_size=64 \\\n\
         actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 trainer.nnodes=2 trainer.n_gpus_per_node=8 \\\n\
         actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \\\n\
         actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=3 \\\n\
         +actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_last_pipeline_stage=10 \\\n\
         +actor_rollout_ref.actor.megatron.override_transformer_config.moe_enable_deepep=True \\\n\
         +actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full \\\n\
         +actor_rollout_ref.actor.megatron.override_transformer_config.made_up_field=7 \\\n\
         +actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload=True \\\n\
         +actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_offload_fraction=0.5\n",
    );
    let training = &job.scenario.training;
    assert_eq!((training.recompute, (100.0 * training.optimizer_offload) as u32), (Recompute::Full, 50));
    assert_eq!(job.scenario.layers_per_stage, [11, 11, 10]);
    assert_eq!(job.unknown, ["actor_rollout_ref.actor.megatron.override_transformer_config.made_up_field"]);
}

#[test]
fn sections_of_megatron_bridge_replace_settings() {
    let text = "model:\n  seq_length: 8192\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 2\n  sequence_parallel: true\n  \
                num_layers: 8\n  fp8: null\nmixed_precision:\n  bf16: true\n  fp8: hybrid\n  fp8_recipe: blockwise\n  grad_reduce_in_fp32: false\n\
                comm_overlap:\n  tp_comm_overlap: true\n  overlap_grad_reduce: false\nddp:\n  overlap_grad_reduce: true\ntrain:\n  \
                global_batch_size: 128\n  micro_batch_size: 1\n";
    let job = with_model(text);
    let Scenario { model, training, .. } = &job.scenario;
    assert_eq!(model.layers(), 8);
    assert_eq!((training.precision, training.gradients), (Precision::Fp8, planner::training::GradientFormat::Bf16));
    assert_eq!(training.fp8_recipe, Some(planner::training::Fp8Recipe::Blockwise));
    assert!(training.tensor_overlap > 0.99 && training.data_overlap < 0.01);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

#[test]
fn local_layers_of_megatron_have_unfused_attention() {
    let kernel = |flags: &str| {
        let job = config(&format!(
            "torchrun pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
             --micro-batch-size 1 --global-batch-size 128 --bf16 --tensor-model-parallel-size 2 {flags}\n"
        ));
        job.scenario.training.attention
    };
    assert_eq!(kernel("--transformer-impl local"), AttentionKernel::Unfused);
    // Its attention reads no backend.
    assert_eq!(kernel("--transformer-impl local --attention-backend flash"), AttentionKernel::Unfused);
    assert_eq!(kernel("--attention-backend fused"), AttentionKernel::Cudnn);
    assert_ne!(kernel("--transformer-impl local --use-flash-attn"), AttentionKernel::Unfused);
    assert_ne!(kernel("--transformer-impl transformer_engine"), AttentionKernel::Unfused);
}

#[test]
fn torchtitan_refuses_asynchronous_parallelism_without_compilation() {
    let job = config(
        "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[optimizer]\nname = \"AdamW\"\nlr = 1e-4\nmade_up = 1\n[training]\n\
         local_batch_size = 1\nseq_len = 8192\n[parallelism]\ntensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n",
    );
    assert!(job.scenario.training.tensor_overlap < 0.01 && says(&job, "refuses it without compile.enable"));
    assert_eq!(job.unknown, ["optimizer.made_up"]);
}

/// 8 devices with PP 4 have two replicas. Each of 16 steps of accumulation runs the schedule with two microbatches.
#[test]
fn torchtitan_flushes_the_pipeline_in_each_step_of_accumulation() {
    let flush = |batch: &str, parallelism: &str| {
        let job = config(&format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n{batch}\n\
             [parallelism]\ndata_parallel_shard_degree = 2\n{parallelism}\n"
        ));
        job.scenario.training.microbatches_per_flush
    };
    assert_eq!(flush("global_batch_size = 64", "pipeline_parallel_degree = 4"), Some(2));
    let halves = "pipeline_parallel_degree = 4\npipeline_parallel_microbatch_size = 2";
    assert_eq!(flush("global_batch_size = 64", halves), Some(1));
    assert_eq!(flush("global_batch_size = 4", "pipeline_parallel_degree = 4"), None);
    assert_eq!(flush("", "pipeline_parallel_degree = 4"), None);
    assert_eq!(flush("global_batch_size = 64", ""), None);
}

#[test]
fn files_without_training_are_refused() {
    let generation =
        "model:\n  _component_: torchtune.models.llama2.llama2_7b\nprompt:\n  user: x\nmax_new_tokens: 300\n";
    assert!(error(generation).contains("give the file of a training recipe"), "{}", error(generation));
    let distillation =
        "teacher:\n  type: llama\nstudent:\n  type: llama\ntrainer:\n  train_batch_size: 64\n  mp: p=f32\n";
    assert!(error(distillation).contains("no model"), "{}", error(distillation));
}

/// 1,048,576 pixels are 32 x 32 tokens of 32 x 32 pixels.
#[test]
fn images_of_qwen3_vl_have_the_stated_size() {
    let job = config(
        "model_name_or_path: Qwen/Qwen3-VL-8B-Instruct\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\n\
         image_max_pixels: 1048576\nper_device_train_batch_size: 1\nbf16: true\n",
    );
    assert_eq!(job.scenario.model.tokens_per_image(), 1024);
}

/// Scripts of Qwen and LLaVA state a switch; the rank is a default in Python.
#[test]
fn a_switch_for_adapters_without_a_rank_is_read() {
    let run = |switches: &str| {
        with_model(&format!(
            "torchrun --nproc_per_node 8 finetune.py --model_name_or_path ./model --bf16 True --model_max_length 2048 \\\n \
             --per_device_train_batch_size 1 --gradient_accumulation_steps 8 {switches}\n"
        ))
    };
    for (switches, expected) in [
        ("--use_lora --q_lora", Some((64, Some(4)))),
        ("--use_lora True", Some((64, None))),
        ("--lora_enable True --lora_r 128", Some((128, None))),
        ("--use_lora False", None),
        ("", None),
    ] {
        let job = run(switches);
        let adapters = job.scenario.model.modules[0].adapters;
        assert_eq!(adapters.map(|adapters| (adapters.rank, adapters.base_bits)), expected, "{switches}");
    }
    assert!(run("--use_lora").assumed.iter().any(|sentence| sentence.contains("state --lora_r")));
}

#[test]
fn performance_scripts_of_megatron_bridge_state_what_recipes_do() {
    let command = |arguments: &str| {
        config(&format!(
            "python scripts/performance/setup_experiment.py -m x -c fp8_cs -mb 1 -sl 8192 -cp 1 {arguments}\n"
        ))
    };
    let dense = command("-mr llama3_70b -g h100 -ng 64 -gb 128 -tp 4 -pp 4 -vp 5 -ep 1");
    assert!(dense.scenario.training.sequence_parallel);
    let off = command("-mr llama3_70b -g h100 -ng 64 -gb 128 -tp 4 -pp 4 -vp 5 -ep 1 model.sequence_parallel=false");
    assert!(!off.scenario.training.sequence_parallel);
    let sharded = command("-mr llama3_70b -g gb300 -ng 64 -gb 256 -tp 1 -pp 1 -ep 1 --use_megatron_fsdp true");
    assert_eq!(sharded.scenario.training.zero_stage(), 3);
    // 126 layers do not divide by 64 stages. The embedding and the output head count as layers.
    let uneven = command("-mr llama31_405b -g h100 -ng 1024 -gb 512 -tp 8 -pp 8 -vp 8 -ep 1");
    let stages = &uneven.scenario.layers_per_stage;
    assert_eq!((stages.len(), stages[0], stages[1], stages[63]), (64, 1, 2, 1), "{:?}", uneven.not_modelled);
}

#[test]
fn llama_of_nemo_1_has_a_gated_mlp() {
    let job = config(
        "torchrun --nproc_per_node=8 megatron_llama_pretraining.py trainer.precision=bf16 trainer.devices=8 \\\n\
         trainer.num_nodes=1 model.num_layers=40 model.hidden_size=5120 model.ffn_hidden_size=13824 \\\n\
         model.num_attention_heads=40 model.micro_batch_size=1 model.global_batch_size=32 model.encoder_seq_length=4096\n",
    );
    let module = &job.scenario.model.modules[0];
    assert!(module.gated && !module.tied_embeddings, "{module:?}");
}

/// The first Qwen counts both inputs of the gate: 11,008 for each.
#[test]
fn the_first_qwen_counts_both_inputs_of_the_gate() {
    let job = config(
        r#"{"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "num_attention_heads": 32,
        "num_hidden_layers": 32, "vocab_size": 151936, "no_bias": true, "tie_word_embeddings": false}"#,
    );
    let billions = job.scenario.model.parameters() as f64 / 1e9;
    assert!((billions - 7.72).abs() < 0.01, "{billions}");
}

/// The example of verl for GRPO with Qwen3 8B on 8 devices of 80 GB.
#[test]
fn losses_of_verl_without_padding_work_in_place() {
    let script = |entropy: &str, more: &str| {
        with_model(&format!(
            "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=1024 \\\n\
             data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.use_remove_padding=True \\\n\
             actor_rollout_ref.actor.ppo_mini_batch_size=256 actor_rollout_ref.actor.entropy_coeff={entropy} \\\n\
             actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.rollout.n=5 \\\n\
             trainer.n_gpus_per_node=8 trainer.nnodes=1 {more}\n"
        ))
    };
    let stated = "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=32";
    let job = script("0", stated);
    assert!(job.scenario.training.in_place_loss && job.scenario.layout.microbatch == Some(32));
    assert!(job.not_modelled.iter().all(|sentence| !sentence.contains("loss")), "{:?}", job.not_modelled);
    assert!(!script("0.001", stated).scenario.training.in_place_loss);
    // 16,384 tokens of a microbatch are 10 sequences of 1,536 tokens; 1,280 / 8 sequences are 16 microbatches of them.
    let dynamic =
        "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=16384";
    let job = script("0", dynamic);
    assert_eq!(job.scenario.layout.microbatch, Some(10));
    assert!(job.assumed.iter().any(|sentence| sentence.contains("10 sequences of 1536 tokens")), "{:?}", job.assumed);
    // The members of a Ulysses group share a sequence: 32,768 tokens are 21 sequences, of which 20 divide the batch.
    let job = script("0", &format!("{dynamic} actor_rollout_ref.actor.ulysses_sequence_parallel_size=2"));
    assert_eq!((job.scenario.layout.microbatch, job.scenario.training.context_parallel), (Some(20), 2));
}

/// DeepSpeed has experts in every second layer by default.
#[test]
fn deepspeed_has_experts_in_some_layers() {
    let every = |options: &str| {
        let job = config(&format!(
            "deepspeed pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \\\n\
             --micro-batch-size 4 --global-batch-size 256 --num-experts 64 --moe-expert-parallel-size 8 --deepspeed {options}\n"
        ));
        job.scenario.model.modules[0].moe.map(|moe| moe.every)
    };
    assert_eq!(every(""), Some(2));
    assert_eq!(every("--expert-interval 4"), Some(4));
    assert_eq!(every("--expert-interval 1"), Some(1));
}
