//! Execution plan files: the checker simulates them to the nanosecond, and detects changes.

use planner::check::{FileViolation, check_execution_file};
use planner::engine::{Record, Recorded, Unobserved, plan_recorded};
use planner::execution_file::ExecutionFile;
use planner::outcome::{IterationMetrics, Outcome, PlanOutcome};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{PlannerKind, ValidScenario, parse};
use planner::units::{Bytes, Nanos};
use serde_json::{Value, json};

/// Images vary by sample, so microbatches have different times.
fn images(planners: &[&str]) -> Value {
    json!({
        "schema": "scenario/1", "model": { "preset": "vlm-s" }, "cluster": { "preset": "h800", "nodes": 2 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                "images": { "kind": "uniform", "min": 0, "max": 32 }
            },
            "global_batch": 24, "context_length": 8192, "packing": "single"
        },
        "training": { "recompute": "full" }, "layout": { "tensor": 2, "pipeline": 4, "microbatch": 1 },
        "search": { "rollouts": 10 }, "planners": planners, "seed": 7, "iterations": 2
    })
}

/// Text of very different lengths.
fn lengths(model: &str, planners: &[&str]) -> Value {
    json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "a800", "nodes": 2 },
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": { "kind": "histogram", "edges": [16, 512, 4096, 16384, 32768], "counts": [50, 30, 10, 5] },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 32, "context_length": 32768, "packing": "single"
        },
        "training": { "data_overlap": 1.0, "gradients": "bf16" },
        "search": { "rollouts": 10 }, "planners": planners, "seed": 1, "iterations": 2
    })
}

fn recorded(document: &Value, iteration: u32) -> (Outcome, Vec<Recorded>) {
    let scenario = parse(&document.to_string()).unwrap();
    let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let record = Record { planner: None, iteration };
    let (planning, files) = plan_recorded(&scenario, Some(record), &mut Unobserved).unwrap();
    (planning.outcome, files)
}

fn metrics(outcome: &Outcome, planner: PlannerKind, iteration: usize) -> &IterationMetrics {
    let result = outcome.results.iter().find(|result| result.planner == planner).unwrap();
    let PlanOutcome::Planned(planned) = &result.answer else { panic!("{planner:?} has no plan") };
    &planned.iterations[iteration]
}

/// Writes and reads the file of every planner, simulates it and compares the result with the outcome. Returns the
/// files.
fn round_trips(document: &Value, iteration: u32) -> Vec<ExecutionFile> {
    let (outcome, files) = recorded(document, iteration);
    for result in &outcome.results {
        if let PlanOutcome::Infeasible { binding, .. } = &result.answer {
            panic!("{}: {binding}", result.title);
        }
    }
    let round_trip = |recorded: Recorded| {
        let planner = recorded.planner;
        let file = recorded.file.unwrap_or_else(|error| panic!("{planner:?}: {error}"));
        let read: ExecutionFile = serde_json::from_str(&serde_json::to_string(&file).unwrap()).unwrap();
        assert_eq!(read, file, "{planner:?}");
        let replay = check_execution_file(&read).unwrap_or_else(|violation| panic!("{planner:?}: {violation}"));
        let expected = metrics(&outcome, planner, iteration as usize);
        assert_eq!(Nanos::new(replay.iteration_ns).secs().to_bits(), expected.iteration_s.to_bits(), "{planner:?}");
        let peak = replay.peak_bytes.iter().copied().max().unwrap();
        assert_eq!(Bytes::new(peak).gib().to_bits(), expected.peak_memory_gib.to_bits(), "{planner:?}");
        assert!(
            (replay.idle_share - expected.bubble).abs() < 1e-9,
            "{planner:?}: {} {}",
            replay.idle_share,
            expected.bubble
        );
        file
    };
    files.into_iter().map(round_trip).collect()
}

#[test]
fn static_plans_of_unequal_microbatches_take_the_same_nanoseconds() {
    let planners = ["1f1b", "interleaved", "looped_bfs", "zb_h1", "zbv", "v_half", "optimus"];
    let files = round_trips(&images(&planners), 0);
    let interleaved = files.iter().find(|file| file.planner == PlannerKind::Interleaved).unwrap();
    assert!(interleaved.layout.chunks > 1 && interleaved.runs[0].stages.len() > 4);
    assert!(interleaved.replicas.len() > 1, "DP 2");
    for file in &files {
        let times: std::collections::BTreeSet<u64> =
            file.runs[0].microbatches.iter().map(|microbatch| microbatch.forward_ns[0]).collect();
        assert!(times.len() > 1, "{:?}", file.planner);
    }
}

#[test]
fn dynamic_plans_take_the_same_nanoseconds() {
    let planners = ["wait_free_cyclic", "pipeweaver_partition", "pipeweaver_interleaving", "pipeweaver"];
    let files = round_trips(&images(&planners), 1);
    let joined = files.iter().flat_map(|file| &file.runs).flat_map(|run| &run.microbatches);
    assert!(joined.into_iter().any(|microbatch| !microbatch.inputs.is_empty()), "sub-microbatches join");
}

/// Without recomputation the activations do not fit, so layers are tuned.
#[test]
fn tuned_layers_are_in_the_file() {
    let mut document = images(&["nnscaler", "pipeweaver"]);
    document["training"] = json!({});
    document["workload"]["global_batch"] = json!(16);
    document["workload"]["samples"]["images"]["min"] = json!(16);
    for file in round_trips(&document, 0) {
        let mut strategies =
            file.runs.iter().flat_map(|run| &run.microbatches).flat_map(|costs| &costs.layer_strategies);
        assert!(strategies.any(|mix| mix[1..].iter().any(|&layers| layers > 0)), "{:?}", file.planner);
    }
}

#[test]
fn strategies_with_phases_take_the_same_nanoseconds() {
    let files = round_trips(&lengths("llama-2-7b", &["static_strategy", "hotspa", "hydraulis"]), 0);
    let phases = |planner| {
        let file = files.iter().find(|file| file.planner == planner).unwrap();
        file.runs[0].ranks.iter().map(|rank| rank.phase).max().unwrap()
    };
    assert_eq!(phases(PlannerKind::StaticStrategy), 0);
    assert!(phases(PlannerKind::HotSpa) > 0);
    assert!(files.iter().all(|file| !file.runs[0].pipelines.is_empty()));
}

#[test]
fn groups_of_ranks_take_the_same_nanoseconds() {
    let mut document = lengths("llama-3-8b", &["static_cp", "ulysses", "balanced_cp", "dhp"]);
    document["training"] = json!({ "zero": 3 });
    let files = round_trips(&document, 1);
    assert!(files.iter().all(|file| !file.runs[0].groups.is_empty()));
}

#[test]
fn layouts_per_module_take_the_same_nanoseconds() {
    let mut document = images(&["homogeneous", "heterogeneous_colocated", "heterogeneous_non_colocated", "dflop"]);
    document["layout"] = json!({});
    let files = round_trips(&document, 0);
    assert!(files.iter().any(|file| file.module_layouts.len() > 1));
}

#[test]
fn the_best_plan_names_its_source() {
    let mut document = lengths("llama-2-7b", &["1f1b", "best"]);
    document["workload"]["context_length"] = json!(4096);
    let files = round_trips(&document, 0);
    let best = files.iter().find(|file| file.planner == PlannerKind::Best).unwrap();
    assert!(best.source.is_some_and(|source| source != PlannerKind::Best));
}

#[test]
fn an_iteration_beyond_the_run_is_refused() {
    let (_, files) = recorded(&images(&["1f1b"]), 2);
    assert_eq!(files[0].file.as_ref().unwrap_err().to_string(), "the run has 2 iterations");
}

/// A change of any duration is detected, and the violation names rank and action.
#[test]
fn changed_durations_and_swapped_actions_are_detected() {
    let file = round_trips(&images(&["1f1b"]), 0).remove(0);
    let actions = file.runs[0].ranks[1].actions.len();
    let mut detected = 0;
    for index in 0..actions {
        let mut changed = file.clone();
        let Some(duration) = &mut changed.runs[0].ranks[1].actions[index].duration_ns else { continue };
        *duration += 1;
        let message = check_execution_file(&changed).unwrap_err().to_string();
        assert!(message.starts_with(&format!("run 0, rank 1, action {index}: ")), "{message}");
        detected += 1;
    }
    assert!(detected > 10);
    for index in 1..actions {
        let mut swapped = file.clone();
        let list = &mut swapped.runs[0].ranks[1].actions;
        if list[index - 1].transfer.is_some() && list[index].transfer.is_some() {
            // Launches and waits of different transfers may be exchanged.
            continue;
        }
        list.swap(index - 1, index);
        let violation = check_execution_file(&swapped);
        assert!(
            matches!(violation, Err(FileViolation::Actions { run: 0, .. } | FileViolation::Start { run: 0, .. })),
            "{index}: {violation:?}"
        );
    }
}

/// Scenarios whose plans differ in kind: several modules of vision, sound and video, colocated modules whose tensors are
/// regrouped on a rank, experts, and text of different lengths.
fn small_scenarios() -> Vec<(&'static str, Value)> {
    let mut regrouped = images(&[]);
    regrouped["cluster"] = json!({ "preset": "h100", "nodes": 4 });
    regrouped["workload"]["samples"] = json!({
        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 6572 },
        "images": { "kind": "constant", "value": 58 }
    });
    regrouped["workload"]["context_length"] = json!(16384);
    regrouped["workload"]["global_batch"] = json!(32);
    regrouped["layout"] = json!({});
    let mut video = images(&[]);
    video["model"] = json!({ "preset": "t2v-s" });
    video["workload"]["samples"] = json!({
        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 256 },
        "images": { "kind": "constant", "value": 0 }, "video_s": { "kind": "uniform", "min": 2, "max": 8 }
    });
    let mut sound = images(&[]);
    sound["model"] = json!({ "preset": "omni-7b" });
    sound["layout"] = json!({});
    let mut experts = images(&[]);
    experts["model"] = json!({ "preset": "qwen3-vl-30b-a3b" });
    experts["training"]["expert_parallel"] = json!(4);
    experts["layout"] = json!({});
    let mut text = lengths("llama-2-7b", &[]);
    text["workload"]["context_length"] = json!(8192);
    for document in [&mut video, &mut sound, &mut experts] {
        document["workload"]["global_batch"] = json!(16);
    }
    vec![("regrouped", regrouped), ("video", video), ("sound", sound), ("experts", experts), ("text", text)]
}

/// Every planner that has a plan of a scenario has a file that takes the nanoseconds of its plan.
#[test]
fn files_of_all_planners_take_the_same_nanoseconds() {
    let mut with_file = std::collections::BTreeSet::new();
    for (name, mut document) in small_scenarios() {
        let planners: Vec<&str> = PlannerKind::ALL.iter().map(|planner| planner.id()).collect();
        document["planners"] = json!(planners);
        document["iterations"] = json!(1);
        document["search"] = json!({ "rollouts": 0, "best_steps": 8 });
        let (outcome, files) = recorded(&document, 0);
        for recorded in files {
            let planner = recorded.planner;
            let file = recorded.file.unwrap_or_else(|error| panic!("{name}, {planner:?}: {error}"));
            let simulated = check_execution_file(&file).unwrap().iteration_ns;
            let expected = metrics(&outcome, planner, 0).iteration_s;
            assert_eq!(Nanos::new(simulated).secs().to_bits(), expected.to_bits(), "{name}, {planner:?}");
            with_file.insert(planner.id());
        }
    }
    let without: Vec<&str> =
        PlannerKind::ALL.iter().map(|planner| planner.id()).filter(|id| !with_file.contains(id)).collect();
    assert!(without.is_empty(), "no scenario has a plan of {without:?}");
}
