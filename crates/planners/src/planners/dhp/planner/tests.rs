use serde_json::{Value, json};

use super::*;
use crate::engine::{Unobserved, plan as answer};
use crate::planners::dhp::DegreeRule;
use planscope_core::workload::packing;
use planscope_cost::cost::{ContextSettings, Pricing};
use planscope_plan::outcome::{PlanOutcome, Planned, Planning};
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{ValidScenario, parse};

const ALL: [&str; 7] = ["static_cp", "ulysses", "balanced_cp", "power_of_two_cp", "flexsp", "wlb_llm", "dhp"];

/// Returns a long-tailed or a constant length distribution.
fn lengths(long_tailed: bool) -> Value {
    if long_tailed {
        json!({ "kind": "log_normal", "median": 2000, "sigma": 1.3, "min": 64, "max": 60000 })
    } else {
        json!({ "kind": "constant", "value": 4096 })
    }
}

/// Llama-2 7B on eight A100s. Fields in `more` replace top-level fields.
fn valid_scenario(long_tailed: bool, more: Value) -> ValidScenario {
    let mut scenario_json = json!({
        "schema": "scenario/1", "model": { "preset": "llama-2-7b" }, "cluster": { "preset": "a100-80gb", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": lengths(long_tailed), "images": { "kind": "constant", "value": 0 }
            },
            "global_batch": 48, "context_length": 65536, "packing": "single"
        },
        "training": { "zero": 3, "recompute": "full" }, "layout": { "tensor": 1 },
        "planners": ALL, "iterations": 2, "seed": 7
    });
    let Value::Object(more) = more else { panic!("fields") };
    scenario_json.as_object_mut().unwrap().extend(more);
    let scenario = parse(&scenario_json.to_string()).unwrap();
    ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn answered(long_tailed: bool, more: Value) -> Planning {
    answer(&valid_scenario(long_tailed, more), &mut Unobserved).unwrap()
}

fn planned<'a>(planning: &'a Planning, id: &str) -> &'a Planned {
    match result_for(planning, id) {
        PlanOutcome::Planned(planned) => planned,
        PlanOutcome::Infeasible { binding, .. } => panic!("{id}: {binding}"),
    }
}

fn result_for<'a>(planning: &'a Planning, id: &str) -> &'a PlanOutcome {
    &planning.outcome.results.iter().find(|result| result.planner.id() == id).unwrap().answer
}

/// Smallest time of the candidates under the fitted cost, in seconds.
fn fitted_minimum(setting: &Setting<'_>, sequences: &[Sequence]) -> Result<f64, GroupError> {
    let plans = setting.candidates(sequences)?;
    Ok(plans.iter().map(|plan| plan.seconds).fold(f64::INFINITY, f64::min))
}

/// Returns the binding constraint of a planner without a plan.
fn binding(planning: &Planning, id: &str) -> String {
    match result_for(planning, id) {
        PlanOutcome::Planned(_) => panic!("{id} has a plan"),
        PlanOutcome::Infeasible { binding, .. } => binding.clone(),
    }
}

/// `plan` validates each plan and returns an error if validation fails.
#[test]
fn every_plan_passes_the_checker_and_keeps_its_bounds() {
    for long_tailed in [false, true] {
        for zero in [1, 3] {
            for tensor in [1, 2] {
                let training = json!({ "zero": zero, "recompute": "full" });
                let planning = answered(long_tailed, json!({ "training": training, "layout": { "tensor": tensor } }));
                for id in ALL {
                    let planned = planned(&planning, id);
                    let metrics = &planned.metrics;
                    let context = format!("{id}, ZeRO {zero}, TP {tensor}: {metrics:?}");
                    assert_eq!((planned.layout.tensor, planned.layout.data), (tensor, 8 / tensor), "{context}");
                    assert!(metrics.lower_bound_s <= metrics.iteration_s, "{context}");
                    assert!(metrics.peak_memory_gib <= metrics.memory_limit_gib, "{context}");
                    assert!(metrics.mfu > 0.05 && metrics.mfu < 0.8, "{context}");
                }
            }
        }
    }
}

/// 48 equal sequences on eight ranks: six per rank, so neither CP nor idle time helps.
#[test]
fn there_is_nothing_to_win_on_equal_sequences() {
    let planning = answered(false, json!({}));
    let time = |id| planned(&planning, id).metrics.iteration_s;
    for id in ["static_cp", "power_of_two_cp"] {
        assert!((time("dhp") / time(id) - 1.0).abs() < 0.005, "{id}: {} and {}", time("dhp"), time(id));
    }
}

#[test]
fn dynamic_groups_win_on_a_long_tail() {
    // If all activations are stored, the token limit per rank is below the longest sequence.
    let planning = answered(
        true,
        json!({ "cluster": { "preset": "a100-80gb", "nodes": 4 }, "training": { "zero": 3 }, "layout": { "tensor": 2 } }),
    );
    let time = |id| planned(&planning, id).metrics.iteration_s;
    assert!(time("static_cp") > 1.05 * time("dhp"), "{} and {}", time("static_cp"), time("dhp"));
}

/// DHP's candidates include the static plans and the power-of-two plans. Under the same cost model,
/// its estimate is therefore never larger.
#[test]
fn no_baseline_is_estimated_faster_under_the_same_cost() {
    for (long_tailed, seed) in [(false, 1), (true, 1), (true, 2), (true, 3), (true, 4)] {
        let scenario = valid_scenario(long_tailed, json!({ "seed": seed }));
        let (scenario, sampler) = (scenario.scenario(), Sampler::new(&scenario));
        let sizing = packing::pack(&sampler.sizing().samples, &scenario.model, &scenario.workload.packing_rule());
        let contexts = ContextSettings::up_to(&scenario.training, scenario.cluster.devices());
        let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_contexts(&contexts);
        let (_, mut setting) =
            size(PlanningContext::new(scenario, &pricing, PlannerKind::Dhp, &sizing, &[]), 1, 0).unwrap();
        let sequences = sequences(scenario, &sizing);
        let dhp = fitted_minimum(&setting, &sequences).unwrap();
        assert!(dhp > 0.0);
        for degree in [1, 2, 4, 8] {
            setting.fixed = Some(degree);
            let Ok(fixed) = fitted_minimum(&setting, &sequences) else { continue };
            assert!(dhp <= fixed * (1.0 + 1e-9), "degree {degree}: {dhp} and {fixed}");
        }
        setting.fixed = None;
        for kind in [PlannerKind::BalancedContext, PlannerKind::PowerOfTwoContext] {
            setting.context.planner = kind;
            setting.sides[0].degrees = AllowedDegrees::new(DegreeRule::PowersOfTwo, None, 8);
            let baseline = fitted_minimum(&setting, &sequences).unwrap();
            assert!(dhp <= baseline * (1.0 + 1e-9), "{kind:?}: {dhp} and {baseline}");
        }
    }
}

#[test]
fn equal_scenarios_have_equal_bytes() {
    let bytes = || serde_json::to_string(&answered(true, json!({})).outcome).unwrap();
    assert_eq!(bytes(), bytes());
}

/// Uses a sequence with 60,000 tokens and no recomputation. Activations need about 1.2 MB per
/// token: 34 h bytes in 32 layers are 4.5 MB at h = 4,096, and TP 8 divides nearly all of it by
/// eight.
#[test]
fn a_sequence_that_no_group_holds_is_named() {
    let device = |gib: f64| {
        let mut cluster =
            serde_json::to_value(planscope_core::cluster::presets::cluster("a100-80gb").unwrap()).unwrap();
        cluster["device"]["memory_gib"] = json!(gib);
        cluster
    };
    let workload = json!({
        "samples": {
            "kind": "drawn", "text_tokens": { "kind": "constant", "value": 60000 },
            "images": { "kind": "constant", "value": 0 }
        },
        "global_batch": 4, "context_length": 65536, "packing": "single"
    });
    let more = |gib| json!({ "workload": workload, "cluster": device(gib), "training": { "zero": 3 } });
    let reason = binding(&answered(true, more(40.0)), "dhp");
    assert!(reason.contains("60000 tokens") && reason.contains("8 ranks"), "{reason}");
    let reason = binding(&answered(true, more(40.0)), "static_cp");
    assert!(reason.contains("the longest sequence fits no degree that divides the ranks"), "{reason}");
    // 7B parameters at 16 bytes on eight ranks need 12.6 GiB.
    let reason = binding(&answered(true, more(12.0)), "dhp");
    assert!(reason.contains("weights, gradients and optimizer state"), "{reason}");
}

#[test]
fn unsupported_settings_are_rejected() {
    for (more, message) in [
        (json!({ "layout": { "tensor": 1, "pipeline": 2 } }), "so PP must be 1"),
        (json!({ "training": { "zero": 3, "context_parallel": 2 } }), "so the setting must be 1"),
    ] {
        let planning = answered(false, more);
        for id in ALL {
            let reason = binding(&planning, id);
            assert!(reason.contains(message), "{id}: {reason}");
        }
    }
}

/// More memory only adds feasible groupings. The simulated time may still increase because the
/// fitted cost is an approximation.
#[test]
fn more_memory_never_hurts_the_estimate() {
    let scenario = valid_scenario(true, json!({}));
    let (scenario, sampler) = (scenario.scenario(), Sampler::new(&scenario));
    let sizing = packing::pack(&sampler.sizing().samples, &scenario.model, &scenario.workload.packing_rule());
    let contexts = ContextSettings::up_to(&scenario.training, scenario.cluster.devices());
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_contexts(&contexts);
    let (_, mut setting) =
        size(PlanningContext::new(scenario, &pricing, PlannerKind::Dhp, &sizing, &[]), 1, 0).unwrap();
    let sequences = sequences(scenario, &sizing);
    let mut before = f64::INFINITY;
    for tokens in [8_000, 12_000, 20_000, 40_000, 80_000] {
        setting.tokens_per_rank = tokens;
        let seconds = fitted_minimum(&setting, &sequences).unwrap();
        assert!(seconds <= before * 1.02, "{tokens} tokens: {seconds} after {before}");
        before = before.min(seconds);
    }
}

/// Sequences have 20,000 and 30,000 tokens, and a rank fits 10,000. The second length would need
/// degree 3, but 3 does not divide 8.
#[test]
fn a_static_degree_grows_with_the_maximum_sequence() {
    let scenario = valid_scenario(true, json!({}));
    let (scenario, sampler) = (scenario.scenario(), Sampler::new(&scenario));
    let pack = |batch: &planscope_core::workload::GlobalBatch| {
        packing::pack(&batch.samples, &scenario.model, &scenario.workload.packing_rule())
    };
    let (sizing, mut evaluated) = (pack(&sampler.sizing()), pack(&sampler.evaluation(0)));
    let contexts = ContextSettings::up_to(&scenario.training, scenario.cluster.devices());
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training).with_contexts(&contexts);
    let (_, mut setting) =
        size(PlanningContext::new(scenario, &pricing, PlannerKind::StaticContext, &sizing, &[]), 1, 0).unwrap();
    setting.tokens_per_rank = 10_000;
    let short: Vec<Sequence> = [3_000, 2_000].into_iter().cycle().take(64).map(Sequence::causal).collect();
    let smallest =
        |max_length| setting.static_candidates(&short, max_length).into_iter().map(|(_, degree)| degree).min();
    assert_eq!((smallest(0), smallest(30_000), smallest(80_001)), (Some(1), Some(4), None));
    setting.fixed = Some(2);
    evaluated.sequences.iter_mut().for_each(|sequence| sequence.computed_tokens = sequence.computed_tokens.min(20_000));
    setting.fit_max_length(std::slice::from_ref(&evaluated));
    assert_eq!((setting.fixed, setting.outgrown), (Some(2), None));
    evaluated.sequences[0].computed_tokens = 30_000;
    setting.fit_max_length(std::slice::from_ref(&evaluated));
    assert_eq!((setting.fixed, setting.outgrown), (Some(4), Some(2)));
}

/// Sequences have 4,000 tokens in the sizing batch and up to 60,000 in the run. With ZeRO-1, eight
/// ranks at TP 1 have memory for fewer tokens, four ranks at TP 2 for more.
#[test]
fn a_tensor_degree_that_fails_on_the_run_gives_way_to_the_next() {
    let build_scenario = |tokens: u32, batch: u32| {
        let samples = json!({
            "kind": "drawn", "text_tokens": { "kind": "constant", "value": tokens },
            "images": { "kind": "constant", "value": 0 }
        });
        let workload =
            json!({ "samples": samples, "global_batch": batch, "context_length": 65536, "packing": "single" });
        valid_scenario(true, json!({ "workload": workload, "training": { "zero": 1 }, "layout": {} }))
    };
    let valid = (build_scenario(4_000, 128), build_scenario(60_000, 8));
    let long = valid.1.scenario();
    let pack = |batch: &planscope_core::workload::GlobalBatch| {
        packing::pack(&batch.samples, &long.model, &long.workload.packing_rule())
    };
    let (sizing, batches) = (pack(&Sampler::new(&valid.0).sizing()), [pack(&Sampler::new(&valid.1).evaluation(0))]);
    let contexts = ContextSettings::up_to(&long.training, long.cluster.devices());
    let pricing = Pricing::new(&long.model, &long.cluster, &long.training).with_contexts(&contexts);
    for kind in [PlannerKind::Dhp, PlannerKind::BalancedContext, PlannerKind::PowerOfTwoContext] {
        let planned = |batch: &PackedBatch| {
            let context = PlanningContext::new(long, &pricing, kind, &sizing, std::slice::from_ref(batch));
            plan(context, &mut Unobserved).unwrap().plan().clone()
        };
        assert_eq!(planned(&sizing).layout.tensor, 1, "{kind:?}");
        let Plan { layout, search, decisions, .. } = planned(&batches[0]);
        assert_eq!(layout.tensor, 2, "{kind:?}");
        assert!(decisions[0].ends_with("one faster layout fails on another batch."), "{}", decisions[0]);
        let reasons: Vec<_> = search.rejections.iter().filter(|known| known.reason.contains("60000 tokens")).collect();
        assert_eq!(reasons.len(), 1, "{:?}", search.rejections);
        assert!(search.losers.iter().all(|loser| loser.layout.tensor > 2), "{:?}", search.losers);
        assert_eq!(search.candidates, search.simulated + search.rejected, "{search:?}");
    }
}

#[test]
fn empty_samples_do_not_block_groups() {
    let workload = json!({
        "samples": {
            "kind": "drawn", "text_tokens": { "kind": "values", "values": [0, 3000, 9000] },
            "images": { "kind": "constant", "value": 0 }
        },
        "global_batch": 24, "context_length": 65536, "packing": "single"
    });
    let planning = answered(false, json!({ "workload": workload }));
    for id in ALL {
        assert!(planned(&planning, id).metrics.iteration_s > 0.0, "{id}");
    }
}

/// Four equal sequences on a single rank with eight devices produce four timings of one sequence. The profile adds
/// scaled lengths of the longest sequence, and packed groups.
#[test]
fn a_small_batch_on_a_single_rank_is_planned() {
    let workload = json!({
        "samples": {
            "kind": "drawn", "text_tokens": { "kind": "constant", "value": 4096 },
            "images": { "kind": "constant", "value": 0 }
        },
        "global_batch": 4, "context_length": 65536, "packing": "single"
    });
    let planning = answered(false, json!({ "workload": workload, "layout": { "tensor": 8 } }));
    for id in ALL {
        let planned = planned(&planning, id);
        let line = planned.decisions.iter().find(|line| line.contains("timings of the operator graph")).unwrap();
        let timings: u32 = line.split_once(" timings").unwrap().0.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(timings >= 6, "{id}: {line}");
    }
}

/// Caption length does not determine the cost of a video.
#[test]
fn groups_by_length_are_not_for_video() {
    let workload = json!({
        "samples": {
            "kind": "drawn", "text_tokens": { "kind": "constant", "value": 100 },
            "images": { "kind": "constant", "value": 0 }, "video_s": { "kind": "uniform", "min": 1.0, "max": 16.0 }
        },
        "global_batch": 16, "context_length": 4096, "packing": "single"
    });
    let planning = answered(false, json!({ "workload": workload, "model": { "preset": "t2v-s" } }));
    for id in ALL {
        let reason = binding(&planning, id);
        assert!(reason.starts_with("does not apply") && reason.contains("caption"), "{id}: {reason}");
    }
}
