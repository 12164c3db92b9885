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

/// Fields that describe the plan are compared with the runs, or with their digests. Each change names its field.
#[test]
fn changed_descriptions_are_refused_with_their_field() {
    type Change = Box<dyn Fn(&mut ExecutionFile)>;
    let refused = |file: &ExecutionFile, change: &dyn Fn(&mut ExecutionFile)| {
        let mut changed = file.clone();
        change(&mut changed);
        assert_ne!(&changed, file);
        check_execution_file(&changed).expect_err("a changed file is refused").to_string()
    };
    let mut document = images(&["heterogeneous_colocated", "heterogeneous_non_colocated"]);
    document["layout"] = json!({});
    let fields: Vec<(&str, Change)> = vec![
        ("scenario: ", Box::new(|file| file.scenario = "a".repeat(52))),
        ("engine: ", Box::new(|file| file.engine = "planscope 0.1.0".to_owned())),
        ("iteration: ", Box::new(|file| file.iteration = 1)),
        ("source: ", Box::new(|file| file.source = Some(PlannerKind::OneFOneB))),
        ("modules", Box::new(|file| file.modules.push("decoder".to_owned()))),
        ("modules: ", Box::new(|file| file.modules[0] = "decoder".to_owned())),
        ("activations: ", Box::new(|file| file.activations.activation_offload = 0.5)),
        ("sharding: ", Box::new(|file| file.sharding = None)),
        ("layout: ", Box::new(|file| file.layout.microbatch += 1)),
        ("layout.expert: ", Box::new(|file| file.layout.expert = 0)),
        ("digests", Box::new(|file| drop(file.digests.remove("planner")))),
        ("runs.activations: ", Box::new(shrink_smallest_activation)),
        ("runs.activations: ", Box::new(|file| *file.runs[0].microbatches[0].send_forward_ns.last_mut().unwrap() += 1)),
        ("runs.costs: ", Box::new(|file| file.runs[0].microbatches[0].transient_bytes[0] += 1)),
        ("runs[0].stages: ", Box::new(|file| file.runs[0].stages[0].layers.clear())),
        ("runs.stages: ", Box::new(shorten_last_layers)),
    ];
    for (name, change) in fields {
        let file = &round_trips(&images(&["1f1b"]), 0)[0];
        let message = refused(file, &*change);
        let name = if name == "digests" { "planner: " } else { name };
        assert!(message.starts_with(name), "{name}{message}");
    }
    for file in round_trips(&document, 0) {
        let degrees = |change: fn(&mut planner::execution_file::ModuleDegrees)| {
            refused(&file, &|file| change(&mut file.module_layouts[0]))
        };
        for message in [
            degrees(|degrees| degrees.tensor *= 2),
            degrees(|degrees| degrees.context *= 2),
            degrees(|degrees| degrees.pipeline += 1),
            degrees(|degrees| degrees.data += 1),
            degrees(|degrees| degrees.expert = 64),
            degrees(|degrees| degrees.first = 1),
            degrees(|degrees| degrees.end = 9),
            degrees(|degrees| degrees.copies_per_rank += 1),
            degrees(|degrees| degrees.first_device += 1000),
        ] {
            assert!(message.starts_with("module_layouts[0]."), "{message}");
        }
        assert!(degrees(|degrees| degrees.first_device += 1).starts_with("module_layouts"), "by digest or range");
        let message = refused(&file, &|file| file.module_layouts.truncate(file.module_layouts.len() - 1));
        assert!(message.starts_with("module_layouts") || message.starts_with("TP x CP"), "{message}");
        assert!(refused(&file, &|file| file.devices += 1).starts_with("devices: "));
        assert!(refused(&file, &|file| file.devices = 1).contains("devices"));
        assert!(
            refused(&file, &|file| file.planner = PlannerKind::OneFOneB).starts_with("planner: 1f1b makes no plans")
        );
        assert!(refused(&file, &|file| file.planner = PlannerKind::Homogeneous).starts_with("planner: "));
        assert!(refused(&file, &|file| file.layout.tensor = 3).starts_with("layout"));
        assert!(refused(&file, &|file| file.runs[0].stages[0].layers.clear()).contains("stages"));
        assert!(refused(&file, &shorten_last_layers).contains("stages"));
        let message = refused(&file, &|file| file.runs[0].ranks[0].devices += 1);
        assert!(message.contains("module_layouts[") || message.contains("its ranks"), "{message}");
    }
    let file = round_trips(&lengths("llama-2-7b", &["hydraulis"]), 0).remove(0);
    let pipeline = |change: fn(&mut planner::execution_file::PipelineDegrees)| {
        refused(&file, &|file| change(&mut file.runs[0].pipelines[0]))
    };
    for message in [
        pipeline(|pipeline| pipeline.tensor *= 2),
        pipeline(|pipeline| pipeline.context *= 2),
        pipeline(|pipeline| pipeline.pipeline += 1),
        pipeline(|pipeline| pipeline.first_rank += 1),
        pipeline(|pipeline| pipeline.phase += 1),
        pipeline(|pipeline| pipeline.first_device += 1),
        pipeline(|pipeline| pipeline.stage_stride += 7),
    ] {
        assert!(message.starts_with("runs[0].") || message.starts_with("runs.pipelines"), "{message}");
    }
    assert!(refused(&file, &|file| file.runs[0].pipelines.truncate(1)).starts_with("runs"));
    assert!(refused(&file, &|file| file.planner = PlannerKind::Dhp).starts_with("planner: dhp makes no plans"));
    assert!(refused(&file, &|file| file.devices += 8).starts_with("devices: "));
    let mut document = lengths("llama-3-8b", &["dhp"]);
    document["training"] = json!({ "zero": 3 });
    let file = round_trips(&document, 0).remove(0);
    assert!(refused(&file, &|file| file.runs[0].groups[0].ranks.reverse()).starts_with("runs"));
    assert!(refused(&file, &|file| file.runs[0].groups[0].microbatch += 1).starts_with("runs.groups"));
    assert!(refused(&file, &|file| drop(file.runs[0].groups.pop())).starts_with("runs[0].groups"));
}

/// Reduces an activation of the last stage that does not determine the peak.
fn shrink_smallest_activation(file: &mut ExecutionFile) {
    let of_last = |costs: &mut planner::execution_file::MicrobatchCosts| costs.activation_bytes.pop().unwrap();
    let microbatches = &mut file.runs[0].microbatches;
    let mut last: Vec<u64> = microbatches.iter_mut().map(of_last).collect();
    *last.iter_mut().min().unwrap() -= 1;
    for (costs, bytes) in microbatches.iter_mut().zip(last) {
        costs.activation_bytes.push(bytes);
    }
}

/// Takes the last layer of the last stage away, in all runs.
fn shorten_last_layers(file: &mut ExecutionFile) {
    for run in &mut file.runs {
        run.stages.last_mut().unwrap().layers.last_mut().unwrap().end -= 1;
    }
}
