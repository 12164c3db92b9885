//! Tests for scenario parsing, validation and identifiers.

use std::sync::Arc;

use planner::scenario::validate::{Datasets, NoDatasets};
use planner::scenario::{FieldError, ValidScenario, parse};
use planner::workload::Dataset;
use serde_json::{Value, json};

const EXAMPLE: &str = include_str!("../../../../examples/llama-2-7b-long-documents.json");

/// Returns the example after replacing values at the given pointers.
fn changed(changes: &[(&str, Value)]) -> Result<ValidScenario, Vec<FieldError>> {
    let mut value: Value = serde_json::from_str(EXAMPLE).unwrap();
    for (pointer, new) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap()[key] = new.clone();
    }
    parse(&value.to_string()).and_then(|scenario| ValidScenario::new(scenario, &NoDatasets))
}

/// One of the values would be ignored.
#[test]
fn duplicate_keys_are_errors() {
    let twice = EXAMPLE.replacen("\"iterations\"", "\"iterations\": 3, \"iterations\"", 1);
    assert_ne!(twice, EXAMPLE);
    let errors = parse(&twice).unwrap_err();
    assert!(errors[0].to_string().contains("duplicate key \"iterations\" at line"), "{errors:?}");
}

/// Frozen: links to stored scenarios must remain valid forever, so identifiers must not change with
/// the engine or with new preset calibrations. The files are the version 0.1 examples with expanded
/// presets.
#[test]
fn stored_scenario_identifiers_never_change() {
    let identifiers = [
        include_str!("stored/vlm-s-image-heavy.json"),
        include_str!("stored/llama-2-7b-long-documents.json"),
        include_str!("stored/gpt-3-175b-uniform.json"),
    ]
    .map(|json| parse(json).unwrap().id().to_string());
    assert_eq!(
        identifiers,
        [
            "ovsvuw5mhcz3qokongsefz7u6uxkox2uxy7a6yh7rfaf4lwv6frq",
            "gpvb33jbwj45gzvbb2kongsec7ur3jtr2f2cr2bt7qugnlijklga",
            "lcj6usehcgz3lml7gbq4tm75ij6lqygdruhfqfhyc2ptiq5idzrq",
        ]
    );
}

#[test]
fn title_and_explicit_defaults_do_not_change_the_identifier() {
    let plain = changed(&[]).unwrap();
    let renamed = changed(&[("/title", json!("Another name")), ("/training", json!({}))]).unwrap();
    assert_eq!(plain.id(), renamed.id());
    let written_out = serde_json::to_string(plain.scenario()).unwrap();
    assert_eq!(parse(&written_out).unwrap().id(), *plain.id(), "presets filled in are the same question");
    assert_ne!(changed(&[("/seed", json!(12))]).unwrap().id(), plain.id());
}

#[test]
fn fields_next_to_a_preset_override_it() {
    let device = json!({ "preset": "a100-80gb", "nodes": 4, "device": { "memory_gib": 40.0 } });
    let scenario = changed(&[("/cluster", device)]).unwrap();
    assert!((scenario.scenario().cluster.device.memory_gib - 40.0).abs() < 1e-12);
    assert!((scenario.scenario().cluster.device.peak_tflops - 312.0).abs() < 1e-12);
}

#[test]
fn invalid_fields_are_named_with_a_correction() {
    let images = json!({ "kind": "constant", "value": 4 });
    for (pointer, value, at, says) in [
        ("/cluster/nodes", json!(0), "/cluster/nodes", "1 to 16384"),
        ("/cluster/devices_per_node", json!(0), "/cluster/devices_per_node", "1 to 256"),
        (
            "/layout/tensor",
            json!(3),
            "/layout/tensor",
            "32 heads of Llama-2 7B are not a multiple of TP 3; possible TP: 1, 2, 4, 8, 16, 32",
        ),
        ("/layout/pipeline", json!(33), "/layout/pipeline", "33 stages for 32 layers"),
        ("/layout/pipeline", json!(5), "/layout/pipeline", "32 devices are not a multiple of TP x PP = 20"),
        ("/layout/microbatch", json!(0), "/layout/microbatch", "1 to 65536"),
        ("/workload/global_batch", json!(0), "/workload/global_batch", "1 to 1048576"),
        ("/workload/context_length", json!(0), "/workload/context_length", "1 to 16777216"),
        ("/workload/samples/images", images, "/workload/samples/images", "no vision encoder"),
        ("/training", json!({ "tensor_overlap": 1.5 }), "/training/tensor_overlap", "0 to 1"),
        (
            "/training",
            json!({ "memory_reserve_gib": 90.0 }),
            "/training/memory_reserve_gib",
            "90 GiB is out of range: 0 to less than the device's memory of 80 GiB",
        ),
        ("/training", json!({ "memory_reserve_gib": 80.0 }), "/training/memory_reserve_gib", "less than"),
        ("/training", json!({ "memory_reserve_gib": -1.0 }), "/training/memory_reserve_gib", "0 to less than"),
        ("/planners", json!([]), "/planners", "at least one"),
        ("/planners", json!(["1f1b", "1f1b"]), "/planners/1", "twice"),
        ("/planners", json!(["magic"]), "/planners/0", "unknown variant"),
        ("/iterations", json!(0), "/iterations", "1 to 10000"),
        ("/max_memory_risk", json!(0.0), "/max_memory_risk", "0.001 to 0.5"),
        ("/max_memory_risk", json!(0.6), "/max_memory_risk", "0.001 to 0.5"),
        ("/search", json!({ "rollouts": 100_001 }), "/search/rollouts", "0 to 100000"),
        ("/search", json!({ "sub_microbatch": 0 }), "/search/sub_microbatch", "out of range: 1 to"),
        ("/seed", json!(-1), "/seed", "-1 is not a whole number from 0 to 4,294,967,295"),
        ("/layout/pipeline", json!(2.5), "/layout/pipeline", "2.5 is not a whole number"),
        // In distributions and sources, which are tagged by `kind`, the error still names the
        // invalid number.
        (
            "/workload/samples/text_tokens",
            json!({ "kind": "uniform", "min": 16, "max": -4 }),
            "/workload/samples/text_tokens/max",
            "-4 is not a whole number",
        ),
        (
            "/cluster/preset",
            json!("abacus"),
            "/cluster/preset",
            "a100-80gb, a100-40gb, a800, h100, h100-96gb, h800, h200, b200, mi300x, ascend-910b",
        ),
        ("/schema", json!("scenario/99"), "/schema", "newer version"),
    ] {
        let errors = changed(&[(pointer, value)]).expect_err(at);
        assert!(
            errors.iter().any(|error| error.pointer == at && error.detail.contains(says)),
            "{at} {says}: {errors:?}"
        );
    }
}

/// A text model reads no images, so its samples need no image distribution.
#[test]
fn samples_without_images_have_none() {
    let text = json!({ "kind": "uniform", "min": 16, "max": 4096 });
    let without = json!({ "kind": "drawn", "text_tokens": text });
    let with = json!({ "kind": "drawn", "text_tokens": text, "images": { "kind": "constant", "value": 0 } });
    let id = |samples: Value| changed(&[("/workload/samples", samples)]).unwrap().id().clone();
    assert_eq!(id(without), id(with));
}

#[test]
fn all_wrong_fields_are_named_at_once() {
    let errors =
        changed(&[("/cluster/nodes", json!(0)), ("/workload/global_batch", json!(0)), ("/iterations", json!(0))]);
    assert_eq!(errors.unwrap_err().len(), 3);
}

/// An invalid value causes a single error, at its own field, even if other fields depend on it.
#[test]
fn an_invalid_field_has_a_single_message() {
    let only = |changes: &[(&str, Value)], at: &str, says: &str| {
        let errors = changed(changes).expect_err(at);
        assert_eq!(errors.len(), 1, "{at}: {errors:?}");
        assert_eq!((errors[0].pointer.as_str(), errors[0].detail.as_str()), (at, says));
    };
    let llama = json!({ "preset": "llama-3-70b" });
    // 64 heads, 8 key-value heads, 32 devices.
    only(
        &[("/model", llama.clone()), ("/layout/tensor", json!(5))],
        "/layout/tensor",
        "64 heads of Llama-3 70B are not a multiple of TP 5; possible TP: 1, 2, 4, 8",
    );
    only(
        &[("/model", llama), ("/layout/tensor", json!(16)), ("/layout/pipeline", json!(2))],
        "/layout/tensor",
        "8 key-value heads of Llama-3 70B are not a multiple of TP 16; possible TP: 1, 2, 4, 8",
    );
    only(
        &[("/iterations", json!(20_000)), ("/workload/global_batch", json!(1024))],
        "/iterations",
        "20000 is out of range: 1 to 10000",
    );
    only(
        &[("/layout/tensor", json!(64))],
        "/layout/tensor",
        "TP 64 needs at least 64 devices; 32 devices have at most TP 32",
    );
    // The degrees cause no error, because the device count is invalid.
    only(&[("/cluster/nodes", json!(0))], "/cluster/nodes", "0 is out of range: 1 to 16384");
}

/// 95 heads must not cause errors for the 96 key-value heads or for the TP degree.
#[test]
fn invalid_heads_mark_a_single_field() {
    let mut gpt: Value = serde_json::from_str(include_str!("stored/gpt-3-175b-uniform.json")).unwrap();
    gpt["model"]["modules"][0]["heads"] = json!(95);
    let errors = ValidScenario::new(parse(&gpt.to_string()).unwrap(), &NoDatasets).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].pointer, "/model/modules/0/heads");
    assert_eq!(errors[0].detail, "95 heads do not divide the hidden size 12288");
}

#[test]
fn distributions_must_make_sense() {
    let drawn =
        |text: Value| json!({ "kind": "drawn", "text_tokens": text, "images": { "kind": "constant", "value": 0 } });
    for (text, at) in [
        (json!({ "kind": "uniform", "min": 9, "max": 3 }), "/workload/samples/text_tokens/min"),
        (json!({ "kind": "values", "values": [] }), "/workload/samples/text_tokens/values"),
        (json!({ "kind": "constant", "value": 0 }), "/workload/samples/text_tokens"),
        (
            json!({ "kind": "histogram", "edges": [0.0, 1.0], "counts": [1.0, 2.0] }),
            "/workload/samples/text_tokens/edges",
        ),
        (json!({ "kind": "histogram", "edges": [5.0, 1.0], "counts": [1.0] }), "/workload/samples/text_tokens/edges/1"),
        (
            json!({ "kind": "histogram", "edges": [0.0, 9.0], "counts": [-1.0] }),
            "/workload/samples/text_tokens/counts/0",
        ),
        (json!({ "kind": "histogram", "edges": [0.0, 9.0], "counts": [0.0] }), "/workload/samples/text_tokens/counts"),
    ] {
        let errors = changed(&[("/workload/samples", drawn(text))]).expect_err(at);
        assert!(errors.iter().any(|error| error.pointer == at), "{at}: {errors:?}");
    }
    let missing = json!({ "kind": "dataset", "id": "nowhere" });
    assert_eq!(changed(&[("/workload/samples", missing)]).unwrap_err()[0].pointer, "/workload/samples/id");
}

/// Provides a single dataset.
struct Only(Dataset);

impl Datasets for Only {
    fn dataset(&self, _: &str) -> Option<Arc<Dataset>> {
        Some(Arc::new(self.0.clone()))
    }
}

/// An audio clip has 750 tokens, so samples that contain a clip need a longer context. Text-only
/// samples do not.
#[test]
fn text_scenarios_need_no_item_capacity() {
    let mut value: Value = serde_json::from_str(EXAMPLE).unwrap();
    value["model"] = json!({ "preset": "qwen2-audio-7b" });
    value["workload"]["context_length"] = json!(512);
    value["workload"]["samples"] = json!({ "kind": "dataset", "id": "mine" });
    let scenario = || parse(&value.to_string()).unwrap();
    let rows = |images| Dataset::Rows { text_tokens: vec![100, 200], images, shaped: None };
    for text in [rows(Vec::new()), rows(vec![0, 0]), Dataset::Histogram { edges: vec![1.0, 9.0], counts: vec![2.0] }] {
        let valid = ValidScenario::new(scenario(), &Only(text));
        assert!(valid.is_ok(), "{:?}", valid.err());
    }
    let errors = ValidScenario::new(scenario(), &Only(rows(vec![0, 1]))).unwrap_err();
    assert!(errors[0].detail.contains("one image of 750 tokens"), "{errors:?}");
}

/// All fractions must round-trip through text bit by bit.
#[test]
fn a_stored_scenario_keeps_its_identifier() {
    for step in 0..1000 {
        let mut scenario = changed(&[]).unwrap().scenario().clone();
        scenario.training.data_overlap = f64::from(step) / 1000.0 * 0.7 + 0.1;
        assert_eq!(parse(&scenario.canonical()).unwrap().id(), scenario.id());
    }
}

#[test]
fn scenarios_that_exhaust_memory_are_rejected() {
    let errors = changed(&[("/workload/global_batch", json!(65_536)), ("/iterations", json!(1000))]).unwrap_err();
    assert!(errors[0].pointer == "/iterations" && errors[0].detail.contains("at most 16 iterations"), "{errors:?}");
}

/// The span limits protect against mistakes and attacks. All included scenarios are far below them.
#[test]
fn no_shipped_scenario_has_too_many_spans() {
    let mut scenarios = 0;
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(mut scenario) = parse(&std::fs::read_to_string(&path).unwrap_or_default()) else { continue };
            // Ten times the iterations still respect the limits.
            scenario.iterations = scenario.iterations.saturating_mul(10).min(1000);
            let errors = ValidScenario::new(scenario, &NoDatasets).err().unwrap_or_default();
            assert!(errors.iter().all(|error| !error.detail.contains("spans")), "{}: {errors:?}", path.display());
            scenarios += 1;
        }
    }
    assert!(scenarios > 100, "{scenarios}");
}
