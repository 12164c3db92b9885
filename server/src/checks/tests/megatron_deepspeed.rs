//! The document of DeepSpeed in the text of a script, the offload of optimizers, and the method of recomputation.

use super::*;

const SCRIPT: &str = "#!/bin/bash
ZERO=1
MICRO=1
cat <<EOT > ds.json
{
  \"train_batch_size\": 64,
  \"train_micro_batch_size_per_gpu\": $MICRO,
  \"zero_optimization\": {\"stage\": $ZERO}
}
EOT
ARGS=\"--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 \\
  --vocab-size 32000 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 1 --bf16 \\
  --micro-batch-size $MICRO --global-batch-size 64 --deepspeed --deepspeed_config ds.json --zero-stage $ZERO\"
deepspeed --num_gpus 8 --num_nodes 2 pretrain_gpt.py $ARGS
";

/// The stage is stated twice. Both change, or their variable does.
#[test]
fn the_stage_changes_in_the_document_too() {
    let stage = change(layout(4, 1, 4, 1), &[("/training/zero", json!(2))]);
    assert_eq!(edited(SCRIPT, &stage).1, SCRIPT.replace("ZERO=1", "ZERO=2"));
    let plain = SCRIPT.replace("$ZERO", "1");
    let (settings, file) = edited(&plain, &stage);
    assert_eq!(settings, ["--zero-stage 2", "\"stage\": 2"]);
    assert_eq!(file, plain.replace("\"stage\": 1", "\"stage\": 2").replace("--zero-stage 1", "--zero-stage 2"));
    // A variable with another use, two documents, and a stage that is not found.
    let used = format!("{SCRIPT}echo $ZERO\n");
    assert_eq!(edited(&used, &stage).0, Vec::<String>::new());
    let twice = format!("{SCRIPT}# \n{{\"zero_optimization\": {{\"stage\": 3}}}}\n");
    assert_eq!(edited(&twice, &stage).0, Vec::<String>::new());
    let computed = SCRIPT.replace("\"stage\": $ZERO", "\"stage\": $(zero)");
    assert_eq!(edited(&computed, &stage).0, Vec::<String>::new());
    // DeepSpeed takes the stage from a file that is not given.
    let command = &SCRIPT[SCRIPT.find("ARGS=").unwrap()..];
    let separate = format!("MICRO=4\nZERO=1\n{command}");
    assert_eq!(edited(&separate, &stage).0, Vec::<String>::new());
}

#[test]
fn the_microbatch_changes_in_the_document_too() {
    let micro = change(layout(4, 1, 4, 2), &[("/layout/microbatch", json!(2))]);
    assert_eq!(edited(SCRIPT, &micro).1, SCRIPT.replace("MICRO=1", "MICRO=2"));
}

/// Formats have the offload of the optimizer under their own keys, or none.
#[test]
fn optimizers_are_offloaded() {
    let half = change(layout(2, 1, 8, 2), &[("/training/optimizer_offload", json!(0.5))]);
    let whole = change(layout(2, 1, 8, 2), &[("/training/optimizer_offload", json!(1.0))]);
    let bridge = &include_str!("bridge.yaml").replace("distributed_optimizer: false", "distributed_optimizer: true");
    let (settings, file) = edited(bridge, &half);
    assert_eq!(
        settings,
        [
            "optimizer.optimizer_cpu_offload: true",
            "optimizer.optimizer_offload_fraction: 0.5",
            "optimizer.use_precision_aware_optimizer: true"
        ]
    );
    assert!(file.contains("optimizer:\n  optimizer_cpu_offload: true\n  optimizer_offload_fraction: 0.5\n"), "{file}");
    assert_eq!(edited(include_str!("nemo.yaml"), &whole).0, Vec::<String>::new(), "NeMo has no setting");

    let model = include_str!("model.json");
    let arguments = "per_device_train_batch_size: 2\ngradient_checkpointing: false\n";
    let accelerate = "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n  \
                      gradient_accumulation_steps: 4\nmixed_precision: bf16\nnum_machines: 2\nnum_processes: 16\n";
    let (settings, _) = edited_files(&[model, arguments, accelerate], &whole);
    assert_eq!(settings, ["offload_optimizer_device: cpu"]);
    let files = [model, arguments, accelerate];
    assert_eq!(edited_files(&files, &half).0, Vec::<String>::new(), "accelerate has no share");

    let third = "{\"train_micro_batch_size_per_gpu\": \"auto\", \"gradient_accumulation_steps\": \"auto\", \
                 \"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"none\"}}}";
    let files = [model, arguments, third];
    let (settings, _) = edited_files(&files, &half);
    assert_eq!(settings, ["\"device\": \"cpu\"", "\"ratio\": 0.5"]);
    let second = third.replace("\"stage\": 3", "\"stage\": 2");
    let files = [model, arguments, second.as_str()];
    assert_eq!(edited_files(&files, &whole).0, ["\"device\": \"cpu\""]);
    assert_eq!(edited_files(&files, &half).0, Vec::<String>::new(), "only stage 3 has a share");
}

/// Megatron-LM needs a method with full recomputation, and refuses a number of layers without it.
#[test]
fn the_method_of_recomputation_is_valid() {
    let fields = |kind: &str| [("/training/recompute", json!(kind)), ("/training/recompute_layers", Value::Null)];
    let full = change(layout(2, 1, 8, 2), &fields("full"));
    let nemo = include_str!("nemo.yaml");
    let block = nemo.replace("granularity: full", "granularity: selective").replace("method: uniform", "method: block");
    let (_, file) = edited(&block, &full);
    for line in ["granularity: full", "method: uniform", "num_layers: 1"] {
        assert!(file.contains(&format!("activations_checkpoint_{line}")), "{line}: {file}");
    }
    // With fused attention, selective recomputation of Megatron-Core repeats more than that of the change.
    let selective = change(layout(2, 1, 8, 2), &fields("selective"));
    assert_eq!(edited(nemo, &selective).0, [""; 0]);
    let flash = "use_flash_attention: false";
    let unfused = nemo.replace(flash, &format!("{flash}\n  transformer_engine: false"));
    let (_, file) = edited(&unfused, &selective);
    for line in ["granularity: selective", "method: null", "num_layers: null"] {
        assert!(file.contains(&format!("activations_checkpoint_{line}")), "{line}: {file}");
    }
    let verl = include_str!("verl.yaml");
    let (settings, _) = edited(verl, &full);
    assert_eq!(settings, ["recompute_granularity: full", "recompute_method: uniform", "recompute_num_layers: 1"]);
    let stated = verl.replace(
        "recompute_granularity: null",
        "recompute_granularity: full\n        recompute_method: block\n        recompute_num_layers: 4",
    );
    let (settings, _) = edited(&stated, &change(layout(2, 1, 8, 2), &fields("none")));
    assert_eq!(settings, ["recompute_granularity: null", "recompute_method: null", "recompute_num_layers: null"]);
}
