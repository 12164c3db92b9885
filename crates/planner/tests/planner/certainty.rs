//! Uncertainty of plans of stored scenarios.

use planner::certainty::{Feature, Features, peak_memory, probability_faster, reason, step_time};
use planner::engine::plan;
use planner::observer::Unobserved;
use planner::outcome::{PlanOutcome, Planned};
use planner::scenario::validate::NoDatasets;
use planner::scenario::{FreeSetting, PlannerKind, Scenario, ValidScenario, parse};
use planner::training::Precision;

/// Returns GPT-3 175B on equal sequences, with the given presets and microbatch.
fn scenario(cluster: &str, microbatch: u32) -> Scenario {
    let mut scenario = parse(include_str!("../../../../examples/gpt-3-175b-uniform.json")).unwrap();
    let preset = planner::cluster::presets::cluster(cluster).unwrap();
    scenario.cluster = planner::cluster::Cluster { nodes: scenario.cluster.nodes, ..preset };
    scenario.planners = vec![PlannerKind::OneFOneB];
    scenario.layout.microbatch = Some(microbatch);
    scenario.iterations = 1;
    scenario
}

fn planned(scenario: &Scenario) -> Planned {
    let scenario = ValidScenario::new(scenario.clone(), &NoDatasets).unwrap();
    let planning = plan(&scenario, &mut Unobserved).unwrap();
    let answer = planning.outcome.results.into_iter().next().map(|result| result.answer);
    match answer {
        Some(PlanOutcome::Planned(planned)) => *planned,
        other => panic!("{other:?}"),
    }
}

#[test]
fn intervals_surround_plans_and_widen_without_data() {
    let width = |cluster: &str| {
        let scenario = scenario(cluster, 1);
        let planned = planned(&scenario);
        let interval = step_time(&scenario, &planned);
        let time = planned.metrics.iteration_s;
        assert!(interval.low < time && time < interval.high, "{cluster}: {interval:?} of {time}");
        let memory = peak_memory(&scenario, &planned);
        assert!(memory.interval_gib.high > planned.metrics.peak_memory_gib, "{memory:?}");
        assert!((0.0..=1.0).contains(&memory.probability_out_of_memory), "{memory:?}");
        (interval.high / interval.low, reason(&scenario))
    };
    let (known, known_reason) = width("a100-80gb");
    assert_eq!(known_reason, None);
    let (unknown, unknown_reason) = width("mi300x");
    assert!(unknown_reason.is_some_and(|reason| reason.contains("MI300X")));
    assert!(unknown > known, "{unknown} of {known}");
}

#[test]
fn features_of_a_plan_describe_its_step() {
    let mut scenario = scenario("h100", 1);
    scenario.training.precision = Precision::Fp8;
    let planned = planned(&scenario);
    let features = Features::of_plan(&scenario, &planned);
    let near = |feature, value: f64| (features.get(feature) - value).abs() < 1e-6;
    assert!(near(Feature::Fp8, 1.0) && near(Feature::Fp8Sharded, 0.0));
    // 8 nodes.
    assert!(near(Feature::Nodes, 3.0 / 5.0), "{features:?}");
    assert!(near(Feature::Exposed, 4.0 * planned.metrics.exposed_communication));
    // Microbatches of one sequence of 2,048 tokens at TP 8 have 256 tokens per device: log2(16) / 3.
    assert!(near(Feature::SmallKernels, 4.0 / 3.0), "{features:?}");
}

#[test]
fn one_of_two_plans_is_faster_with_the_complementary_probability() {
    let [a, b] = [1, 2].map(|microbatch| planned(&scenario("a100-80gb", microbatch)));
    let (forth, back) = (probability_faster(&a, &b), probability_faster(&b, &a));
    assert!((forth + back - 1.0).abs() < 1e-12, "{forth} and {back}");
    assert!((probability_faster(&a, &a) - 0.5).abs() < 1e-12);
    assert_eq!(forth > 0.5, a.metrics.iteration_s < b.metrics.iteration_s);
}

/// Without a limit the fastest plan uses more memory.
#[test]
fn plans_observe_the_highest_risk() {
    let mut scenario = scenario("h100", 1);
    scenario.planners = vec![PlannerKind::Best];
    scenario.free = vec![FreeSetting::ActivationOffload];
    let free = planned(&scenario);
    assert!(peak_memory(&scenario, &free).probability_out_of_memory > 0.02, "{:?}", free.metrics);
    scenario.max_memory_risk = Some(0.02);
    let limited = planned(&scenario);
    assert!(peak_memory(&scenario, &limited).probability_out_of_memory <= 0.02, "{:?}", limited.metrics);
    assert!(limited.metrics.iteration_s >= free.metrics.iteration_s);
    assert!(limited.metrics.peak_memory_gib <= limited.metrics.memory_limit_gib);
}
