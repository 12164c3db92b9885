//! Tests of command lines of programs with a job file: torchtune, litgpt, MaxText, Megatron-Bridge, NeMo, llm-foundry.

use super::*;

fn says(sentences: &[String], text: &str) -> bool {
    sentences.iter().any(|sentence| sentence.contains(text))
}

fn together(files: &[(&str, &str)]) -> Result<JobConfig, JobConfigError> {
    let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    read_files(&files, Hardware::default())
}

const TUNE: &str = "model:\n  _component_: torchtune.models.llama3_1.llama3_1_8b\ntokenizer:\n  max_seq_len: 8192\n\
                    batch_size: 2\ngradient_accumulation_steps: 1\nenable_activation_checkpointing: True\n\
                    tensor_parallel_dim: 2\n";

#[test]
fn commands_of_torchtune_replace_values_of_the_file() {
    let command = "tune run --nnodes 1 --nproc_per_node 4 full_finetune_distributed --config my.yaml batch_size=$B \
                   dataset.packed=True";
    let command = format!("B=4\n{command}\n");
    let job = together(&[("run.sh", &command), ("my.yaml", TUNE)]).unwrap();
    assert_eq!(job.format, ConfigFormat::Torchtune);
    let Scenario { cluster, layout, workload, training, .. } = &job.scenario;
    assert_eq!((cluster.devices(), layout.tensor, layout.microbatch), (4, Some(2), Some(4)));
    assert_eq!((workload.global_batch, training.recompute), (8, Recompute::Full));
    assert!(says(&job.assumed, "batch_size replaces batch_size of the file: 4 instead of 2"));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let message = error(&command);
    assert!(message.contains("the command names the job file my.yaml, which is not given"), "{message}");
}

/// Configurations of torchtune have the model in their name.
#[test]
fn configurations_of_torchtune_name_the_model() {
    let of = |recipe: &str, config: &str| format!("tune run {recipe} --config {config} batch_size=2\n");
    let job = config(&of("--nproc_per_node 8 lora_finetune_distributed", "llama3_1/70B_lora"));
    let Scenario { cluster, model, training, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), cluster.devices(), training.zero_stage()), ("llama3.1-70b", 8, 3));
    assert_eq!(model.modules[0].adapters.map(|adapters| adapters.rank), Some(8));
    assert!(says(&job.assumed, "The configuration llama3_1/70B_lora is not given."));
    let read = job.read.iter().find(|setting| setting.setting == "model").unwrap();
    assert_eq!((read.key.as_str(), read.value.as_str()), ("--config", "llama3_1/70B_lora"));
    let job = config(&of("lora_finetune_single_device", "qwen2_5/0_5B_lora_single_device"));
    let Scenario { cluster, model, training, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), cluster.devices(), training.zero_stage()), ("qwen2.5-0.5b", 1, 0));
}

#[test]
fn commands_of_litgpt_are_read() {
    let job = config(
        "litgpt finetune_lora meta-llama/Llama-3.1-8B --devices 4 --data JSON --data.json_path x.json \
         --train.micro_batch_size 2 --train.global_batch_size=64 --train.max_seq_length 1024 --lora_r 32 \
         --quantize bnb.nf4 --precision bf16-mixed --out_dir out\n",
    );
    assert_eq!(job.format, ConfigFormat::Litgpt);
    let Scenario { cluster, layout, workload, model, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), cluster.devices(), layout.microbatch), ("llama3.1-8b", 4, Some(2)));
    assert_eq!((workload.global_batch, workload.context_length), (64, 1024));
    let adapters = model.modules[0].adapters.unwrap();
    assert_eq!((adapters.rank, adapters.base_bits), (32, Some(4)));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let job = config("litgpt pretrain pythia-1b --devices 8 --num_nodes 2 --train.micro_batch_size 8\n");
    assert_eq!((job.scenario.cluster.devices(), job.scenario.model.name.as_str()), (16, "pythia-1b"));
    // The name of older versions.
    let job = config("litgpt finetune lora --checkpoint_dir checkpoints/mistralai/Mistral-7B-v0.1\n");
    assert_eq!((job.scenario.cluster.devices(), job.scenario.model.name.as_str()), (1, "mistral-7b"));
    assert!(error("litgpt pretrain --config hub/tinyllama.yaml --devices 4\n").contains("the job file tinyllama.yaml"));
}

#[test]
fn commands_of_maxtext_shard_over_all_devices() {
    let command = "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama2-70b per_device_batch_size=2 \
                   max_target_length=4096 remat_policy=full attention=flash";
    let job = config(&format!("{command}\n"));
    assert_eq!(job.format, ConfigFormat::Maxtext);
    let Scenario { layout, workload, training, cluster, .. } = &job.scenario;
    assert_eq!((layout.tensor, layout.pipeline, layout.microbatch), (Some(1), Some(1), Some(2)));
    assert_eq!((training.zero_stage(), workload.global_batch), (3, 2 * cluster.devices()));
    let job = config(&format!("{command} ici_fsdp_parallelism=16 ici_tensor_parallelism=4\n"));
    assert_eq!((job.scenario.cluster.devices(), job.scenario.layout.tensor), (64, Some(4)));
    // A file with the sizes of a model alone.
    let model = "base_emb_dim: 64\nbase_num_query_heads: 4\nbase_num_kv_heads: 2\nbase_mlp_dim: 128\n\
                 base_num_decoder_layers: 2\nvocab_size: 1000\n";
    let job = config(model);
    let Scenario { layout, training, .. } = &job.scenario;
    assert_eq!((layout.tensor, layout.pipeline, training.zero_stage()), (Some(1), Some(1), 3));
    assert!(says(&job.assumed, "MaxText's default shards over all devices (FSDP)."));
}

#[test]
fn recipes_of_megatron_bridge_name_the_model() {
    let job = config(
        "torchrun --nproc_per_node=8 --nnodes=2 run_recipe.py --recipe qwen3_30b_a3b_pretrain_config \
         model.tensor_model_parallel_size=2 train.global_batch_size=64 train.micro_batch_size=1\n",
    );
    assert_eq!(job.format, ConfigFormat::MegatronBridge);
    let Scenario { model, layout, cluster, training, workload, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), cluster.devices(), layout.tensor), ("qwen3-30b-a3b", 16, Some(2)));
    assert_eq!((training.zero_stage(), workload.global_batch), (1, 64));
    assert!(job.read.iter().any(|setting| setting.key == "--recipe"));
}

#[test]
fn overrides_of_nemo_and_llm_foundry_are_read() {
    let job = config(
        "python megatron_gpt_pretraining.py --config-path=conf --config-name=base trainer.devices=8 trainer.num_nodes=2 \
         trainer.precision=bf16 model.micro_batch_size=4 model.global_batch_size=128 model.tensor_model_parallel_size=2 \
         model.num_layers=24 model.hidden_size=2048 model.num_attention_heads=16 model.encoder_seq_length=2048 \
         ++model.activation=fast-swiglu +model.peft.peft_scheme=lora model.peft.lora_tuning.adapter_dim=16\n",
    );
    assert_eq!(job.format, ConfigFormat::Nemo);
    let Scenario { model, layout, cluster, .. } = &job.scenario;
    assert_eq!((cluster.devices(), layout.tensor, layout.microbatch), (16, Some(2), Some(4)));
    let module = &model.modules[0];
    assert_eq!((module.gated, module.adapters.map(|adapters| adapters.rank)), (true, Some(16)));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let file = "model: {name: mpt_causal_lm, d_model: 64, n_heads: 4, n_layers: 2, expansion_ratio: 4, vocab_size: 1000}\n\
                max_seq_len: 128\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: auto\nprecision: amp_bf16\n\
                fsdp_config: {sharding_strategy: FULL_SHARD}\n";
    let command = "composer -n 4 train/train.py yamls/own.yaml device_train_microbatch_size=2\n";
    let job = together(&[("run.sh", command), ("own.yaml", file)]).unwrap();
    assert_eq!((job.format, job.scenario.cluster.devices()), (ConfigFormat::LlmFoundry, 4));
    assert_eq!((job.scenario.layout.microbatch, job.scenario.workload.global_batch), (Some(2), 64));
    assert!(job.read.iter().any(|setting| setting.key == "model.d_model"), "{:?}", job.read);
}

const NEOX: &str = r#"{
  "pipe_parallel_size": 2, "model_parallel_size": 4, "num_layers": 8, "hidden_size": 64, "num_attention_heads": 4,
  "seq_length": 128, "max_position_embeddings": 128, "pos_emb": "rotary", "no_weight_tying": true,
  "optimizer": {"type": "Adam", "params": {"lr": 1.0e-4}},
  "zero_optimization": {"stage": 1, "overlap_comm": True}, # comment
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8,
  "checkpoint_activations": true, "partition_activations": false, "fp16": {"enabled": true},
}"#;

#[test]
fn files_of_gpt_neox_are_read() {
    let job = config(NEOX);
    assert_eq!(job.format, ConfigFormat::GptNeox);
    let Scenario { model, layout, training, workload, cluster, .. } = &job.scenario;
    assert_eq!((layout.tensor, layout.pipeline, layout.microbatch), (Some(4), Some(2), Some(4)));
    assert_eq!((training.zero_stage(), training.recompute), (1, Recompute::Full));
    assert_eq!((training.framework, workload.global_batch), (Framework::MegatronDeepspeed, 32 * cluster.devices() / 8));
    let module = &model.modules[0];
    assert_eq!((module.tied_embeddings, module.learned_positions, module.gated), (false, 0, false));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let read = job.read.iter().find(|setting| setting.setting == "tensor parallelism").unwrap();
    assert_eq!(read.key, "model_parallel_size");
    // Files of its repository begin with comments.
    let commented = config(&format!("# GPT-NeoX 20B\n\n  # second\n{NEOX}"));
    assert_eq!((commented.format, &commented.scenario.model), (ConfigFormat::GptNeox, model));
    // Names with hyphens, and a gated MLP.
    let text = "pipe-parallel-size: 0\nmodel-parallel-size: 2\nnum-layers: 8\nhidden-size: 64\nnum-attention-heads: 4\n\
                num_kv_heads: 2\nintermediate_size: 256\nseq-length: 128\nmax-position-embeddings: 128\nnorm: rmsnorm\n\
                pos-emb: rotary\nmlp_type: llama\ntrain_micro_batch_size_per_gpu: 1\ntrain_batch_size: 64\n\
                attention_config: [[[\"flash\"], 8]]\nprecision: bfloat16\nmade_up: 1\n";
    let job = config(text);
    let module = &job.scenario.model.modules[0];
    assert_eq!((module.kv_heads, module.ffn, module.gated, module.norm), (2, 256, true, Norm::Rms));
    let Scenario { layout, training, workload, .. } = &job.scenario;
    assert_eq!((layout.pipeline, workload.global_batch, training.recompute), (Some(1), 64, Recompute::None));
    assert_eq!((training.precision, training.zero_stage()), (Precision::Bf16, 1));
    assert_eq!(job.unknown, ["made_up"]);
}

#[test]
fn arguments_of_slime_have_its_defaults() {
    let job = config(
        "python3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 --num-layers 2 --hidden-size 64 \
         --num-attention-heads 4 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 1 --global-batch-size 256 \
         --rollout-batch-size 32 --n-samples-per-prompt 8 --use-dynamic-batch-size --max-tokens-per-gpu 20480\n",
    );
    let Scenario { cluster, training, .. } = &job.scenario;
    assert_eq!((cluster.devices(), training.precision, training.zero_stage()), (16, Precision::Bf16, 1));
    assert_eq!(job.scenario.layout.microbatch, Some(4));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

/// Scripts of slime source the sizes of the model from another file.
#[test]
fn the_checkpoint_of_slime_names_the_model() {
    let job = config(
        "source \"scripts/models/qwen3-4B.sh\"\nCKPT_ARGS=(\n  --hf-checkpoint /models/Qwen3-4B\n)\n\
         python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 ${MODEL_ARGS[@]} ${CKPT_ARGS[@]} \
         --tensor-model-parallel-size 2 --pipeline-model-parallel-size 1 --global-batch-size 256 --rollout-batch-size 32 \
         --n-samples-per-prompt 8 --rollout-max-response-len 8192\n",
    );
    let Scenario { cluster, layout, model, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), cluster.devices(), layout.tensor), ("qwen3-4b", 8, Some(2)));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
}

#[test]
fn meshes_of_levanter_state_degrees() {
    let text = "data: {tokenizer: meta-llama/Meta-Llama-3-8B}\nmodel: {type: llama, hidden_dim: 64, intermediate_dim: 128, \
                num_layers: 2, num_heads: 4, num_kv_heads: 2, seq_len: 128}\ntrainer:\n  mp: p=f32,c=bfloat16\n  \
                train_batch_size: 64\n  mesh:\n    axes: {data: 8, replica: 2, model: 4}\n    compute_mapping: {batch: [replica, \
                data]}\n";
    let job = config(text);
    let Scenario { cluster, layout, .. } = &job.scenario;
    assert_eq!((layout.tensor, cluster.devices()), (Some(4), 64));
    assert_eq!(job.scenario.training.shard_degree, Some(8), "two copies on 16 devices of each TP rank");
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let open = config(&text.replace("data: 8", "data: -1"));
    assert_eq!((open.scenario.layout.tensor, open.scenario.cluster.devices()), (Some(4), 8));
}

#[test]
fn newer_keys_of_torchtitan_are_read() {
    let of = |arguments: &str| format!("torchrun --nproc_per_node=8 -m torchtitan.train {arguments}\n");
    let job =
        config(&of("--module qwen3 --config qwen3_30b_a3b --training.num_tokens_per_microbatch_per_dp_rank 16384 \
         --training.max_context_length 8192 --parallelism.expert_parallel_degree 8 --training.enable_cpu_offload \
         --parallelism.expert_parallel_comm_backend deepep"));
    let Scenario { model, layout, workload, training, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), layout.microbatch, workload.context_length), ("qwen3 30B-A3B", Some(2), 8192));
    assert_eq!((training.recompute, training.expert_parallel, training.dispatch_by_node), (Recompute::Full, 8, true));
    assert_eq!((training.parameter_offload, training.optimizer_offload), (true, 1.0));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let odd = of("--model.name llama3 --model.flavor 8B --training.num_tokens_per_microbatch_per_dp_rank 5000");
    assert!(error(&odd).contains("5000 tokens are no multiple of 2048"), "{}", error(&odd));
    // fp8 needs a converter.
    let section = format!("{TITAN}[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n");
    let job = config(&section);
    assert_eq!(job.scenario.training.precision, Precision::Bf16);
    assert!(says(&job.assumed, "quantize.linear.float8.enable_fsdp_float8_all_gather has no effect"));
}

#[test]
fn overrides_of_primus_are_those_of_its_frameworks() {
    let of = |framework: &str, model: &str, overrides: &str| {
        format!(
            "work_group: x\nmodules:\n  pre_trainer:\n    framework: {framework}\n    model: {model}.yaml\n    overrides: \
             {overrides}\n"
        )
    };
    let overrides = "{training: {local_batch_size: 4, seq_len: 8192}, activation_checkpoint: {mode: none}}";
    let job = config(&of("torchtitan", "llama3.1_8B", overrides));
    let Scenario { model, layout, training, workload, .. } = &job.scenario;
    assert_eq!((model.name.as_str(), layout.microbatch, workload.context_length), ("llama3.1-8b", Some(4), 8192));
    assert_eq!((training.framework, training.recompute), (Framework::Torchtitan, Recompute::None));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    // A model with fewer layers.
    let overrides = "{num_layers: 4, micro_batch_size: 1, global_batch_size: 64, seq_length: 4096}";
    let job = config(&of("megatron", "mixtral_8x7B", overrides));
    assert_eq!((job.scenario.model.layers(), job.scenario.model.modules[0].hidden), (4, 4096));
}

#[test]
fn adapters_and_sharding_of_trainers_are_read() {
    let foundry = "model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-2-7b-hf, peft_config: {r: 16, \
                   target_modules: [q_proj, v_proj]}}\nmax_seq_len: 128\nglobal_train_batch_size: 64\n\
                   device_train_microbatch_size: 2\nprecision: amp_bf16\nfsdp_config: {sharding_strategy: FULL_SHARD}\n";
    let job = config(foundry);
    let adapters = job.scenario.model.modules[0].adapters.unwrap();
    assert_eq!((adapters.rank, adapters.mlp), (16, false));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let axolotl = "base_model: meta-llama/Llama-3.2-3B\nsequence_len: 4096\nmicro_batch_size: 1\ndp_shard_size: 2\nrl: dpo\n\
                   tensor_parallel_size: 2\nliger_rope: true\nliger_rms_norm: true\nbf16: true\n";
    let job = config(axolotl);
    assert_eq!((job.scenario.training.zero_stage(), job.scenario.cluster.devices()), (3, 4));
    assert!(job.scenario.training.execution.is_some() && says(&job.not_modelled, "A pair of answers"));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let trl = "trl sft --model_name_or_path openai/gpt-oss-20b --num_processes 4 --accelerate_config zero3 --max_length 4096 \
               --attn_implementation kernels-community/vllm-flash-attn3 --activation_offloading\n";
    let job = config(trl);
    assert_eq!(job.scenario.cluster.devices(), 4);
    assert_eq!((job.scenario.training.attention, job.scenario.training.zero_stage()), (AttentionKernel::Flash3, 3));
    assert!(
        (job.scenario.training.activation_offload - 1.0).abs() < 1e-12 && job.unknown.is_empty(),
        "{:?}",
        job.unknown
    );
    let megatron = "model_name_or_path: Qwen/Qwen3-30B-A3B\nfinetuning_type: full\ncutoff_len: 8192\n\
                    tensor_model_parallel_size: 2\nexpert_model_parallel_size: 4\nmoe_grouped_gemm: true\nbf16: true\n\
                    per_device_train_batch_size: 1\nuse_distributed_optimizer: true\noutput_dir: x\n";
    let job = config(megatron);
    assert_eq!((job.scenario.training.framework, job.scenario.training.zero_stage()), (Framework::Megatron, 1));
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    let named = "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 1\nbf16: true\n\
                 deepspeed: ds_z3_offload_config.json\noutput_dir: x\n";
    let job = config(named);
    assert!((job.scenario.training.optimizer_offload - 1.0).abs() < f64::EPSILON);
    assert!(says(&job.assumed, "The name of the DeepSpeed file states offload."));
}

/// A row of the performance tables of Megatron-Bridge, written as lines.
#[test]
fn a_row_of_the_performance_tables_is_read() {
    let text = "# a row\nsystem=DGX-GB200\ngpus=16\nmodel=Qwen3_30B_a3B\nprecision=MXFP8\nglobal_batch_size=64\nmicro_batch_size=2\n\
                seq_length=4096\ntensor_model_parallel_size=1\npipeline_model_parallel_size=2\ncontext_parallel_size=1\n\
                expert_model_parallel_size=8\nmade_up=3\n";
    let job = config(text);
    let scenario = &job.scenario;
    assert_eq!(job.format, ConfigFormat::MegatronBridge);
    assert_eq!(scenario.cluster.name, "GB200 NVL72");
    assert_eq!((scenario.cluster.devices(), scenario.workload.global_batch), (16, 64));
    assert_eq!((scenario.layout.pipeline, scenario.layout.microbatch), (Some(2), Some(2)));
    assert_eq!((scenario.training.expert_parallel, scenario.training.precision), (8, Precision::Fp8));
    assert_eq!(scenario.model.backbone().unwrap().moe.unwrap().experts, 128);
    assert_eq!(job.unknown, ["made_up"]);
    assert!(job.read.iter().any(|setting| setting.key == "expert_model_parallel_size" && setting.value == "8"));
    // A script with other variables is no row.
    assert!(read("file", b"system=x\ngpus=8\necho hello\n").is_err());
}

/// The degrees of a known recipe are read where the command states nothing. Stated values and other recipes keep theirs.
#[test]
fn a_known_recipe_of_megatron_bridge_has_its_degrees() {
    let command = |recipe: &str, more: &str| {
        config(&format!(
            "torchrun --nproc_per_node=8 --nnodes 8 scripts/training/run_recipe.py --recipe {recipe} train.global_batch_size=128 \
             train.micro_batch_size=1 {more}"
        ))
    };
    let job = command("llama3_70b_pretrain_config", "");
    let scenario = &job.scenario;
    assert_eq!((scenario.layout.tensor, scenario.layout.pipeline, scenario.layout.chunks), (Some(4), Some(4), Some(5)));
    assert_eq!((scenario.training.context_parallel, scenario.training.sequence_parallel), (2, true));
    assert_eq!(scenario.workload.context_length, 8192);
    assert!(job.assumed.iter().any(|sentence| sentence.contains("sequence_parallel true")), "{:?}", job.assumed);
    let job = command(
        "llama3_70b_pretrain_config",
        "model.pipeline_model_parallel_size=1 model.tensor_model_parallel_size=8",
    );
    assert_eq!((job.scenario.layout.tensor, job.scenario.layout.pipeline), (Some(8), Some(1)));
    assert_eq!(job.scenario.layout.chunks.unwrap_or(1), 1);
    let job = command("llama3_70b_sft_config", "model.seq_length=4096");
    assert_eq!((job.scenario.layout.tensor, job.scenario.training.context_parallel), (Some(1), 1));
}

/// The class of the provider names the model of a configuration without sizes.
#[test]
fn a_provider_class_of_megatron_bridge_names_the_model() {
    let text = "model:\n  _target_: megatron.bridge.models.llama.llama_provider.Llama3ModelProvider8B\n  \
                tensor_model_parallel_size: 2\n  seq_length: 8192\ntrain:\n  micro_batch_size: 1\n  global_batch_size: 64\n";
    let job = config(text);
    assert_eq!(job.scenario.model.parameters(), 8_030_261_248);
    assert!(!job.unknown.iter().any(|key| key.contains("target")), "{:?}", job.unknown);
}
