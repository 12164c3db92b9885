//! Job files of nanotron, llm-foundry, `NeMo`, Megatron-Bridge, `MaxText` and Primus.

use planner::training::{AttentionKernel, GradientFormat, MomentFormat, RecomputedModule};

use super::*;

fn says(job: &JobConfig, text: &str) -> bool {
    job.assumed.iter().chain(&job.not_modelled).any(|sentence| sentence.contains(text))
}

#[test]
fn nanotron_multiplies_its_degrees() {
    let job = config(
        "model:\n  dtype: bfloat16\n  model_config:\n    is_llama_config: true\n    hidden_size: 1024\n    \
         num_hidden_layers: 8\n    num_attention_heads: 16\n    intermediate_size: 4096\n    vocab_size: 32000\n    \
         hidden_act: silu\noptimizer:\n  zero_stage: 1\n  accumulate_grad_in_fp32: false\nparallelism:\n  dp: 4\n  tp: 2\n  pp: 2\n  \
         tp_mode: REDUCE_SCATTER\ntokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 3\n  sequence_length: 2048\n",
    );
    assert_eq!(job.format, ConfigFormat::Nanotron);
    let scenario = &job.scenario;
    assert_eq!((scenario.cluster.devices(), scenario.workload.global_batch), (16, 24));
    assert!(scenario.training.sequence_parallel && scenario.training.gradients == GradientFormat::Bf16);
    assert_eq!(scenario.training.zero_stage(), 1);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    assert!(job.read.iter().any(|setting| setting.key == "model.model_config.hidden_size"), "{:?}", job.read);
    let mamba = "parallelism:\n  dp: 1\nmodel:\n  model_config:\n    is_mamba_config: true\n";
    assert!(error(mamba).contains("is_mamba_config: a model of Mamba layers"), "{}", error(mamba));
}

/// 50,432 x 4,096 embeddings and 2,048 positions, 32 layers with 12 x 4,096^2 weights.
#[test]
fn llm_foundry_replaces_its_variables() {
    let job = config(
        "variables:\n  length: 2048\nmax_seq_len: ${variables.length}\nmodel:\n  name: mpt_causal_lm\n  d_model: 4096\n  \
         n_heads: 32\n  n_layers: 32\n  expansion_ratio: 4\n  max_seq_len: ${variables.length}\n  vocab_size: 50432\n  \
         no_bias: true\n  attn_config:\n    attn_impl: torch\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 4\n\
         precision: amp_bf16\nfsdp_config:\n  sharding_strategy: SHARD_GRAD_OP\n  activation_checkpointing: true\n",
    );
    assert_eq!(job.format, ConfigFormat::LlmFoundry);
    let scenario = &job.scenario;
    let parameters = scenario.model.parameters() as f64;
    assert!((parameters / (6_649_286_656.0 + 2048.0 * 4096.0) - 1.0).abs() < 1e-6, "{parameters}");
    assert_eq!((scenario.workload.context_length, scenario.workload.global_batch), (2048, 64));
    assert_eq!((scenario.training.zero_stage(), scenario.training.attention), (2, AttentionKernel::Unfused));
    assert!(says(&job, "default of attn_config.alibi is false"));
    assert!(!job.read.iter().any(|setting| setting.key.contains("alibi")), "{:?}", job.read);
}

/// Sizes of OLMo 2 7B: 7.30 billion parameters without the norms of queries and keys.
#[test]
fn olmo_counts_gate_and_up_together() {
    let job = config(
        "run_name: x\nmodel:\n  d_model: 4096\n  n_heads: 32\n  n_layers: 32\n  mlp_hidden_size: 22016\n  weight_tying: false\n  \
         include_bias: false\n  activation_type: swiglu\n  max_sequence_length: 4096\n  vocab_size: 100278\n  \
         embedding_size: 100352\n  flash_attention: true\nglobal_train_batch_size: 1024\ndevice_train_microbatch_size: 2\n\
         precision: amp_bf16\nfsdp:\n  precision: mixed\nactivation_checkpointing: one_in_four\n",
    );
    assert_eq!(job.format, ConfigFormat::Olmo);
    let scenario = &job.scenario;
    let module = scenario.model.backbone().expect("a language model");
    assert_eq!((module.ffn, module.vocab, module.gated), (11_008, 100_352, true));
    let parameters = scenario.model.parameters() as f64;
    assert!((parameters / 7_298_617_344.0 - 1.0).abs() < 1e-3, "{parameters}");
    assert_eq!((scenario.training.recompute, scenario.training.recompute_layers), (Recompute::Full, Some(8)));
    assert_eq!((scenario.training.zero_stage(), scenario.workload.global_batch), (3, 1024));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

const NEMO: &str = "trainer:\n  num_nodes: 4\n  devices: 8\n  precision: bf16\nmodel:\n  micro_batch_size: 1\n  \
    global_batch_size: 128\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2\n  encoder_seq_length: 4096\n  \
    num_layers: 32\n  hidden_size: 4096\n  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  num_attention_heads: 32\n  \
    num_query_groups: 8\n  bias: false\n  activation: fast-swiglu\n  normalization: rmsnorm\n  position_embedding_type: rope\n  \
    share_embeddings_and_output_weights: false\n  activations_checkpoint_method: block\n  activations_checkpoint_num_layers: 0\n  \
    fp8: false\n  fp8_hybrid: true\n  gradient_accumulation_fusion: false\n  optim:\n    name: mcore_distributed_optim\n    \
    overlap_grad_sync: true\n";

#[test]
fn nemo_is_read_as_megatron() {
    let job = config(NEMO);
    assert_eq!(job.format, ConfigFormat::Nemo);
    let scenario = &job.scenario;
    let module = &scenario.model.modules[0];
    assert_eq!((module.ffn, module.kv_heads, module.norm, module.bias), (16_384, 8, Norm::Rms, Bias::None));
    assert!(module.gated && !module.tied_embeddings && module.learned_positions == 0);
    assert_eq!((scenario.cluster.nodes, scenario.cluster.devices_per_node), (4, 8));
    assert_eq!((scenario.training.precision, scenario.training.recompute), (Precision::Bf16, Recompute::None));
    assert_eq!((scenario.training.zero_stage(), scenario.training.fused_weight_gradients), (1, false));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let bias = job.read.iter().find(|setting| setting.key == "model.bias").expect("the bias");
    assert_eq!(bias.value, "false");
    let contradictory = NEMO.replace("global_batch_size: 128", "global_batch_size: 100");
    assert!(error(&contradictory).contains("100 is no multiple of 1 x 8"), "{}", error(&contradictory));
}

/// Keys that begin like known ones and are none of them are unknown.
#[test]
fn misspelt_keys_of_nemo_are_unknown() {
    let known = NEMO.replace(
        "  optim:\n",
        "  moe_router_dtype: fp32\n  moe_grouped_gemm: true\n  attention_dropout: 0.0\n  data:\n    data_impl: mmap\n    \
         num_workers: 2\n    train_ds:\n      anything: 1\n  optim:\n    lr: 0.1\n    sched:\n      anything: 1\n",
    );
    assert_eq!(config(&known).unknown, Vec::<String>::new());
    let misspelt = NEMO.replace(
        "  optim:\n",
        "  moe_grouped_gem: true\n  moe_unheard_of: 1\n  attention_dropot: 0.0\n  activations_checkpoint_unheard_of: 1\n  \
         data:\n    num_workerz: 2\n  optim:\n    weight_decai: 0.1\n",
    );
    assert_eq!(
        config(&misspelt).unknown,
        [
            "model.moe_grouped_gem (did you mean moe_grouped_gemm?)",
            "model.moe_unheard_of",
            "model.attention_dropot (did you mean attention_dropout?)",
            "model.activations_checkpoint_unheard_of",
            "model.data.num_workerz (did you mean num_workers?)",
            "model.optim.weight_decai (did you mean weight_decay?)",
        ]
    );
}

/// The section of the optimizer of Megatron-Bridge has settings with an effect.
#[test]
fn the_optimizer_of_megatron_bridge_is_read() {
    let text = "train:\n  global_batch_size: 128\n  micro_batch_size: 2\nmodel:\n  seq_length: 4096\n  num_layers: 4\n  \
                hidden_size: 256\n  num_attention_heads: 4\noptimizer:\n  lr: 0.1\n  optimizer_cpu_offload: true\n  \
                optimizer_offload_fraction: 0.5\n  use_precision_aware_optimizer: true\n  exp_avg_dtype: torch.bfloat16\n  \
                exp_avg_sq_dtype: torch.bfloat16\n  adam_beta3: 0.9\n";
    let job = config(text);
    let training = &job.scenario.training;
    assert!((training.optimizer_offload - 0.5).abs() < 1e-12, "{}", training.optimizer_offload);
    assert_eq!(training.moments, MomentFormat::Bf16);
    assert_eq!(job.unknown.len(), 1, "{:?}", job.unknown);
    assert!(job.unknown[0].starts_with("optimizer.adam_beta3"), "{:?}", job.unknown);
}

#[test]
fn recipes_of_megatron_bridge_need_a_model() {
    let text = "train:\n  global_batch_size: 128\n  micro_batch_size: 2\nmodel:\n  seq_length: 4096\n  \
                tensor_model_parallel_size: 2\npeft:\n  dim: 8\n";
    assert!(error(text).contains("the Megatron-Bridge overrides state no model; add config.json"), "{}", error(text));
    let model = r#"{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 1000}"#;
    let files: [(&str, &[u8]); 2] = [("recipe.yaml", text.as_bytes()), ("config.json", model.as_bytes())];
    let job = read_files(&files, Hardware::default()).unwrap();
    assert_eq!((job.format, job.scenario.title.as_deref()), (ConfigFormat::MegatronBridge, Some("recipe.yaml")));
    assert_eq!((job.scenario.layout.tensor, job.scenario.workload.global_batch), (Some(2), 128));
    assert!(says(&job, "recipe of Megatron-Bridge is Python code"));
    assert_eq!(job.scenario.model.modules[0].adapters.map(|adapters| adapters.rank), Some(8));
}

#[test]
fn maxtext_multiplies_the_degrees_of_nodes_and_slices() {
    let text = "base_config: base.yml\nmodel_name: llama3.1-70b\nper_device_batch_size: 0.5\nmax_target_length: 8192\n\
                ici_tensor_parallelism: 4\nici_fsdp_parallelism: 2\ndcn_fsdp_parallelism: 16\nremat_policy: full\n";
    let job = config(text);
    assert_eq!(job.format, ConfigFormat::Maxtext);
    let scenario = &job.scenario;
    assert_eq!(scenario.model.parameters(), 70_553_706_496);
    assert_eq!((scenario.cluster.devices(), scenario.layout.tensor), (128, Some(4)));
    // Half a sequence of each of 128 devices.
    assert_eq!((scenario.workload.global_batch, scenario.layout.microbatch), (64, Some(2)));
    assert_eq!((scenario.training.zero_stage(), scenario.training.recompute), (3, Recompute::Full));
    let fraction = text.replace("ici_tensor_parallelism: 4\n", "");
    assert!(error(&fraction).contains("per_device_batch_size: 0.5 x 1 devices"), "{}", error(&fraction));
    // A model file with a job file.
    let model = "base_emb_dim: 64\nbase_num_query_heads: 4\nbase_num_kv_heads: 2\nbase_mlp_dim: 128\n\
                 base_num_decoder_layers: 2\nvocab_size: 1_000\nmlp_activations: [silu, linear]\n";
    let files: [(&str, &[u8]); 2] = [("job.yml", text.as_bytes()), ("model.yml", model.as_bytes())];
    let joined = read_files(&files, Hardware::default()).unwrap();
    assert_eq!((joined.scenario.model.layers(), joined.scenario.cluster.devices()), (2, 128));
}

#[test]
fn primus_overrides_megatron_and_maxtext() {
    let megatron = config(
        "modules:\n  pre_trainer:\n    framework: megatron\n    model: llama3.1_70B.yaml\n    overrides:\n      \
         micro_batch_size: 1\n      global_batch_size: ${GBS:64}\n      seq_length: 8192\n      \
         tensor_model_parallel_size: 8\n      sequence_parallel: 1\n      use_torch_fsdp2: true\n      fp8: hybrid\n",
    );
    assert_eq!((megatron.format, megatron.scenario.workload.global_batch), (ConfigFormat::Primus, 64));
    assert_eq!(megatron.scenario.training.precision, Precision::Fp8);
    assert!(megatron.scenario.training.sequence_parallel && megatron.scenario.training.zero_stage() == 3);
    let maxtext = config(
        "modules:\n  pre_trainer:\n    framework: maxtext\n    model: llama3_8B.yaml\n    overrides:\n      \
         per_device_batch_size: 2\n      max_target_length: 4096\n      ici_fsdp_parallelism: 8\n",
    );
    assert_eq!(maxtext.scenario.workload.global_batch, 16);
    assert!(error("modules:\n  pre_trainer:\n    framework: other\n").contains("pre_trainer.framework"));
}

#[test]
fn verl_trains_its_actor() {
    let overrides = "set -x\npython3 -m verl.trainer.main_ppo \\\n  algorithm.adv_estimator=grpo \\\n  data.max_prompt_length=512 \\\n  \
                     data.max_response_length=1024 \\\n  actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \\\n  \
                     actor_rollout_ref.actor.ppo_mini_batch_size=256 \\\n  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \\\n  \
                     actor_rollout_ref.actor.fsdp_config.param_offload=True \\\n  actor_rollout_ref.rollout.n=5 \\\n  \
                     +actor_rollout_ref.actor.ulysses_sequence_parallel_size=2 \\\n  trainer.n_gpus_per_node=8 trainer.nnodes=2 \\\n  \
                     +other.api_key=hunter2\n";
    let job = config(overrides);
    assert_eq!(job.format, ConfigFormat::Verl);
    let scenario = &job.scenario;
    assert_eq!((scenario.workload.context_length, scenario.workload.global_batch), (1536, 1280));
    assert_eq!((scenario.cluster.devices(), scenario.training.context_parallel), (16, 2));
    assert_eq!((scenario.training.zero_stage(), scenario.training.recompute), (3, Recompute::Full));
    assert!(says(&job, "Only the training step of the actor is read") && says(&job, "between its phases"));
    assert!(!scenario.training.parameter_offload);
    assert!(job.unknown.contains(&"other.api_key".to_owned()) && !format!("{job:?}").contains("hunter2"));
    let wrong = overrides.replace("ppo_mini_batch_size=256", "ppo_mini_batch_size=5");
    assert!(error(&wrong).contains("ppo_mini_batch_size: 25 is no multiple of 8 x 8"), "{}", error(&wrong));
}

#[test]
fn variables_of_mlperf_are_arguments() {
    let text = "DGXNNODES=72\nDGXNGPU=8\nTENSOR_MODEL_PARALLEL=8\nPIPELINE_MODEL_PARALLEL=9\nINTERLEAVED_PIPELINE=7\n\
                CONTEXT_PARALLEL=2\nMICRO_BATCH_SIZE=1\nMINIBS=63\nMODEL_SIZE=405b\nFP8=True\nUSE_DIST_OPTIMIZER=True\n";
    let job = config(text);
    assert_eq!(job.format, ConfigFormat::Mlperf);
    let scenario = &job.scenario;
    assert_eq!((scenario.cluster.devices(), scenario.workload.global_batch), (576, 63 * 4));
    assert_eq!((scenario.layout.tensor, scenario.layout.pipeline, scenario.layout.chunks), (Some(8), Some(9), Some(7)));
    assert_eq!((scenario.training.precision, scenario.training.zero_stage()), (Precision::Fp8, 1));
    let uneven = config(&format!("{text}ASYM_PP_EMBED=True\nASYM_PP_LOSS=True\n"));
    assert_eq!((scenario.free.len(), uneven.scenario.free.len()), (0, 1), "embedding and output head count as layers");
    // An overlap that is on has what it needs.
    let overlaps = text.replace("USE_DIST_OPTIMIZER=True", "TP_COMM_OVERLAP=True\nOVERLAP_PARAM_GATHER=True");
    let training = config(&overlaps).scenario.training;
    assert!(training.sequence_parallel && training.zero_stage() == 1);
    assert!(!config(&format!("{overlaps}SP=0\n")).scenario.training.sequence_parallel);
    let adapted = config("DGXNNODES=1\nDGXNGPU=8\nTP=4\nPP=1\nCP=1\nMBS=1\nMINIBS=4\nLORA_A2A=1\nSP=1\nFP8=True\n");
    let module = &adapted.scenario.model.modules[0];
    assert_eq!(module.adapters.map(|adapters| (adapters.rank, adapters.mlp)), Some((16, false)));
    let unnamed = text.replace("MODEL_SIZE=405b\n", "");
    assert!(error(&unnamed).contains("the MLPerf variable file states no model"), "{}", error(&unnamed));
}

#[test]
fn formats_batches_and_experts_of_megatron_are_read_or_reported() {
    let plain = "x --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --micro-batch-size 2 --bf16 \
                 --tensor-model-parallel-size 2 --num-experts 8 --expert-model-parallel-size 2";
    let job = config(&format!("{plain} --step-batch-size-schedule \"0:384 200B:768 400B:1152\" --squared-relu"));
    assert_eq!(job.scenario.workload.global_batch, 1152);
    assert!(says(&job, "The final batch is read"), "{:?}", job.not_modelled);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let job = config(&format!("{plain} --use-precision-aware-optimizer --main-grads-dtype bf16 --exp-avg-dtype bf16"));
    assert_eq!(job.scenario.training.gradients, GradientFormat::Bf16);
    assert!(says(&job, "The moments have two formats"), "{:?}", job.not_modelled);
    let experts =
        |degree: &str| says(&config(&format!("{plain} --expert-tensor-parallel-size {degree}")), "Experts have the");
    assert!(experts("4") && !experts("2") && !experts("1"));
    let whole = |degree: &str| {
        let job = config(&format!("{plain} --expert-tensor-parallel-size {degree}"));
        job.scenario.training.expert_tensor_parallel
    };
    assert_eq!([whole("1"), whole("2"), whole("4")], [Some(1), None, None]);
    let modules = |text: &str| config(&format!("{plain} --recompute-granularity selective {text}")).scenario.training;
    let training = modules("--recompute-modules moe_act layernorm --lr 1");
    assert_eq!(training.recompute_modules, [RecomputedModule::MoeAct, RecomputedModule::Layernorm]);
    assert_eq!(modules("--recompute-modules core_attn").recompute_modules, [RecomputedModule::CoreAttn]);
    assert_eq!(modules("").recompute_modules, [RecomputedModule::CoreAttn], "the default of Megatron-LM");
    assert_eq!(modules("--deepspeed").recompute_modules, [], "Megatron-DeepSpeed does not repeat fused attention");
    let wrong = error(&format!("{plain} --recompute-granularity selective --recompute-modules everything"));
    assert!(wrong.starts_with("recompute-modules: the modules are core_attn, mla_up_proj"), "{wrong}");
    let job = config(&format!("{plain} --tokenizer-model a/nemotron_2_256k.model --make-vocab-size-divisible-by 3232"));
    assert_eq!(job.scenario.model.modules[0].vocab, 258_560, "padded to a multiple of 2 x 3232");
    let job = config(&format!("{plain} --tokenizer-model a/llama.model --make-vocab-size-divisible-by 3232"));
    assert_eq!(job.scenario.model.modules[0].vocab, 51_712);
    let flex = "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep";
    let job = config(&format!("{plain} {flex}"));
    assert!(job.scenario.training.dispatch_by_node && job.unknown.is_empty(), "{:?}", job.unknown);
    let job = config(&format!("{plain} --zero-stage 1 --deepspeed"));
    assert_eq!(job.scenario.training.framework, Framework::MegatronDeepspeed);
}

/// The pipeline of MaxText runs all forwards first. Its repeats are model chunks.
#[test]
fn the_pipeline_of_maxtext_is_looped() {
    use planner::scenario::PlannerKind;
    let text =
        "model_name: llama2-7b\nper_device_batch_size: 4\nmax_target_length: 2048\nici_pipeline_parallelism: 4\n";
    let of = |lines: &str| {
        let scenario = config(&format!("{text}{lines}")).scenario;
        (scenario.layout.chunks, scenario.planners[0])
    };
    assert_eq!(of("num_pipeline_repeats: 2\n"), (Some(2), PlannerKind::LoopedBfs));
    assert_eq!(of("num_pipeline_repeats: 1\n"), (None, PlannerKind::Gpipe));
    assert_eq!(of(""), (None, PlannerKind::Gpipe));
}

#[test]
fn contradictory_megatron_options_are_refused() {
    let plain = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 \
                 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --micro-batch-size 2";
    for (options, message) in [
        ("--num-layers-per-virtual-pipeline-stage 5", "num-layers-per-virtual-pipeline-stage: 12 layers of a rank"),
        ("--global-batch-size 30", "global-batch-size: 30 is no multiple of 2 x 4"),
        ("--global-batch-size 0", "global-batch-size: a step has at least one sequence"),
        ("--bf16 --fp16", "bf16: fp16 is on too"),
    ] {
        let text = format!("{plain} {options}");
        assert!(error(&text).contains(message), "{}", error(&text));
    }
    let job = config(&format!(
        "{plain} --global-batch-size 32 --num-layers-per-virtual-pipeline-stage 3 --bf16 --pp-partition-method type:transformer|embedding"
    ));
    assert_eq!(job.scenario.layout.chunks, Some(4));
    assert!(says(&job, "--pp-partition-method"), "{:?}", job.not_modelled);
}

/// Texts name the framework and the keys of the file.
#[test]
fn texts_have_the_words_of_the_file() {
    let says = |job: &JobConfig, text: &str| job.assumed.iter().any(|sentence| sentence.contains(text));
    let maxtext = config(
        "model_name: mixtral-8x7b\nper_device_batch_size: 8\nmax_target_length: 4096\nici_fsdp_parallelism: 16\n",
    );
    assert!(says(&maxtext, "as usual with MaxText") && !says(&maxtext, "Megatron"), "{:?}", maxtext.assumed);
    let verl = config(
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B data.train_batch_size=512 \
         actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1\n",
    );
    assert!(says(&verl, "as usual with Megatron-LM") && !says(&verl, "Hugging Face"), "{:?}", verl.assumed);
    let nemo = error("trainer:\n  devices: 8\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 64\n");
    assert_eq!(nemo, "the file does not state layers (model.num_layers)");
    let nemo = error(
        "trainer:\n  devices: 8\nmodel:\n  micro_batch_size: 1\n  num_layers: 2\n  hidden_size: 8\n  num_attention_heads: 2\n  global_batch_size: 0\n",
    );
    assert!(nemo.starts_with("model.global_batch_size: "), "{nemo}");
}

#[test]
fn variables_of_verl_scripts_are_expanded() {
    let script = |flag: &str| {
        format!(
            "MAXP=1024\nGC={flag}\npython3 -m verl.trainer.main_ppo data.train_batch_size=256 \\\n  \
             data.max_prompt_length=$((MAXP / 2)) data.max_response_length=${{MAXP}} \\\n  \
             actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct actor_rollout_ref.actor.ppo_mini_batch_size=64 \\\n  \
             actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \\\n  \
             actor_rollout_ref.model.enable_gradient_checkpointing=$GC trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
        )
    };
    let job = config(&script("False"));
    assert_eq!(job.scenario.workload.context_length, 1536);
    assert_eq!(job.scenario.training.recompute, Recompute::None);
    assert_eq!(config(&script("True")).scenario.training.recompute, Recompute::Full);
    let unset = config(&script("True").replace("GC=True", ""));
    assert!(says(&unset, "has a variable that the file does not set. It is read as on."), "{:?}", unset.assumed);
}

#[test]
fn jobs_that_a_framework_does_not_start_are_refused() {
    let megatron = |rest: &str| {
        config(&format!(
            "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
             --num-attention-heads 32 --seq-length 2048 --micro-batch-size 1 --vocab-size 50257 {rest}\n"
        ))
    };
    let stages = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4";
    let job = megatron(&format!("{stages} --num-layers-per-virtual-pipeline-stage 2 --bf16 --global-batch-size 40"));
    assert!(
        job.refusals[0].contains("microbatches of a replica (10) are a multiple of the stages (4)"),
        "{:?}",
        job.refusals
    );
    let job = megatron(&format!("{stages} --num-layers-per-virtual-pipeline-stage 2 --bf16 --global-batch-size 64"));
    assert_eq!(job.refusals, Vec::<String>::new());
    let job = megatron(&format!("{stages} --bf16 --deepspeed --zero-stage 2 --global-batch-size 64"));
    assert!(
        job.refusals[0].contains("DeepSpeed refuses ZeRO 2 with pipeline parallelism (4 stages)"),
        "{:?}",
        job.refusals
    );
    // Gradients of fp16 have 16 bits, and Megatron-FSDP shards nothing by default.
    let job = megatron("--fp16 --global-batch-size 64 --use-megatron-fsdp");
    assert_eq!(job.scenario.training.gradients, GradientFormat::Bf16);
    assert_eq!(job.scenario.training.zero_stage(), 0);
    assert!(says(&job, "default no_shard shards nothing"), "{:?}", job.assumed);
    let text = "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
                --num-attention-heads 32 --seq-length 2048 --micro-batch-size 1 --vocab-size 50257 --bf16 --global-batch-size 64";
    let on = Hardware { devices: Some(48), ..Hardware::default() };
    let job = read_on("job.sh", text.as_bytes(), on).unwrap();
    assert!(job.refusals[0].contains("64 is no multiple of 1 x 48"), "{:?}", job.refusals);
}

#[test]
fn remat_policies_store_layer_inputs_or_products() {
    let job = |policy: &str| {
        config(&format!(
            "base_emb_dim: 4096\nbase_num_query_heads: 32\nbase_num_kv_heads: 8\nbase_mlp_dim: 14336\nbase_num_decoder_layers: 32\n\
             head_dim: 128\nvocab_size: 128256\nmax_target_length: 8192\nper_device_batch_size: 1\nhardware: gpu\n\
             ici_fsdp_parallelism: 8\nremat_policy: {policy}\n"
        ))
        .scenario
        .training
    };
    assert_eq!(job("save_qkv_proj").recompute, Recompute::Full);
    assert_eq!(job("minimal").recompute, Recompute::Operators);
    let offloaded = job("minimal_offloaded");
    assert!(offloaded.recompute == Recompute::Operators && (offloaded.activation_offload - 1.0).abs() < 1e-12);
}
