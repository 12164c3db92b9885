//! Notations of the same settings, and jobs that their framework refuses.

use super::*;

const TITAN_LINES: &str = "local_batch_size = 2\nseq_len = 4096\n";

const MEGATRON: &str = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
                        --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --vocab-size 32000";

/// Sections, dotted keys and inline tables are the same document.
#[test]
fn toml_needs_no_headers() {
    let headers = config(&format!("[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n{TITAN_LINES}")).scenario;
    for text in [
        "model.name = \"llama3\"\nmodel.flavor = \"8B\"\ntraining = { local_batch_size = 2, seq_len = 4096 }\n",
        "model = { name = \"llama3\", flavor = \"8B\" }\ntraining.local_batch_size = 2\ntraining.seq_len = 4096\n",
    ] {
        let job = config(text);
        assert_eq!((job.format, &job.scenario), (ConfigFormat::Torchtitan, &headers), "{text}");
        assert!(places(text, ConfigFormat::Torchtitan).is_some(), "{text}");
    }
    for text in ["a = 1\n", "a = b = c\n", "just words\n"] {
        assert_eq!(read("x", text.as_bytes()), Err(JobConfigError::Unknown), "{text}");
    }
}

/// YAML in braces is the same document as in lines. JSON with an error stays an error.
#[test]
fn yaml_is_read_in_braces() {
    let lines = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 4096\n\
                 per_device_train_batch_size: 1\ngradient_accumulation_steps: 4\nbf16: true\n";
    let braces = format!("{{{}}}\n", lines.trim_end().replace('\n', ",\n "));
    let job = config(&braces);
    assert_eq!((job.format, job.scenario), (ConfigFormat::LlamaFactory, config(lines).scenario));
    let place = places(&braces, ConfigFormat::LlamaFactory).unwrap();
    assert_eq!(place.notation, Notation::Yaml);
    let broken = "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 2},}";
    assert!(error(broken).contains("not valid JSON"), "{}", error(broken));
}

/// Neither a directive nor all arguments of a script are in a branch or a value.
#[test]
fn lines_of_a_script_have_no_wrong_remarks() {
    let job = config(&format!("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n{MEGATRON} --bf16 \"$@\"\n"));
    assert!(!job.assumed.iter().any(|text| text.contains("branch") || text.contains("bf16")), "{:?}", job.assumed);
    for rest in ["${MORE[@]}", "${@:2}", "$*"] {
        let job = config(&format!("{MEGATRON} --bf16 {rest}\n"));
        assert!(!job.assumed.iter().any(|text| text.contains("bf16 has a variable")), "{:?}", job.assumed);
    }
    let job = config(&format!("{MEGATRON} --bf16 $BF16\n"));
    assert!(job.assumed.iter().any(|text| text.contains("bf16 has a variable")), "{:?}", job.assumed);
    // A directive in a branch does not exist, but an argument does.
    let job = config(&format!("if [ $A = 1 ]; then\n  {MEGATRON} --bf16 --swiglu\nfi\n"));
    assert!(job.assumed.iter().any(|text| text.starts_with("swiglu is in a branch")), "{:?}", job.assumed);
}

#[test]
fn torchtitan_refuses_local_batches_that_do_not_divide() {
    let job = |local: u32, microbatch: u32| {
        config(&format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = {local}\nglobal_batch_size = 24\n\
             seq_len = 4096\n[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = {microbatch}\n\
             data_parallel_shard_degree = 4\n"
        ))
        .refusals
    };
    assert_eq!(job(6, 2), Vec::<String>::new());
    assert_eq!(job(2, 1), Vec::<String>::new(), "three steps of accumulation");
    let refusals = job(4, 1);
    assert!(refusals.len() == 1 && refusals[0].contains("(24)") && refusals[0].contains("(4 x 4)"), "{refusals:?}");
    let refusals = job(3, 2);
    assert!(refusals[0].contains("pipeline_parallel_microbatch_size (2)"), "{refusals:?}");
}

/// FSDP of torchtitan shards over data-parallel and context-parallel devices.
#[test]
fn context_parallel_devices_of_torchtitan_share_states() {
    let zero = |context: u32| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\n{TITAN_LINES}[parallelism]\n\
             data_parallel_shard_degree = 1\ncontext_parallel_degree = {context}\n"
        );
        config(&text).scenario.training.zero_stage()
    };
    assert_eq!((zero(1), zero(2)), (0, 3));
}

/// The program of Megatron-LM checks it; that of Megatron-Bridge does not.
#[test]
fn megatron_refuses_offload_of_a_plain_optimizer() {
    let refusals = |flags: &str| config(&format!("{MEGATRON} --bf16 --use-distributed-optimizer {flags}\n")).refusals;
    assert_eq!(refusals(""), Vec::<String>::new());
    assert!(refusals("--optimizer-cpu-offload")[0].contains("use-precision-aware-optimizer"));
    assert_eq!(refusals("--optimizer-cpu-offload --use-precision-aware-optimizer"), Vec::<String>::new());
}

#[test]
fn layers_without_transformer_engine_overlap_nothing() {
    let tensor = "--bf16 --tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap";
    assert!(config(&format!("{MEGATRON} {tensor}\n")).scenario.training.tensor_overlap > 0.0);
    let job = config(&format!("{MEGATRON} {tensor} --transformer-impl local --attention-backend flash\n"));
    assert!(job.scenario.training.tensor_overlap <= 0.0);
    assert!(job.assumed.iter().any(|text| text.contains("attention-backend has no effect")), "{:?}", job.assumed);
    assert!(job.not_modelled.iter().any(|text| text.contains("those of Transformer Engine")), "{:?}", job.not_modelled);
    let nemo = |flags: &str| {
        config(&format!(
            "trainer:\n  devices: 8\nmodel:\n  micro_batch_size: 1\n  global_batch_size: 64\n  num_layers: 24\n  hidden_size: 2048\n  \
             num_attention_heads: 16\n  encoder_seq_length: 2048\n  max_position_embeddings: 2048\n{flags}"
        ))
        .scenario
        .training
        .attention
    };
    assert_eq!(nemo("  transformer_engine: false\n"), AttentionKernel::Unfused);
    assert_ne!(nemo("  transformer_engine: true\n"), AttentionKernel::Unfused);
    assert_ne!(nemo("  transformer_engine: false\n  use_flash_attention: true\n"), AttentionKernel::Unfused);
}
