use serde_json::{Value, json};

use super::*;
use planscope_core::host::{NeverCancelled, SequentialWorkers};
use planscope_plan::certainty::RISK;
use planscope_plan::scenario::parse;
use planscope_plan::scenario::validate::NoDatasets;

fn valid(changes: &[(&str, Value)]) -> ValidScenario {
    let mut document = json!({
        "schema": "scenario/1", "model": { "preset": "llama-3-8b" }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 8192 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 32, "context_length": 8192, "packing": "single"
        },
        "training": {}, "layout": { "tensor": 1, "pipeline": 1, "microbatch": 4 }, "planners": ["best", "1f1b"]
    });
    for (pointer, value) in changes {
        *document.pointer_mut(pointer).unwrap() = value.clone();
    }
    ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn analyse(valid: &ValidScenario) -> Fit {
    fit(valid, None, &SequentialWorkers, &NeverCancelled).unwrap()
}

/// Llama-3 8B with four sequences of 8,192 tokens per microbatch needs more than 80 GiB for activations.
#[test]
fn an_infeasible_scenario_has_its_need_and_changes_that_fit() {
    let scenario = valid(&[]);
    let found = analyse(&scenario);
    assert_eq!((found.planner, found.base.iteration_s), (PlannerKind::OneFOneB, None));
    assert!(found.base.peak_gib.unwrap() > found.limit_gib);
    assert!(found.ranks.iter().any(|rank| rank.memory.activations_gib > 50.0), "{:?}", found.ranks);
    assert!(!found.changes.is_empty() && found.changes.len() <= MAX_CHANGES);
    let seconds: Vec<f64> = found.changes.iter().map(|change| change.result.iteration_s.unwrap()).collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
    for change in &found.changes {
        assert!(change.result.peak_gib.unwrap() <= found.limit_gib, "{change:?}");
    }
    let kinds: Vec<ChangeKind> = found.changes.iter().map(|change| change.kind).collect();
    assert!(kinds.contains(&ChangeKind::Layout) && kinds.contains(&ChangeKind::Training), "{kinds:?}");
}

/// Llama-3 8B without ZeRO needs 128 GB for its states alone, and more activations than a device has memory: no single
/// change of the job is enough, two are, if the host memory has room for all activations of its eight devices.
#[test]
fn two_changes_are_tried_if_no_single_one_fits() {
    let training = json!({ "zero": 0, "framework": "hugging_face" });
    let on = |host: f64| {
        let cluster = json!({ "preset": "h100", "nodes": 1, "host_memory_gib": host });
        valid(&[("/training", training.clone()), ("/cluster", cluster)])
    };
    let offloads = |found: &Fit| found.changes.iter().any(|change| change.title.contains("activations"));
    assert!(!offloads(&analyse(&on(1024.0))));
    let scenario = on(4096.0);
    let found = analyse(&scenario);
    let of_job: Vec<&Change> = found.changes.iter().filter(|change| change.kind != ChangeKind::Cluster).collect();
    assert!(of_job.len() > 1 && of_job.iter().all(|change| change.title.contains(" + ")), "{of_job:?}");
    let best = of_job[0];
    assert_eq!(best.title, "offload weights, gradients and the optimizer to host memory (ZeRO 3) + microbatch 1");
    assert!(of_job.iter().any(|change| change.title == "ZeRO 3 + offload 100 % of the activations to host memory"));
    let document = serde_json::to_value(scenario.scenario()).unwrap();
    let changed = apply(&document, &best.fields).unwrap();
    let again = analyse(&ValidScenario::new(serde_json::from_value(changed).unwrap(), &NoDatasets).unwrap());
    assert_eq!(again.base.iteration_s, best.result.iteration_s);
}

/// The changed scenario has the stated time when it is planned by itself.
#[test]
fn a_change_keeps_its_promise() {
    let scenario = valid(&[]);
    let best = analyse(&scenario).changes.remove(0);
    let document = serde_json::to_value(scenario.scenario()).unwrap();
    let changed = apply(&document, &best.fields).unwrap();
    let again = analyse(&ValidScenario::new(serde_json::from_value(changed).unwrap(), &NoDatasets).unwrap());
    assert_eq!(again.base.iteration_s, best.result.iteration_s);
}

/// With a plan, changes only save time. Full recomputation is unnecessary here, so removing it helps.
#[test]
fn changes_of_a_feasible_scenario_save_time() {
    let scenario =
        valid(&[("/training", json!({ "recompute": "full" })), ("/layout", json!({ "tensor": 4, "microbatch": 1 }))]);
    let found = analyse(&scenario);
    let base = found.base.iteration_s.unwrap();
    assert!(found.changes.iter().all(|change| change.result.iteration_s.unwrap() < base));
    assert!(found.changes.iter().all(|change| change.difference_s.unwrap() < 0.0));
    assert!(found.changes.iter().all(|change| (0.5..=1.0).contains(&change.probability_faster.unwrap())));
    let removes = |change: &Change| change.title == "no recomputation" || change.title == "selective recomputation";
    assert!(found.changes.iter().any(removes), "{:?}", found.changes);
}

/// Everything is fixed, and the model states exceed one node: more nodes help.
/// Llama-3 70B has 1,260 GB of states for 8 devices of 80 GB: with sequences of 65,536 tokens, it needs TP, an optimizer in
/// host memory and recomputation.
#[test]
fn settings_are_searched_together_if_no_pair_fits() {
    let model = serde_json::to_value(planscope_core::model::presets::model("llama-3-70b").unwrap()).unwrap();
    let scenario = valid(&[
        ("/model", model),
        ("/layout", json!({ "tensor": 1, "pipeline": 1, "microbatch": 1 })),
        ("/workload/samples/text_tokens/value", json!(65_536)),
        ("/workload/context_length", json!(65_536)),
    ]);
    let found = analyse(&scenario);
    assert_eq!(found.base.iteration_s, None);
    let searched: Vec<&Change> =
        found.changes.iter().filter(|change| change.title.ends_with("searched together")).collect();
    assert!(!searched.is_empty(), "{:?}", found.changes);
    for change in searched {
        assert!(change.fields.iter().all(|field| field.pointer != "/free" && field.pointer != "/cluster/nodes"));
        let document = apply(&json!(scenario.scenario()), &change.fields).unwrap();
        let changed = ValidScenario::new(serde_json::from_value(document).unwrap(), &NoDatasets).unwrap();
        assert_eq!(analyse(&changed).base.iteration_s, change.result.iteration_s, "{change:?}");
    }
}

#[test]
fn more_devices_are_proposed() {
    let scenario = valid(&[
        ("/model", serde_json::to_value(planscope_core::model::presets::model("llama-3-70b").unwrap()).unwrap()),
        ("/layout", json!({})),
        ("/training", json!({ "recompute": "full" })),
    ]);
    let found = analyse(&scenario);
    assert_eq!(found.base.iteration_s, None);
    let nodes = found.changes.iter().find(|change| change.title.ends_with("nodes")).unwrap();
    let document = serde_json::to_value(scenario.scenario()).unwrap();
    let half = [FieldChange { value: json!(nodes.fields[0].value.as_u64().unwrap() / 2), ..nodes.fields[0].clone() }];
    let fewer = apply(&document, &half).map_or(found.base.clone(), |document| {
        analyse(&ValidScenario::new(serde_json::from_value(document).unwrap(), &NoDatasets).unwrap()).base
    });
    assert_eq!(fewer.iteration_s, None, "half of the nodes do not fit");
}

/// Two sequences of each of 8 replicas are no batch of 16 replicas, so that the batch grows with the nodes.
#[test]
fn more_devices_have_the_batch_of_a_replica() {
    let model = serde_json::to_value(planscope_core::model::presets::model("llama-3-70b").unwrap()).unwrap();
    let scenario = valid(&[
        ("/model", model),
        ("/training", json!({ "zero": 3, "recompute": "full" })),
        ("/layout", json!({ "tensor": 1, "pipeline": 1, "microbatch": 2 })),
        ("/workload/global_batch", json!(16)),
    ]);
    let nodes = analyse(&scenario).changes.into_iter().find(|change| change.kind == ChangeKind::Cluster).unwrap();
    let value = |pointer: &str| nodes.fields.iter().find(|field| field.pointer == pointer).map(|field| &field.value);
    let factor = value("/cluster/nodes").and_then(Value::as_u64).unwrap();
    assert_eq!(value("/workload/global_batch"), Some(&json!(16 * factor)), "{nodes:?}");
}

/// Llama-3 8B has 112 GiB of states with a distributed optimizer; larger devices need fewer nodes, and every row
/// that fits has a time.
#[test]
fn every_device_type_has_a_row() {
    let table = fewest_devices(&valid(&[]), &SequentialWorkers, &NeverCancelled).unwrap();
    assert!(table.rows.len() > 5 && !table.is_partial);
    assert!(table.rows.iter().all(|row| row.devices.is_some() == row.result.iteration_s.is_some()));
    assert!(table.rows.iter().filter_map(|row| row.devices).is_sorted());
}

/// Always over, from the start.
struct Over;

impl Cancellation for Over {
    fn is_over(&self) -> bool {
        true
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}

#[test]
fn a_cancelled_search_of_devices_is_partial() {
    let table = fewest_devices(&valid(&[]), &SequentialWorkers, &Over).unwrap();
    assert_eq!((table.rows.len(), table.is_partial), (0, true));
}

/// Interleaved 1F1B is a change of a job with 1F1B. The changed scenario has the stated time.
#[test]
fn interleaving_is_a_change_of_1f1b() {
    let layout = json!({ "tensor": 1, "pipeline": 4, "microbatch": 1 });
    let scenario = valid(&[("/layout", layout), ("/planners", json!(["1f1b", "zb_h1"]))]);
    let found = analyse(&scenario);
    let change = found.changes.iter().find(|change| change.title.starts_with("interleaved 1F1B, VPP ")).unwrap();
    assert_eq!(change.fields[0].value, json!(["interleaved", "zb_h1"]));
    assert!(change.difference_s.unwrap() < 0.0, "{change:?}");
    let document = serde_json::to_value(scenario.scenario()).unwrap();
    let changed = apply(&document, &change.fields).unwrap();
    let again = analyse(&ValidScenario::new(serde_json::from_value(changed).unwrap(), &NoDatasets).unwrap());
    assert_eq!((again.planner, again.base.iteration_s), (PlannerKind::Interleaved, change.result.iteration_s));
    // Two replicas have 15 microbatches each, no multiple of PP 4.
    let layout = json!({ "tensor": 1, "pipeline": 4, "microbatch": 1 });
    let odd = valid(&[("/layout", layout), ("/planners", json!(["1f1b"])), ("/workload/global_batch", json!(30))]);
    assert!(analyse(&odd).changes.iter().all(|change| !change.title.contains("interleaved")));
}

/// The pipeline engine of DeepSpeed shards neither gradients nor weights, so its jobs have no such change.
#[test]
fn deepspeed_pipelines_have_no_zero_2() {
    let titles = |framework: &str, pipeline: u32| -> Vec<String> {
        let scenario = valid(&[
            ("/training", json!({ "zero": 0, "framework": framework })),
            ("/layout", json!({ "tensor": 2, "pipeline": pipeline, "microbatch": 1 })),
        ]);
        changes::proposals(scenario.scenario(), reference_planner(&scenario), true)
            .into_iter()
            .map(|change| change.title)
            .collect()
    };
    let has = |titles: Vec<String>, stage: u32| titles.contains(&format!("ZeRO {stage}"));
    assert!(has(titles("megatron_deepspeed", 2), 1) && !has(titles("megatron_deepspeed", 2), 2));
    assert!(has(titles("megatron_deepspeed", 1), 3));
    assert!(has(titles("torchtitan", 2), 2));
}

#[test]
fn progress_counts_the_changes() {
    let scenario = valid(&[("/layout/microbatch", json!(1)), ("/planners", json!(["1f1b"]))]);
    let seen = std::sync::Mutex::new(Vec::new());
    let report = |phase: &'static str, done: u32, total: u32| seen.lock().unwrap().push((phase, done, total));
    let found = fit_reported(&scenario, None, (&SequentialWorkers, &NeverCancelled), &report).unwrap();
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen[0], ("planning the scenario", 0, 1));
    let changes: Vec<(u32, u32)> =
        seen.iter().filter(|entry| entry.0 == "simulating changes").map(|entry| (entry.1, entry.2)).collect();
    assert_eq!(changes[0].0, 0);
    assert!(changes.len() as u32 >= found.simulated && changes.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(changes.iter().all(|&(done, total)| done < total && total == changes[0].1));
}

/// The plan of a scenario with a free ZeRO stage fixes it for the changes, and recomputation remains free. The stated times
/// are those of plans, so a plan of the changed scenario with all free settings is not slower.
#[test]
fn changes_keep_the_free_degrees_of_the_plan() {
    let mut scenario = valid(&[("/layout/microbatch", json!(1))]).scenario().clone();
    scenario.free = vec![FreeSetting::Recompute, FreeSetting::Zero];
    let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap();
    let document = document(&scenario);
    let watch = Watch::new(&SequentialWorkers, &NeverCancelled);
    let base = base(&document, &scenario, PlannerKind::OneFOneB, &watch).unwrap();
    let plan = base.plan.unwrap();
    let restricted = degrees::at_degrees(&scenario, &plan).unwrap();
    assert_eq!(restricted["free"], json!(["recompute"]));
    assert_eq!(restricted["training"]["zero"].as_u64(), plan.settings.map(|settings| u64::from(settings.zero)));
    let found = analyse(&scenario);
    assert!(!found.changes.is_empty());
    for change in &found.changes {
        let changed = apply(&document, &change.fields).unwrap();
        let planned = evaluate(&changed, &scenario, PlannerKind::OneFOneB, &watch).unwrap().unwrap();
        assert!(planned.result.iteration_s <= change.result.iteration_s, "{}", change.title);
    }
}

/// A plan that nearly fills the device: changes that remove the risk come first, even if they are slower.
#[test]
fn changes_remove_the_risk_of_running_out_of_memory_first() {
    let with_memory = |gib: f64| {
        let cluster = json!({ "preset": "h100", "nodes": 1, "device": { "memory_gib": gib } });
        let layout = json!({ "tensor": 4, "pipeline": 1, "microbatch": 1 });
        valid(&[("/cluster", cluster), ("/layout", layout)])
    };
    let need = analyse(&with_memory(79.6)).base.peak_gib.unwrap();
    let scenario = with_memory(need + scenario_reserve() + 0.1);
    let found = analyse(&scenario);
    let risk = Risk::new(scenario.scenario(), &found.base);
    assert!(risk.is_present(), "{:?}", found.base);
    let removes: Vec<bool> = found.changes.iter().map(|change| risk.is_removed_by(&change.result)).collect();
    assert!(removes[0] && removes.is_sorted_by(|a, b| a >= b), "{removes:?}");
    let base = found.base.iteration_s.unwrap();
    assert!(found.changes.iter().any(|change| change.result.iteration_s.unwrap() > base), "{:?}", found.changes);
    let combination = found.combination.unwrap();
    assert!(risk.of(&combination.result) <= RISK, "{combination:?}");
}

fn scenario_reserve() -> f64 {
    valid(&[]).scenario().training.memory_reserve_gib
}

/// Gradients in bf16 and full recomputation fit together, and neither fits alone.
#[test]
fn formats_take_part_in_pairs() {
    let scenario = valid(&[("/training", json!({ "zero": 0 }))]);
    let changes = proposals(scenario.scenario(), PlannerKind::OneFOneB, false);
    let pairs = pairs(&changes);
    let has = |title: &str| pairs.iter().any(|pair| pair.title == title);
    assert!(has("full recomputation + gradients in bf16"), "{pairs:?}");
    assert!(has("gradients in bf16 + moments in bf16"), "{pairs:?}");
}

/// The sum saves more than each of its changes.
#[test]
fn a_combination_is_faster_than_its_changes() {
    let scenario =
        valid(&[("/training", json!({ "recompute": "full" })), ("/layout", json!({ "tensor": 8, "microbatch": 1 }))]);
    let found = analyse(&scenario);
    let combination = found.combination.unwrap();
    assert!(combination.changes.len() > 1 && combination.changes.is_sorted());
    let seconds = combination.result.iteration_s.unwrap();
    for &index in &combination.changes {
        assert!(seconds < found.changes[index as usize].result.iteration_s.unwrap());
    }
}
