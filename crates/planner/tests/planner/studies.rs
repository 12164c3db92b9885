//! Reproduces PipeWeaver Fig. 10 and 12 (Xue et al., 2025, PipeWeaver Sec. 8.2).

use planner::analysis::search_progress::ExploredBy;
use planner::analysis::{Effort, Subject, search_progress, sub_microbatches};
use planner::engine::{Unobserved, plan};
use planner::host::{NeverCancelled, SequentialWorkers};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{ValidScenario, parse};
use serde_json::json;

/// Packed image-text sequences on H800 nodes, layout from PipeWeaver Table 4.
fn scenario(model: &str, nodes: u32, (tensor, pipeline): (u32, u32), batch: u32) -> ValidScenario {
    let text = json!({
        "schema": "scenario/1",
        "model": {"preset": model},
        "cluster": {"preset": "h800", "nodes": nodes},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "constant", "value": 8192},
                "images": {"kind": "uniform", "min": 8, "max": 40}
            },
            "global_batch": batch, "context_length": 8192, "packing": "single"
        },
        "training": {"recompute": "full"},
        "layout": {"tensor": tensor, "pipeline": pipeline, "microbatch": 1},
        "search": {"rollouts": 0},
        "planners": ["pipeweaver_ranking"],
        "iterations": 1
    });
    ValidScenario::new(parse(&text.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn subject(scenario: &ValidScenario) -> Subject {
    Subject::from_outcome(&plan(scenario, &mut Unobserved).unwrap().outcome, 0).unwrap()
}

const fn effort(rollouts: u32) -> Effort<'static> {
    Effort { rollouts, seconds: f64::INFINITY, workers: &SequentialWorkers, cancellation: &NeverCancelled }
}

/// PipeWeaver Fig. 12: on VLM-L, tree search finds a shorter schedule than depth-first or random
/// search after the same number of rankings. Print the values using `cargo test -p
/// planscope-planner --test studies -- --nocapture`.
#[test]
fn the_tree_search_ends_below_the_others() {
    let scenario = scenario("vlm-l", 8, (8, 8), 16);
    let analysis = search_progress(&scenario, subject(&scenario), &effort(1_000)).unwrap();
    for strategy in &analysis.strategies {
        let gap = 100.0 * (strategy.best_s / analysis.lower_bound_s - 1.0);
        let title = strategy.strategy.title();
        println!("{title}: {:.4} s, {gap:.2} % above the bound, {} rankings", strategy.best_s, strategy.rollouts);
    }
    let end = |kind| analysis.strategies.iter().find(|strategy| strategy.strategy == kind).unwrap().best_s;
    let tree = end(ExploredBy::Mcts);
    assert!(tree < end(ExploredBy::Dfs) && tree < end(ExploredBy::Random), "{analysis:?}");
}

/// PipeWeaver Fig. 10: smaller sub-microbatches reduce the influence of the ranking (15.4 % at 32
/// versus 5.1 % at 12 and below in the paper), and the smallest are slower than medium sizes
/// because they do not utilize the device (12.1 %).
#[test]
fn small_sub_microbatches_leave_ranking_less_to_lose_and_are_slow() {
    let scenario = scenario("vlm-s", 2, (4, 4), 16);
    let analysis = sub_microbatches(&scenario, subject(&scenario), &effort(300)).unwrap();
    let mut spreads = Vec::new();
    for point in &analysis.points {
        let ends = point.ends.unwrap();
        let spread = ends.worst_s / ends.best_s - 1.0;
        println!(
            "{:2} items: {:4} parts, efficiency {:.3}, {:.3} s to {:.3} s, {:.1} %",
            point.size,
            point.parts,
            point.efficiency,
            ends.best_s,
            ends.worst_s,
            100.0 * spread
        );
        spreads.push((point.size, spread, ends.best_s));
    }
    let mean = |from: u32, to: u32| {
        let values: Vec<f64> =
            spreads.iter().filter(|(size, ..)| (from..=to).contains(size)).map(|point| point.1).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    assert!(mean(4, 12) < mean(24, 48), "small {:.3}, large {:.3}", mean(4, 12), mean(24, 48));
    let best = spreads.iter().map(|point| point.2).fold(f64::INFINITY, f64::min);
    assert!(spreads[0].2 > best, "two items do not fill the device");
}
