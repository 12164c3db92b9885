//! Files and commands of 2025 and later: performance scripts, subcommands, groups of pods, and frameworks that are not read.

use super::*;

fn says(sentences: &[String], text: &str) -> bool {
    sentences.iter().any(|sentence| sentence.contains(text))
}

#[test]
fn performance_scripts_of_megatron_bridge_state_degrees() {
    let short = "python scripts/performance/setup_experiment.py --account a -g h100 -m llama -mr llama3_70b -ng 64 -c fp8_cs -gb 128 -mb 1 -tp 4 -pp 4 -cp 2 -vp 5 -sl 8192\n";
    let long = "python scripts/performance/setup_experiment.py --gpu h100 --model_family_name llama --model_recipe_name llama3_70b --num_gpus 64 --compute_dtype fp8_cs --global_batch_size 128 --micro_batch_size=1 --tensor_model_parallel_size 4 --pipeline_model_parallel_size 4 --context_parallel_size 2 --virtual_pipeline_model_parallel_size 5 --seq_length 8192\n";
    for text in [short, long] {
        let job = config(text);
        assert_eq!(job.format, ConfigFormat::MegatronBridge, "{text}");
        let Scenario { model, cluster, layout, workload, training, .. } = &job.scenario;
        assert_eq!(model.parameters(), 70_553_706_496);
        assert_eq!((cluster.name.as_str(), cluster.devices(), cluster.devices_per_node), ("H100", 64, 8));
        assert_eq!(
            (layout.tensor, layout.pipeline, layout.chunks, layout.microbatch),
            (Some(4), Some(4), Some(5), Some(1))
        );
        assert_eq!((training.context_parallel, training.precision), (2, Precision::Fp8));
        assert_eq!((workload.global_batch, workload.context_length), (128, 8192));
    }
    let variables = config(&format!("TP=4\n{}", short.replace("-tp 4", "-tp $TP")));
    assert_eq!(variables.scenario.layout.tensor, Some(4));
    let read = |job: &JobConfig, key: &str| job.read.iter().any(|setting| setting.key == key);
    let job = config(short);
    assert!(read(&job, "-tp") && read(&job, "-mr"), "{:?}", job.read);
    // Degrees that the command does not state are in Python code.
    let open = config(&short.replace("-cp 2 ", ""));
    assert!(says(&open.assumed, "does not state -cp"), "{:?}", open.assumed);
    let none = error(&short.replace("-tp 4 -pp 4 -cp 2 -vp 5 ", ""));
    assert!(none.contains("Python code") && none.contains("-tp"), "{none}");
}

#[test]
fn subcommands_of_torchtitan_select_the_recomputation() {
    let command = "NGPU=8 MODULE=llama3 CONFIG=llama3_8b ./run_train.sh --training.local_batch_size 2";
    assert_eq!(config(command).scenario.training.recompute, Recompute::Operators);
    let job = config(&format!("{command} activation-checkpoint:full-ac-config compile:compile-config\n"));
    assert_eq!(job.scenario.training.recompute, Recompute::Full);
    assert!(says(&job.assumed, "compile:compile-config is not read"), "{:?}", job.assumed);
    let other = config(&format!("{command} activation_checkpoint:memory-budget\n"));
    assert!(says(&other.not_modelled, "activation_checkpoint:memory-budget"), "{:?}", other.not_modelled);
}

#[test]
fn names_without_offload_state_none() {
    let job = |file: &str| {
        config(&format!(
            "accelerate launch --num_processes 8 --use_deepspeed --deepspeed_config_file configs/{file} finetune.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1\n"
        ))
    };
    let without = job("stage3_no_offloading_accelerate.conf");
    assert_eq!((without.scenario.training.zero_stage(), without.scenario.training.optimizer_offload), (3, 0.0));
    assert!(!says(&without.assumed, "offload"), "{:?}", without.assumed);
    assert!(job("stage3_offloading_accelerate.conf").scenario.training.optimizer_offload >= 1.0);
}

#[test]
fn groups_of_pods_have_a_size() {
    let text = |replicas: u32, size: u32, leader: &str| {
        format!(
            "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nspec:\n  replicas: {replicas}\n  leaderWorkerTemplate:\n    size: {size}\n{leader}    workerTemplate:\n      spec:\n        containers:\n        - name: w\n          image: x\n          command: [torchrun, --nproc_per_node=8, train.py, --model_name_or_path, Qwen/Qwen2.5-7B, --per_device_train_batch_size, \"2\"]\n          resources: {{limits: {{nvidia.com/gpu: 8}}}}\n"
        )
    };
    let devices = |text: &str| config(text).scenario.cluster.devices();
    assert_eq!(devices(&text(1, 4, "")), 32);
    assert_eq!(devices(&text(2, 4, "")), 64);
    // A leader without devices.
    let leader = "    leaderTemplate:\n      spec:\n        containers:\n        - name: l\n          image: x\n";
    assert_eq!(devices(&text(1, 5, leader)), 32);
}

#[test]
fn settings_without_effect_have_a_remark() {
    let arguments = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --recompute-granularity full --recompute-method block --bf16 --recompute-num-layers";
    assert!(says(
        &config(&format!("{arguments} 64\n")).assumed,
        "64 layers are to be recomputed, and the model has 32"
    ));
    assert!(!says(&config(&format!("{arguments} 32\n")).assumed, "to be recomputed"));
    let trainer = "per_device_train_batch_size: 1\nmodel_name_or_path: Qwen/Qwen3-8B\nattn_implementation: flash_attention_3\nbf16: true\n";
    let on =
        |preset| read_on("a.yaml", trainer.as_bytes(), Hardware { preset: Some(preset), devices: Some(8) }).unwrap();
    assert!(says(&on("a100-80gb").assumed, "FlashAttention 3 is documented for H100"), "{:?}", on("a100-80gb").assumed);
    assert!(!says(&on("h100").assumed, "FlashAttention 3"));
}

#[test]
fn files_of_other_frameworks_are_named() {
    let veomni = "model:\n  model_path: Qwen/Qwen3-8B\ntrain:\n  data_parallel_mode: fsdp2\n  ulysses_parallel_size: 2\n  global_batch_size: 64\n  micro_batch_size: 1\n";
    let prime = "[trainer.model]\nname = \"Qwen/Qwen3-4B\"\n[orchestrator]\nbatch_size = 512\n";
    let forge = "trainer:\n  model:\n    name: qwen3\n    hf_assets_path: hf://Qwen/Qwen3-8B\n";
    let nemo_rl = "policy:\n  model_name: x\n  train_global_batch_size: 512\n  dtensor_cfg:\n    enabled: true\n";
    let olmo = "torchrun --nproc-per-node=8 src/scripts/train/OLMo2/OLMo-2-0325-32B-train.py train run01 cluster\n";
    for (text, name) in
        [(veomni, "VeOmni"), (prime, "prime-rl"), (forge, "torchforge"), (nemo_rl, "NeMo RL"), (olmo, "OLMo-core")]
    {
        assert!(error(text).contains(name), "{name}: {}", error(text));
    }
    // With config.json they are no overrides of another framework.
    let model = br#"{"model_type":"qwen3","hidden_size":4096,"num_hidden_layers":36,"num_attention_heads":32,"intermediate_size":12288,"vocab_size":151936}"#;
    let both = read_files(&[("a.yaml", veomni.as_bytes()), ("config.json", model.as_slice())], Hardware::default());
    assert!(both.expect_err("VeOmni").to_string().contains("VeOmni"));
}

#[test]
fn commands_of_olmo_name_their_file() {
    let command = "torchrun --nproc_per_node=8 scripts/train.py configs/OLMo2-7B.yaml --device_train_microbatch_size=4 --activation_checkpointing=null\n";
    assert!(error(command).contains("OLMo2-7B.yaml, which is not given"), "{}", error(command));
    let file = "model:\n  d_model: 4096\n  n_heads: 32\n  n_layers: 32\n  mlp_hidden_size: 22016\n  rope: true\n  activation_type: swiglu\n  vocab_size: 100278\n  max_sequence_length: 4096\nglobal_train_batch_size: 1024\ndevice_train_microbatch_size: 2\nprecision: amp_bf16\nactivation_checkpointing: whole_layer\n";
    let job = read_files(&[("run.sh", command.as_bytes()), ("OLMo2-7B.yaml", file.as_bytes())], Hardware::default());
    let job = job.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((job.format, job.scenario.layout.microbatch), (ConfigFormat::Olmo, Some(4)));
    assert_eq!((job.scenario.training.recompute, job.scenario.cluster.devices()), (Recompute::None, 8));
}

#[test]
fn yaml_of_megatron_has_the_names_of_megatron_core() {
    let text = "language_model:\n  num_layers: 24\n  hidden_size: 1024\n  num_attention_heads: 16\n  num_query_groups: 4\n  \
                ffn_hidden_size: null\n  add_bias_linear: False\n  activation_func: swiglu\n  num_moe_experts: 8\n  \
                moe_router_topk: 2\n  bias_swiglu_fusion: True\n  recompute_granularity: selective\n  fp8: null\n  normalization: RMSNorm\n\
                model_parallel:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2\n  \
                virtual_pipeline_model_parallel_size: 6\n  sequence_parallel: True\n  expert_model_parallel_size: 1\n  bf16: True\n  \
                overlap_p2p_comm: True\n  grad_scale_func: null\n  made_up_option: 3\nmicro_batch_size: 2\nglobal_batch_size: 128\n\
                num_layers_per_virtual_pipeline_stage: 4\nseq_length: 4096\nposition_embedding_type: rope\nuse_distributed_optimizer: True\noverlap_grad_reduce: True\n\
                lr: 0.00025\ndata_path: null\n";
    let hardware = Hardware { devices: Some(16), ..Hardware::default() };
    let job = read_on("gpt_config.yaml", text.as_bytes(), hardware).unwrap();
    assert_eq!(job.format, ConfigFormat::MegatronYaml);
    let Scenario { model, layout, training, workload, cluster, .. } = &job.scenario;
    let module = &model.modules[0];
    assert_eq!((module.layers, module.hidden, module.kv_heads), (24, 1024, 4));
    assert!(
        module.gated && module.norm == Norm::Rms && module.moe.is_some_and(|moe| (moe.experts, moe.top_k) == (8, 2))
    );
    assert_eq!(
        (layout.tensor, layout.pipeline, layout.chunks, layout.microbatch),
        (Some(2), Some(2), Some(3), Some(2))
    );
    assert_eq!((workload.global_batch, workload.context_length, cluster.devices()), (128, 4096, 16));
    assert!(training.sequence_parallel && training.zero_stage() == 1 && training.recompute == Recompute::Selective);
    assert_eq!(job.unknown, ["model_parallel.made_up_option"]);
    // Megatron-LM replaces the number of chunks in these files.
    assert!(
        job.not_modelled.iter().any(|note| note.starts_with("virtual_pipeline_model_parallel_size is not applied"))
    );
    assert!(
        job.read.iter().any(|setting| setting.key == "model_parallel.tensor_model_parallel_size"),
        "{:?}",
        job.read
    );
}

#[test]
fn yaml_of_megatron_with_fp8_is_read() {
    let read = |fp8: &str, residual: &str| {
        config(&format!(
            "language_model:\n  num_layers: 24\n  hidden_size: 1024\n  num_attention_heads: 16\n  fp8: {fp8}\n  \
             fp32_residual_connection: {residual}\nmodel_parallel:\n  tensor_model_parallel_size: 2\n  bf16: True\n\
             micro_batch_size: 2\nglobal_batch_size: 128\nseq_length: 2048\n"
        ))
    };
    let job = read("hybrid", "True");
    assert_eq!(job.scenario.training.precision, Precision::Fp8);
    assert!(says(&job.not_modelled, "residual connection in fp32") && job.unknown.is_empty(), "{job:?}");
    for fp8 in ["null", "False"] {
        let job = read(fp8, "False");
        assert_eq!(job.scenario.training.precision, Precision::Bf16, "{fp8}");
        assert!(job.not_modelled.is_empty() && job.unknown.is_empty(), "{job:?}");
    }
}

/// A recipe of Megatron-Bridge in Python states the stages of DeepSeek-V3 as lists of lists.
#[test]
fn recipes_of_megatron_bridge_state_uneven_stages() {
    let recipe = |layout: &str| {
        format!(
            "from megatron.bridge import AutoBridge\n\n\ndef deepseek_v3_pretrain_config():\n    cfg = common()\n    \
             cfg.model = AutoBridge.from_hf_pretrained(\"deepseek-ai/DeepSeek-V3\").to_megatron_provider(load_weights=False)\n    \
             cfg.model.tensor_model_parallel_size = 2\n    cfg.model.pipeline_model_parallel_size = 8\n    \
             cfg.model.expert_model_parallel_size = 32\n    cfg.model.sequence_parallel = True\n    \
             cfg.model.seq_length = 4096\n    {layout}\n    cfg.train.global_batch_size = 4096\n    \
             cfg.train.micro_batch_size = 1\n    return cfg\n"
        )
    };
    let stages = vec![8, 8, 8, 8, 8, 8, 8, 5];
    for layout in [
        "cfg.model.pipeline_model_parallel_layout = (\n        [[\"embedding\"] + [\"decoder\"] * 8]\n        + [[\"decoder\"] * 8] * 6\n        \
         + [[\"decoder\"] * 5 + [\"mtp\", \"loss\"]]\n    )",
        "cfg.model.pipeline_model_parallel_layout = \"Et*8|(t*8|)*6t*5mL\"",
        "set_deepseek_v3_pipeline_model_parallel_layout(cfg.model)",
    ] {
        let job = config(&recipe(layout));
        assert_eq!(job.format, ConfigFormat::MegatronBridge);
        let scenario = &job.scenario;
        assert_eq!((scenario.layout.tensor, scenario.layout.pipeline), (Some(2), Some(8)), "{layout}");
        assert_eq!(scenario.layers_per_stage, stages, "{layout}: {:?}", job.not_modelled);
        assert_eq!((scenario.workload.global_batch, scenario.training.expert_parallel), (4096, 32));
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    }
    // The same as an override of a YAML file.
    let yaml = "recipe: deepseek_v3_pretrain_config\nmodel:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 2\n  \
                pipeline_model_parallel_layout: [[embedding, decoder], [decoder, decoder, loss]]\n  num_layers: 3\ntrain:\n  \
                global_batch_size: 64\n  micro_batch_size: 1\n";
    let job = config(yaml);
    assert_eq!(job.scenario.layers_per_stage, [1, 2], "{:?} {:?}", job.not_modelled, job.unknown);
}

/// The model is stated by name, so its layers and experts are known after the degrees.
#[test]
fn stages_and_expert_degrees_apply_to_models_by_name() {
    let recipe = |model: &str, settings: &str| {
        config(&format!(
            "from megatron.bridge import AutoBridge\n\n\ndef pretrain_config():\n    cfg = common()\n    \
             cfg.model = AutoBridge.from_hf_pretrained(\"{model}\").to_megatron_provider(load_weights=False)\n    \
             cfg.model.tensor_model_parallel_size = 4\n    {settings}\n    cfg.model.seq_length = 4096\n    \
             cfg.train.global_batch_size = 128\n    cfg.train.micro_batch_size = 1\n    return cfg\n"
        ))
    };
    let uneven = "cfg.model.pipeline_model_parallel_size = 4\n    cfg.model.num_layers_in_first_pipeline_stage = 14\n    \
                  cfg.model.num_layers_in_last_pipeline_stage = 18";
    let job = recipe("meta-llama/Meta-Llama-3.1-70B", uneven);
    assert_eq!(job.scenario.layers_per_stage, [14, 24, 24, 18], "{:?}", job.not_modelled);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let experts = "cfg.model.expert_model_parallel_size = 8\n    cfg.model.expert_tensor_parallel_size = 1";
    assert_eq!(recipe("Qwen/Qwen3-30B-A3B", experts).scenario.training.expert_tensor_parallel, Some(1));
    assert_eq!(recipe("meta-llama/Meta-Llama-3.1-70B", experts).scenario.training.expert_tensor_parallel, None);

    let verl = "python3 -m verl.trainer.main_ppo --config-name='ppo_megatron_trainer.yaml' data.train_batch_size=512 \
                data.max_prompt_length=1024 data.max_response_length=3072 actor_rollout_ref.model.path=Qwen/Qwen3-8B \
                actor_rollout_ref.actor.ppo_mini_batch_size=128 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \
                actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \
                +actor_rollout_ref.actor.megatron.override_transformer_config.num_layers_in_first_pipeline_stage=17 \
                trainer.n_gpus_per_node=8 trainer.nnodes=2\n";
    let job = config(verl);
    assert_eq!(job.scenario.layers_per_stage, [17, 19], "{:?} {:?}", job.not_modelled, job.unknown);
}
