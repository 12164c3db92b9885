use serde_json::json;

use super::*;
use planscope_core::host::{NeverCancelled, SequentialWorkers};
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
    let first = &found.causes[0];
    assert_eq!(first.title, "a network of 12.5 GB/s per device instead of 50.0");
    assert!((first.explains_s - (slow - found.predicted_s)).abs() < 1e-9);
    assert!(first.confirm.contains("nccl-tests"));
    assert_eq!(found.order, CauseOrder::ClosestEffect);
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

/// A run that is slow in the gradient reduction has a slow network first; a run that is late in forward and backward has
/// a cause of the computation first, although both runs are equally slow.
#[test]
fn late_phases_order_the_causes() {
    let slow = predicted_s(&valid(12.5));
    let mut found = explained(Measured::StepS(slow));
    let network = found.causes[0].clone();
    let reduction = network.phases.iter().find(|shift| shift.phase == Phase::Reduction.name()).unwrap();
    assert!(reduction.seconds > 0.0, "{:?}", network.phases);
    assert_eq!((reduction.title(8), reduction.title(1)), ("gradient reduction", "all-reduce of the shared embedding"));
    let gap = |phase: Phase, seconds: f64| PhaseGap { phase: phase.name(), seconds };
    let late = network.explains_s;
    found.rank_by_phases(&[gap(Phase::Forward, late / 3.0), gap(Phase::Backward, 2.0 * late / 3.0)]);
    let first = &found.causes[0];
    assert!(first.phases.iter().any(|shift| shift.phase == Phase::Backward.name()), "{first:?}");
    assert_ne!(first.title, network.title);
    assert_eq!(found.order, CauseOrder::Phases);
    found.rank_by_phases(&[gap(Phase::Forward, 0.0), gap(Phase::Reduction, late)]);
    assert_eq!(found.causes[0].title, network.title);
    let before = found.causes.clone();
    found.rank_by_phases(&[gap(Phase::Forward, late)]);
    assert_eq!(found.causes, before, "one phase says nothing");
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
            let gap = 0.4 * predicted;
            let cause = closest(&document(valid), valid, planner, suspect, (predicted, gap, phases), &watch).unwrap();
            let cause = cause.expect(word);
            assert!(cause.explains_s > 0.0, "{cause:?}");
            // The rate that a run with this property has is explained by it.
            let tokens = 64.0 * 4096.0 / cause.iteration_s / f64::from(valid.scenario().cluster.devices());
            let measured = Measured::TokensPerSPerDevice(tokens);
            let found = explain(valid, measured, &SequentialWorkers, &NeverCancelled).unwrap();
            if found.relation == Relation::Slower {
                let explained = found.causes.iter().find(|other| other.title == cause.title);
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
