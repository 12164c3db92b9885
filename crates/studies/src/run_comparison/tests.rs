#![allow(clippy::float_cmp, reason = "medians and counts of exact numbers")]

use super::*;
use planscope_cost::cost::overrides::OverridePhase;
use planscope_plan::outcome::{PlanOutcome, Planned};
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{PlannerKind, ValidScenario, parse};
use planscope_planners::engine::{Unobserved, plan};
use planscope_planners::planners::dflop::CorrectionSettings;

fn valid_scenario(overrides: &serde_json::Value) -> ValidScenario {
    let document = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": "llama-2-7b" }, "cluster": { "preset": "a100-80gb", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "values", "values": [1024, 2048, 4096] },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 16, "context_length": 4096, "packing": "single"
        },
        "training": { "overrides": overrides },
        "layout": { "tensor": 2, "pipeline": 4, "microbatch": 1 }, "planners": ["1f1b"], "iterations": 2
    });
    ValidScenario::new(parse(&document.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn planned(scenario: &ValidScenario) -> Planned {
    match plan(scenario, &mut Unobserved).unwrap().outcome.results.remove(0).answer {
        PlanOutcome::Planned(planned) => *planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{binding}"),
    }
}

fn evaluation(planned: &Planned) -> Evaluation {
    let phases = predicted_phases(planned, TimerRanks::LastRank, None);
    Evaluation {
        forward_s: phases.forward_s.unwrap(),
        backward_s: phases.backward_s.unwrap(),
        step_s: planned.metrics.iteration_s,
    }
}

/// A synthetic run in which layers take 1.3 and 1.1 times the modeled time, of which only the step
/// time or two timers are available. The factors reproduce the step time on the same layout; from
/// timers, they are the true factors.
#[test]
fn factors_reproduce_the_run() {
    let base = valid_scenario(&serde_json::json!([]));
    let truth = valid_scenario(&serde_json::json!([
        {"operator": "layer", "phase": "forward", "scale": 1.3}, {"operator": "layer", "phase": "backward", "scale": 1.1}
    ]));
    let (before, measured) = (planned(&base), evaluation(&planned(&truth)));
    let mut evaluate = |factors: Factors| {
        let mut changed = base.scenario().clone();
        changed.training.overrides.extend(scaled(&[], factors));
        replan(&base, changed, PlannerKind::OneFOneB, &before, &mut Unobserved).map(|planned| evaluation(&planned))
    };
    let solved = solve(Target::Step(measured.step_s), &mut evaluate).unwrap();
    assert!(solved.is_met && solved.evaluations <= 4, "{solved:?}");
    assert!((1.1..1.3).contains(&solved.factors.forward), "{solved:?}");
    let target = Target::Phases { forward_s: measured.forward_s, backward_s: measured.backward_s };
    let solved = solve(target, &mut evaluate).unwrap();
    assert!(solved.is_met && (solved.factors.forward - 1.3).abs() < 5e-3, "{solved:?}");
    assert!((solved.factors.backward - 1.1).abs() < 5e-3, "{solved:?}");
    assert!((solved.reached.step_s / measured.step_s - 1.0).abs() < 2e-3);
}

/// A scenario with scaled or timed layers is scaled further.
#[test]
fn factors_extend_user_overrides() {
    let given = serde_json::json!([
        {"operator": "layer", "scale": 2.0}, {"operator": "layer", "phase": "forward", "formula_us": "3 + tokens"},
        {"operator": "layer", "phase": "backward", "table_us": [[1.0, 10.0], [2.0, 20.0]]}, {"operator": "qkv", "scale": 3.0}
    ]);
    let base = valid_scenario(&given);
    let existing = &base.scenario().training.overrides;
    let overrides = scaled(existing, Factors { forward: 1.5, backward: 0.5 });
    let formatted: Vec<String> = overrides
        .iter()
        .map(|entry| format!("{:?} {:?} {:?} {:?}", entry.phase, entry.scale, entry.formula_us, entry.table_us))
        .collect();
    assert_eq!(
        formatted,
        [
            "Some(Forward) Some(1.5) None None",
            "Some(Backward) Some(0.5) None None",
            "Some(Forward) Some(3.0) None None",
            "Some(Backward) Some(1.0) None None",
            "Some(Forward) None Some(\"(3 + tokens)*1.5\") None",
            "Some(Backward) None None Some([[1.0, 5.0], [2.0, 10.0]])",
        ]
    );
    assert!(overrides.iter().all(|item| item.phase != Some(OverridePhase::InputGrad)));
    // Appended overrides take precedence: forward 1.5 x (3 + tokens), backward half the table.
    let mut changed = base.scenario().clone();
    changed.training.overrides.extend(overrides);
    let (before, after) = (planned(&base), planned(&ValidScenario::new(changed, &NoDatasets).unwrap()));
    let (before, after) = (evaluation(&before), evaluation(&after));
    assert!(after.forward_s > before.forward_s && after.backward_s < before.backward_s, "{before:?} {after:?}");
}

/// Shape 1 occurs only in slow steps, shape 0 in all. For shape 0, (1 + 1 + 1.2 + 1.2) / 4 relative
/// to the median 1.1 is 1. For shape 1, 1.2 / 1.1 is 1.09.
#[test]
fn slow_step_shapes_are_found() {
    let step = |iteration, measured_s| StepRatio { iteration, measured_s, predicted_s: 1.0 };
    let batches = [vec![0, 0], vec![0], vec![0, 1], vec![0, 1]];
    let run = [step(0, 2.0), step(1, 2.0), step(2, 2.4), step(3, 2.4), step(9, 7.0), step(1, f64::NAN)];
    let found = penalties(&run, &batches, CorrectionSettings::default());
    assert_eq!(
        found.iter().map(|shape_penalty| (shape_penalty.shape, shape_penalty.items)).collect::<Vec<_>>(),
        [(1, 2), (0, 5)]
    );
    assert!((found[0].penalty - 2.4 / 2.2).abs() < 1e-12 && found[1].penalty == 1.0, "{found:?}");
    assert!(penalties(&[], &batches, CorrectionSettings::default()).is_empty());
}
