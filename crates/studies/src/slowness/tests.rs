use serde_json::json;

use super::*;
use planscope_analysis::fit::FieldChange;
use planscope_analysis::run_comparison::Phase;
use planscope_core::host::{NeverCancelled, SequentialWorkers};
use planscope_core::training::{Execution, Framework};
use planscope_core::workload::Packing;
use planscope_plan::certainty::Interval;
use planscope_plan::scenario::parse;
use planscope_plan::scenario::validate::NoDatasets;

fn valid(network_gb_per_s: f64) -> ValidScenario {
    let document = json!({
        "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h100", "nodes": 2 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 8192 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 32, "context_length": 8192, "packing": "single"
        },
        "training": { "recompute": "full" }, "layout": { "tensor": 2, "pipeline": 1, "microbatch": 1 },
        "planners": ["1f1b"]
    });
    let mut scenario = parse(&document.to_string()).unwrap();
    scenario.cluster.inter_node.gb_per_s = network_gb_per_s;
    ValidScenario::new(scenario, &NoDatasets).unwrap()
}

fn predicted_s(valid: &ValidScenario) -> f64 {
    crate::fit::need(valid, None, &SequentialWorkers, &NeverCancelled).unwrap().fit.base.iteration_s.unwrap()
}

fn explained(measured: Measured) -> Slowness {
    explain(&valid(50.0), measured, &SequentialWorkers, &NeverCancelled).unwrap()
}

/// A run on a network of a quarter of the bandwidth has this network as its first cause.
#[test]
fn a_simulated_slow_network_is_found() {
    let slow = predicted_s(&valid(12.5));
    let found = explained(Measured::StepS(slow));
    assert_eq!(found.relation, Relation::Slower);
    let first =
        found.causes.iter().find(|cause| cause.title == "a network of 12.5 GB/s per device instead of 50").unwrap();
    assert_eq!((first.is_tuned, first.plausibility), (true, Plausibility::Possible));
    assert!((first.explains_s - (slow - found.predicted_s)).abs() < 1e-9);
    assert!(first.confirm.contains("nccl-tests"));
    assert_eq!(found.order, CauseOrder::UsualStrength);
    // Full recomputation is set already.
    assert!(found.causes.iter().all(|cause| !cause.title.contains("recomputation")));
}

#[test]
fn other_relations_have_no_causes() {
    let predicted = predicted_s(&valid(50.0));
    for (seconds, relation) in [
        (predicted, Relation::AsPredicted),
        (0.8 * predicted, Relation::Faster),
        (0.1 * predicted, Relation::Impossible),
    ] {
        let found = explained(Measured::StepS(seconds));
        assert_eq!((found.relation, found.causes.len()), (relation, 0));
    }
}

/// A difference inside the 80 % interval can be an error of the prediction. Far above it, some causes are too small; for
/// a small difference, some are too large. No cause is in two lists.
#[test]
fn differences_are_compared_with_the_interval_and_causes_with_the_difference() {
    let predicted = predicted_s(&valid(50.0));
    let near = explained(Measured::StepS(1.05 * predicted));
    let Interval { low, high } = near.interval_s;
    assert!(low < predicted && predicted < high, "{low} {high}");
    assert!(near.is_inside_interval() && near.relation == Relation::Slower);
    assert!(!near.too_large.is_empty(), "{near:?}");
    let far = explained(Measured::StepS(2.0 * high));
    assert!(!far.is_inside_interval());
    assert!(!far.too_small.is_empty(), "{far:?}");
    for found in [near, far] {
        let titles = found.causes.iter().map(|cause| &cause.title).chain(&found.too_small).chain(&found.too_large);
        let titles: Vec<&String> = titles.collect();
        let unique: std::collections::BTreeSet<&&String> = titles.iter().collect();
        assert_eq!(unique.len(), titles.len(), "{titles:?}");
    }
}

/// Rates give the same step time as seconds.
#[test]
fn rates_are_converted() {
    let found = explained(Measured::StepS(1.5 * predicted_s(&valid(50.0))));
    let tokens = 32.0 * 8192.0 / found.measured_s / 16.0;
    let from_tokens = explained(Measured::TokensPerSPerDevice(tokens));
    assert!((from_tokens.measured_s / found.measured_s - 1.0).abs() < 1e-6, "{from_tokens:?}");
    // A smaller batch explains a lower rate only.
    let others = from_tokens.causes.iter().filter(|cause| !cause.title.contains("global batch"));
    assert_eq!(others.count(), found.causes.len());
    let tflops = found.measured_mfu * valid(50.0).scenario().cluster.device.peak_tflops;
    let from_tflops = explained(Measured::TflopsPerDevice(tflops));
    assert!((from_tflops.measured_s / found.measured_s - 1.0).abs() < 1e-6, "{from_tflops:?}");
}

/// A milder degree than those of the grid fits exactly, and is simulated.
#[test]
fn degrees_between_those_of_the_grid_are_simulated() {
    let slow = predicted_s(&valid(15.0));
    let predicted = predicted_s(&valid(50.0));
    for (measured, word) in [(slow, "a network of"), (1.3 * predicted, "clocks at"), (1.06 * predicted, "clocks at 9")]
    {
        let found = explained(Measured::StepS(measured));
        let gap = found.measured_s - found.predicted_s;
        let cause = found.causes.iter().find(|cause| cause.title.contains(word));
        let cause = cause.unwrap_or_else(|| panic!("{word}: {found:?}"));
        assert!((cause.explains_s / gap - 1.0).abs() < 0.2, "{cause:?} {gap}");
        assert!(found.too_large.iter().all(|title| !title.contains("clocks") && !title.contains("GB/s")), "{found:?}");
    }
}

/// A compiled job that runs eager kernels has this cause; a job that is not compiled has not.
#[test]
fn missing_compilation_is_a_cause() {
    let compiled = |execution: Option<Execution>| {
        let mut scenario = valid(50.0).scenario().clone();
        scenario.training.framework = Framework::Torchtitan;
        scenario.training.execution = execution;
        ValidScenario::new(scenario, &NoDatasets).unwrap()
    };
    let eager_s = predicted_s(&compiled(Some(Execution::Eager)));
    let causes = |execution| {
        let measured = Measured::StepS(eager_s.max(1.05 * predicted_s(&compiled(execution))));
        explain(&compiled(execution), measured, &SequentialWorkers, &NeverCancelled).unwrap().causes
    };
    let is_compilation = |cause: &&Cause| cause.title.contains("not compiled");
    let found = causes(Some(Execution::Compiled));
    let cause = found.iter().find(is_compilation).unwrap_or_else(|| panic!("{found:?}"));
    assert!((cause.iteration_s / eager_s - 1.0).abs() < 1e-9, "{cause:?}");
    assert_eq!(causes(Some(Execution::Eager)).iter().find(is_compilation), None);
}

/// The forward timer of DeepSpeed does not contain the reading: a late forward pass contradicts it.
#[test]
fn reading_outside_the_timers_does_not_explain_a_late_forward_pass() {
    let measured_s = 1.5 * predicted_s(&valid(50.0));
    let found = explained(Measured::StepS(measured_s));
    let late = [gap(Phase::Forward, measured_s - found.predicted_s), gap(Phase::Backward, 0.0)];
    let is_read = |slowness: &Slowness| slowness.causes.iter().any(Cause::is_reading);
    let mut inside = found.clone();
    inside.rank_by_phases(&late);
    let mut outside = found.clone();
    outside.read_outside_timers();
    outside.rank_by_phases(&late);
    assert!(is_read(&inside) && !is_read(&outside), "{outside:?}");
    assert!(outside.contradicted.iter().any(|title| title.contains("reading of data")), "{outside:?}");
}

/// A cause that changes one field.
fn cause_of(pointer: &str) -> Cause {
    Cause {
        title: pointer.to_owned(),
        fields: vec![FieldChange { pointer: pointer.to_owned(), value: json!(1) }],
        iteration_s: 2.0,
        explains_s: 1.0,
        confirm: String::new(),
        phases: Vec::new(),
        is_tuned: false,
        plausibility: Plausibility::Possible,
        memory_gib: None,
    }
}

/// Half of the memory of the log contradicts a cause; its own memory does not.
#[test]
fn memory_contradicts_causes() {
    let mut found = explained(Measured::StepS(0.9 * predicted_s(&valid(50.0))));
    let cause = |gib: f64| Cause { memory_gib: Some(gib), ..cause_of("/training/recompute") };
    found.causes = vec![cause(10.0), cause(20.0), cause(40.0), cause_of("/cluster/device/peak_tflops")];
    let band = Interval { low: 0.9, high: 1.2 };
    let kept = |is_reserved: bool| {
        let mut found = found.clone();
        found.contradict_by_memory(20.0, band, is_reserved);
        let named = found.contradicted_by_memory.iter().map(|title| title.replace('\u{202f}', " ")).collect::<Vec<_>>();
        (found.causes.iter().map(|cause| cause.memory_gib).collect::<Vec<_>>(), named)
    };
    let named = |gib: &str| format!("/training/recompute ({gib} GiB)");
    assert_eq!(kept(true), (vec![Some(20.0), None], vec![named("10.0"), named("40.0")]));
    assert_eq!(kept(false).1, [named("10.0")]);
}

/// All tuned effects fit. Clocks at 80 % are usual, data that is read for seconds is not.
#[test]
fn usual_strengths_are_first() {
    let predicted = predicted_s(&valid(50.0));
    let found = explained(Measured::StepS(1.25 * predicted));
    let at = |text: &str| found.causes.iter().position(|cause| cause.title.contains(text));
    let (clocks, reading) = (at("clocks at"), at("reading of data"));
    assert!(clocks.is_some() && reading.is_none_or(|reading| clocks < Some(reading)), "{:?}", found.causes);
    assert!(found.causes.is_sorted_by_key(|cause| cause.plausibility));
    let clocks = &found.causes[clocks.unwrap()];
    assert!(clocks.is_tuned && clocks.plausibility == Plausibility::Usual, "{clocks:?}");
    assert!(clocks.marked_title().ends_with("(strength tuned to the difference)"));
}

/// One slow rank contradicts uneven stages; a slow last stage does not.
#[test]
fn slow_ranks_order_the_causes() {
    let mut found = explained(Measured::StepS(0.9 * predicted_s(&valid(50.0))));
    found.causes =
        ["/layers_per_stage", "/cluster/inter_node/gb_per_s", "/cluster/device/peak_tflops"].map(cause_of).to_vec();
    let titles = |slowness: &Slowness| slowness.causes.iter().map(|cause| cause.title.clone()).collect::<Vec<_>>();
    let mut device = found.clone();
    device.rank_by_slow_ranks(Some(false));
    assert_eq!(titles(&device), ["/cluster/device/peak_tflops", "/cluster/inter_node/gb_per_s"]);
    assert_eq!(device.contradicted, ["/layers_per_stage"]);
    let mut unknown = found.clone();
    unknown.rank_by_slow_ranks(None);
    assert_eq!((titles(&unknown)[0].as_str(), unknown.causes.len()), ("/cluster/device/peak_tflops", 3));
    found.rank_by_slow_ranks(Some(true));
    assert_eq!(titles(&found)[0], "/layers_per_stage");
}

fn gap(phase: Phase, seconds: f64) -> PhaseGap<'static> {
    PhaseGap { phase: phase.name(), seconds }
}

/// A run that is slow in the gradient reduction has a slow network first; for a run that is late in forward and
/// backward, the timers contradict it, although both runs are equally slow.
#[test]
fn late_phases_order_the_causes() {
    let slow = predicted_s(&valid(12.5));
    let found = explained(Measured::StepS(slow));
    let network = found.causes.iter().find(|cause| cause.title.starts_with("a network")).unwrap().clone();
    let reduction = network.phases.iter().find(|shift| shift.phase == Phase::Reduction.name()).unwrap();
    assert!(reduction.seconds > 0.0, "{:?}", network.phases);
    let title = |replicas| network.phase_title(reduction, replicas);
    assert_eq!((title(8), title(1)), ("gradient reduction", "all-reduce of the shared embedding"));
    let late = network.explains_s;
    let mut by_computation = found.clone();
    by_computation.rank_by_phases(&[
        gap(Phase::Forward, late / 3.0),
        gap(Phase::Backward, 2.0 * late / 3.0),
        gap(Phase::Reduction, 0.0),
    ]);
    let first = &by_computation.causes[0];
    assert!(first.phases.iter().any(|shift| shift.phase == Phase::Backward.name()), "{first:?}");
    assert!(by_computation.contradicted.contains(&network.title), "{by_computation:?}");
    assert_eq!(by_computation.order, CauseOrder::Phases);
    assert_eq!(by_computation.late_phases[0].phase, "backward compute");
    assert!(by_computation.late_phases.iter().all(|late| late.has_cause));
    let mut by_network = found.clone();
    by_network.rank_by_phases(&[
        gap(Phase::Forward, 0.0),
        gap(Phase::Backward, 0.0),
        gap(Phase::Reduction, late),
        gap(Phase::Optimizer, 0.0),
    ]);
    assert_eq!(by_network.causes[0].title, network.title);
    let mut without_timers = found.clone();
    without_timers.rank_by_phases(&[]);
    assert_eq!(without_timers, found);
}

/// Only the optimizer, or a time that no timer measures, is late: no simulated cause changes it, and causes of other
/// phases are contradicted.
#[test]
fn a_late_phase_without_a_cause_is_named() {
    let found = explained(Measured::StepS(1.3 * predicted_s(&valid(50.0))));
    let gap_s = found.measured_s - found.predicted_s;
    for (optimizer_s, name) in [(gap_s, "optimizer"), (0.0, "time outside the compared timers")] {
        let mut timed = found.clone();
        timed.rank_by_phases(&[
            gap(Phase::Forward, 0.0),
            gap(Phase::Backward, 0.0),
            gap(Phase::Reduction, 0.0),
            gap(Phase::Optimizer, optimizer_s),
        ]);
        let [late] = &timed.late_phases[..] else { panic!("{timed:?}") };
        assert_eq!((late.phase.as_str(), late.has_cause), (name, false), "{timed:?}");
        assert!((late.seconds - gap_s).abs() < 1e-9 && late.text().contains("no simulated cause"), "{late:?}");
        assert!(timed.contradicted.iter().any(|title| title.contains("clocks")), "{timed:?}");
        assert!(timed.causes.is_empty(), "{timed:?}");
        timed.advise(valid(50.0).scenario(), |_| Some(("optimizer-inner-step".to_owned(), 1.25)));
        let advice = timed.late_phases[0].confirm.as_ref().map(|text| text.replace('\u{202f}', " "));
        assert_eq!(advice.is_some(), name == "optimizer", "{advice:?}");
        assert!(advice.is_none_or(|text| text.ends_with("Its longest timer is optimizer-inner-step with 1.250 s.")));
    }
}

/// A timer of the reading of batches explains at most the gap.
#[test]
fn reading_explains_at_most_the_gap() {
    let valid = valid(50.0);
    let mut found = explained(Measured::StepS(1.2 * predicted_s(&valid)));
    let gap_s = found.measured_s - found.predicted_s;
    found.add_reading_timer(valid.scenario(), 10.0 * gap_s);
    assert!(!found.causes.iter().any(Cause::is_reading));
    let timer = found.causes.iter().find(|cause| cause.title.contains("by its timer")).unwrap();
    assert_eq!((timer.explains_s, timer.iteration_s), (gap_s, found.predicted_s + gap_s));
    found.causes.clear();
    found.add_reading_timer(valid.scenario(), 0.01 * gap_s);
    assert!(found.causes.is_empty());
}

/// The rate of an FP8 job is compared with the FP8 peak, and recomputed operations count.
#[test]
fn impossible_rates_depend_on_format_and_recomputation() {
    let relation = |precision: &str, recompute: &str, tflops: f64| {
        let mut document = crate::fit::document(&valid(50.0));
        document["training"]["precision"] = json!(precision);
        document["training"]["recompute"] = json!(recompute);
        let changed = ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap();
        explain(&changed, Measured::TflopsPerDevice(tflops), &SequentialWorkers, &NeverCancelled).unwrap().relation
    };
    assert_eq!(relation("fp8", "full", 1000.0), Relation::Faster);
    assert_eq!(relation("bf16", "full", 1000.0), Relation::Impossible);
    assert_eq!(relation("bf16", "full", 820.0), Relation::Impossible);
    assert_eq!(relation("bf16", "full", 650.0), Relation::Faster);
}

/// Advice names tools of the device and of the framework, and degrees of 1 have no causes.
#[test]
fn advice_is_for_the_device_and_the_framework() {
    let texts = |preset: &str, framework: &str| {
        let document = json!({
            "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": preset, "nodes": 4 },
            "workload": {
                "samples": {
                    "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                    "images": { "kind": "constant", "value": 0 }
                },
                "global_batch": 64, "context_length": 4096, "packing": "packed"
            },
            "training": { "framework": framework, "tensor_overlap": 0.5, "overlapped_sends": true },
            "layout": { "tensor": 1, "pipeline": 1, "microbatch": 1 }, "planners": ["1f1b"]
        });
        let all = suspects(&parse(&document.to_string()).unwrap(), false);
        all.iter()
            .flat_map(|suspect| [suspect.degrees[0].title.as_str(), " ", &suspect.confirm, "\n"])
            .collect::<String>()
    };
    let nvidia = texts("h100", "megatron");
    assert!(nvidia.contains("nvidia-smi") && nvidia.contains("--mock-data"), "{nvidia}");
    assert!(!nvidia.contains("tensor-parallel") && !nvidia.contains("pipeline") && !nvidia.contains("samples of"));
    let amd = texts("mi300x", "hugging_face");
    assert!(amd.contains("amd-smi") && amd.contains("rccl-tests"), "{amd}");
    let tpu = texts("tpu-v5p", "megatron");
    for text in [amd, tpu.clone()] {
        assert!(!text.contains("nvidia-smi") && !text.contains(" nccl-tests") && !text.contains("CUDA"), "{text}");
        assert!(!text.contains("Megatron") && !text.contains("samples of"), "{text}");
    }
    assert!(!tpu.contains("NCCL"), "{tpu}");
}

fn job(model: &serde_json::Value, layout: &serde_json::Value, training: &serde_json::Value) -> ValidScenario {
    let document = json!({
        "schema": "scenario/1", "model": model, "cluster": { "preset": "h100", "nodes": 2 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 64, "context_length": 4096, "packing": "padded"
        },
        "training": training, "layout": layout, "planners": ["1f1b"]
    });
    ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap()
}

/// Every degree of uneven, small or late work is a valid scenario that is slower than the plan, and a run with its step time
/// has it among its causes.
#[test]
fn uneven_small_and_late_work_is_simulated() {
    let dense = job(
        &json!({ "preset": "llama-3-8b" }),
        &json!({ "tensor": 2, "pipeline": 4, "microbatch": 2 }),
        &json!({ "recompute": "full" }),
    );
    let sparse = job(
        &json!({ "preset": "mixtral-8x7b" }),
        &json!({ "tensor": 2, "pipeline": 4, "microbatch": 1 }),
        &json!({ "recompute": "full", "expert_parallel": 2, "zero": 1 }),
    );
    let whole = job(
        &json!({ "preset": "llama-3-8b" }),
        &json!({ "tensor": 8, "pipeline": 1, "microbatch": 4 }),
        &json!({ "recompute": "full", "zero": 1 }),
    );
    let padded = job(
        &json!({ "preset": "llama-3-8b" }),
        &json!({ "tensor": 1, "pipeline": 1, "microbatch": 2 }),
        &json!({ "recompute": "full", "zero": 3, "framework": "hugging_face" }),
    );
    let mut scenario = padded.scenario().clone();
    scenario.workload.packing = Packing::Single;
    scenario.workload.context_length = 8192;
    let padded = ValidScenario::new(scenario, &NoDatasets).unwrap();
    for (valid, words) in [
        (&whole, &["microbatch 2"][..]),
        (&dense, &["on the last stage", "reading of data", "a global batch of"][..]),
        (&padded, &["samples of"][..]),
        (&sparse, &["expert-parallel rank"][..]),
    ] {
        let predicted = predicted_s(valid);
        for word in words {
            let all = suspects(valid.scenario(), true);
            let suspect = all.iter().find(|suspect| suspect.degrees[0].title.contains(word)).expect(word);
            let watch = Watch::new(&SequentialWorkers, &NeverCancelled);
            let planner = reference_planner(valid);
            let base = base(&document(valid), valid, planner, &watch).unwrap().plan.unwrap();
            let phases = predicted_phases(&base, TimerRanks::Slowest, None);
            let document = document(valid);
            let gap_s = 0.4 * predicted;
            let base = Base { document: &document, valid, planner, predicted_s: predicted, gap_s, phases };
            let cause = closest(&base, suspect, &watch).unwrap();
            let cause = cause.expect(word);
            assert!(cause.explains_s > 0.0, "{cause:?}");
            // The rate that a run with this property has is explained by it.
            let tokens = 64.0 * 4096.0 / cause.iteration_s / f64::from(valid.scenario().cluster.devices());
            let measured = Measured::TokensPerSPerDevice(tokens);
            let found = explain(valid, measured, &SequentialWorkers, &NeverCancelled).unwrap();
            if found.relation == Relation::Slower {
                let explained =
                    found.causes.iter().find(|other| other.title == cause.title || other.title.contains(word));
                let explained = explained.unwrap_or_else(|| panic!("{word}: {cause:?} is not in {found:?}"));
                assert!(
                    (explained.explains_s - (found.measured_s - found.predicted_s)).abs() < 0.01 * predicted,
                    "{word}"
                );
            }
        }
    }
    // A longer step of the same batch is not explained by another batch.
    let titles = |is_rate| -> Vec<String> {
        suspects(dense.scenario(), is_rate).into_iter().map(|suspect| suspect.degrees[0].title.clone()).collect()
    };
    assert!(!titles(false).iter().any(|title| title.contains("global batch")));
    // Megatron-LM concatenates documents.
    assert!(!titles(false).iter().any(|title| title.contains("samples of")));
    // One expert-parallel rank has no imbalance, and one stage is not uneven.
    let single = job(
        &json!({ "preset": "mixtral-8x7b" }),
        &json!({ "tensor": 8, "pipeline": 1, "microbatch": 1 }),
        &json!({ "recompute": "full", "zero": 3 }),
    );
    let all = suspects(single.scenario(), false);
    let has = |word: &str| all.iter().any(|suspect| suspect.degrees[0].title.contains(word));
    assert!(!has("expert-parallel") && !has("last stage") && !has("microbatch 1 instead"));
}
