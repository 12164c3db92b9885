//! Tests of edits in configuration files.

mod commands;
mod formats;
mod megatron_deepspeed;
mod notation;
mod shell;
mod stated;

use api::check::{EditAction, apply};
use planner::fit::{ChangeKind, FieldChange, FitResult};
use planner::outcome::Layout;
use planner::scenario::PlannerKind;
use planner::scenario::validate::NoDatasets;
use serde_json::{Value, json};

use super::*;

const JOB: &str = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n\n[training]\nlocal_batch_size = 2 # sequences\n\
                   seq_len = 8192\n\n[parallelism]\ntensor_parallel_degree = 1\n\n\
                   [activation_checkpoint]\nmode = \"full\"\n";

const SCRIPT: &str = "#!/bin/bash\n# --micro-batch-size 9\nTP=4\nARGS=\"--num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\\n  \
                      --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 \\\n  \
                      --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \\\n  \
                      --micro-batch-size 1 --global-batch-size 64 --recompute-activations\"\n\
                      torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py $ARGS\n";

const HARDWARE: Hardware = Hardware { preset: None, devices: Some(16) };

fn valid(texts: &[&str]) -> (ConfigFormat, ValidScenario) {
    let files: Vec<(&str, &str)> = texts.iter().map(|text| ("", *text)).collect();
    let configuration = read(&files, HARDWARE).unwrap();
    (configuration.format.unwrap(), ValidScenario::new(configuration.scenario, &NoDatasets).unwrap())
}

fn change(layout: Layout, fields: &[(&str, Value)]) -> Change {
    let field = |(pointer, value): &(&str, Value)| FieldChange { pointer: (*pointer).to_owned(), value: value.clone() };
    let layout = Some(layout);
    Change {
        title: String::new(),
        kind: ChangeKind::Layout,
        fields: fields.iter().map(field).collect(),
        result: FitResult {
            layout,
            iteration_s: None,
            tokens_per_s_per_device: None,
            peak_gib: None,
            stage_layers: Vec::new(),
            binding: None,
        },
        difference_s: None,
        probability_faster: None,
    }
}

const fn layout(tensor: u32, pipeline: u32, data: u32, microbatch: u32) -> Layout {
    Layout { tensor, pipeline, data, chunks: 1, microbatch, group: None }
}

/// Returns the settings of the edits, and the edited file.
fn edited(text: &str, change: &Change) -> (Vec<String>, String) {
    let (settings, mut files) = edited_files(&[text], change);
    (settings, files.remove(0))
}

fn edited_files(texts: &[&str], change: &Change) -> (Vec<String>, Vec<String>) {
    let (format, valid) = valid(texts);
    let edits = edits_of(&Job::new(format, texts), texts, HARDWARE, valid.scenario(), change).unwrap_or_default();
    let files = api::check::apply_to_files(texts, &edits).unwrap();
    let described = |edit: &Edit| {
        let replaced = edit.replaced.as_ref().map(|old| format!(" (instead of {old})")).unwrap_or_default();
        format!("{}{replaced}", edit.setting)
    };
    (edits.iter().map(described).collect(), files)
}

#[test]
fn a_changed_key_is_replaced_in_its_section() {
    let (settings, file) = edited(JOB, &change(layout(1, 1, 16, 2), &[("/training/recompute", json!("operators"))]));
    assert_eq!(settings, ["mode = \"selective\"", "[activation_checkpoint] selective_ac_option = \"op\""]);
    assert!(file.contains("mode = \"selective\"") && file.contains("selective_ac_option = \"op\""), "{file}");
}

/// Without a global batch in the file, fewer sequences per replica change it. The edit states it.
#[test]
fn the_global_batch_stays() {
    let (settings, file) = edited(JOB, &change(layout(1, 1, 16, 1), &[("/layout/microbatch", json!(1))]));
    assert_eq!(settings, ["local_batch_size = 1", "[training] global_batch_size = 32"]);
    assert!(file.contains("[training]\nglobal_batch_size = 32\nlocal_batch_size = 1 # sequences\n"), "{file}");
    let (settings, _) = edited(JOB, &change(layout(2, 1, 8, 2), &[("/layout/tensor", json!(2))]));
    assert_eq!(settings, ["tensor_parallel_degree = 2", "[training] global_batch_size = 32"]);
}

#[test]
fn arguments_are_replaced_added_and_removed() {
    let (settings, file) = edited(SCRIPT, &change(layout(2, 2, 4, 1), &[("/layout/tensor", json!(2))]));
    assert_eq!(settings, ["TP=2"]);
    assert_eq!(file, SCRIPT.replace("TP=4", "TP=2"), "the variable changes");
    // A variable with several uses stays, and an expression is replaced as a whole.
    let shared = SCRIPT.replace("--nproc-per-node 8", "--nproc-per-node $TP").replace("TP=4", "TP=8");
    let shared = shared.replace("--num-attention-heads 32", "--num-attention-heads 32 --num-query-groups 8");
    let (settings, file) = edited(&shared, &change(layout(2, 2, 4, 1), &[("/layout/tensor", json!(2))]));
    assert_eq!(settings, ["--tensor-model-parallel-size 2 (instead of $TP)"]);
    assert_eq!(file, shared.replace("--tensor-model-parallel-size $TP", "--tensor-model-parallel-size 2"));
    for expression in ["$(( 8 / 2 ))", "$((8/2))", "${NONE:-\"4\"}"] {
        let script = SCRIPT.replace("TP=4", &format!("TP={expression}"));
        let (settings, file) = edited(&script, &change(layout(2, 2, 4, 1), &[("/layout/tensor", json!(2))]));
        assert_eq!(settings, [format!("TP=2 (instead of {expression})")], "{expression}");
        assert_eq!(file, SCRIPT.replace("TP=4", "TP=2"), "{expression}");
        let direct = SCRIPT.replace("$TP", expression);
        let (settings, file) = edited(&direct, &change(layout(2, 2, 4, 1), &[("/layout/tensor", json!(2))]));
        assert_eq!(settings, [format!("--tensor-model-parallel-size 2 (instead of {expression})")], "{expression}");
        assert_eq!(file, SCRIPT.replace("$TP", "2"), "{expression}");
    }
    let none = change(
        layout(4, 2, 2, 1),
        &[("/training/recompute", json!("none")), ("/training/recompute_layers", Value::Null)],
    );
    let (settings, file) = edited(SCRIPT, &none);
    assert_eq!(settings, ["--recompute-activations"]);
    assert_eq!(file, SCRIPT.replace(" --recompute-activations", ""));
    let (settings, file) = edited(SCRIPT, &change(layout(4, 2, 2, 2), &[("/layout/microbatch", json!(2))]));
    assert_eq!(settings, ["--micro-batch-size 2"]);
    assert!(file.contains("# --micro-batch-size 9"), "comments stay");
    let (settings, file) = edited(SCRIPT, &change(layout(4, 2, 1, 1), &[("/training/context_parallel", json!(2))]));
    assert_eq!(settings, ["--context-parallel-size 2"]);
    assert!(file.contains("--tensor-model-parallel-size $TP --context-parallel-size 2 --pipeline"), "{file}");
}

/// Arguments of torchtitan replace its job file. Changes are edits of the arguments, or new arguments.
#[test]
fn torchtitan_arguments_are_edited() {
    let command = "torchrun -m torchtitan.train --model.name llama3 --model.flavor 8B --training.local-batch-size=2 \\\n  \
                   --training.seq_len 8192 --activation_checkpoint.mode full\n";
    let full = change(layout(1, 1, 16, 2), &[("/training/recompute", json!("operators"))]);
    let (settings, file) = edited(command, &full);
    assert_eq!(settings, ["--activation_checkpoint.mode selective", "--activation_checkpoint.selective_ac_option op"]);
    assert!(file.contains("--activation_checkpoint.mode selective"), "{file}");
    let (settings, file) = edited(command, &change(layout(2, 1, 8, 2), &[("/layout/tensor", json!(2))]));
    assert_eq!(settings, ["--parallelism.tensor_parallel_degree 2", "--training.global_batch_size 32"]);
    assert!(file.contains("--training.local-batch-size=2 --"), "{file}");
    let files = [JOB, "torchrun -m torchtitan.train --job.config_file job.toml --activation_checkpoint.mode none\n"];
    let (settings, files) = edited_files(&files, &full);
    assert!(settings.iter().any(|setting| setting == "mode = \"selective\""), "{settings:?}");
    assert!(settings.iter().any(|setting| setting.contains("selective_ac_option")), "{settings:?}");
    assert!(files[1].contains("--activation_checkpoint.mode selective"), "{}", files[1]);
}

/// Megatron-LM interleaves if there are chunks, torchtitan has a key for the schedule.
#[test]
fn interleaving_is_edited() {
    let fields = [("/planners", json!(["interleaved"])), ("/layout/chunks", json!(4))];
    let change = change(Layout { chunks: 4, ..layout(1, 2, 8, 1) }, &fields);
    assert_eq!(edited(SCRIPT, &change).0, ["--num-layers-per-virtual-pipeline-stage 4"]);
    let titan = JOB.replace("[parallelism]", "[parallelism]\npipeline_parallel_degree = 2");
    let (settings, file) = edited(&titan, &change);
    assert!(
        settings.contains(&"[parallelism] pipeline_parallel_schedule = \"Interleaved1F1B\"".to_owned()),
        "{settings:?}"
    );
    let again = read(&[("", file.as_str())], HARDWARE).unwrap().scenario;
    assert_eq!((again.planners[0], again.layout.chunks), (PlannerKind::Interleaved, Some(4)));
}

/// Stages that a planner found replace stated ones.
#[test]
fn uneven_stages_are_edited() {
    let free = |stages: &[u32], chunks: u32| {
        let fields = [("/free", json!(["layers_per_stage"])), ("/layers_per_stage", json!([]))];
        let mut change = change(Layout { chunks, ..layout(1, 2, 8, 1) }, &fields);
        change.result.stage_layers = stages.to_vec();
        change
    };
    let script = SCRIPT.replace("--recompute-activations", "--decoder-last-pipeline-num-layers 15");
    let (settings, file) = edited(&script, &free(&[18, 14], 1));
    assert_eq!(settings, ["--decoder-last-pipeline-num-layers", "--decoder-first-pipeline-num-layers 18"]);
    assert!(!file.contains("--decoder-last-pipeline-num-layers"), "{file}");
    let (settings, _) = edited(&script, &free(&[], 1));
    assert_eq!(settings, ["--decoder-last-pipeline-num-layers"], "equal stages");
    let chunked = SCRIPT.replace("--recompute-activations", "--num-layers-per-virtual-pipeline-stage 8");
    let (settings, _) = edited(&chunked, &free(&[8, 9, 8, 7], 2));
    assert_eq!(
        settings,
        ["--num-layers-per-virtual-pipeline-stage", "--pipeline-model-parallel-layout Et*8|t*9|t*8|t*7L"]
    );
    let titan = JOB.replace("[parallelism]", "[parallelism]\npipeline_parallel_degree = 2");
    let (settings, file) = edited(&titan, &free(&[17, 15], 1));
    assert_eq!(settings.len(), 1, "{settings:?}");
    assert!(settings[0].starts_with("[parallelism] module_fqns_per_model_part = [[\"tok_embeddings\",\"layers.0\""));
    assert!(file.contains("\"layers.16\"],[\"layers.17\""), "{file}");
    assert!(file.contains("\"layers.31\",\"norm\",\"output\"]]"), "{file}");
}

#[test]
fn lists_and_yaml_have_their_own_notation() {
    let list = "[\"--num-layers\", \"32\", \"--hidden-size\", \"4096\", \"--num-attention-heads\", \"32\", \
                \"--seq-length\", \"4096\", \"--micro-batch-size\", \"1\", \"--global-batch-size\", \"64\"]";
    let located = |text, name: &str, value: Value| {
        let setting = Setting { keys: vec![name.to_owned()], value, is_added: true };
        Job::new(ConfigFormat::Megatron, &[text]).locate(&[setting]).unwrap()
    };
    assert_eq!(
        apply(list, &located(list, "micro-batch-size", json!(2))).unwrap(),
        list.replace("\"--micro-batch-size\", \"1\"", "\"--micro-batch-size\", \"2\"")
    );
    let yaml = "MODEL_ARGS:\n  --num-layers: 32\n  --num-attention-heads: 8\n  --micro-batch-size: 1\n  \
                --recompute-activations: true\n";
    let added = located(yaml, "sequence-parallel", json!(true));
    assert_eq!((added[0].action, added[0].line), (EditAction::Add, 4));
    let file = apply(yaml, &added).unwrap();
    assert!(file.contains("--micro-batch-size: 1\n  --sequence-parallel: true\n"), "{file}");
    let removed = apply(yaml, &located(yaml, "recompute-activations", json!(false))).unwrap();
    assert_eq!(removed, yaml.replace("  --recompute-activations: true\n", ""));
}

/// The edited files are read with the device that the name states.
#[test]
fn a_device_in_the_file_name_stays() {
    let files = [("llama_h200.toml", JOB)];
    let read = read(&files, HARDWARE).unwrap();
    assert_eq!(read.scenario.cluster.name, "H200");
    assert_eq!(preset_of(&read.scenario), Some("h200"));
    let valid = ValidScenario::new(read.scenario, &NoDatasets).unwrap();
    let workers = planner::host::SequentialWorkers;
    let changes = changes(&[JOB], HARDWARE, read.format, &valid, &workers, &planner::host::NeverCancelled).unwrap();
    assert!(changes.edits.iter().any(|edits| !edits.is_empty()));
}

/// A scenario that states more recomputed layers than the model has is valid, with a remark.
#[test]
fn a_scenario_with_too_many_recomputed_layers_has_a_remark() {
    let mut scenario = read(&[("", JOB)], HARDWARE).unwrap().scenario;
    let assumed = |scenario: &Scenario| {
        let text = serde_json::to_string(scenario).unwrap();
        read(&[("", text.as_str())], HARDWARE).unwrap().assumed
    };
    scenario.training.recompute_layers = Some(32);
    assert!(assumed(&scenario).is_empty());
    scenario.training.recompute_layers = Some(64);
    assert!(assumed(&scenario)[0].contains("64 layers are to be recomputed, and the model has 32"));
}

/// torchtitan has no number of recomputed layers.
#[test]
fn a_change_without_a_setting_has_no_edits() {
    let layers = [("/training/recompute", json!("full")), ("/training/recompute_layers", json!(4))];
    assert_eq!(edited(JOB, &change(layout(1, 1, 16, 2), &layers)), (Vec::new(), JOB.to_owned()));
}

#[test]
fn changes_of_the_cluster_are_listed_last() {
    let change = |kind| Change { kind, ..change(layout(1, 1, 1, 1), &[]) };
    let kinds = [ChangeKind::Cluster, ChangeKind::Training, ChangeKind::Cluster, ChangeKind::Layout];
    let (_, valid) = valid(&[JOB]);
    let workers = planner::host::SequentialWorkers;
    let need = fit::need(&valid, None, &workers, &planner::host::NeverCancelled).unwrap();
    let result = need.fit.base.clone();
    let combination = Some(fit::Combination { changes: vec![1, 3], result, difference_s: None });
    let mut fit = Fit { changes: kinds.map(change).to_vec(), combination, ..need.fit };
    list_cluster_last(&mut fit);
    let kinds: Vec<ChangeKind> = fit.changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Training, ChangeKind::Layout, ChangeKind::Cluster, ChangeKind::Cluster]);
    assert_eq!(fit.combination.unwrap().changes, [0, 1]);
}

/// A pasted log is named as a log, with the places that read it. Other texts keep the error of the configuration.
#[test]
fn a_log_in_the_place_of_a_configuration_is_named() {
    let step = |step: u32| {
        format!(
            " iteration {step}/ 100 | consumed samples: {} | elapsed time per iteration (ms): 900.0 | learning rate: 1.000E-04 | \
             global batch size: 8 | lm loss: 2.0E+00 |\n",
            8 * step
        )
    };
    let log = format!(
        "------------------------ arguments ------------------------\n  num_layers ...... 24\n{}{}",
        step(1),
        step(2)
    );
    let error = read(&[("", &log)], HARDWARE).unwrap_err();
    assert!(matches!(error, ConfigurationError::Log { steps: 2 }), "{error}");
    let message = error.to_string();
    assert!(message.starts_with("this is the log of a run (2 steps read)") && message.contains("--log"), "{message}");
    for other in ["hello", "[model]\nname = ", "a: 1\nb: 2\n"] {
        let error = read(&[("", other)], HARDWARE).unwrap_err();
        assert!(matches!(error, ConfigurationError::Config(_)), "{error}");
    }
}
