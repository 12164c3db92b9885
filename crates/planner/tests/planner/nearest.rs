//! Memory reports for scenarios without feasible layout.

use planner::engine::{Unobserved, plan};
use planner::outcome::{NearestMiss, Outcome, PlanOutcome, Planned, Search};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{ValidScenario, parse};
use serde_json::{Value, json};

/// Plans Llama-3 70B on two nodes with eight devices, at the given device memory.
fn outcome(memory_gib: f64, layout: &Value, planners: &[&str]) -> Outcome {
    let scenario_json = json!({
        "schema": "scenario/1",
        "model": { "preset": "llama-3-70b" },
        "cluster": { "preset": "h100", "nodes": 2, "device": { "memory_gib": memory_gib } },
        "workload": {
            "samples": { "kind": "drawn", "text_tokens": { "kind": "constant", "value": 8192 } },
            "global_batch": 32, "context_length": 8192, "packing": "padded"
        },
        "layout": layout,
        "planners": planners,
        "iterations": 1
    });
    let scenario = ValidScenario::new(parse(&scenario_json.to_string()).unwrap(), &NoDatasets).unwrap();
    plan(&scenario, &mut Unobserved).unwrap().outcome
}

fn infeasible(outcome: &Outcome, index: usize) -> (&str, &Search) {
    match &outcome.results[index].answer {
        PlanOutcome::Infeasible { binding, search } => (binding, search),
        PlanOutcome::Planned(planned) => panic!("{:?} fits", planned.layout),
    }
}

fn nearest(search: &Search) -> &NearestMiss {
    search.nearest.as_deref().expect("memory is the constraint")
}

fn planned(outcome: &Outcome) -> &Planned {
    match &outcome.results[0].answer {
        PlanOutcome::Planned(planned) => planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

/// With enough memory for the same layout, the evaluation reports the same peak on all ranks, term
/// by term.
#[test]
fn the_nearest_miss_fits_a_device_with_more_memory() {
    for planner in ["gpipe", "1f1b", "interleaved"] {
        let chunks = if planner == "interleaved" { 2 } else { 1 };
        let layout = json!({ "tensor": 8, "pipeline": 2, "chunks": chunks, "microbatch": 1 });
        let small = outcome(80.0, &layout, &[planner]);
        let (binding, search) = infeasible(&small, 0);
        let miss = nearest(search);
        let large = outcome(2000.0, &layout, &[planner]);
        let planned = planned(&large);
        assert_eq!(miss.layout, planned.layout);
        assert!((miss.needs_gib - planned.metrics.peak_memory_gib).abs() < 1e-9, "{planner}: {binding}");
        assert!(binding.contains(&format!("needs {:.1} GiB; 76.0 GiB available", miss.needs_gib)), "{binding}");
        for (need, rank) in miss.ranks.iter().zip(&planned.ranks) {
            assert_eq!((need.rank, need.memory), (rank.rank, rank.memory), "{planner}");
        }
        assert_eq!(miss.ranks[0].layers.ends_with("with the embedding"), chunks == 1, "{}", miss.ranks[0].layers);
    }
}

/// A schedule generated for a memory limit gets only the minimum memory in the report, so the need
/// cannot exceed the peak under ample memory.
#[test]
fn schedules_that_adapt_to_memory_get_as_much_as_they_need() {
    let layout = json!({ "tensor": 8, "pipeline": 2, "chunks": 1, "microbatch": 1 });
    let small = outcome(80.0, &layout, &["zb_h1"]);
    let miss = nearest(infeasible(&small, 0).1);
    let large = outcome(2000.0, &layout, &["zb_h1"]);
    assert!(miss.needs_gib > 76.0 && miss.needs_gib <= planned(&large).metrics.peak_memory_gib, "{}", miss.needs_gib);
}

/// 70,553,706,496 parameters on 16 devices, DP 1: bf16 weights, fp32 gradients, 12 bytes of
/// optimizer state. Each of two stages contains half the layers plus an embedding; both embeddings
/// are equal.
#[test]
fn state_terms_match_the_parameters() {
    let result = outcome(80.0, &json!({ "tensor": 8, "pipeline": 2, "microbatch": 1 }), &["1f1b"]);
    let miss = nearest(infeasible(&result, 0).1);
    let gib = |bytes: f64| 70_553_706_496.0 / 16.0 * bytes / f64::from(1 << 30);
    for need in &miss.ranks {
        let memory = need.memory;
        for (found, bytes) in [(memory.weights_gib, 2.0), (memory.gradients_gib, 4.0), (memory.optimizer_gib, 12.0)] {
            assert!((found / gib(bytes) - 1.0).abs() < 1e-3, "{need:?}");
        }
        assert!((memory.reserve_gib - 4.0).abs() < 1e-12);
    }
    // 1F1B stores two microbatches on rank 0, a single microbatch on rank 1.
    assert_eq!(miss.ranks.iter().map(|need| need.memory.in_flight).collect::<Vec<_>>(), [2, 1]);
    assert!(miss.ranks[0].memory.activations_gib > 1.5 * miss.ranks[1].memory.activations_gib);
}

/// Larger microbatches need more memory. Model states alone would be the same for all.
#[test]
fn nearest_misses_count_activations() {
    let result = outcome(80.0, &json!({}), &["1f1b", "wait_free_cyclic"]);
    for index in 0..2 {
        let (_, search) = infeasible(&result, index);
        let needs: Vec<f64> = search.losers.iter().filter_map(|loser| loser.peak_memory_gib).collect();
        assert!(needs.len() > 5 && needs.is_sorted(), "{needs:?}");
        let same_degrees = |degrees: (u32, u32)| {
            let has_degrees = move |loser: &&planner::outcome::Loser| {
                loser.layout.chunks == 1 && (loser.layout.tensor, loser.layout.pipeline) == degrees
            };
            let selected = search.losers.iter().filter(has_degrees);
            selected.map(|loser| (loser.layout.microbatch, loser.peak_memory_gib.unwrap())).collect::<Vec<_>>()
        };
        let mut by_microbatch = same_degrees((8, 2));
        by_microbatch.sort_by_key(|(microbatch, _)| *microbatch);
        assert!(by_microbatch.len() > 1 && by_microbatch.is_sorted_by(|a, b| a.1 < b.1), "{by_microbatch:?}");
        let miss = nearest(search);
        assert!((miss.needs_gib - needs[0]).abs() < 1e-6, "{} {}", miss.needs_gib, needs[0]);
        let max_gib = miss.ranks.iter().map(|need| need.memory.resident_gib()).fold(0.0, f64::max);
        assert!((max_gib - miss.needs_gib).abs() < 1e-6, "{max_gib}");
    }
}

/// A plan contains no infeasibility report, and its JSON format is unchanged.
#[test]
fn plans_carry_no_nearest_miss() {
    let text = serde_json::to_string(&outcome(2000.0, &json!({ "tensor": 8, "pipeline": 2 }), &["1f1b"])).unwrap();
    assert!(!text.contains("\"nearest\""));
}
