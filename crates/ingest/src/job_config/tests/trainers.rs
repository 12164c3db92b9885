//! Files for the trainer of transformers, alone and together.

use planner::model::Adapters;
use planner::training::{ContextExchange, GradientFormat};

use super::*;

const LLAMA_70B: &str = r#"{"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
    "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 131072}"#;

fn on(devices: u32) -> Hardware {
    Hardware { devices: Some(devices), ..Hardware::default() }
}

fn together(texts: &[&str], hardware: Hardware) -> Result<JobConfig, JobConfigError> {
    let files: Vec<(&str, &[u8])> = texts.iter().map(|text| ("job.yaml", text.as_bytes())).collect();
    read_files(&files, hardware)
}

fn says(job: &JobConfig, text: &str) -> bool {
    job.assumed.iter().chain(&job.not_modelled).any(|sentence| sentence.contains(text))
}

fn refusal(texts: &[&str], hardware: Hardware) -> String {
    together(texts, hardware).expect_err("an error").to_string()
}

#[test]
fn a_model_without_a_layout_leaves_the_layout_free() {
    let job = read_on("config.json", LLAMA_70B.as_bytes(), on(8)).unwrap();
    assert_eq!(job.scenario.cluster.devices(), 8);
    assert_eq!(job.scenario.layout, planner::training::LayoutRequest::default());
    assert!(says(&job, "The layout is not stated."), "{:?}", job.assumed);
    // A torchtitan job and Megatron-LM arguments without degrees have the degree 1.
    for text in [
        "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 1",
        "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --seq-length 4096",
    ] {
        let job = read_on("job", text.as_bytes(), on(8)).unwrap();
        assert_eq!((job.scenario.layout.tensor, job.scenario.layout.pipeline), (Some(1), Some(1)), "{text}");
        assert!(says(&job, "Their degrees are 1"), "{:?}", job.assumed);
    }
}

#[test]
fn three_files_of_a_job_are_read_together() {
    let deepspeed = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 4, "bf16": {"enabled": "auto"},
        "zero_optimization": {"stage": 3, "overlap_comm": true, "offload_optimizer": {"device": "cpu"}},
        "wandb": {"enabled": false}, "made_up": {"token": "hunter2"}}"#;
    let arguments = "per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\n\
                     gradient_checkpointing: true\nmax_seq_length: 8192\noutput_dir: out\nlearning_rate: 1e-5\n";
    let job = together(&[LLAMA_70B, deepspeed, arguments], on(16)).unwrap();
    assert_eq!(job.format, ConfigFormat::TrainingArguments);
    let scenario = &job.scenario;
    assert_eq!(scenario.model.parameters(), 70_553_706_496);
    assert_eq!((scenario.training.zero_stage(), scenario.training.recompute), (3, Recompute::Full));
    assert_eq!((scenario.training.precision, scenario.training.gradients), (Precision::Bf16, GradientFormat::Bf16));
    assert_eq!((scenario.workload.context_length, scenario.layout.microbatch), (8192, Some(2)));
    assert_eq!(scenario.workload.global_batch, 2 * 4 * 16);
    assert!((scenario.training.optimizer_offload - 1.0).abs() < 1e-12);
    assert_eq!(job.unknown, ["made_up.token"]);
    assert!(!format!("{job:?}").contains("hunter2"));
    let stage = job.read.iter().find(|setting| setting.key == "zero_optimization.stage").expect("the stage");
    assert_eq!((stage.value.as_str(), stage.setting.as_str()), ("3", "ZeRO stage"));
    // The order of the files does not matter.
    let other = together(&[arguments, LLAMA_70B, deepspeed], on(16)).unwrap();
    assert_eq!(other.scenario, job.scenario);
}

#[test]
fn megatron_deepspeed_has_a_file_of_its_own() {
    let arguments = "torchrun x.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --fp16";
    let deepspeed = r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#;
    let job = together(&[deepspeed, arguments], on(8)).unwrap();
    assert_eq!((job.format, job.scenario.training.zero_stage()), (ConfigFormat::Megatron, 2));
    let other = "torchrun x.py --num-layers 8 --num-attention-heads 4";
    assert!(refusal(&[arguments, other], on(8)).contains("num-layers: 8 contradicts num-layers = 4"));
}

#[test]
fn contradictions_name_their_key() {
    let sizes = r#"{"train_batch_size": 256, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}"#;
    assert_eq!(
        refusal(&[LLAMA_70B, sizes], on(16)),
        "train_batch_size: 256 is not 4 x 2 x 16 (sequences of a microbatch, accumulation steps, data-parallel replicas)"
    );
    assert_eq!(together(&[LLAMA_70B, sizes], on(32)).unwrap().scenario.workload.global_batch, 256);
    // Without devices, their number follows from the batch.
    assert_eq!(together(&[LLAMA_70B, sizes], Hardware::default()).unwrap().scenario.cluster.devices(), 32);
    let arguments = "per_device_train_batch_size: 2\noutput_dir: out\n";
    for (texts, message) in [
        (
            vec![LLAMA_70B, sizes, arguments],
            "per_device_train_batch_size: 2 contradicts train_micro_batch_size_per_gpu = 4",
        ),
        (
            vec![LLAMA_70B, r#"{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4}"#],
            "train_batch_size: 10 is no multiple of 4",
        ),
        (vec![LLAMA_70B, r#"{"zero_optimization": {"stage": 4}}"#], "zero_optimization.stage: 4 is no ZeRO stage"),
        (
            vec![
                LLAMA_70B,
                r#"{"zero_optimization": {}, "train_batch_size": 8, "bf16": {"enabled": true}, "fp16": {"enabled": true}}"#,
            ],
            "bf16: bf16 and fp16 are both on",
        ),
        (
            vec![LLAMA_70B, sizes, "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"],
            "DeepSpeed and FSDP are both configured",
        ),
        (
            vec![
                LLAMA_70B,
                "distributed_type: FSDP\nnum_processes: 8\nnum_machines: 1\nparallelism_config:\n  \
                  parallelism_config_tp_size: 4\n  parallelism_config_dp_shard_size: 4\n",
            ],
            "num_processes: 8 is not 4 x 4",
        ),
        (vec![LLAMA_70B, "distributed_type: FSDP\nnum_processes: 9\nnum_machines: 2\n"], "num_processes: 9 processes"),
        (
            vec![&TITAN.replace("seq_len = 8192", "global_batch_size = 30")],
            "training.global_batch_size: 30 is no multiple of 1 x 8",
        ),
        (vec![LLAMA_70B, LLAMA_70B], "two files state a model"),
        (vec![LLAMA_70B, TITAN], "the torchtitan job file states the sizes of its model"),
        (
            vec![TITAN, "--num-layers 2 --num-attention-heads 2"],
            "different formats, torchtitan job file and Megatron-LM arguments",
        ),
        (vec![sizes, TITAN], "DeepSpeed configuration and torchtitan job file"),
        (vec![LLAMA_70B, "just some text"], "job.yaml: the file is no configuration"),
        (vec![sizes], "the DeepSpeed configuration states no model; add config.json"),
        (vec!["distributed_type: FSDP\nnum_processes: 8\n"], "the accelerate configuration states no model"),
        (vec!["base_model: me/mine\nmicro_batch_size: 1\n"], "base_model: the sizes of this model are not known"),
    ] {
        let error = refusal(&texts, Hardware::default());
        assert!(error.contains(message), "{error}");
    }
    assert_eq!(read_files(&[], Hardware::default()), Err(JobConfigError::Empty));
}

#[test]
fn accelerate_states_devices_sharding_and_degrees() {
    let text = "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\nfsdp_config:\n  \
                fsdp_version: 2\n  fsdp_reshard_after_forward: false\n  fsdp_activation_checkpointing: true\n\
                parallelism_config:\n  parallelism_config_cp_size: 2\n  parallelism_config_tp_size: 4\n  \
                parallelism_config_dp_shard_size: 2\n";
    let job = together(&[text, LLAMA_70B], Hardware::default()).unwrap();
    assert_eq!(job.format, ConfigFormat::Accelerate);
    let scenario = &job.scenario;
    assert_eq!((scenario.cluster.nodes, scenario.cluster.devices_per_node), (2, 8));
    assert_eq!((scenario.layout.tensor, scenario.training.context_parallel), (Some(4), 2));
    assert_eq!((scenario.training.zero_stage(), scenario.training.recompute), (2, Recompute::Full));
    for (strategy, stage) in [("SHARD_GRAD_OP", 2), ("FULL_SHARD", 3), ("NO_SHARD", 0), ("1", 3), ("HYBRID_SHARD", 3)] {
        let text = format!("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: {strategy}\n");
        let job = together(&[&text, LLAMA_70B], Hardware::default()).unwrap();
        assert_eq!(job.scenario.training.zero_stage(), stage, "{strategy}");
        let is_hybrid = strategy == "HYBRID_SHARD" && job.scenario.cluster.nodes > 1;
        assert_eq!(job.scenario.training.shard_degree, is_hybrid.then_some(8), "{strategy}");
    }
    // A file with all arguments has an FSDP section although FSDP is off.
    let text = r#"{"per_device_train_batch_size": 1, "fsdp": [], "fsdp_config": {"min_num_params": 0}, "bf16": true}"#;
    let job = together(&[text, LLAMA_70B], Hardware::default()).unwrap();
    assert_eq!((job.format, job.scenario.training.zero_stage()), (ConfigFormat::TrainingArguments, 0));
    let text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n  offload_optimizer_device: cpu\n";
    let job = together(&[text, LLAMA_70B], Hardware::default()).unwrap();
    assert_eq!(job.scenario.training.zero_stage(), 2);
    assert!((job.scenario.training.optimizer_offload - 1.0).abs() < 1e-12);
}

#[test]
fn job_files_name_their_model() {
    let job = config(
        "model_name_or_path: meta-llama/Llama-3.1-8B\nfinetuning_type: lora\nlora_rank: 8\nstage: dpo\n\
         deepspeed: examples/ds_z2_config.json\nper_device_train_batch_size: 2\nbf16: true\nhf_hub_token: hf_x\n",
    );
    assert_eq!((job.format, job.scenario.training.zero_stage()), (ConfigFormat::LlamaFactory, 2));
    // 32 layers, rank 8: queries and output 4,096 + 4,096, keys and values 4,096 + 1,024, MLP
    // 4,096 + 14,336.
    let module = &job.scenario.model.modules[0];
    assert_eq!(module.adapters, Some(Adapters { rank: 8, mlp: true, base_bits: None }));
    assert_eq!(module.trained_parameters(), 32 * 8 * (2 * 8192 + 2 * 5120 + 3 * 18_432));
    assert_eq!(module.parameters() - module.trained_parameters(), 8_030_261_248);
    assert_eq!((job.scenario.workload.context_length, job.scenario.training.recompute), (2048, Recompute::Full));
    for text in
        ["reference", "The DeepSpeed file is not given. Its name states ZeRO stage 2", "default gradient checkpointing"]
    {
        assert!(says(&job, text), "{text}: {:?} {:?}", job.assumed, job.not_modelled);
    }
    assert_eq!(job.unknown, ["hf_hub_token"]);
    // The named file replaces the guess.
    let deepspeed = r#"{"zero_optimization": {"stage": 1}}"#;
    let text = "model_name_or_path: meta-llama/Llama-3.1-8B\ncutoff_len: 512\ndeepspeed: ds_z2_config.json\n";
    let joined = together(&[text, deepspeed], Hardware::default()).unwrap();
    assert_eq!(joined.scenario.training.zero_stage(), 1);
    let axolotl = config(
        "base_model: Qwen/Qwen3-8B\nmodel_type: AutoModelForCausalLM\nsequence_len: 8192\nmicro_batch_size: 1\n\
         gradient_accumulation_steps: 2\ntensor_parallel_size: 2\ncontext_parallel_size: 2\ndp_shard_size: 2\n\
         fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\nbf16: auto\nwandb_project: x\nadapter:\n",
    );
    assert_eq!((axolotl.format, axolotl.scenario.cluster.devices()), (ConfigFormat::Axolotl, 8));
    assert_eq!((axolotl.scenario.training.zero_stage(), axolotl.scenario.workload.global_batch), (3, 4));
    assert!(axolotl.unknown.is_empty(), "{:?}", axolotl.unknown);
    let ulysses =
        config("model: Qwen/Qwen3-0.6B\ncutoff_len: 2048\ncp_mode: ulysses\ncp_size: 2\nmicro_batch_size: 1\n");
    assert_eq!(ulysses.scenario.training.context_exchange, ContextExchange::AllToAll);
    assert_eq!(ulysses.scenario.training.context_parallel, 2);
    // LLaMA-Factory freezes the vision encoder by default.
    let vision = config("model_name_or_path: Qwen/Qwen3-VL-4B-Instruct\ncutoff_len: 2048\n");
    assert!(vision.scenario.model.modules[0].frozen && !vision.scenario.model.modules[1].frozen);
}

/// Keys of DeepSpeed and FSDP that no version has are reported, also below their sections. Known keys without effect are not.
#[test]
fn unknown_keys_of_sections_are_reported() {
    let deepspeed = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
        "activation_checkpointing": {"profile": false, "partitions": 3},
        "zero_optimization": {"stage": 3, "reduce_bucket_size": 5e8, "stage3_prefetch_bucket_size": "auto", "stagee": 1,
        "offload_optimizer": {"device": "cpu", "pin_memory": true, "pinn": 1}}}"#;
    let job = together(&[LLAMA_70B, deepspeed], on(64)).unwrap();
    let unknown =
        ["activation_checkpointing.partitions", "zero_optimization.offload_optimizer.pinn", "zero_optimization.stagee"];
    assert_eq!(job.unknown, unknown);
    let accelerate = "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 64\nnum_machines: 8\nfsdp_config:\n  \
                      fsdp_version: 2\n  fsdp_reshard_after_forward: true\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  \
                      fsdp_state_dict_type: SHARDED_STATE_DICT\n  fsdp_shading: 3\n";
    let job = together(&[LLAMA_70B, accelerate], Hardware::default()).unwrap();
    assert_eq!(job.unknown, ["fsdp_config.fsdp_shading"]);
}

/// Settings of DeepSpeed that change traffic or sharding are named, because they are not simulated.
#[test]
fn other_sharding_of_deepspeed_is_named() {
    let with = |more: &str| {
        let text = format!(
            "{{\"train_micro_batch_size_per_gpu\": 1, \"bf16\": {{\"enabled\": true}}, \"zero_optimization\": {{\"stage\": 3, {more}}}}}"
        );
        together(&[LLAMA_70B, &text], on(64)).unwrap()
    };
    assert!(says(&with("\"zero_quantized_weights\": true"), "Quantised communication"));
    assert!(!says(&with("\"zero_quantized_weights\": false"), "Quantised communication"));
    assert_eq!(with("\"mics_shard_size\": 8").scenario.training.shard_degree, Some(8));
    assert_eq!(with("\"mics_shard_size\": 64").scenario.training.shard_degree, None, "all devices");
}

#[test]
fn offload_of_parameters_needs_sharded_weights() {
    let offloaded = |texts: &[&str]| {
        let job = together(texts, on(8)).unwrap();
        let training = &job.scenario.training;
        (training.offloads_parameters(), training.optimizer_offload, says(&job, "Offload of parameters is not applied"))
    };
    let arguments = "per_device_train_batch_size: 1\nbf16: true\nmax_seq_length: 4096\noutput_dir: out\n";
    let deepspeed = |stage: u32, parameters: &str| {
        format!(
            r#"{{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": {stage}, "offload_optimizer": {{"device": "cpu"}},
            "offload_param": {{"device": "{parameters}"}}}}}}"#
        )
    };
    assert_eq!(offloaded(&[LLAMA_70B, &deepspeed(3, "cpu"), arguments]), (true, 1.0, false));
    assert_eq!(offloaded(&[LLAMA_70B, &deepspeed(3, "nvme"), arguments]), (true, 1.0, false));
    assert_eq!(offloaded(&[LLAMA_70B, &deepspeed(3, "none"), arguments]), (false, 1.0, false));
    assert_eq!(offloaded(&[LLAMA_70B, &deepspeed(2, "cpu"), arguments]), (false, 1.0, true));
    let fsdp = |rest: &str| format!("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: {rest}\n");
    let with_offload = fsdp("FULL_SHARD\n  fsdp_offload_params: true");
    assert_eq!(offloaded(&[LLAMA_70B, &with_offload, arguments]), (true, 1.0, false));
    let without = fsdp("FULL_SHARD\n  fsdp_offload_params: false");
    assert_eq!(offloaded(&[LLAMA_70B, &without, arguments]), (false, 0.0, false));
    let words = format!("{arguments}fsdp: full_shard offload auto_wrap\n");
    assert_eq!(offloaded(&[LLAMA_70B, &words]), (true, 1.0, false));
}

/// The file of FSDP is read when it is given, as JSON on the command line too, and reported when it is only named.
#[test]
fn the_file_of_fsdp_is_read() {
    let with = |rest: &str| {
        format!(
            "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-14B --fsdp \"full_shard auto_wrap\" \
             --per_device_train_batch_size 1 --bf16 --max_seq_length 4096 {rest}"
        )
    };
    let named = with("--fsdp_config conf/shards.json");
    let file = r#"{"activation_checkpointing": true, "fsdp_version": 2, "reshard_after_forward": false,
        "transformer_layer_cls_to_wrap": ["Qwen2DecoderLayer"], "reshard": 1}"#;
    let files: [(&str, &[u8]); 2] = [("run.sh", named.as_bytes()), ("shards.json", file.as_bytes())];
    let job = read_files(&files, Hardware::default()).unwrap();
    let training = &job.scenario.training;
    assert_eq!((job.format, training.zero_stage()), (ConfigFormat::TrainingArguments, 2));
    assert_eq!(training.recompute, Recompute::Full);
    assert!(!says(&job, "The FSDP file"), "{:?}", job.assumed);
    assert_eq!(job.unknown.len(), 1, "{:?}", job.unknown);
    assert!(job.unknown[0].starts_with("reshard"), "{:?}", job.unknown);

    let missing = config(&named);
    assert!(says(&missing, "The FSDP file is not given."), "{:?}", missing.assumed);
    assert_eq!((missing.scenario.training.zero_stage(), missing.scenario.training.recompute), (3, Recompute::None));

    for inline in [
        r#"--fsdp_config '{"activation_checkpointing": true, "cpu_ram_efficient_loading": true}'"#,
        r#"--fsdp_config '{"activation_checkpointing":true}' --logging_steps 1"#,
        r#"--fsdp_config "{\"fsdp_activation_checkpointing\": true}""#,
    ] {
        let job = config(&with(inline));
        assert_eq!(job.scenario.training.recompute, Recompute::Full, "{inline}: {:?}", job.read);
        assert!(job.unknown.is_empty() && !says(&job, "The FSDP file"), "{inline}: {:?}", job.unknown);
    }
    let job = config(&with("--fsdp_config '{\"activation_checkpoint\": true}' --fsdp_shading 1"));
    assert_eq!(job.unknown.len(), 2, "{:?}", job.unknown);
    assert_eq!(job.scenario.training.recompute, Recompute::None);
    let alone = read("fsdp.json", br#"{"sharding_strategy": "HYBRID_SHARD", "use_orig_params": true}"#);
    assert!(alone.expect_err("no model").to_string().contains("no model; add config.json"));
}

/// `get_data_types` of DeepSpeed: fp32 without ZeRO and with bf16, otherwise the format of the weights. A file that is
/// named has the same default.
#[test]
fn deepspeed_accumulates_gradients_by_stage() {
    let arguments =
        |rest: &str| format!("per_device_train_batch_size: 1\nmax_seq_length: 4096\noutput_dir: out\n{rest}\n");
    let file = |stage: u32, rest: &str| {
        format!(r#"{{"zero_optimization": {{"stage": {stage}}}, "steps_per_print": 9{rest}}}"#)
    };
    let gradients = |texts: &[&str]| together(texts, on(8)).unwrap().scenario.training.gradients;
    let (short, long) = (GradientFormat::Bf16, GradientFormat::Fp32);
    for (stage, precision, rest, expected) in [
        (0, "bf16: true", "", long),
        (0, "fp16: true", "", short),
        (1, "bf16: true", "", short),
        (3, "bf16: true", "", short),
        (2, "bf16: true", r#", "data_types": {"grad_accum_dtype": "fp32"}"#, long),
        (0, "bf16: true", r#", "data_types": {"grad_accum_dtype": "bf16"}"#, short),
    ] {
        let given = gradients(&[LLAMA_70B, &arguments(precision), &file(stage, rest)]);
        assert_eq!(given, expected, "{stage} {precision} {rest}");
        if rest.is_empty() {
            let named = arguments(&format!("{precision}\ndeepspeed: conf/my_zero{stage}.json"));
            assert_eq!(gradients(&[LLAMA_70B, &named]), expected, "named: {stage} {precision}");
        }
    }
}

/// Modules that are trained in full are named, and misspelt keys of adapters are unknown.
#[test]
fn other_keys_of_adapters_are_reported() {
    const SENTENCE: &str =
        "trained in full. Their gradients and optimizer state are left out, so memory is a lower bound.";
    let axolotl = |rest: &str| {
        config(&format!(
            "base_model: Qwen/Qwen3-8B\nadapter: lora\nlora_r: 64\nlora_dropout: 0.1\nlora_on_cpu: true\n\
             lora_mlp_kernel: true\nsequence_len: 2048\nmicro_batch_size: 2\nbf16: true\n{rest}\n"
        ))
    };
    let job = axolotl("lora_alpha: 32\nlora_modules_to_save: [lm_head]");
    assert!(says(&job, &format!("The modules in lora_modules_to_save are {SENTENCE}")), "{:?}", job.not_modelled);
    assert!(job.unknown.is_empty(), "{:?}", job.unknown);
    assert!(!says(&axolotl("lora_modules_to_save: []"), SENTENCE));
    assert!(!says(&axolotl("lora_modules_to_save:"), SENTENCE));
    assert_eq!(axolotl("lora_alfa: 32").unknown, ["lora_alfa"]);
    let trl = config(
        "trl sft --model_name_or_path Qwen/Qwen3-4B --use_peft --lora_r 8 --lora_alpha 16 --lora_task_type CAUSAL_LM \
         --lora_modules_to_save lm_head embed_tokens --per_device_train_batch_size 1 --lora_dropuot 0.1",
    );
    assert!(says(&trl, &format!("The modules in --lora_modules_to_save are {SENTENCE}")), "{:?}", trl.not_modelled);
    assert_eq!(trl.unknown, ["--lora_dropuot (did you mean lora_dropout?)"]);
}

/// FSDP does not shard gradients between synchronizations.
#[test]
fn accumulation_with_fsdp_is_reported() {
    let says_it = |launcher: &str, rest: &str| {
        let arguments =
            format!("per_device_train_batch_size: 1\nbf16: true\nmax_seq_length: 4096\noutput_dir: out\n{rest}");
        let job = together(&[LLAMA_70B, launcher, &arguments], on(16)).unwrap();
        assert!(job.unknown.is_empty(), "{:?}", job.unknown);
        says(&job, "FSDP holds unsharded gradients of all trained parameters")
    };
    let fsdp = |strategy: &str| format!("distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: {strategy}\n");
    let steps = "gradient_accumulation_steps: 6\n";
    assert!(says_it(&fsdp("FULL_SHARD"), steps) && says_it(&fsdp("SHARD_GRAD_OP"), steps));
    assert!(!says_it(&fsdp("NO_SHARD"), steps));
    assert!(!says_it(&fsdp("FULL_SHARD"), "gradient_accumulation_steps: 1\n"));
    let set = "accelerator_config:\n  gradient_accumulation_kwargs:\n    sync_each_batch: true\n";
    assert!(!says_it(&fsdp("FULL_SHARD"), &format!("{steps}{set}")));
    assert!(!says_it("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n", steps));
}
