//! Defaults of frameworks and settings that change what a job needs.

use planner::training::{AttentionKernel, Experts, MasterWeights, MomentFormat};

use super::*;

const QWEN_MOE: &str = r#"{"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 32,
    "num_hidden_layers": 48, "num_key_value_heads": 4, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
    "moe_intermediate_size": 768}"#;
const ARGUMENTS: &str = "per_device_train_batch_size: 1\ngradient_accumulation_steps: 1\nbf16: true\n\
                         gradient_checkpointing: true\nmax_seq_length: 8192\n";
const MEGATRON: &str = "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 32 --hidden-size 4096 \
                        --num-attention-heads 32 --seq-length 4096 --micro-batch-size 1 --global-batch-size 128 \
                        --tensor-model-parallel-size 2 --bf16 --use-distributed-optimizer";

fn says(job: &JobConfig, text: &str) -> bool {
    job.assumed.iter().chain(&job.not_modelled).any(|sentence| sentence.contains(text))
}

fn with_model(text: &str, model: &str) -> JobConfig {
    let files: [(&str, &[u8]); 2] = [("job", text.as_bytes()), ("config.json", model.as_bytes())];
    read_files(&files, Hardware::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn torchtitan_recomputes_every_second_layer_by_default() {
    let titan = |text: &str| {
        config(&format!("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nsteps = 10\n{text}\n"))
            .scenario
            .training
    };
    let every = |text: &str| {
        let training = titan(text);
        (training.recompute, training.recompute_layers)
    };
    let section = "[activation_checkpoint]\nmode = \"selective\"\n";
    assert_eq!(every(""), (Recompute::Full, Some(16)));
    assert_eq!(every(section), (Recompute::Full, Some(16)));
    assert_eq!(every(&format!("{section}selective_ac_option = \"op\"")), (Recompute::Operators, None));
    // Configurations in code state their option.
    let named = config("NGPU=8 MODULE=llama3 CONFIG=llama3_8b ./run_train.sh");
    assert_eq!(named.scenario.training.recompute, Recompute::Operators);
    let is_compiled = |list: &str| titan(&format!("[compile]\nenable = true\n{list}")).execution.is_some();
    assert!(
        is_compiled("") && is_compiled("components = [\"model\", \"loss\"]") && !is_compiled("components = [\"loss\"]")
    );
    assert_eq!(titan("enable_float8_linear = true").precision, Precision::Fp8);
}

#[test]
fn primus_has_defaults_of_its_own() {
    let primus = |text: &str| {
        config(&format!(
            "modules:\n  pre_trainer:\n    framework: megatron\n    model: llama3.1_70B.yaml\n    overrides:\n      \
             tensor_model_parallel_size: 8\n{text}"
        ))
    };
    let job = primus("");
    let Scenario { training, workload, layout, .. } = &job.scenario;
    assert!(training.sequence_parallel && training.distributed_optimizer && training.fused_weight_gradients);
    assert_eq!((workload.context_length, workload.global_batch, layout.microbatch), (1024, 16, Some(2)));
    assert!(says(&job, "The defaults of Primus are sequence_parallel true"), "{:?}", job.assumed);
    let off = primus("      sequence_parallel: false\n      gradient_accumulation_fusion: false\n").scenario.training;
    assert!(!off.sequence_parallel && !off.fused_weight_gradients);
}

/// Gradients in fp32 have 4 of 6 bytes, in bf16 2 of 4.
#[test]
fn megatron_hides_the_gathering_of_weights_only_with_its_switch() {
    let overlap = |switches: &str| config(&format!("{MEGATRON} {switches}\n")).scenario.training.data_overlap;
    let both = "--overlap-grad-reduce --overlap-param-gather";
    for (switches, expected) in
        [("", 0.0), ("--overlap-grad-reduce", 0.667), ("--overlap-grad-reduce --grad-reduce-in-bf16", 0.5), (both, 1.0)]
    {
        assert!((overlap(switches) - expected).abs() < 1e-9, "{switches}: {}", overlap(switches));
    }
    let replicated = MEGATRON.replace(" --use-distributed-optimizer", " --overlap-grad-reduce");
    assert!(config(&format!("{replicated}\n")).scenario.training.data_overlap > 0.99, "all-reduce alone");
    let job = config(&format!("{MEGATRON} {both}\n"));
    let listed = |key: &str| job.read.iter().any(|setting| setting.key == key);
    assert!(listed("overlap-grad-reduce") && listed("overlap-param-gather"), "{:?}", job.read);
}

#[test]
fn weights_in_16_bits_are_computed_in_16_bits() {
    let run = |flags: &str| {
        config(&format!(
            "python run_clm.py --model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --block_size 2048 \
             --optim adamw_torch {flags}\n"
        ))
        .scenario
        .training
    };
    let training = run("--torch_dtype bfloat16");
    assert_eq!((training.precision, training.master_weights), (Precision::Bf16, MasterWeights::None));
    assert_eq!(training, run("--torch_dtype bfloat16 --bf16"));
    assert_eq!(run("").precision, Precision::Fp32);
}

#[test]
fn bitsandbytes_with_32_bits_has_moments_in_fp32() {
    let job = |optimizer: &str| {
        config(&format!(
            "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\n\
             per_device_train_batch_size: 1\npure_bf16: true\noptim: {optimizer}\n"
        ))
    };
    let moments = |optimizer: &str| job(optimizer).scenario.training.moments;
    assert_eq!(moments("paged_adamw_32bit"), MomentFormat::Fp32);
    assert_eq!(moments("adamw_torch"), MomentFormat::Bf16);
    let eight = job("adamw_bnb_8bit").scenario.training.optimizer;
    assert_eq!(eight, planner::training::Optimizer::Adam8Bit);
    assert!(says(&job("paged_adamw_32bit"), "paged states") && !says(&job("adamw_torch"), "paged"));
}

#[test]
fn the_first_layers_of_qwen_have_no_window() {
    let window = |keys: &str| {
        let model = format!(
            r#"{{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
            "num_hidden_layers": 28, "num_key_value_heads": 4, "vocab_size": 152064, "sliding_window": 4096, {keys}}}"#
        );
        let job = with_model(ARGUMENTS, &model);
        (job.scenario.model.modules[0].window.map(|window| window.full_every), says(&job, "with a sliding window"))
    };
    assert_eq!(window(r#""use_sliding_window": true, "max_window_layers": 28"#), (None, false));
    assert_eq!(window(r#""use_sliding_window": true"#), (None, false), "28 is the default");
    assert_eq!(window(r#""use_sliding_window": true, "max_window_layers": 21"#), (None, true));
    assert_eq!(window(r#""use_sliding_window": true, "max_window_layers": 0"#), (Some(0), false));
    assert_eq!(window(r#""max_window_layers": 0"#), (None, false), "off by default");
}

#[test]
fn transformers_has_grouped_experts() {
    let experts = |model: &str| {
        let job = with_model(ARGUMENTS, model);
        (job.scenario.training.profile().experts, says(&job, "default of transformers 5"))
    };
    assert_eq!(experts(QWEN_MOE), (Experts::Together, true));
    let eager = QWEN_MOE.replace("{\"model_type\"", "{\"experts_implementation\": \"eager\", \"model_type\"");
    assert_eq!(experts(&eager), (Experts::OneByOne, false));
    let dense = QWEN_MOE.replace("\"num_experts\": 128, ", "");
    assert!(!experts(&dense).1);
}

#[test]
fn gpt_oss_has_eager_attention() {
    let model = QWEN_MOE.replace("qwen3_moe", "gpt_oss");
    let attention = |text: &str, model: &str| with_model(text, model).scenario.training.attention;
    assert_eq!(attention(ARGUMENTS, &model), AttentionKernel::Unfused);
    assert_ne!(attention(ARGUMENTS, QWEN_MOE), AttentionKernel::Unfused);
    let stated = format!("{ARGUMENTS}attn_implementation: kernels-community/vllm-flash-attn3\n");
    assert_eq!(attention(&stated, &model), AttentionKernel::Flash3);
    let in_model = model.replace("{\"model_type\"", "{\"attn_implementation\": \"flash_attention_2\", \"model_type\"");
    assert_ne!(attention(ARGUMENTS, &in_model), AttentionKernel::Unfused);
}

#[test]
fn tasks_of_srun_are_devices() {
    let model = MEGATRON.split_once("pretrain_gpt.py").map(|(_, arguments)| arguments).unwrap_or_default();
    let devices = |launcher: &str| {
        let cluster = config(&format!("{launcher} python pretrain_gpt.py {model}\n")).scenario.cluster;
        (cluster.nodes, cluster.devices_per_node)
    };
    for launcher in [
        "srun --nodes=4 --ntasks-per-node=4",
        "srun -N4 -n16",
        "srun -N 4 -n 16",
        "#SBATCH --nodes=4\n#SBATCH --ntasks=16\nsrun",
        "#SBATCH --nodes=4\nsrun -l --ntasks-per-node 4",
        "srun -N 4 --ntasks-per-node=4 --gpus-per-node=4",
    ] {
        assert_eq!(devices(launcher), (4, 4), "{launcher}");
    }
    // Without a number of nodes, torchrun has one, if a replica fits in it.
    assert_eq!(devices("torchrun --nproc_per_node 4"), (1, 4));
    assert_eq!(devices("torchrun --nproc_per_node 4 --nnodes $NODES").1, 4);
    // One task for each node.
    assert_eq!(devices("srun -N 4 -n 4 torchrun --nproc_per_node 8 --nnodes 4"), (4, 8));
}

#[test]
fn jobs_that_do_not_start_are_refused() {
    let refusals = |flags: &str| config(&format!("{MEGATRON} {flags}\n")).refusals.join(" ");
    assert!(refusals("--fp8-format hybrid --fp8-recipe mxfp8").contains("has no mxfp8"));
    assert_eq!(refusals("--fp8-format hybrid --fp8-recipe delayed"), "");
    assert!(refusals("--max-position-embeddings 2048").contains("Set max-position-embeddings to at least 4096"));
    assert_eq!(refusals("--max-position-embeddings 4096"), "");
    let titan = |devices: u32| {
        config(&format!("NGPU={devices} MODULE=llama3 CONFIG=llama3_8b ./run_train.sh --training.local_batch_size 2"))
    };
    assert!(titan(64).refusals[0].contains("64 devices of a node"));
    assert_eq!(titan(8).refusals, Vec::<String>::new());
}

#[test]
fn the_default_exchange_of_experts_gathers_tokens() {
    let with = |flags: &str| config(&format!("{MEGATRON} --num-experts 8 --expert-model-parallel-size 8 {flags}\n"));
    assert!(
        says(&with(""), "4.0 times the bytes") && says(&with("--moe-token-dispatcher-type allgather"), "4.0 times")
    );
    assert!(!says(&with("--moe-token-dispatcher-type alltoall"), "times the bytes"));
}

#[test]
fn options_of_megatron_that_are_not_applied_are_named() {
    let with = |flags: &str| config(&format!("{MEGATRON} {flags}\n"));
    assert!(says(&with("--fp8-format hybrid --first-last-layers-bf16"), "2 layers at the ends are in bf16"));
    assert!(says(&with("--fine-grained-activation-offloading --offload-modules core_attn"), "single modules"));
    assert!(says(&with("--microbatch-group-size-per-virtual-pipeline-stage 8"), "groups of microbatches"));
    let job = with("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3-8B");
    assert_eq!(job.scenario.model.modules[0].vocab, 128_256);
}

#[test]
fn performance_recipes_of_llama_3_have_longer_sequences() {
    let command = "python scripts/performance/setup_experiment.py -m llama3 -mr llama3_70b -g h100 -ng 64 -c fp8_cs -tp 4 -pp 8 -vp 5 -cp 1 -mb 1 -gb 128";
    let Scenario { workload, training, .. } = config(command).scenario;
    assert_eq!((workload.context_length, training.gradients), (8192, planner::training::GradientFormat::Bf16));
    assert_eq!(config(&format!("{command} -sl 4096")).scenario.workload.context_length, 4096);
}

#[test]
fn parts_that_are_left_out_have_a_direction() {
    let job = |text: &str| {
        config(&format!(
            "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\ncutoff_len: 4096\nper_device_train_batch_size: 1\nbf16: true\n{text}\n"
        ))
    };
    let saved = job("finetuning_type: lora\nlora_target: all\nadditional_target: embed_tokens,lm_head");
    assert!(says(&saved, "1.05 billion parameters: about 11.7 to 15.7 GiB"), "{:?}", saved.not_modelled);
    assert!(says(&job("finetuning_type: full\nuse_badam: true"), "memory is an upper bound"));
    assert!(says(&job("finetuning_type: freeze\nfreeze_trainable_layers: 2"), "as if they were trained"));
}
