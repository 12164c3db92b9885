//! Edits of shell scripts with quotes, and with options that are given twice.

use super::*;

/// The change to no recomputation.
fn without_recomputation() -> Change {
    change(layout(4, 2, 2, 1), &[("/training/recompute", json!("none"))])
}

/// A script with options of recomputation.
fn script(options: &str) -> String {
    SCRIPT
        .replace(" --recompute-activations\"\n", "\"\n")
        .replace("pretrain_gpt.py", &format!("pretrain_gpt.py {options}"))
}

/// The quotes of a removed value go with it.
#[test]
fn removed_options_leave_no_quotes() {
    for (granularity, method, layers) in [
        ("--recompute-granularity \"full\"", "--recompute-method 'uniform'", "--recompute-num-layers \"1\""),
        ("--recompute-granularity=\"full\"", "--recompute-method='uniform'", "--recompute-num-layers=1"),
        ("\"--recompute-granularity\" \"full\"", "'--recompute-method' uniform", "\"--recompute-num-layers=1\""),
        ("--recompute-granularity ${RG:-full}", "--recompute-method \"${RM:-uniform}\"", "--recompute-num-layers 1"),
    ] {
        let text = script(&format!("{granularity} {method} {layers} --lr 1e-4"));
        let (settings, file) = edited(&text, &without_recomputation());
        assert_eq!(settings.len(), 3, "{text}: {settings:?}");
        assert_eq!(file, script("--lr 1e-4"), "{text}");
    }
    // Options of a string.
    let text = SCRIPT.replace("--recompute-activations\"", "--recompute-granularity 'selective'\"");
    let (_, file) = edited(&text, &without_recomputation());
    assert_eq!(file, SCRIPT.replace(" --recompute-activations\"", "\""));
    let text = SCRIPT.replace("--recompute-activations\"\n", "\"\nMORE=\"--recompute-activations\"\n");
    let (_, file) = edited(&text, &without_recomputation());
    assert_eq!(file, text.replace("MORE=\"--recompute-activations\"", "MORE="));
}

/// All arguments of a script after a switch are not its value.
#[test]
fn arguments_of_the_caller_stay() {
    for rest in ["\"$@\"", "\"${MORE[@]}\"", "$MORE"] {
        let text = SCRIPT
            .replace(" --recompute-activations\"", "\"")
            .replace("$ARGS", &format!("$ARGS --recompute-activations {rest}"));
        let (settings, file) = edited(&text, &without_recomputation());
        assert_eq!(settings, ["--recompute-activations"], "{text}");
        assert_eq!(file, text.replace(" --recompute-activations", ""));
    }
}

/// A new option follows the one before it, inside the string of that.
#[test]
fn added_options_stay_in_their_string() {
    let text = SCRIPT.replace("TP=4\n", "").replace(
        "--tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \\\n  ",
        "--pipeline-model-parallel-size 2 --tensor-model-parallel-size 4\"\nMORE=\"",
    );
    let text = text.replace("$ARGS", "$ARGS $MORE");
    let (settings, file) = edited(&text, &change(layout(4, 2, 2, 1), &[("/training/sequence_parallel", json!(true))]));
    assert_eq!(settings, ["--sequence-parallel"]);
    assert_eq!(file, text.replace("parallel-size 4\"", "parallel-size 4 --sequence-parallel\""));
}

/// The last of several values counts.
#[test]
fn the_last_of_two_options_changes() {
    let text = SCRIPT.replace("--micro-batch-size 1", "--micro-batch-size 4 --micro-batch-size 1");
    let (settings, file) = edited(&text, &change(layout(4, 2, 2, 2), &[("/layout/microbatch", json!(2))]));
    assert_eq!(settings, ["--micro-batch-size 2"]);
    assert_eq!(file, text.replace("--micro-batch-size 1", "--micro-batch-size 2"));
}

/// The local layers of Megatron-Core have no fused attention.
#[test]
fn fused_attention_needs_transformer_engine() {
    let text = script("--transformer-impl local");
    let fused = change(layout(4, 2, 2, 1), &[("/training/attention", json!("flash"))]);
    let (settings, file) = edited(&text, &fused);
    assert_eq!(settings, ["--attention-backend flash", "--transformer-impl transformer_engine"]);
    assert!(file.contains("--transformer-impl transformer_engine"), "{file}");
    let overlap = change(
        layout(4, 2, 2, 1),
        &[("/training/sequence_parallel", json!(true)), ("/training/tensor_overlap", json!(1.0))],
    );
    assert_eq!(edited(&text, &overlap), (Vec::new(), text.clone()));
    assert!(!edited(&script(""), &overlap).0.is_empty());
}

/// Megatron-LM offloads the optimizer that is distributed and precision-aware.
#[test]
fn offload_of_the_optimizer_has_its_switches() {
    let offload = change(layout(4, 2, 2, 1), &[("/training/optimizer_offload", json!(0.5))]);
    assert_eq!(edited(&script(""), &offload).0, Vec::<String>::new());
    let (settings, _) = edited(&script("--use-distributed-optimizer"), &offload);
    assert_eq!(
        settings,
        ["--optimizer-cpu-offload", "--optimizer-offload-fraction 0.5", "--use-precision-aware-optimizer"]
    );
}
