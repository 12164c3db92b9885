//! Random scenarios: a planner that chooses among more plans than its baselines is not slower than any of them.
//!
//! `PLANSCOPE_RANDOM_SCENARIOS` sets the number of scenarios, `PLANSCOPE_RANDOM_FIRST` the first one.

use planscope_plan::outcome::{Outcome, PlanOutcome};
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{PlannerKind, ValidScenario, parse};
use planscope_planners::engine::{Unobserved, plan};
use serde_json::{Value, json};

/// Scenarios of a normal run.
const SCENARIOS: u32 = 6;
/// Largest relative loss against a baseline.
const TOLERANCE: f64 = 0.005;

const GROUPS: [&str; 6] = ["static_cp", "ulysses", "balanced_cp", "power_of_two_cp", "flexsp", "wlb_llm"];
const STRATEGIES: [&str; 5] = ["static_strategy", "hotspa", "hydraulis_base", "hydraulis_packing", "hydraulis_static"];

fn count(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Linear congruential generator (Knuth, MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

fn scenario(seed: u32, groups: bool) -> Value {
    let mut random = Random(u64::from(seed) * 7919 + 17);
    let nodes = random.pick(&[1, 1, 2, 4]);
    let median = random.pick(&[200.0, 700.0, 2000.0, 6000.0]);
    let sigma: f64 = random.pick(&[0.3, 0.8, 1.2, 1.5]);
    let longest = random.pick(&[8192, 32_768, 65_536]);
    let (models, images) = if groups {
        (["llama-2-7b", "qwen3-vl-2b", "internvl3-2b", "llama-2-7b"], random.pick(&[4.0, 12.0]))
    } else {
        (["llama-2-7b", "llama-2-7b", "llama-2-13b", "llama-3-8b"], 0.0)
    };
    let model = random.pick(&models);
    let images = if model.contains("vl") {
        json!({ "kind": "log_normal", "median": images, "sigma": sigma.min(1.0), "min": 0, "max": 100 })
    } else {
        json!({ "kind": "constant", "value": 0 })
    };
    let zero = if groups { random.pick(&[1, 3]) } else { 1 };
    let recompute = random.pick(&["none", "selective", "full"]);
    let tensor = random.pick(&[None, None, Some(1), Some(2)]);
    let layout = tensor.map_or_else(|| json!({}), |tensor| json!({ "tensor": tensor }));
    let planners: Vec<&str> = if groups {
        GROUPS.iter().copied().chain(["dhp"]).collect()
    } else {
        STRATEGIES.iter().copied().chain(["hydraulis"]).collect()
    };
    json!({
        "schema": "scenario/1", "model": { "preset": model },
        "cluster": { "preset": random.pick(&["a100-80gb", "a800", "h100"]), "nodes": nodes },
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": { "kind": "log_normal", "median": median, "sigma": sigma, "min": 16, "max": longest },
                "images": images
            },
            "global_batch": 32 * nodes * random.pick(&[1, 2, 3]), "context_length": longest, "packing": "single"
        },
        "training": { "zero": zero, "recompute": recompute },
        "layout": layout, "planners": planners, "iterations": 2, "seed": seed
    })
}

fn outcome(json: &Value) -> Outcome {
    let scenario = parse(&json.to_string()).unwrap_or_else(|error| panic!("{error:?}: {json}"));
    let scenario = ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{errors:?}: {json}"));
    plan(&scenario, &mut Unobserved).unwrap_or_else(|error| panic!("{error}: {json}")).outcome
}

/// Iteration time in seconds, if there is a plan.
fn time(outcome: &Outcome, id: &str) -> Option<f64> {
    let wanted = PlannerKind::from_id(id).unwrap();
    match &outcome.results.iter().find(|result| result.planner == wanted).unwrap().answer {
        PlanOutcome::Planned(planned) => Some(planned.metrics.iteration_s),
        PlanOutcome::Infeasible { .. } => None,
    }
}

/// Plans random scenarios and returns those in which `own` is slower than a baseline. Also prints the gains.
fn losses(own: &str, baselines: &[&str]) -> Vec<String> {
    let first = count("PLANSCOPE_RANDOM_FIRST", 0);
    let (mut losses, mut gains) = (Vec::new(), Vec::new());
    for seed in first..first + count("PLANSCOPE_RANDOM_SCENARIOS", SCENARIOS) {
        let json = scenario(seed, own == "dhp");
        let outcome = outcome(&json);
        let timed = baselines.iter().filter_map(|id| Some((time(&outcome, id)?, *id)));
        let Some((fastest, id)) = timed.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let ratio = time(&outcome, own).map_or(f64::INFINITY, |seconds| seconds / fastest);
        println!("{own} {seed}: {:+.2} % against {id}, {fastest:.4} s", (1.0 / ratio - 1.0) * 100.0);
        gains.push(1.0 / ratio - 1.0);
        if ratio > 1.0 + TOLERANCE {
            losses.push(format!("{seed}: {ratio:.4} of {id}: {json}"));
        }
    }
    assert!(!gains.is_empty(), "no scenario has a plan");
    let mean = gains.iter().sum::<f64>() / gains.len() as f64;
    let worst = gains.iter().copied().fold(f64::INFINITY, f64::min);
    println!("{own}: {} scenarios, mean gain {:.2} %, worst {:.2} %", gains.len(), mean * 100.0, worst * 100.0);
    losses
}

#[test]
fn dhp_is_not_slower_than_its_baselines() {
    let losses = losses("dhp", &GROUPS);
    assert!(losses.is_empty(), "{}", losses.join("\n"));
}

#[test]
fn hydraulis_is_not_slower_than_its_baselines() {
    let losses = losses("hydraulis", &STRATEGIES);
    assert!(losses.is_empty(), "{}", losses.join("\n"));
}
