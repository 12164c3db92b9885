use serde_json::json;

use super::*;
use crate::planners::PlanningContext;
use crate::planners::layout_search::LayoutSearch;
use crate::planners::pipeweaver::ranking::Starts;
use crate::planners::pipeweaver::{PipeWeaver, plan};
use planscope_core::host::{NeverCancelled, SequentialWorkers};
use planscope_core::workload::packing;
use planscope_plan::observer::Unobserved;
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{ValidScenario, parse};

/// Two replicas of a single microbatch.
fn valid_scenario() -> ValidScenario {
    let scenario = json!({
        "schema": "scenario/1", "model": { "preset": "internvl3-2b" }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 1000 },
                "images": { "kind": "constant", "value": 4 }
            },
            "global_batch": 2, "context_length": 8192, "packing": "single"
        },
        "training": {}, "layout": { "tensor": 2, "pipeline": 2, "microbatch": 1 }, "planners": ["pipeweaver"],
        "search": { "rollouts": 20 }, "seed": 3
    });
    ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn sizing(valid: &ValidScenario) -> PackedBatch {
    let scenario = valid.scenario();
    packing::pack(&Sampler::new(valid).sizing().samples, &scenario.model, &scenario.workload.packing_rule())
}

/// A single microbatch has one possible order. The plan reports the search although it finds no
/// improvement.
#[test]
fn an_unsuccessful_search_is_reported() {
    let valid = valid_scenario();
    let (scenario, sizing) = (valid.scenario(), sizing(&valid));
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let batches = [sizing.clone()];
    let context = PlanningContext::new(scenario, &pricing, PlannerKind::PipeWeaver, &sizing, &batches);
    let plan = plan(context, &mut Unobserved).unwrap();
    let summary = plan.decisions.iter().find(|line| line.starts_with("Tried ")).unwrap();
    assert_ne!(summary, "Tried 0 orders.");
    let decision = plan.iterations[0].decision.as_ref().unwrap();
    assert!(decision.contains("no order is faster than the data-loader order"), "{decision}");
}

#[test]
fn counts_have_commas() {
    let cases = [(0, "0"), (999, "999"), (3384, "3,384"), (12_345_678, "12,345,678")];
    for (count, text) in cases {
        assert_eq!(grouped(count), text);
    }
}

/// An order from swaps may have no layer choice. It then keeps the current strategies.
#[test]
fn an_order_that_cannot_be_retuned_is_unchanged() {
    let valid = valid_scenario();
    let (scenario, batch) = (valid.scenario(), sizing(&valid));
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let planner = PipeWeaver { step: Step::Tuning };
    let context = PlanningContext::new(scenario, &pricing, PlannerKind::PipeWeaver, &batch, &[]);
    let search = LayoutSearch::run(context, &planner, &mut Unobserved).unwrap();
    let sized = search.winner().unwrap();
    let effort = Effort {
        enough: Nanos::ZERO,
        starts: Starts::All,
        rollouts: 0,
        stream: 0,
        workers: &SequentialWorkers,
        cancellation: &NeverCancelled,
    };
    let ordered = order(scenario, &pricing, &sized, (0, &batch), vec![vec![0]], Step::Tuning, effort).unwrap();
    let (plan, end) = (ordered.plan.clone(), ordered.end);
    let contents = [batch.contents(&[0])];
    let cut = Cut::new(&scenario.model, scenario.workload.packing, &contents, plan.parts());
    let asked = StepInput::new(scenario, &pricing, (&sized, 0), (&cut, plan.parts()), (Step::Tuning, effort));
    let swapped = Ordered { swapped: Some((end + end, end)), ..ordered };
    let unchanged = asked.retuned(swapped, |_| Err(Infeasibility::deadlock())).unwrap();
    assert_eq!((unchanged.plan, unchanged.end), (plan, end));
}
