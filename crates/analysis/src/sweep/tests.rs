use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use planscope_plan::scenario::validate::NoDatasets;

fn base() -> Value {
    json!({
        "schema": "scenario/1",
        "title": "base",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": 1},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "uniform", "min": 100, "max": 2000},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 8, "context_length": 2048, "packing": "single"
        },
        "layout": {"tensor": 2, "pipeline": 2},
        "planners": ["1f1b"],
        "iterations": 1
    })
}

fn sweep(axes: &Value) -> Result<Sweep, Vec<FieldError>> {
    Sweep::parse(&json!({"schema": "sweep/1", "scenario": base(), "axes": axes}).to_string())
}

#[test]
fn points_are_in_row_major_order() {
    let sweep = sweep(&json!([
        {"pointer": "/cluster/nodes", "values": [1, 2]},
        {"pointer": "/workload/global_batch", "from": 8, "to": 32, "steps": 3, "scale": "log2"},
    ]))
    .unwrap();
    assert_eq!(sweep.points(), 6);
    let coordinates: Vec<Vec<Value>> = (0..6).map(|index| sweep.point(index).unwrap().coordinates).collect();
    let expected: Vec<Vec<Value>> = [(1, 8), (1, 16), (1, 32), (2, 8), (2, 16), (2, 32)]
        .into_iter()
        .map(|(nodes, batch)| vec![json!(nodes), json!(batch)])
        .collect();
    assert_eq!(coordinates, expected);
    assert!(sweep.point(6).is_none());
    let last = sweep.point(5).unwrap();
    assert_eq!(last.scenario.pointer("/cluster/nodes"), Some(&json!(2)));
    assert_eq!(last.scenario["title"], "base: nodes 2, global_batch 32");
    for index in 0..6 {
        assert_eq!(sweep.index(&sweep.places(index)), Some(index));
    }
    assert_eq!(sweep.index(&[0, 3]), None);
}

#[test]
fn ranges_include_both_ends_and_stay_integers() {
    for (axis, expected) in [
        (json!({"from": 1, "to": 10, "steps": 4}), json!([1, 4, 7, 10])),
        // 1, 1.5, 2 rounds to 1, 2, 2.
        (json!({"from": 1, "to": 2, "steps": 3}), json!([1, 2])),
        (json!({"from": 0.5, "to": 2.0, "steps": 3, "scale": "log2"}), json!([0.5, 1.0, 2.0])),
        (json!({"from": 0.0, "to": 1.0, "steps": 3}), json!([0.0, 0.5, 1.0])),
    ] {
        let mut axis = axis;
        axis["pointer"] = "/cluster/inter_node/gb_per_s".into();
        assert_eq!(json!(sweep(&json!([axis])).unwrap().axes()[0].values), expected, "{axis}");
    }
}

#[test]
fn labels_and_spelling_do_not_change_the_identifier() {
    let first =
        sweep(&json!([{"pointer": "/cluster/nodes", "from": 1, "to": 4, "steps": 3, "scale": "log2"}])).unwrap();
    let same = json!({
        "schema": "sweep/1", "title": "nodes", "scenario": base(), "planners": ["1f1b"],
        "axes": [{"pointer": "/cluster/nodes", "title": "Nodes", "values": [1, 2, 4]}],
    });
    let same = Sweep::parse(&same.to_string()).unwrap();
    assert_eq!(first.id(), same.id());
    assert_eq!(Sweep::parse(&same.to_json()).unwrap(), same);
    let other = sweep(&json!([{"pointer": "/cluster/nodes", "values": [1, 4, 2]}])).unwrap();
    assert_ne!(first.id(), other.id());
    assert_eq!(first.id().as_str().parse::<SweepId>(), Ok(first.id()));
    // Fixed value: identifiers of stored sweeps must not change. The base contains presets, so a
    // recalibrated preset changes it.
    assert_eq!(first.canonical().get(..9), Some("{\"axes\":["));
}

#[test]
fn seeds_are_the_last_axis_and_planners_follow_the_base() {
    let written = json!({
        "schema": "sweep/1", "scenario": base(), "planners": ["gpipe", "1f1b"], "seeds": [7, 8],
        "axes": [{"pointer": "/cluster/nodes", "values": [1, 2]}],
    });
    let sweep = Sweep::parse(&written.to_string()).unwrap();
    assert_eq!(sweep.points(), 4);
    assert_eq!(sweep.point(1).unwrap().scenario["seed"], 8);
    assert_eq!(sweep.planners(), [PlannerKind::Gpipe, PlannerKind::OneFOneB]);
}

#[test]
fn presets_among_the_values_are_filled_in() {
    let models = json!([
        {"pointer": "/model", "values": [{"preset": "llama-2-7b"}, {"preset": "llama-2-13b"}]},
        {"pointer": "/cluster/nodes", "values": [1, 2]},
    ]);
    let sweep = sweep(&models).unwrap();
    assert!(sweep.canonical().contains("modules") && !sweep.canonical().contains("preset"));
    let ids: Vec<String> =
        (0..4).map(|index| sweep.point(index).unwrap().valid(&NoDatasets).unwrap().id().to_string()).collect();
    let different: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), 4);
}

#[test]
fn every_wrong_sweep_field_is_named() {
    for (axes, at, message) in [
        (json!([]), "/axes", "1 to 6"),
        (json!([{"pointer": "nodes", "values": [1]}]), "/axes/0/pointer", "JSON pointer"),
        (json!([{"pointer": "/title", "values": ["a"]}]), "/axes/0/pointer", "has no effect on the plan"),
        (json!([{"pointer": "/cluster/node", "values": [1]}]), "/axes/0", "unknown field"),
        (json!([{"pointer": "/model/modules/9/layers", "values": [1]}]), "/axes/0", "the list has"),
        (json!([{"pointer": "/cluster/nodes", "values": []}]), "/axes/0", "0 values"),
        (json!([{"pointer": "/cluster/nodes", "values": [1, 1]}]), "/axes/0", "twice"),
        (json!([{"pointer": "/cluster/nodes", "values": [1], "from": 1}]), "/axes/0", "either"),
        (json!([{"pointer": "/cluster/nodes", "from": 2, "to": 1, "steps": 2}]), "/axes/0", "more than the first"),
        (json!([{"pointer": "/cluster/nodes", "from": 0, "to": 1, "steps": 2, "scale": "log2"}]), "/axes/0", "above 0"),
        (
            json!([{"pointer": "/seed", "from": 0, "to": 100_000, "steps": 100_000}, {"pointer": "/cluster/nodes", "values": [1, 2]}]),
            "/axes",
            "200000 points",
        ),
        (
            json!([{"pointer": "/cluster/nodes", "values": [1]}, {"pointer": "/cluster", "values": [{"preset": "a100-80gb"}]}]),
            "/axes/1/pointer",
            "write over",
        ),
    ] {
        let errors = sweep(&axes).unwrap_err();
        let found = errors.iter().find(|error| error.pointer == at);
        assert!(found.is_some_and(|error| error.detail.contains(message)), "{axes}: {errors:?}");
    }
    let wrong = Sweep::parse(&json!({"schema": "sweep/2", "scenario": {}, "axes": []}).to_string()).unwrap_err();
    assert_eq!(wrong[0].pointer, "/schema");
    let base = json!({"schema": "sweep/1", "scenario": {"schema": "scenario/1"}, "axes": [{"pointer": "/seed", "values": [1]}]});
    assert!(Sweep::parse(&base.to_string()).unwrap_err()[0].pointer.starts_with("/scenario"));
    assert!(!Sweep::parse("{").unwrap_err().is_empty());
}

#[test]
fn studies_stand_around_the_present_value() {
    let scenario = planscope_plan::scenario::parse(&base().to_string()).unwrap();
    let values = |scaling: ScalingSweep| scaling.sweep(&scenario).map(|sweep| json!(sweep.unwrap().axes()[0].values));
    assert_eq!(values(ScalingSweep::Devices), Some(json!([1, 2, 4, 8, 16])));
    assert_eq!(values(ScalingSweep::ContextLength), Some(json!([512, 1024, 2048, 4096, 8192])));
    assert_eq!(values(ScalingSweep::GlobalBatch), Some(json!([2, 4, 8, 16, 32])));
    assert_eq!(values(ScalingSweep::Images), None, "the model reads none");
    let seeing = include_str!("../../../../examples/vlm-s-image-heavy.json");
    let seeing = planscope_plan::scenario::parse(seeing).unwrap();
    let image_sweep = ScalingSweep::Images.sweep(&seeing).unwrap().unwrap();
    assert!(image_sweep.point(0).unwrap().valid(&NoDatasets).is_ok());
    for field in usual_fields(&seeing) {
        let axis = json!([{"pointer": field.pointer, "values": field.values}]);
        let sweep = json!({"schema": "sweep/1", "scenario": seeing, "axes": axis});
        assert!(Sweep::parse(&sweep.to_string()).is_ok(), "{}", field.pointer);
    }
}

#[test]
fn number_runs_are_formatted_as_ranges() {
    for (numbers, text) in [(&[][..], ""), (&[3], "3"), (&[0, 1, 2, 5, 7, 8], "0-2, 5, 7-8")] {
        assert_eq!(ranges(&runs(numbers.iter().copied())), text);
    }
}

proptest! {
    #[test]
    fn shards_share_the_points(points in 0_u32..500, count in 1_u32..40) {
        let mut all: Vec<u32> = Vec::new();
        for index in 1..=count {
            let shard: Shard = format!("{index}/{count}").parse().unwrap();
            prop_assert!(shard.points(points).all(|point| shard.has(point)));
            prop_assert!(shard.points(points).is_sorted());
            all.extend(shard.points(points));
        }
        all.sort_unstable();
        prop_assert_eq!(all, (0..points).collect::<Vec<u32>>());
    }

    #[test]
    fn places_and_numbers_are_inverse(sizes in prop::collection::vec(1_usize..6, 1..5)) {
        let fields = ["/seed", "/cluster/nodes", "/workload/global_batch", "/workload/context_length"];
        let axes: Vec<Value> = sizes
            .iter()
            .zip(fields)
            .map(|(size, pointer)| json!({"pointer": pointer, "values": (1..=*size).collect::<Vec<_>>()}))
            .collect();
        let sweep = sweep(&Value::from(axes)).unwrap();
        let mut before: Option<Vec<usize>> = None;
        for index in 0..sweep.points() {
            let places = sweep.places(index);
            prop_assert_eq!(sweep.index(&places), Some(index));
            prop_assert!(before.is_none_or(|before| before < places), "row-major is lexicographic");
            before = Some(places);
        }
    }
}

#[test]
fn nonsense_is_no_shard() {
    for text in ["", "1", "0/4", "5/4", "1/0", "-1/2", "a/b", "1/2/3"] {
        assert_eq!(text.parse::<Shard>(), Err(NotAShard), "{text}");
    }
}

/// A watch that counts polls and ends after `limit` polls.
struct PollCounter {
    times: AtomicU32,
    limit: u32,
}

impl planscope_core::host::Cancellation for PollCounter {
    fn is_over(&self) -> bool {
        self.times.fetch_add(1, Ordering::Relaxed) >= self.limit
    }

    fn seconds(&self) -> f64 {
        0.0
    }
}

fn invalid_sweep(count: u32) -> String {
    let values: Vec<String> = (0..count).map(|number| format!("x{number}")).collect();
    json!({"schema": "sweep/1", "scenario": base(), "axes": [{"pointer": "/seed", "values": values}]}).to_string()
}

#[test]
fn sweep_parsing_stops_at_the_hundredth_invalid_value() {
    let polls = PollCounter { times: AtomicU32::new(0), limit: u32::MAX };
    let errors = Sweep::parse_while(&invalid_sweep(5_000), &polls).unwrap_err();
    assert_eq!(polls.times.load(Ordering::Relaxed), 100);
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].pointer, "/axes/0");
    let expected = "100 values give no scenario, the last of /seed: /seed: \"x99\" is not a whole number";
    assert!(errors[0].detail.starts_with(expected), "{errors:?}");
    let few = Sweep::parse(&invalid_sweep(99)).unwrap_err();
    assert!(few[0].detail.starts_with("no value of /seed gives a scenario: /seed: \"x0\""), "{few:?}");
}

#[test]
fn reading_a_sweep_ends_when_nobody_waits() {
    let polls = PollCounter { times: AtomicU32::new(0), limit: 3 };
    let errors = Sweep::parse_while(&invalid_sweep(5_000), &polls).unwrap_err();
    let expected = FieldError::new("/axes/0", "time was up before all its values were looked at".to_owned());
    assert_eq!((errors, polls.times.load(Ordering::Relaxed)), (vec![expected], 4));
}
