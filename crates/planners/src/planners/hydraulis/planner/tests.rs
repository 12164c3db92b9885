use super::dealing::{Dealt, replica};
use super::profile::profile;
use super::*;
use crate::engine::{Unobserved, plan as answer};
use crate::planners::hydraulis::pipeline_costs::Interaction;
use crate::planners::{judge, static_3d};
use planscope_check::check::check_execution_plan;
use planscope_core::timeline::SpanKind;
use planscope_core::workload::packing;
use planscope_cost::cost::Pricing;
use planscope_cost::cost::overrides::{AtDegrees, CostOverride};
use planscope_cost::cost::{ContextSettings, LayerModel, ModuleLoad};
use planscope_pipeline::execution_plan::{Buffers, compile};
use planscope_plan::outcome::{IterationStrategy, PlanOutcome, Planned};
use planscope_plan::plan::Scheme;
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{ValidScenario, parse};

/// Llama-2 7B, long-tailed lengths.
fn scenario(nodes: u32, batch: u32, more: &serde_json::Value) -> ValidScenario {
    let mut scenario = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": "llama-2-7b" },
        "cluster": { "preset": "a800", "nodes": nodes },
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": { "kind": "log_normal", "median": 500.0, "sigma": 1.2, "min": 16, "max": 200_000 },
                "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": batch, "context_length": 16_384, "packing": "single"
        },
        "planners": ["static_strategy", "hotspa", "hydraulis_base", "hydraulis_packing", "hydraulis_static", "hydraulis"],
        "iterations": 3
    });
    for (key, value) in more.as_object().unwrap() {
        scenario[key] = value.clone();
    }
    ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn planned(outcome: &planscope_plan::outcome::Outcome, kind: PlannerKind) -> &Planned {
    match &outcome.results.iter().find(|result| result.planner == kind).unwrap().answer {
        PlanOutcome::Planned(planned) => planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{kind:?}: {binding}"),
    }
}

fn strategies(planned: &Planned) -> impl Iterator<Item = &IterationStrategy> {
    planned.iterations.iter().map(|iteration| iteration.strategy.as_ref().unwrap())
}

#[test]
fn every_planner_trains_everything_within_memory_and_above_its_bound() {
    let valid = scenario(2, 80, &serde_json::json!({}));
    let planning = answer(&valid, &mut Unobserved).unwrap();
    assert_eq!(planning, answer(&valid, &mut Unobserved).unwrap(), "same question, same answer");
    let outcome = &planning.outcome;
    for &kind in &valid.scenario().planners {
        let planned = planned(outcome, kind);
        assert!(planned.metrics.peak_memory_gib <= planned.metrics.memory_limit_gib);
        for (number, (iteration, strategy)) in planned.iterations.iter().zip(strategies(planned)).enumerate() {
            assert!(iteration.lower_bound_s <= iteration.iteration_s + 1e-9, "{kind:?}");
            assert!(strategy.propagation_s <= iteration.iteration_s + 1e-9);
            let batch = &outcome.batches[number];
            let trained: u64 = strategy.pipelines.iter().map(|pipeline| pipeline.tokens).sum();
            let sequences: u32 = strategy.pipelines.iter().map(|pipeline| pipeline.sequences).sum();
            assert_eq!((trained, sequences), (batch.tokens, batch.sequences), "{kind:?}");
            let timeline = planning
                .timelines
                .iter()
                .find(|timeline| timeline.planner == kind && timeline.iteration as usize == number)
                .unwrap();
            let rows: u32 = strategy.pipelines.iter().map(|pipeline| pipeline.pipeline).sum();
            assert_eq!(timeline.timeline.ranks, rows, "all pipelines are drawn");
            let active = strategy.pipelines.iter().filter(|pipeline| pipeline.sequences > 0);
            let row_ranges: Vec<_> = active
                .map(|pipeline| pipeline.first_row as usize..(pipeline.first_row + pipeline.pipeline) as usize)
                .collect();
            let drawn = timeline.timeline.pipelines();
            assert!(row_ranges.iter().all(|rows| drawn.contains(rows)), "{drawn:?} has {row_ranges:?}");
            // The actions of all ranks can be exported, including sends and receives. Pipelines
            // send nothing to each other.
            let buffers = Buffers { receive: None, send: None };
            let listed = compile(&timeline.timeline, buffers).unwrap();
            check_execution_plan(&listed, &timeline.timeline).unwrap();
            // The critical path is contiguous from start to end, except for switches and send
            // waits.
            let path = &timeline.timeline.critical_path;
            assert_eq!(timeline.timeline.start_ns[path[0] as usize], 0, "{kind:?} {number}");
            assert_eq!(timeline.timeline.makespan_ns, (iteration.iteration_s * 1e9).round() as u64);
        }
        // For all devices, the time components sum to the iteration time.
        for rank in &planned.ranks {
            let time = rank.time;
            let sum =
                time.compute_s + time.recompute_s + time.exposed_s + time.sync_s + time.optimizer_s + time.bubble_s;
            assert!((sum / planned.metrics.iteration_s - 1.0).abs() < 1e-6, "{kind:?}: {sum}");
        }
    }
    // Some proposed strategies do not support long sequences. They are excluded from the choice.
    let decisions = &planned(outcome, PlannerKind::HydraulisStatic).decisions;
    let decision = decisions.iter().find(|line| line.starts_with("One strategy for all batches")).unwrap();
    let counts: Vec<u32> = decision.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(decision.contains("the fastest of the") && counts[0] < counts[1], "{decision}");
    let seconds = |kind| planned(outcome, kind).metrics.iteration_s;
    assert!(seconds(PlannerKind::Hydraulis) < seconds(PlannerKind::StaticStrategy));
    assert!(seconds(PlannerKind::Hydraulis) <= seconds(PlannerKind::HydraulisBase));
    // The fitted cost is close to the operator graph: simulated and estimated pipeline times agree.
    for strategy in strategies(planned(outcome, PlannerKind::Hydraulis)) {
        assert!((strategy.estimated_s / strategy.propagation_s - 1.0).abs() < 0.1, "{}", strategy.label);
    }
}

/// Phases run sequentially, and switches run in between. The lower bound of an iteration is at
/// least the busiest row's time summed across phases.
#[test]
fn hot_spa_phases_run_sequentially() {
    let valid = scenario(1, 60, &serde_json::json!({ "planners": ["hotspa"] }));
    let planning = answer(&valid, &mut Unobserved).unwrap();
    let planned = planned(&planning.outcome, PlannerKind::HotSpa);
    let mut several = 0;
    for ((strategy, timeline), metrics) in strategies(planned).zip(&planning.timelines).zip(&planned.iterations) {
        let timeline = &timeline.timeline;
        let mut busiest = 0;
        let phases = strategy.pipelines.iter().map(|pipeline| pipeline.phase).max().unwrap() + 1;
        let mut end = 0;
        for phase in 0..phases {
            let rows = strategy.pipelines.iter().filter(|pipeline| pipeline.phase == phase);
            let rows = rows.flat_map(|pipeline| pipeline.first_row..pipeline.first_row + pipeline.pipeline);
            let lanes: Vec<_> = rows.map(|row| timeline.compute_lane(row as usize)).collect();
            let works = |span: &usize| timeline.kind[*span] <= SpanKind::WeightGrad as u8;
            let compute_times =
                lanes.iter().map(|lane| lane.clone().filter(works).map(|span| timeline.duration_ns[span]).sum::<u64>());
            busiest += compute_times.max().unwrap();
            let spans: Vec<usize> = lanes.iter().cloned().flatten().collect();
            let first = spans.iter().map(|&span| timeline.start_ns[span]).min().unwrap();
            assert!(first >= end, "phase {phase} starts at {first}, before {end}");
            end = spans.iter().map(|&span| timeline.end_ns(span)).max().unwrap();
        }
        assert_eq!(end, timeline.makespan_ns);
        assert!(metrics.lower_bound_s * 1e9 + 1.0 >= busiest as f64, "{} s of {busiest} ns", metrics.lower_bound_s);
        several += u32::from(phases > 1);
    }
    assert!(several > 0, "one of the batches has short and long sequences");
    let expected = "on 4 sample batches of 60 sequences.";
    assert!(planned.decisions.iter().any(|line| line.ends_with(expected)), "{:?}", planned.decisions);
}

/// A strategy of equal pipelines is the layout of a static planner: equal microbatches have equal
/// times, to the nanosecond.
#[test]
fn equal_pipelines_match_the_static_planner() {
    for (tensor, stages) in [(2, 4), (8, 1), (4, 1), (2, 2)] {
        let fixed = serde_json::json!({
            "layout": { "tensor": tensor, "pipeline": stages, "microbatch": 1 }, "planners": ["1f1b"], "iterations": 2
        });
        let valid = scenario(1, 24, &fixed);
        let test_scenario = valid.scenario();
        let sampler = Sampler::new(&valid);
        let rule = test_scenario.workload.packing_rule();
        let batches: Vec<PackedBatch> = (0..2)
            .map(|iteration| packing::pack(&sampler.evaluation(iteration).samples, &test_scenario.model, &rule))
            .collect();
        let contexts = ContextSettings::up_to(&test_scenario.training, 8);
        let pricing = Pricing::new(&test_scenario.model, &test_scenario.cluster, &test_scenario.training)
            .with_contexts(&contexts);
        let kind = PlannerKind::OneFOneB;
        let context = PlanningContext::new(test_scenario, &pricing, kind, &batches[0], &batches);
        let tested = static_3d::plan(context, &mut Unobserved).unwrap();
        let plan = tested.plan();
        let (expected, _) = judge(test_scenario, &pricing, &tested, &batches, &Unobserved).unwrap().into_parts();
        let schemes = profile(test_scenario, &pricing, OptimizerSharding::Replicas, 16_384).schemes;
        let wanted = Scheme { tensor, pipeline: stages, context: 1 };
        let scheme_index = schemes.iter().position(|known| known.scheme == wanted).unwrap();
        let copies = 8 / (tensor * stages);
        let mut shardings = vec![OptimizerSharding::Replicas];
        if copies == 1 && stages == 1 {
            // The single stage then covers all devices, which store the complete optimizer state.
            shardings.push(OptimizerSharding::AllDevices);
        }
        for sharding in shardings {
            let iterations = plan.iterations.iter().map(|iteration| {
                let dealt = iteration.replicas.iter().map(|source| Dealt {
                    scheme: scheme_index,
                    phase: 0,
                    microbatches: source.microbatches.clone(),
                    estimated_s: 1.0,
                });
                let replicas = vec![replica(&schemes, dealt.collect(), sharding)];
                IterationPlan { replicas, decision: None }
            });
            let uniform_plan = Plan { iterations: iterations.collect(), ..plan.clone() };
            let judged = judge(test_scenario, &pricing, &uniform_plan.into(), &batches, &Unobserved).unwrap();
            let (evaluated, _) = judged.into_parts();
            for (simulated, expected) in evaluated.iterations.iter().zip(&expected.iterations) {
                let nanoseconds = |seconds: f64| (seconds * 1e9).round() as u64;
                assert_eq!(
                    nanoseconds(simulated.iteration_s),
                    nanoseconds(expected.iteration_s),
                    "{wanted} {sharding:?}"
                );
                assert_eq!(
                    simulated.peak_memory_gib.to_bits(),
                    expected.peak_memory_gib.to_bits(),
                    "{wanted} {sharding:?}"
                );
            }
        }
    }
}

/// A single pipeline stores all parameters, so nothing moves. For two <4,1,1>, a device gathers a
/// quarter of the model and already has half of it. For <4,1,1> + <2,1,1>, slices move from device
/// to device: half the model to devices at TP 2.
#[test]
fn traffic_depends_on_pipeline_equality() {
    let valid = scenario(1, 8, &serde_json::json!({ "training": { "data_overlap": 0.0 } }));
    let scheme = |tensor, pipeline| Scheme { tensor, pipeline, context: 1 };
    let interaction = |schemes: &[Scheme]| Interaction::new(valid.scenario(), schemes, 8e9);
    let single = interaction(&[scheme(8, 1)]);
    assert!(single.pull.abs() < 1e-9 && single.push.abs() < 1e-9 && single.pull_exposed(0, 0.0).abs() < 1e-12);
    let two = interaction(&[scheme(4, 1), scheme(4, 1)]);
    assert!((two.pull - 2.0 * 8e9 / 4.0 / 2.0).abs() < 1.0 && (two.push - 4.0 * 8e9 / 4.0 / 2.0).abs() < 1.0);
    let unequal = interaction(&[scheme(4, 1), scheme(2, 1)]);
    // Half of the parameters, minus the eighth that the device owns if it is in that half.
    assert!(unequal.pull > 2.0 * 8e9 * (0.5 - 0.126) && unequal.pull <= 2.0 * 8e9 * 0.5, "{}", unequal.pull);
    assert!(unequal.pull_exposed(1, 0.0) > unequal.pull_exposed(0, 0.0));
    // If overlap is disabled, tokens have no effect.
    assert!((unequal.pull_exposed(1, 1e9) - unequal.pull_exposed(1, 0.0)).abs() < 1e-12);
}

#[test]
fn a_planner_that_does_not_apply_says_why() {
    let reasons = |more: serde_json::Value| {
        let outcome = answer(&scenario(1, 8, &more), &mut Unobserved).unwrap().outcome;
        let reason = |kind| match &outcome.results.iter().find(|result| result.planner == kind).unwrap().answer {
            PlanOutcome::Infeasible { binding, .. } => binding.clone(),
            PlanOutcome::Planned(_) => panic!("{kind:?} has a plan"),
        };
        (reason(PlannerKind::Hydraulis), reason(PlannerKind::HotSpa))
    };
    let (hydraulis, hot_spa) = reasons(serde_json::json!({ "training": { "zero": 3 } }));
    assert!(hydraulis.contains("ZeRO must be 1"), "{hydraulis}");
    assert_eq!(hydraulis, hot_spa);
    let (vision, _) = reasons(serde_json::json!({ "model": { "preset": "vlm-s" } }));
    assert!(vision.contains("several modules"), "{vision}");
    // A sequence of a generator has no text tokens, which the profile varies.
    let images = serde_json::json!({
        "samples": { "kind": "drawn", "text_tokens": { "kind": "constant", "value": 64 }, "images": { "kind": "constant", "value": 1 } },
        "global_batch": 8, "context_length": 16_384, "packing": "single"
    });
    let (generator, hot_spa) = reasons(serde_json::json!({ "model": { "preset": "dit-xl-2" }, "workload": images }));
    assert!(generator.contains("no language model") && generator == hot_spa, "{generator}");
    let (memory, _) = reasons(serde_json::json!({ "model": { "preset": "llama-2-70b" } }));
    assert!(memory.contains("GiB") && memory.contains('<'), "{memory}");
}

/// The profile doubles all layer times from the operator graph at the degrees of a node.
/// Computation times double, but communication times do not. Planner and simulator use the same
/// times.
#[test]
fn length_timings_replace_the_operator_graph() {
    let plain = scenario(1, 40, &serde_json::json!({ "planners": ["hydraulis", "dhp"], "iterations": 1 }));
    let test_scenario = plain.scenario();
    let module = test_scenario.model.backbone().unwrap();
    let mut timed = test_scenario.clone();
    let pairs = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 2), (2, 4), (4, 1), (4, 2), (8, 1)];
    for (tensor, context) in pairs {
        let training =
            planscope_core::training::Training { context_parallel: context, ..test_scenario.training.clone() };
        let model = LayerModel::new(module, &test_scenario.cluster, &training, tensor)
            .in_groups(&test_scenario.cluster, tensor);
        let timing = |(tokens, sequences): (f64, f64)| {
            let cost = model.layer(ModuleLoad::unpadded(tokens * sequences, tokens * tokens * sequences));
            [tokens, sequences, 2.0 * (cost.forward + cost.input_grad + cost.weight_grad).secs() * 1e6]
        };
        let shapes = [(512.0, 1.0), (512.0, 8.0), (2048.0, 1.0), (2048.0, 4.0), (8192.0, 1.0), (32_768.0, 1.0)];
        timed.training.overrides.push(CostOverride {
            operator: "layer".to_owned(),
            at: Some(AtDegrees { tensor, context, exchange: None }),
            timings_us: Some(shapes.map(timing).to_vec()),
            ..CostOverride::default()
        });
    }
    let timed = ValidScenario::new(timed, &NoDatasets).unwrap();
    let [plain, timed] = [&plain, &timed].map(|valid| answer(valid, &mut Unobserved).unwrap().outcome);
    for kind in [PlannerKind::Hydraulis, PlannerKind::Dhp] {
        let [before, after] = [&plain, &timed].map(|outcome| planned(outcome, kind));
        let said = |planned: &Planned| planned.decisions.iter().find(|line| line.contains("a profile timed")).cloned();
        assert_eq!(said(before), None);
        let line = said(after).unwrap();
        // DHP may choose degrees without timings. Hydraulis uses powers of two.
        let all = !line.contains("at the others");
        assert!(line.contains(" CP 1 ") && line.contains("6 timings") && (all || kind == PlannerKind::Dhp), "{line}");
        let ratio = after.metrics.iteration_s / before.metrics.iteration_s;
        assert!((1.4..2.3).contains(&ratio), "{kind:?}: {ratio}");
    }
    let strategy = strategies(planned(&timed, PlannerKind::Hydraulis)).next().unwrap();
    let (estimated, simulated) = (strategy.estimated_s, planned(&timed, PlannerKind::Hydraulis).metrics.iteration_s);
    assert!((estimated / simulated - 1.0).abs() < 0.15, "{estimated} of {simulated}");
}

/// MaxLen decreases in steps of 4 %, but never skips the maximum sequence length. A scheme
/// therefore reaches exactly this length while shrinking.
#[test]
fn a_scheme_supports_the_maximum_length_while_possible() {
    let valid = scenario(1, 24, &serde_json::json!({}));
    let (test_scenario, sampler) = (valid.scenario(), Sampler::new(&valid));
    let sizing = packing::pack(&sampler.sizing().samples, &test_scenario.model, &test_scenario.workload.packing_rule());
    let contexts = ContextSettings::up_to(&test_scenario.training, 8);
    let pricing =
        Pricing::new(&test_scenario.model, &test_scenario.cluster, &test_scenario.training).with_contexts(&contexts);
    let context = PlanningContext::new(test_scenario, &pricing, PlannerKind::Hydraulis, &sizing, &[]);
    let Ok(mut setting) = Setting::new(context) else { panic!("there are schemes") };
    let max_length = setting.max_length;
    setting.schemes.truncate(1);
    setting.schemes[0].cost.max_len = max_length + max_length / 50;
    let mut next_limit = || {
        setting.tighten();
        setting.schemes[0].cost.max_len
    };
    assert_eq!((next_limit(), next_limit()), (max_length, (max_length as f64 * TIGHTENED) as u64));
}
