//! End-to-end tests for models that read sound and generate video. Unsupported inputs cause an
//! error at the field.

use planner::engine::{Unobserved, plan};
use planner::outcome::{PlanOutcome, Planned, Planning};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FieldError, ValidScenario, parse};
use planner::workload::presets::samples;
use serde_json::{Value, json};

fn constant(value: u32) -> Value {
    json!({ "kind": "constant", "value": value })
}

/// A model on 16 H800, 32 samples: the given figures plus 200 text tokens.
fn scenario(model: &str, distributions: &Value) -> Value {
    let mut drawn = json!({ "kind": "drawn", "text_tokens": constant(200), "images": constant(0) });
    for (name, figure) in distributions.as_object().unwrap() {
        drawn[name] = figure.clone();
    }
    json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "h800", "nodes": 2 },
        "workload": { "samples": drawn, "global_batch": 32, "context_length": 8192, "packing": "packed" },
        "training": { "recompute": "full" }, "layout": { "tensor": 4, "pipeline": 4 },
        "planners": ["1f1b", "wait_free_cyclic"], "iterations": 2, "seed": 5
    })
}

fn checked(scenario: &Value) -> Result<ValidScenario, Vec<FieldError>> {
    parse(&scenario.to_string()).and_then(|scenario| ValidScenario::new(scenario, &NoDatasets))
}

fn planned(scenario: &Value) -> Planning {
    plan(&checked(scenario).unwrap_or_else(|errors| panic!("{errors:?}")), &mut Unobserved).unwrap()
}

fn best(planning: &Planning) -> &Planned {
    match &planning.outcome.results[0].answer {
        PlanOutcome::Planned(planned) => planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

#[test]
fn published_combinations_are_planned_on_the_synthetic_mixes() {
    for (model, source) in [
        ("vlm-7b", "image-text-mix"),
        ("vlm-s", "image-text-mix"),
        ("vlm-s", "rise-and-fall"),
        ("t2v-s", "video-mix"),
        ("omni-7b", "obelics-like"),
    ] {
        let mut scenario_json = scenario(model, &json!({}));
        let preset = samples().into_iter().find(|preset| preset.id == source).unwrap();
        scenario_json["workload"]["samples"] = serde_json::to_value(preset.source).unwrap();
        let video = source == "video-mix";
        if video {
            scenario_json["workload"]["max_samples"] = json!(8);
            scenario_json["workload"]["max_video_s"] = json!(16.0);
        }
        let planning = planned(&scenario_json);
        let mfu = best(&planning).metrics.mfu;
        assert!(mfu > 0.02 && mfu < 0.7, "{model} on {source}: {mfu}");
        let workload = &planning.outcome.workload;
        assert_eq!((workload.sample_images.is_some(), workload.sample_video_s.is_some()), (!video, video), "{model}");
        let shapes = planning.timelines.iter().flat_map(|planned| &planned.timeline.microbatches);
        let (images, ms) = shapes.fold((0, 0), |sum, shape| (sum.0 + shape.images, sum.1 + shape.video_ms));
        assert_eq!((images > 0, ms > 0), (!video, video), "{model} on {source}");
    }
}

/// Adding an item to the samples increases the step time, and nothing else does.
#[test]
fn every_modality_costs_time() {
    let seconds =
        |model: &str, distributions: Value| best(&planned(&scenario(model, &distributions))).metrics.iteration_s;
    let silent = seconds("omni-7b", json!({}));
    let sound = seconds("omni-7b", json!({ "audio_clips": constant(2) }));
    let both = seconds("omni-7b", json!({ "audio_clips": constant(2), "images": constant(4) }));
    assert!(silent < sound && sound < both, "{silent} {sound} {both}");
    let video = |value: f64| seconds("t2v-s", json!({ "video_s": { "kind": "constant", "value": value } }));
    let (still, short, long) = (seconds("t2v-s", json!({})), video(2.5), video(16.0));
    assert!(still < short && short * 4.0 < long, "{still} {short} {long}");
    assert!((video(0.0) - still).abs() < 1e-12);
}

#[test]
fn text_may_come_with_the_items() {
    let scenario_json = scenario(
        "vlm-s",
        &json!({ "text_tokens": constant(0), "images": constant(3), "text_per_item": { "kind": "constant", "value": 16.5 } }),
    );
    let planning = planned(&scenario_json);
    // 3 images with 169 tokens and 49.5 text tokens, rounded: 557 tokens in each of 32 samples.
    assert_eq!(planning.outcome.batches[0].tokens, 32 * 557);
}

#[test]
fn unreadable_modalities_are_rejected_at_their_field() {
    let video = |value: f64| json!({ "video_s": { "kind": "constant", "value": value } });
    let at = "/workload/samples";
    for (model, distributions, pointer, says) in [
        ("vlm-s", json!({ "audio_clips": constant(1) }), format!("{at}/audio_clips"), "no audio encoder"),
        ("vlm-s", video(4.0), format!("{at}/video_s"), "makes no video"),
        ("t2v-s", json!({ "images": constant(1) }), format!("{at}/images"), "no vision encoder"),
        ("t2v-s", video(1e9), format!("{at}/video_s/value"), "0 to 3600"),
        ("t2v-s", video(-1.0), format!("{at}/video_s/value"), "-1 s is out of range"),
        (
            "t2v-s",
            json!({ "video_s": { "kind": "uniform", "min": 8.0, "max": 2.0 } }),
            format!("{at}/video_s/min"),
            "above the largest",
        ),
        (
            "t2v-s",
            json!({ "video_s": { "kind": "values", "values": [1.5, 4000.0] } }),
            format!("{at}/video_s/values/1"),
            "between 0 and 3600 s",
        ),
        ("vlm-s", json!({ "text_per_item": constant(2_000_000) }), format!("{at}/text_per_item/value"), "0 to 1000000"),
        ("vlm-s", json!({ "text_tokens": constant(0) }), format!("{at}/text_tokens"), "every sample is empty"),
    ] {
        let errors = checked(&scenario(model, &distributions)).expect_err(&pointer);
        assert!(errors.iter().any(|e| e.pointer == pointer && e.detail.contains(says)), "{pointer}: {errors:?}");
    }
    for (pointer, value, says) in [
        ("/workload/max_samples", json!(0), "1 to 1048576"),
        ("/workload/max_video_s", json!(0.0), "0.001 to 3600"),
        ("/workload/max_video_s", json!(1e9), "0.001 to 3600"),
        ("/model/modules/1/video", Value::Null, "needs patches or video"),
        ("/model/modules/1/headless", json!(true), "only a backbone"),
        ("/model/modules/0/tied_embeddings", json!(true), "nothing to tie"),
        ("/model/modules/1/video/tokens_per_second", json!(0), "1 to 65536"),
    ] {
        let mut scenario_json =
            serde_json::to_value(checked(&scenario("t2v-s", &video(4.0))).unwrap().scenario()).unwrap();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        scenario_json.pointer_mut(parent).unwrap()[field] = value;
        let errors = checked(&scenario_json).expect_err(pointer);
        let at = if says.contains("patches") { "/model/modules/1/patch" } else { pointer };
        assert!(errors.iter().any(|e| e.pointer == at && e.detail.contains(says)), "{pointer}: {errors:?}");
    }
    let mut limited = scenario("vlm-s", &json!({}));
    limited["workload"]["max_video_s"] = json!(16.0);
    assert_eq!(checked(&limited).unwrap_err()[0].pointer, "/workload/max_video_s");
}

#[test]
fn modules_stand_in_the_order_in_which_a_sample_flows() {
    let modules = |id: &str| planner::model::presets::model(id).unwrap().modules;
    let rejection = |modules: Vec<planner::model::Module>| {
        let mut scenario_json = scenario("llama-2-7b", &json!({}));
        scenario_json["model"] = json!({ "name": "Several", "modules": modules });
        let errors = checked(&scenario_json).expect_err("refused");
        errors.iter().map(|error| format!("{} {}", error.pointer, error.detail)).collect::<Vec<_>>().join("; ")
    };
    let (omni, t2v, dit) = (modules("omni-7b"), modules("t2v-s"), modules("dit-xl-2"));
    let join = |parts: [&[planner::model::Module]; 2]| parts.concat();
    assert!(rejection(join([&omni[..1], &omni])).contains("at most one vision encoder"));
    assert!(rejection(join([&omni[..1], &omni[1..2]])).contains("need a backbone"));
    assert!(rejection(join([&omni[2..], &omni[..2]])).contains("behind encoders"));
    assert!(
        rejection(join([&t2v[1..], &t2v[..1]])).contains("/model/modules/0/video a generator of video is the last")
    );
    assert!(rejection(join([&modules("vlm-s"), &dit])).contains("images are either read"));
    // Encoders, a backbone, and a video generator after it.
    let mut scenario_json = scenario("llama-2-7b", &json!({ "images": constant(2), "audio_clips": constant(1) }));
    scenario_json["model"] = json!({ "name": "Any to any", "modules": join([&omni, &t2v[1..]]) });
    scenario_json["workload"]["samples"]["video_s"] = json!({ "kind": "constant", "value": 4.0 });
    assert!(best(&planned(&scenario_json)).metrics.iteration_s > 0.0);
}

#[test]
fn invalid_phases_are_rejected() {
    let phases = |period: u32, points: Value, source: Value| {
        let mut scenario_json = scenario("vlm-s", &json!({}));
        let inner = if source.is_null() { scenario_json["workload"]["samples"].clone() } else { source };
        scenario_json["workload"]["samples"] =
            json!({ "kind": "phases", "source": inner, "period": period, "images": points });
        checked(&scenario_json)
    };
    let point = |iteration: u32, min: u32, max: u32| json!({ "iteration": iteration, "min": min, "max": max });
    let nested = json!({
        "kind": "phases", "period": 2, "images": [point(0, 0, 1)],
        "source": { "kind": "drawn", "text_tokens": constant(5), "images": constant(0) }
    });
    assert!(phases(20, json!([point(0, 0, 32), point(19, 0, 0)]), Value::Null).is_ok());
    for (errors, pointer) in [
        (phases(0, json!([point(0, 0, 1)]), Value::Null), "/period"),
        (phases(20, json!([]), Value::Null), "/images"),
        (phases(20, json!([point(20, 0, 1)]), Value::Null), "/images/0/iteration"),
        (phases(20, json!([point(3, 0, 1), point(3, 0, 2)]), Value::Null), "/images/1/iteration"),
        (phases(20, json!([point(3, 4, 1)]), Value::Null), "/images/0/min"),
        (phases(20, json!([point(3, 0, 1)]), nested), "/source/source"),
    ] {
        let errors = errors.expect_err(pointer);
        let at = format!("/workload/samples{pointer}");
        assert!(errors.iter().any(|error| error.pointer == at), "{at}: {errors:?}");
    }
}

/// New fields at their default values do not change the scenario identifier.
#[test]
fn new_fields_at_their_defaults_are_not_written() {
    let plain = checked(&scenario("vlm-s", &json!({}))).unwrap();
    let mut written = scenario("vlm-s", &json!({ "audio_clips": null, "video_s": null, "text_per_item": null }));
    written["workload"]["max_samples"] = Value::Null;
    written["workload"]["max_video_s"] = Value::Null;
    written["model"] = serde_json::to_value(&plain.scenario().model).unwrap();
    written["model"]["modules"][1]["headless"] = json!(false);
    assert_eq!(checked(&written).unwrap().id(), plain.id());
    for word in ["headless", "video", "audio", "text_per_item", "max_"] {
        assert!(!plain.scenario().canonical().contains(word), "{word}");
    }
}

/// Only a quarter of the samples contain images, and eight replicas get two samples each: if the
/// model is a generator only, some replicas have no work. The planner selects layouts without such
/// replicas, or reports the reason for infeasibility.
#[test]
fn replicas_without_items_give_no_pipeweaver_layout() {
    let model = "dit-xl-2";
    let mut scenario_json = scenario(model, &json!({ "images": { "kind": "values", "values": [0, 0, 0, 4] } }));
    scenario_json["workload"]["global_batch"] = json!(16);
    scenario_json["workload"]["packing"] = json!("single");
    scenario_json["planners"] =
        json!(["pipeweaver_partition", "pipeweaver_interleaving", "pipeweaver_ranking", "pipeweaver"]);
    scenario_json["search"] = json!({ "rollouts": 20 });
    scenario_json["layout"] = json!({ "tensor": 2, "pipeline": 1 });
    for result in planned(&scenario_json).outcome.results {
        let PlanOutcome::Infeasible { binding, .. } = result.answer else {
            panic!("{model}: some replica has no image")
        };
        assert!(binding.contains("no work for any module"), "{model}: {binding}");
    }
    scenario_json["layout"] = json!({ "tensor": 4, "pipeline": 4 });
    for result in planned(&scenario_json).outcome.results {
        assert!(matches!(result.answer, PlanOutcome::Planned(_)), "{model}: {:?}", result.answer);
    }
}
