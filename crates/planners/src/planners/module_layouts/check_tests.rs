//! The checker accepts module layouts of the planner and rejects each fault.

use super::module_costs;
use super::module_costs::tests::{batch, layout, partition, plan, scenario};
use crate::planners::judge;
use planscope_check::check::{Violation, check_module_run, check_modules};
use planscope_core::units::Nanos;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::PipelineCosts;
use planscope_cost::cost::{DegreeSettings, Pricing};
use planscope_pipeline::schedule::{Turn, multi_module};
use planscope_pipeline::simulate::Execution;
use planscope_plan::observer::Unobserved;
use planscope_plan::outcome::{Layout, Search, SolverStatus};
use planscope_plan::plan::IterationPlan;
use planscope_plan::plan::{ModuleLayout, Plan};
use planscope_plan::scenario::Scenario;

/// Builds a plan with sixteen single-sequence microbatches in multi-module 1F1B order.
fn sound(scenario: &Scenario, batch: &PackedBatch, pricing: &Pricing<'_>, modules: Vec<ModuleLayout>) -> Plan {
    let partition = partition(scenario, &[1, 2]);
    let copies = [0, 1].map(|module: usize| modules[module].data / modules[module].copies_per_rank);
    let mut replica = plan(scenario, batch, 16, copies);
    let costs = module_costs::costs(scenario, pricing, (&modules, &partition), batch, &replica).unwrap();
    let turns: Vec<Turn> =
        replica.parts().iter().map(|part| Turn { wave: part.microbatch / 2, phases: [0, 0] }).collect();
    let depths: Vec<u32> = (0..costs.stages()).map(|stage| 3 - (stage as u32).min(2)).collect();
    replica.schedule = multi_module(&costs, &turns, &depths);
    Plan {
        layout: Layout { tensor: 1, pipeline: 2, data: 2, chunks: 1, microbatch: 1, group: None },
        partition,
        modules,
        iterations: vec![IterationPlan { replicas: vec![replica], decision: None }],
        algorithm: String::new(),
        status: SolverStatus::Heuristic,
        search: Search::default(),
        decisions: Vec::new(),
    }
}

/// Two encoder copies with a single device, and two backbone copies with two single-device stages.
/// Two of eight devices are idle.
fn separate_layouts() -> Vec<ModuleLayout> {
    vec![layout(0..1, [1, 1, 1, 2], 0), layout(1..2, [1, 1, 2, 2], 2)]
}

fn with(run: impl FnOnce(&Scenario, &PackedBatch, &Pricing<'_>)) {
    let mut scenario = scenario();
    // More memory than real devices have: other tests check the limit.
    scenario.cluster.device.memory_gib = 4000.0;
    let degrees = DegreeSettings::new(&scenario.training, &[1, 2, 4], &[1, 2]);
    let batch = batch(&scenario);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_degrees(&degrees);
    run(&scenario, &batch, &pricing);
}

/// Validates a modified plan.
fn spoilt(spoil: impl FnOnce(&mut Plan)) -> Option<Violation> {
    let mut found = None;
    with(|scenario, batch, pricing| {
        let mut plan = sound(scenario, batch, pricing, separate_layouts());
        spoil(&mut plan);
        found = check_modules(
            &plan,
            &scenario.model,
            scenario.cluster.devices(),
            &scenario.training,
            std::slice::from_ref(batch),
        )
        .err();
    });
    found
}

#[test]
fn sound_plans_pass_separate_and_colocated() {
    with(|scenario, batch, pricing| {
        let encoder = ModuleLayout { copies_per_rank: 2, ..layout(0..1, [1, 1, 1, 8], 0) };
        let colocated = vec![encoder, layout(1..2, [2, 1, 2, 2], 0)];
        for modules in [separate_layouts(), colocated] {
            let plan = sound(scenario, batch, pricing, modules);
            let result = judge(scenario, pricing, &plan.into(), std::slice::from_ref(batch), &Unobserved);
            let judged = result.unwrap();
            let (planned, timelines) = judged.into_parts();
            let placement = planned.placement.unwrap();
            assert_eq!(placement.ranks.len(), timelines[0].ranks as usize);
            assert!(placement.ranks.iter().all(|label| label.contains("cop")), "{:?}", placement.ranks);
            assert!(planned.metrics.gap >= 0.0 && planned.metrics.bubble > 0.0);
        }
    });
}

#[test]
fn invalid_module_placements_are_rejected() {
    let assert_rejected = |spoil: fn(&mut Vec<ModuleLayout>)| {
        let found = spoilt(|plan| spoil(&mut plan.modules));
        assert!(matches!(found, Some(Violation::Placement { .. })), "{found:?}");
    };
    assert_rejected(|modules| modules[1].first_device = 5);
    assert_rejected(|modules| modules[0].tensor = 2);
    assert_rejected(|modules| modules[0].tensor = 3);
    assert_rejected(|modules| modules[0].tensor = 0);
    assert_rejected(|modules| modules[0].end = 2);
    assert_rejected(|modules| modules.truncate(1));
    assert_rejected(|modules| modules[1].copies_per_rank = 3);
    assert_rejected(|modules| modules[1].expert = 4);
    assert_rejected(|modules| modules[1].pipeline = 3);
}

#[test]
fn missing_or_repeated_instances_are_rejected() {
    let missing = spoilt(|plan| plan.iterations[0].replicas[0].parts_mut()[0].end -= 1);
    assert_eq!(missing, Some(Violation::Instance { microbatch: 0, module: 0, instance: 1, times: 0 }));
    let twice = spoilt(|plan| plan.iterations[0].replicas[0].parts_mut()[2].microbatch = 0);
    assert!(matches!(twice, Some(Violation::Instance { module: 0, .. })), "{twice:?}");
    let nowhere = spoilt(|plan| plan.iterations[0].replicas[0].parts_mut()[0].copy = 2);
    assert_eq!(nowhere, Some(Violation::Shape { element: "copies of a module", found: 2, expected: 2 }));
    let untrained = spoilt(|plan| plan.iterations[0].replicas[0].microbatches[3] = vec![0]);
    assert!(matches!(untrained, Some(Violation::Sequence { sequence: 0, times: 2, .. })), "{untrained:?}");
    let ranks = spoilt(|plan| drop(plan.iterations[0].replicas[0].schedule.orders.pop()));
    assert_eq!(ranks, Some(Violation::Shape { element: "ranks", found: 5, expected: 6 }));
}

/// Validates a modified run.
fn spoilt_run(
    modules: Vec<ModuleLayout>,
    spoil: impl FnOnce(&mut Execution, &mut Plan, &mut PipelineCosts),
) -> Option<Violation> {
    let mut found = None;
    with(|scenario, batch, pricing| {
        let mut plan = sound(scenario, batch, pricing, modules);
        let replica = plan.iterations[0].replicas[0].clone();
        let layouts = (plan.modules.as_slice(), &plan.partition);
        let mut costs = module_costs::costs(scenario, pricing, layouts, batch, &replica).unwrap();
        let mut execution = planscope_pipeline::simulate::execute(&replica.schedule, &costs).unwrap();
        spoil(&mut execution, &mut plan, &mut costs);
        let replica = plan.iterations[0].replicas[0].clone();
        let trained = (&scenario.model, &scenario.training);
        found = check_module_run(&plan, trained, batch, &replica, &execution, &costs).err();
    });
    found
}

#[test]
fn runs_with_invalid_timing_are_rejected() {
    assert_eq!(spoilt_run(separate_layouts(), |_, _, _| {}), None);
    // Rank 2 is stage 0 of backbone copy 0. Its initial forward depends on the encoder.
    let unfed = spoilt_run(separate_layouts(), |execution, _, _| execution.start[2][0] = Nanos::ZERO);
    assert!(matches!(unfed, Some(Violation::Unfed { part: 1, from: 0, start: 0, .. })), "{unfed:?}");
    // The last gradient of backbone copy 0 finishes one second later than the encoder expects.
    let early = spoilt_run(separate_layouts(), |execution, _, _| {
        *execution.end[2].last_mut().unwrap() += Nanos::new(1_000_000_000);
    });
    assert!(matches!(early, Some(Violation::Unfed { .. })), "{early:?}");
    let foreign = spoilt_run(separate_layouts(), |_, plan, _| {
        let orders = &mut plan.iterations[0].replicas[0].schedule.orders;
        orders[0][0] = orders[1][0];
    });
    assert!(matches!(foreign, Some(Violation::Foreign { rank: 0, .. })), "{foreign:?}");
    let crossed = spoilt_run(separate_layouts(), |_, plan, _| plan.iterations[0].replicas[0].parts_mut()[0].copy = 1);
    assert!(matches!(crossed, Some(Violation::Foreign { .. })), "{crossed:?}");
    let light = spoilt_run(separate_layouts(), |_, _, costs| {
        costs.static_memory[0] = planscope_core::units::Bytes::new(1 << 30);
    });
    assert!(matches!(light, Some(Violation::Memory { rank: 0, limit_mib: 1024, .. })), "{light:?}");
}

/// An encoder forward that overlaps the backbone on the same device is detected.
#[test]
fn colocated_modules_never_run_at_the_same_time() {
    let modules = vec![layout(0..1, [1, 1, 2, 2], 0), layout(1..2, [1, 1, 2, 2], 0)];
    let modules: Vec<ModuleLayout> =
        modules.into_iter().map(|module_layout| ModuleLayout { pipeline: 1, data: 2, ..module_layout }).collect();
    let found = spoilt_run(modules, |execution, _, _| {
        let start = execution.start[0][1];
        execution.end[0][0] = start + Nanos::new(1);
    });
    assert!(matches!(found, Some(Violation::Exclusivity { rank: 0, .. })), "{found:?}");
}
