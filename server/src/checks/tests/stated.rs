//! Changes of settings that a file states in an unusual form.

use super::*;

const TITAN: &str = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 8\nglobal_batch_size = 64\n\
                     seq_len = 4096\n\n[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1B\"\n\
                     fsdp_reshard_after_forward = \"always\"\n\n\
                     [activation_checkpoint]\nmode = \"none\"\n";

/// torchtitan refuses a global batch that is no multiple of the local batches of all replicas.
#[test]
fn the_local_batch_fits_the_new_replicas() {
    let pipeline = |degree: u32| change(layout(1, degree, 16 / degree, 1), &[("/layout/pipeline", json!(degree))]);
    let (settings, file) = edited(TITAN, &pipeline(1));
    assert!(settings.contains(&"local_batch_size = 1".to_owned()), "{settings:?}");
    assert!(read(&[("", &file)], HARDWARE).unwrap().refusals.is_empty(), "{file}");
    let four = TITAN.replace("degree = 2", "degree = 4").replace("local_batch_size = 8", "local_batch_size = 16");
    let (settings, file) = edited(&four, &pipeline(2));
    assert_eq!(settings, ["pipeline_parallel_degree = 2", "local_batch_size = 8"]);
    assert!(read(&[("", &file)], HARDWARE).unwrap().refusals.is_empty(), "{file}");
    // A local batch that still divides the global one stays.
    let small = four.replace("local_batch_size = 16", "local_batch_size = 8");
    assert_eq!(edited(&small, &pipeline(2)).0, ["pipeline_parallel_degree = 2"]);
    let broken = TITAN.replace("local_batch_size = 8", "local_batch_size = 16");
    let refusals = read(&[("", &broken)], HARDWARE).unwrap().refusals;
    assert!(refusals.iter().any(|text| text.contains("(16 x 8)")), "{refusals:?}");
}

/// A replica on all devices has nothing to shard.
#[test]
fn stated_shards_follow_the_replicas() {
    let text = TITAN
        .replace("global_batch_size = 64\n", "")
        .replace("pipeline_parallel_degree = 2\n", "pipeline_parallel_degree = 8\ndata_parallel_shard_degree = 2\n");
    let (settings, _) = edited(&text, &change(layout(2, 8, 1, 1), &[("/layout/tensor", json!(2))]));
    for setting in ["data_parallel_shard_degree = 1", "local_batch_size = 16"] {
        assert!(settings.iter().any(|line| line == setting), "{settings:?}");
    }
    // The devices of a context-parallel group share the states.
    let context = change(layout(1, 8, 1, 1), &[("/training/context_parallel", json!(2))]);
    let (settings, _) = edited(&text, &context);
    assert!(settings.iter().any(|line| line == "data_parallel_shard_degree = 1"), "{settings:?}");
}

#[test]
fn layers_join_the_compiled_parts() {
    let text = format!("{JOB}\n[compile]\nenable = true\ncomponents = [\"loss\"]\n");
    let compiled = change(layout(1, 1, 16, 2), &[("/training/execution", json!("compiled"))]);
    assert_eq!(edited(&text, &compiled).0, ["components = [\"model\",\"loss\"]"]);
}

/// A TOML file without headers of sections.
#[test]
fn dotted_keys_of_toml_change() {
    let text = "model.name = \"llama3\"\nmodel.flavor = \"8B\"\ntraining.local_batch_size = 2\ntraining.seq_len = 4096\n\
                activation_checkpoint.mode = \"none\"\n";
    let (settings, file) = edited(text, &change(layout(1, 1, 16, 1), &[("/layout/microbatch", json!(1))]));
    assert_eq!(settings, ["local_batch_size = 1", "[training] global_batch_size = 32"]);
    assert!(
        file.contains("training.local_batch_size = 1\n") && file.contains("\ntraining.global_batch_size = 32\n"),
        "{file}"
    );
}

/// YAML in braces, as in the files of GPT-NeoX.
#[test]
fn keys_in_braces_change_and_are_added() {
    let text = "{\n  # parallelism\n  \"pipe_parallel_size\": 1, \"model_parallel_size\": 2,\n  \"num_layers\": 24, \"hidden_size\": 2048,\n  \
                \"num_attention_heads\": 16, \"seq_length\": 2048, \"max_position_embeddings\": 2048,\n  \"pos_emb\": \"rotary\",\n  \
                \"train_micro_batch_size_per_gpu\": 2,\n  \"zero_optimization\": {\"stage\": 1},\n  \
                \"bf16\": {\"enabled\": true}, \"checkpoint_activations\": true,\n}\n";
    let none = change(layout(2, 1, 8, 2), &[("/training/recompute", json!("none"))]);
    let (settings, file) = edited(text, &none);
    assert_eq!(settings, ["checkpoint_activations: false"]);
    assert_eq!(file, text.replace("\"checkpoint_activations\": true", "\"checkpoint_activations\": false"));
    let (settings, file) = edited(text, &change(layout(2, 1, 8, 2), &[("/training/attention", json!("flash"))]));
    assert_eq!(settings, ["attention_config: [[[\"flash\"],24]]"]);
    let batch = "\"train_micro_batch_size_per_gpu\": 2";
    assert_eq!(file, text.replace(batch, &format!("{batch},\n  \"attention_config\": [[[\"flash\"],24]]")));
    let stage = change(layout(2, 1, 8, 2), &[("/training/zero", json!(2))]);
    assert_eq!(edited(text, &stage).0, ["stage: 2"]);
}

#[test]
fn recomputed_modules_are_a_list_in_yaml() {
    let modules = change(
        layout(1, 2, 8, 2),
        &[
            ("/training/recompute", json!("selective")),
            ("/training/recompute_layers", Value::Null),
            ("/training/recompute_modules", json!(["layernorm", "mlp"])),
        ],
    );
    for text in [include_str!("primus.yaml"), include_str!("bridge.yaml")] {
        let (settings, file) = edited(text, &modules);
        assert!(
            settings.iter().any(|line| line.ends_with("recompute_modules: [\"layernorm\",\"mlp\"]")),
            "{settings:?}"
        );
        let read: serde_json::Value =
            json!(job_config::read("", file.as_bytes()).unwrap().scenario.training.recompute_modules);
        assert_eq!(read, json!(["layernorm", "mlp"]));
    }
}

/// A value with a variable is replaced, so that the variable has no effect.
#[test]
fn replaced_variables_are_named() {
    let text = include_str!("primus.yaml").replace("parallel_size: 1", "parallel_size: ${PRIMUS_TP:1}");
    let (settings, _) = edited(&text, &change(layout(2, 2, 4, 2), &[("/layout/tensor", json!(2))]));
    assert_eq!(settings, ["tensor_model_parallel_size: 2 (instead of ${PRIMUS_TP:1})"]);
}

/// Keys of the distributed optimizer of NeMo.
#[test]
fn overlap_of_gradients_in_nemo() {
    let text = include_str!("nemo.yaml").replace(
        "name: fused_adam",
        "name: distributed_fused_adam\n    overlap_grad_sync: false\n    overlap_param_sync: false",
    );
    let (settings, _) = edited(&text, &change(layout(4, 2, 2, 2), &[("/training/data_overlap", json!(1.0))]));
    assert_eq!(settings, ["overlap_grad_sync: true", "overlap_param_sync: true"]);
    // Layers without Transformer Engine have no fused attention.
    let local = include_str!("nemo.yaml").replace("  use_flash_attention: false\n", "  transformer_engine: false\n");
    let fused = change(layout(4, 2, 2, 2), &[("/training/attention", json!("flash"))]);
    assert_eq!(edited(&local, &fused).0, ["transformer_engine: true"]);
}

#[test]
fn liger_of_open_rlhf() {
    let text = "deepspeed --module openrlhf.cli.train_sft --max_len 4096 --train_batch_size 64 --micro_train_batch_size 1 \\\n  \
                --pretrain meta-llama/Meta-Llama-3-8B --zero_stage 3 --bf16 --flash_attn --gradient_checkpointing\n";
    let fields = [("/training/chunked_loss", json!(true)), ("/training/execution", json!("compiled"))];
    assert_eq!(edited(text, &change(layout(1, 1, 16, 1), &fields)).0, ["--use_liger_kernel"]);
}

#[test]
fn offload_of_open_rlhf_goes() {
    let text = "deepspeed --module openrlhf.cli.train_sft --max_len 4096 --train_batch_size 64 --micro_train_batch_size 1 \\\n  \
                --pretrain meta-llama/Meta-Llama-3-8B --zero_stage 2 --bf16 --flash_attn --adam_offload --gradient_checkpointing\n";
    let (settings, file) = edited(text, &change(layout(1, 1, 16, 1), &[("/training/optimizer_offload", json!(0.0))]));
    assert_eq!(settings, ["--adam_offload"]);
    assert!(!file.contains("adam_offload") && file.contains("--flash_attn --gradient_checkpointing"), "{file}");
}

/// FSDP holds unsharded gradients during accumulation, unless the trainer synchronizes each microbatch.
#[test]
fn gradients_are_sharded_after_each_microbatch() {
    let each = [("/training/unsharded_gradients", json!(false))];
    let command = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --bf16 true --fsdp \"full_shard auto_wrap\" \\\n  \
                   --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --max_seq_length 4096\n";
    let (settings, file) = edited(command, &change(layout(1, 1, 16, 1), &each));
    let value = "{\"gradient_accumulation_kwargs\":{\"sync_each_batch\":true}}";
    assert_eq!(settings, [format!("--accelerator_config {value}")]);
    assert!(file.contains(&format!(" --accelerator_config '{value}'")), "{file}");
    let arguments = command.split_once("train.py ").unwrap().1.trim_end();
    let in_string = format!("ARGS='{arguments}'\ntorchrun --nproc_per_node 8 train.py $ARGS\n");
    assert_eq!(edited(&in_string, &change(layout(1, 1, 16, 1), &each)).0, [""; 0]);
    let yaml = "base_model: Qwen/Qwen2.5-7B\nsequence_len: 4096\nmicro_batch_size: 1\ngradient_accumulation_steps: 8\nbf16: true\n\
                fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n";
    let (_, file) = edited(yaml, &change(layout(1, 1, 16, 1), &each));
    assert!(file.contains("sync_each_batch"), "{file}");
}

/// The copies between nodes become shards.
#[test]
fn sharding_over_nodes_in_maxtext() {
    let text = "model_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 4096\nremat_policy: full\n\
                ici_fsdp_parallelism: -1\ndcn_data_parallelism: 2\n";
    let (settings, _) = edited(text, &change(layout(1, 1, 16, 2), &[("/training/shard_degree", Value::Null)]));
    assert_eq!(settings, ["dcn_data_parallelism: 1", "dcn_fsdp_parallelism: 2"]);
}

/// The parts within a node multiply to its devices, and those between nodes to the nodes.
#[test]
fn degrees_of_maxtext_fill_the_devices_of_a_node() {
    let text = "model_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 4096\nremat_policy: full\n\
                ici_fsdp_parallelism: 4\nici_tensor_parallelism: 1\ndcn_fsdp_parallelism: 4\ndcn_data_parallelism: 1\n";
    let tensor = change(layout(2, 1, 8, 2), &[("/layout/tensor", json!(2))]);
    let expected = [
        "ici_tensor_parallelism: 2",
        "ici_fsdp_parallelism: 2",
        "per_device_batch_size: 1",
        "gradient_accumulation_steps: 2",
    ];
    assert_eq!(edited(text, &tensor).0, expected);
    let experts = change(layout(1, 1, 16, 2), &[("/training/expert_parallel", json!(2))]);
    let moe = text.replace("llama3.1-8b", "mixtral-8x7b");
    assert_eq!(edited(&moe, &experts).0, ["ici_expert_parallelism: 2", "ici_fsdp_parallelism: 2"]);
    let wide = change(layout(8, 1, 2, 2), &[("/layout/tensor", json!(8))]);
    assert_eq!(edited(text, &wide).0, [""; 0], "a node has 4 devices");
}

/// A pipeline of MaxText runs all forwards first, which is not simulated for a job without one.
#[test]
fn a_job_of_maxtext_gets_no_other_schedule() {
    let text = "model_name: llama3.1-8b\nper_device_batch_size: 2\nmax_target_length: 4096\nici_fsdp_parallelism: -1\n";
    let pipeline = [("/layout/pipeline", json!(2))];
    assert_eq!(edited(text, &change(layout(1, 2, 8, 2), &pipeline)).0, [""; 0]);
    let (format, valid) = valid(&[text]);
    let job = Job::new(format, &[text]);
    let changes = [(1, "/training/recompute", json!("none")), (2, "/layout/pipeline", json!(2))];
    let none = (&planner::host::SequentialWorkers, &planner::host::NeverCancelled);
    let mut fit = fit::need(&valid, None, none.0, none.1).unwrap().fit;
    fit.changes = changes.map(|(pipeline, field, value)| change(layout(1, pipeline, 8, 2), &[(field, value)])).into();
    fit.combination = None;
    possible::keep_possible(&mut fit, &job, valid.scenario());
    assert_eq!(fit.changes.len(), 1);
}
