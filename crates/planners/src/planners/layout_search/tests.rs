use serde_json::{Value, json};

use super::*;
use crate::planners::PlanningContext;
use crate::planners::judge;
use crate::planners::pipeweaver::{PipeWeaver, Step};
use crate::planners::static_3d;
use crate::planners::static_3d::Fixed;
use planscope_core::workload::packing;
use planscope_plan::observer::Unobserved;
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{ValidScenario, parse};

fn scenario(
    (model, nodes): (&str, u32),
    tokens: &Value,
    images: u32,
    training: &Value,
    layout: &Value,
) -> ValidScenario {
    let scenario = json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "h100", "nodes": nodes },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": tokens, "images": { "kind": "constant", "value": images }
            },
            "global_batch": 16, "context_length": 8192, "packing": "single"
        },
        "training": training, "layout": layout, "planners": ["1f1b"], "seed": 5
    });
    ValidScenario::new(parse(&scenario.to_string()).unwrap(), &NoDatasets).unwrap()
}

fn sizing(valid: &ValidScenario) -> PackedBatch {
    let scenario = valid.scenario();
    packing::pack(&Sampler::new(valid).sizing().samples, &scenario.model, &scenario.workload.packing_rule())
}

/// The settings offload all activations, so layers that store activations are several times faster.
/// The search for all TP degrees finds the minimum of the separate searches.
#[test]
fn bounds_hold_where_layers_need_not_do_as_the_settings_say() {
    let best = |kind: PlannerKind, planner: &dyn LayoutPlanner, tensor: Option<u32>| {
        let tokens = json!({ "kind": "uniform", "min": 1000, "max": 3000 });
        let layout = tensor.map_or(json!({ "microbatch": 1 }), |tensor| json!({ "microbatch": 1, "tensor": tensor }));
        let valid = scenario(("internvl3-2b", 1), &tokens, 4, &json!({ "activation_offload": 1.0 }), &layout);
        let (scenario, sizing) = (valid.scenario(), sizing(&valid));
        let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
        let context = PlanningContext::new(scenario, &pricing, kind, &sizing, &[]);
        let search = LayoutSearch::run(context, planner, &mut Unobserved).unwrap();
        search.best().map(|(score, _)| score.time)
    };
    let nnscaler = Fixed { kind: PlannerKind::NnScaler };
    let tuning = PipeWeaver { step: Step::Tuning };
    let fillings: [(PlannerKind, &dyn LayoutPlanner); 2] =
        [(PlannerKind::NnScaler, &nnscaler), (PlannerKind::PipeWeaver, &tuning)];
    for (kind, planner) in fillings {
        let each = [1, 2].into_iter().filter_map(|tensor| best(kind, planner, Some(tensor)));
        assert_eq!(best(kind, planner, None), each.min(), "{kind:?}");
    }
}

/// Replica 0 starts and ends with short sequences, which hide little gradient reduction between two
/// nodes. Replica 1 is the last replica and has long sequences.
#[test]
fn a_layout_takes_as_long_as_the_judge_says_it_does() {
    let tokens = json!({ "kind": "uniform", "min": 100, "max": 8000 });
    let training = json!({ "recompute": "full", "data_overlap": 1.0, "zero": 1 });
    let layout = json!({ "tensor": 8, "pipeline": 1, "microbatch": 1 });
    let valid = scenario(("llama-2-7b", 2), &tokens, 0, &training, &layout);
    let (scenario, mut sizing) = (valid.scenario(), sizing(&valid));
    sizing.sequences.sort_by_key(|sequence| sequence.computed_tokens);
    sizing.sequences.swap(1, 14);
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let kind = PlannerKind::OneFOneB;
    let planner = Fixed { kind };
    let batches = [sizing.clone()];
    let context = PlanningContext::new(scenario, &pricing, kind, &sizing, &batches);
    let search = LayoutSearch::run(context, &planner, &mut Unobserved).unwrap();
    let sized = search.best().unwrap().0.time;
    let tested = static_3d::plan(context, &mut Unobserved).unwrap();
    let judged = judge(scenario, &pricing, &tested, &batches, &Unobserved).unwrap();
    assert_eq!(sized.secs().to_bits(), judged.iteration_s().to_bits());
}
