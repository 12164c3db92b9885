//! The checker accepts plans of the planner and rejects each fault.

use serde_json::json;

use crate::planners::{PlanningContext, pipeweaver};
use planscope_check::check::{Violation, check_assignment, check_microbatch_sizes};
use planscope_core::workload::packing;
use planscope_cost::cost::{Pricing, StrategyMix};
use planscope_plan::observer::Unobserved;
use planscope_plan::plan::ReplicaPlan;
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{PlannerKind, ValidScenario, parse};

/// Validates a PipeWeaver plan after `spoil`. The schedule gets a matching number of
/// microbatches, because separate tests compare actions with parts.
fn spoilt(kind: PlannerKind, spoil: impl FnOnce(&mut ReplicaPlan)) -> Result<(), Violation> {
    let scenario = json!({
        "schema": "scenario/1", "model": { "preset": "internvl3-2b" }, "cluster": { "preset": "h100", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "constant", "value": 1000 },
                "images": { "kind": "constant", "value": 4 }
            },
            "global_batch": 8, "context_length": 8192, "packing": "single"
        },
        "training": {}, "layout": { "tensor": 2, "pipeline": 2, "microbatch": 1 }, "planners": [kind.id()],
        "search": { "rollouts": 0 }, "seed": 3
    });
    let valid = ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap();
    let scenario = valid.scenario();
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let batch = Sampler::new(&valid).sizing();
    let batch = packing::pack(&batch.samples, &scenario.model, &scenario.workload.packing_rule());
    let batches = [batch.clone()];
    let context = PlanningContext::new(scenario, &pricing, kind, &batch, &batches);
    let mut plan = pipeweaver::plan(context, &mut Unobserved).unwrap();
    let replica = &mut plan.iterations[0].replicas[0];
    spoil(replica);
    replica.schedule.microbatches = replica.parts().len();
    check_microbatch_sizes(&plan, false)?;
    check_assignment(&plan, &scenario.model, scenario.cluster.devices(), &scenario.training, &batches)
}

/// The layout says one sequence per microbatch. If the assignment is free, it is the mean.
#[test]
fn microbatches_with_too_many_sequences_are_rejected() {
    let two = |replica: &mut ReplicaPlan| {
        let moved = replica.microbatches.pop().unwrap();
        replica.microbatches[0].extend(moved);
    };
    let rejected = spoilt(PlannerKind::PipeWeaverInterleaving, two);
    let shape = |found, expected| Violation::Shape { element: "sequences of a microbatch", found, expected };
    assert_eq!(rejected, Err(shape(2, 1)));
}

#[test]
fn missing_or_repeated_sub_microbatches_are_rejected() {
    let kind = PlannerKind::PipeWeaverInterleaving;
    assert_eq!(spoilt(kind, |_| {}), Ok(()));
    let instance = |times| Violation::Instance { microbatch: 0, module: 0, instance: 0, times };
    let missing = spoilt(kind, |replica| replica.parts_mut().retain(|part| (part.microbatch, part.module) != (0, 0)));
    assert_eq!(missing, Err(instance(0)));
    let twice = spoilt(kind, |replica| {
        let first = replica.parts()[0];
        replica.parts_mut().insert(0, first);
    });
    assert_eq!(twice, Err(instance(2)));
    let untimed_degrees = spoilt(kind, |replica| replica.parts_mut()[0].copy = 1);
    assert_eq!(untimed_degrees, Err(Violation::Shape { element: "copies of a module", found: 1, expected: 1 }));
}

#[test]
fn strategies_for_a_wrong_layer_count_are_rejected() {
    let kind = PlannerKind::PipeWeaver;
    assert_eq!(spoilt(kind, |replica| assert!(!replica.mixes.is_empty())), Ok(()));
    let none = spoilt(kind, |replica| replica.mixes[0] = StrategyMix::default());
    assert!(matches!(none, Err(Violation::Shape { element: "layers with a strategy", found: 0, .. })), "{none:?}");
    let fewer = spoilt(kind, |replica| replica.mixes.truncate(1));
    assert!(matches!(fewer, Err(Violation::Shape { element: "strategies of layers", .. })), "{fewer:?}");
}
