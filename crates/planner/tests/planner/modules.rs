//! End-to-end tests for all module types and training settings, including the intended effect.

use planner::engine::{Unobserved, plan};
use planner::outcome::{PlanOutcome, Planned};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{ValidScenario, parse};
use serde_json::{Value, json};

fn scenario(model: &str, cluster: &str, images: u32) -> Value {
    json!({
        "schema": "scenario/1",
        "model": { "preset": model },
        "cluster": { "preset": cluster, "nodes": 2 },
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": { "kind": "constant", "value": 2048 },
                "images": { "kind": "constant", "value": images }
            },
            "global_batch": 32, "context_length": 8192, "packing": "single"
        },
        "training": {},
        "layout": { "tensor": 4, "pipeline": 2, "microbatch": 1 },
        "planners": ["1f1b"],
        "iterations": 1
    })
}

fn planned(scenario: &Value) -> Planned {
    let scenario = parse(&scenario.to_string()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let valid = ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{errors:?}"));
    let planning = plan(&valid, &mut Unobserved).unwrap();
    match &planning.outcome.results[0].answer {
        PlanOutcome::Planned(planned) => planned.as_ref().clone(),
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

fn reason(scenario: &Value) -> String {
    let valid = ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap();
    match &plan(&valid, &mut Unobserved).unwrap().outcome.results[0].answer {
        PlanOutcome::Planned(_) => panic!("a plan"),
        PlanOutcome::Infeasible { binding, .. } => binding.clone(),
    }
}

fn with(scenario: &Value, training: Value) -> Planned {
    let mut changed = scenario.clone();
    changed["training"] = training;
    planned(&changed)
}

#[test]
fn sound_diffusion_and_experts_are_planned() {
    for (model, images) in [("qwen2-audio-7b", 2), ("dit-xl-2", 16), ("mixtral-8x7b", 0), ("vlm-s", 3)] {
        let mut scenario = scenario(model, "h100", images);
        if model == "mixtral-8x7b" {
            scenario["training"]["expert_parallel"] = json!(2);
        }
        let planned = planned(&scenario);
        assert!(planned.metrics.iteration_s > 0.01, "{model}");
        assert!(planned.metrics.mfu > 0.02 && planned.metrics.mfu < 0.7, "{model}: {}", planned.metrics.mfu);
    }
}

#[test]
fn rank_times_sum_to_the_iteration_and_memory_to_the_peak() {
    let planned = with(&scenario("llama-2-7b", "a100-80gb", 0), json!({ "recompute": "full" }));
    let mut max_gib = 0.0_f64;
    for rank in &planned.ranks {
        let time = rank.time;
        let sum = time.compute_s + time.recompute_s + time.exposed_s + time.sync_s + time.optimizer_s + time.bubble_s;
        assert!((sum / planned.metrics.iteration_s - 1.0).abs() < 1e-6, "{sum}");
        assert!(time.recompute_s > 0.1 * time.compute_s && time.exposed_s > 0.0);
        max_gib = max_gib.max(rank.memory.resident_gib());
    }
    assert!((max_gib - planned.metrics.peak_memory_gib).abs() < 1e-6);
    let stages: f64 = planned.stages.iter().map(|stage| stage.compute_ms + stage.recompute_ms + stage.exposed_ms).sum();
    let times: f64 = planned.stages.iter().map(|stage| stage.forward_ms + stage.backward_ms).sum();
    assert!((stages / times - 1.0).abs() < 1e-6);
}

#[test]
fn settings_trade_time_for_memory_as_they_should() {
    let base = scenario("llama-2-7b", "h100", 0);
    let plain = with(&base, json!({}));
    let memory = |planned: &Planned| planned.ranks[0].memory;
    let time = |planned: &Planned| planned.metrics.iteration_s;

    let full = with(&base, json!({ "recompute": "full" }));
    assert!(memory(&full).activations_gib < 0.2 * memory(&plain).activations_gib && time(&full) > 1.15 * time(&plain));
    let some = with(&base, json!({ "recompute": "full", "recompute_layers": 4 }));
    assert!(time(&plain) < time(&some) && time(&some) < time(&full));
    assert!(memory(&full).activations_gib < memory(&some).activations_gib);

    let offloaded = with(&base, json!({ "activation_offload": 0.5 }));
    assert!(memory(&offloaded).activations_gib < 0.55 * memory(&plain).activations_gib);
    assert!(time(&offloaded) >= time(&plain));

    let sharded = with(&base, json!({ "zero": 3 }));
    assert!(memory(&sharded).weights_gib < 0.6 * memory(&plain).weights_gib);
    assert!(memory(&sharded).gradients_gib < 0.6 * memory(&plain).gradients_gib);
    assert!(time(&sharded) > time(&plain), "weights are gathered for every microbatch");
    let overlapped = with(&base, json!({ "zero": 3, "data_overlap": 1.0 }));
    assert!(time(&overlapped) < time(&sharded));
    let unsharded = with(&base, json!({ "zero": 0 }));
    assert!(memory(&unsharded).optimizer_gib > 1.9 * memory(&plain).optimizer_gib);

    let fp8 = with(&base, json!({ "precision": "fp8" }));
    let fp32 = with(&base, json!({ "precision": "fp32" }));
    assert!(time(&fp8) < time(&plain) && time(&plain) < time(&fp32));
    assert!(memory(&fp32).activations_gib > 1.9 * memory(&plain).activations_gib);

    let waiting = with(&base, json!({ "overlapped_sends": false }));
    let separate = with(&base, json!({ "fused_weight_gradients": false, "overlapped_backward": false }));
    assert!(time(&waiting) > time(&plain) && time(&separate) > time(&plain));

    let ring = with(&base, json!({ "context_parallel": 2 }));
    assert_eq!(ring.layout.data, 1, "TP 4 x CP 2 x PP 2 fill the 16 devices");
    assert!(memory(&ring).activations_gib < 0.55 * memory(&plain).activations_gib);
}

/// Llama-2 7B on TP 4, PP 2 and DP 2 has 7.4 GiB of optimizer state per device. Offloaded activations are in host
/// memory from their forward to their backward. A node of eight devices has equal shares.
#[test]
fn host_memory_limits_the_offload() {
    let mut scenario = scenario("llama-2-7b", "a100-80gb", 0);
    let node = |planned: &Planned| planned.metrics.host_memory_gib;
    let optimizer = node(&with(&scenario, json!({ "optimizer_offload": 1.0 })));
    let half = node(&with(&scenario, json!({ "optimizer_offload": 0.5 })));
    let both = node(&with(&scenario, json!({ "optimizer_offload": 1.0, "activation_offload": 1.0 })));
    let stored = with(&scenario, json!({})).ranks[0].memory.activations_gib;
    assert!((optimizer / half - 2.0).abs() < 1e-6 && (8.0 * 4.0..8.0 * 8.0).contains(&optimizer), "{optimizer}");
    assert!(both > optimizer && both <= optimizer + 8.0 * stored + 1e-6, "{both} {optimizer} {stored}");
    scenario["training"] = json!({ "optimizer_offload": 1.0 });
    scenario["cluster"]["host_memory_gib"] = json!(optimizer.ceil());
    planned(&scenario);
    for memory in [optimizer.floor(), 0.0] {
        scenario["cluster"]["host_memory_gib"] = json!(memory);
        let reason = reason(&scenario);
        assert!(reason.contains("exceed the host memory of a node"), "{reason}");
    }
    // Without an offload, none is needed.
    scenario["training"] = json!({});
    assert!(node(&planned(&scenario)) <= 0.0);
}

/// The devices of a node share its bandwidth to host memory.
#[test]
fn the_bandwidth_of_host_memory_is_shared() {
    let mut scenario = scenario("llama-2-7b", "h100", 0);
    scenario["training"] = json!({ "activation_offload": 1.0 });
    let time = |scenario: &Value| planned(scenario).metrics.iteration_s;
    let links = time(&scenario);
    scenario["cluster"]["host_memory_gb_per_s"] = json!(400.0);
    assert!((time(&scenario) - links).abs() < 1e-9, "eight links of 50 GB/s");
    scenario["cluster"]["host_memory_gb_per_s"] = json!(100.0);
    assert!(time(&scenario) > 1.2 * links);
}

#[test]
fn settings_that_cannot_be_are_named_at_their_field() {
    let rejection = |model: &str, cluster: &str, training: Value| {
        let mut scenario = scenario(model, cluster, 0);
        scenario["training"] = training;
        let scenario = parse(&scenario.to_string()).unwrap();
        let errors = ValidScenario::new(scenario, &NoDatasets).expect_err("refused");
        errors.iter().map(|error| format!("{} {}", error.pointer, error.detail)).collect::<Vec<_>>().join("; ")
    };
    assert!(rejection("llama-2-7b", "a100-80gb", json!({ "precision": "fp8" })).contains("/training/precision A100"));
    assert!(rejection("llama-2-7b", "h100", json!({ "expert_parallel": 2 })).contains("no mixture of experts"));
    let no_masters = json!({ "precision": "fp32", "master_weights": "none" });
    assert!(rejection("llama-2-7b", "h100", no_masters).contains("no master weights"));
    let no_moments = json!({ "optimizer": "adafactor", "moments": "bf16" });
    assert!(rejection("llama-2-7b", "h100", no_moments).contains("have no other format"));
    assert!(
        rejection("mixtral-8x7b", "h100", json!({ "expert_parallel": 3 }))
            .contains("8 experts are not a multiple of EP 3")
    );
    assert!(rejection("llama-2-7b", "h100", json!({ "context_parallel": 3 })).contains("16 devices"));
    assert!(rejection("llama-2-7b", "h100", json!({ "zero": 4 })).contains("/training/zero"));
    assert!(rejection("llama-2-7b", "h100", json!({ "activation_offload": 1.5 })).contains("activation_offload"));
}

/// The engine simulates replicas that have equal microbatches only once, so 128 replicas are cheap.
#[test]
fn sixteen_thousand_devices_are_planned() {
    let mut scenario = scenario("vlm-xl", "h100", 4);
    scenario["cluster"]["nodes"] = json!(2048);
    scenario["workload"]["global_batch"] = json!(2048);
    scenario["layout"] = json!({ "tensor": 8, "pipeline": 16, "microbatch": 1 });
    scenario["training"] = json!({ "recompute": "full" });
    let planned = planned(&scenario);
    assert_eq!(planned.layout.data, 128);
    assert!(planned.metrics.mfu > 0.1 && planned.metrics.mfu < 0.7, "{}", planned.metrics.mfu);
}

/// A plan names each fixed value that it does not have.
#[test]
fn plans_name_fixed_values_that_they_do_not_have() {
    let differs = |planned: &Planned| {
        let start = "Differs from the fixed settings of the scenario: ";
        let text = planned.decisions.iter().find_map(|decision| decision.strip_prefix(start));
        text.map(ToOwned::to_owned).unwrap_or_default()
    };
    let text = |planner: &str| {
        let mut json = scenario("llama-2-7b", "a100-80gb", 0);
        json["planners"] = json!([planner]);
        json["layout"] = json!({ "tensor": 1, "microbatch": 3 });
        json["training"] = json!({ "zero": 2, "recompute": "full" });
        differs(&planned(&json))
    };
    assert_eq!(text("1f1b"), "");
    assert_eq!(text("nnscaler"), "recomputation by layer (fixed for all layers).");
    assert!(text("dhp").contains("(fixed: 3)"), "{}", text("dhp"));
    assert!(text("deepspeed").contains("ZeRO 3 (fixed: 2)"), "{}", text("deepspeed"));
    let mut json = scenario("vlm-s", "h100", 4);
    (json["planners"], json["layout"]) = (json!(["homogeneous"]), json!({ "microbatch": 1 }));
    let homogeneous = planned(&json);
    let context = homogeneous.placement.as_ref().unwrap().layouts[0].context;
    assert_eq!(differs(&homogeneous).contains("CP"), context > 1, "{}", differs(&homogeneous));
}
