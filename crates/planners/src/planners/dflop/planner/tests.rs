use super::*;
use crate::engine::{self, Unobserved};
use planscope_core::workload::packing;
use planscope_cost::cost::Pricing;
use planscope_plan::outcome::{PlanOutcome, Planned};
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::ValidScenario;
use planscope_plan::scenario::validate::NoDatasets;

/// A single-node scenario after `changes`. Some samples have a large number of images.
fn valid_scenario(model: &str, changes: &[(&str, serde_json::Value)]) -> ValidScenario {
    let mut scenario_json = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "a100-80gb", "nodes": 1 },
        "workload": {
            "samples": {
                "kind": "drawn", "text_tokens": { "kind": "log_normal", "median": 200, "sigma": 0.6, "min": 20, "max": 900 },
                "images": { "kind": "log_normal", "median": 5, "sigma": 0.8, "min": 1, "max": 32 }
            },
            "global_batch": 48, "context_length": 32768, "packing": "packed", "max_samples": 1
        },
        "training": { "recompute": "full" }, "layout": {}, "planners": ["1f1b", "dflop_layout", "dflop"], "iterations": 2
    });
    for (pointer, value) in changes {
        *scenario_json.pointer_mut(pointer).unwrap() = value.clone();
    }
    let scenario = planscope_plan::scenario::parse(&scenario_json.to_string()).unwrap();
    ValidScenario::new(scenario, &NoDatasets).unwrap()
}

fn answers(scenario: &ValidScenario) -> Vec<(PlannerKind, PlanOutcome)> {
    let results = engine::plan(scenario, &mut Unobserved).unwrap().outcome.results;
    results.into_iter().map(|result| (result.planner, result.answer)).collect()
}

fn planned(answers: &[(PlannerKind, PlanOutcome)], kind: PlannerKind) -> &Planned {
    let result = answers.iter().find(|(planner, _)| *planner == kind);
    match result {
        Some((_, PlanOutcome::Planned(planned))) => planned,
        other => panic!("{kind:?}: {other:?}"),
    }
}

/// Both plans are valid. The online scheduler is faster than data-loader order, and the two modules
/// use disjoint devices.
#[test]
fn balanced_microbatches_are_faster_than_those_that_come() {
    let answers = answers(&valid_scenario("llava-ov-llama-3-8b", &[]));
    let (layout, full) = (planned(&answers, PlannerKind::DflopLayout), planned(&answers, PlannerKind::Dflop));
    assert!(full.metrics.iteration_s < layout.metrics.iteration_s);
    let modules = full.placement.as_ref().unwrap();
    assert_eq!(modules.layouts.len(), 2);
    assert!(modules.layouts.iter().all(|layout| !layout.colocated));
    assert_eq!(modules.layouts.iter().map(|layout| layout.devices).sum::<u32>(), 8);
    assert!(!modules.boundaries.is_empty());
    assert!(full.metrics.peak_memory_gib <= full.metrics.memory_limit_gib);
}

/// The scenario fixes the backbone degrees and the sequences per microbatch. The encoder is free.
#[test]
fn a_requested_layout_is_planned() {
    let fixed_layout = serde_json::json!({ "tensor": 2, "pipeline": 2, "microbatch": 3 });
    let results = answers(&valid_scenario("llava-ov-llama-3-8b", &[("/layout", fixed_layout)]));
    for kind in [PlannerKind::DflopLayout, PlannerKind::Dflop] {
        let plan = planned(&results, kind);
        let backbone = &plan.placement.as_ref().unwrap().layouts[1];
        assert_eq!((backbone.tensor, backbone.pipeline), (2, 2));
        // 48 sequences, a mean of three per bucket.
        for iteration in &plan.iterations {
            assert_eq!(iteration.microbatches, 16);
        }
    }
    // A backbone on all eight devices leaves none for the encoder.
    let full_layout = serde_json::json!({ "tensor": 8 });
    for (kind, result) in answers(&valid_scenario("llava-ov-llama-3-8b", &[("/layout", full_layout)])) {
        if matches!(kind, PlannerKind::Dflop | PlannerKind::DflopLayout) {
            let PlanOutcome::Infeasible { binding, .. } = result else { panic!("{kind:?}") };
            assert!(binding.ends_with("make up 8 devices with TP 8 of the backbone"), "{binding}");
        }
    }
}

#[test]
fn sound_is_planned_too() {
    let audio = serde_json::json!({
        "kind": "drawn", "text_tokens": { "kind": "constant", "value": 60 }, "images": { "kind": "constant", "value": 0 },
        "audio_clips": { "kind": "uniform", "min": 1, "max": 4 }
    });
    let answers = answers(&valid_scenario("qwen2-audio-7b", &[("/workload/samples", audio)]));
    planned(&answers, PlannerKind::Dflop);
}

#[test]
fn unsupported_scenarios_are_rejected() {
    for (model, changes, expected) in [
        (
            "llama-3-8b",
            vec![("/workload/samples/images", serde_json::json!({ "kind": "constant", "value": 0 }))],
            "one encoder",
        ),
        ("omni-7b", vec![], "one encoder and one backbone, and this model has "),
        (
            "llava-ov-llama-3-8b",
            vec![("/training", serde_json::json!({ "recompute": "full", "context_parallel": 2 }))],
            "no context or expert parallelism",
        ),
        // 70 billion parameters at 16 bytes on eight 80 GB devices, minus the reserve.
        ("llava-ov-llama-3-70b", vec![], "; 76.0 GiB available"),
    ] {
        for (kind, result) in answers(&valid_scenario(model, &changes)) {
            if matches!(kind, PlannerKind::Dflop | PlannerKind::DflopLayout) {
                let PlanOutcome::Infeasible { binding, .. } = result else { panic!("{model}: {result:?}") };
                assert!(binding.contains(expected), "{model}: {binding}");
            }
        }
    }
}

fn packed(valid: &ValidScenario) -> PackedBatch {
    let scenario = valid.scenario();
    packing::pack(&Sampler::new(valid).evaluation(0).samples, &scenario.model, &scenario.workload.packing_rule())
}

/// Two backbone and three encoder copies: the images in each round form three equal pieces,
/// independent of microbatch boundaries.
#[test]
fn encoders_split_a_round_equally() {
    let valid = valid_scenario("llava-ov-llama-3-8b", &[]);
    let batch = packed(&valid);
    let microbatches: Vec<Vec<u32>> = (0..8).map(|index| (6 * index..6 * index + 6).collect()).collect();
    let parts = round::parts(valid.scenario(), &batch, &microbatches, (3, 2));
    for round in 0..4 {
        let round_parts = || parts.iter().filter(|part| part.microbatch / 2 == round);
        let images = |copy: u32| -> u32 {
            round_parts().filter(|part| (part.module, part.copy) == (0, copy)).map(|part| part.end - part.first).sum()
        };
        let pieces = [images(0), images(1), images(2)];
        assert!(pieces.iter().max().unwrap() - pieces.iter().min().unwrap() <= 1, "{pieces:?}");
        let all: u32 = (12 * round..12 * round + 12).map(|index| batch.sequences[index as usize].images).sum();
        assert_eq!(pieces.iter().sum::<u32>(), all);
        let backbones: Vec<(u32, u32)> =
            round_parts().filter(|part| part.module == 1).map(|part| (part.copy, part.end)).collect();
        assert_eq!(backbones, [(0, 6), (1, 6)]);
    }
}

/// Encoder stage 0 stores E_pp + L_pp rounds. The last backbone stage stores a single round
/// (DFLOP Eq. 4, DFLOP Eq. 5).
#[test]
fn stages_keep_as_many_rounds_as_the_memory_model_counts() {
    let valid = valid_scenario("llava-ov-llama-3-8b", &[]);
    let batch = packed(&valid);
    let scenario = valid.scenario();
    let pricing = Pricing::new(&scenario.model, &scenario.cluster, &scenario.training);
    let context = PlanningContext::new(scenario, &pricing, PlannerKind::Dflop, &batch, &[]);
    let planner = Planner { context, input: input(scenario, &batch), handed_on: 0.0 };
    let degrees = |pipeline| Degrees { tensor: 1, pipeline, data: 1 };
    let configuration = Configuration { encoder: degrees(2), backbone: degrees(6), microbatches: 12 };
    let estimate = ConfigurationEstimate { configuration, ..optimize(&planner.input).unwrap().by_mean_item };
    let sized = planner.size(estimate).unwrap();
    let replica = planner.fill(&sized, &batch, &Unobserved).unwrap().replica;
    let mut stored = Vec::new();
    for order in &replica.schedule.orders {
        let (mut now, mut peak) = (0_i32, 0);
        for action in order {
            now += if action.kind == planscope_core::action::ActionKind::Forward { 1 } else { -1 };
            peak = peak.max(now);
        }
        assert_eq!(now, 0);
        stored.push(peak);
    }
    // Sorted by rank, starting at the module on device 0. Encoder stages store 8 and 7 rounds,
    // backbone stages 6 to 1.
    stored.sort_unstable();
    assert_eq!(stored, [1, 2, 3, 4, 5, 6, 7, 8]);
}

/// Binning preserves the mean and the item count.
#[test]
fn binned_items_have_the_same_mean() {
    let items: Vec<ItemWork> = (1..=200)
        .map(|size| {
            let size = f64::from(size);
            ItemWork {
                batch: size,
                length: 2.0 * size,
                encoder_flops: size,
                linear_flops: size,
                attention_flops: size * size,
                weight: 1.0,
            }
        })
        .collect();
    let sum = |items: &[ItemWork], part: fn(&ItemWork) -> f64| -> f64 {
        items.iter().map(|item| part(item) * item.weight).sum()
    };
    let bins = sampled(items.clone());
    assert_eq!(bins.len(), SAMPLED);
    let parts: [fn(&ItemWork) -> f64; 3] = [|_| 1.0, |item| item.batch, |item| item.attention_flops];
    for part in parts {
        let (a, b) = (sum(&bins, part), sum(&items, part));
        assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
    }
}

#[test]
fn no_microbatch_is_empty() {
    let mut buckets = vec![vec![], vec![1, 2, 3], vec![0], vec![]];
    fill_empty(&mut buckets);
    assert!(buckets.iter().all(|bucket| !bucket.is_empty()));
    let mut all: Vec<u32> = buckets.into_iter().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3]);
}

/// 6 items over 2 microbatches and 3 copies. Products of microbatches and copies may exceed 32
/// bits.
#[test]
fn shares_with_many_microbatches_and_copies_are_small() {
    assert_eq!(share(6, 2, 3).to_bits(), 1.0_f64.to_bits());
    assert_eq!(share(1 << 20, 1 << 20, 1 << 20).to_bits(), (1.0 / f64::from(1 << 20)).to_bits());
}

/// DFLOP concatenates the items in a microbatch, so unpacked samples need no padding. The plan
/// equals that for packed sequences with a single sample. The 1F1B baseline pads the samples.
#[test]
fn unpacked_sequences_are_not_padded() {
    let single = serde_json::json!("single");
    let plan_with = |changes: &[(&str, serde_json::Value)]| answers(&valid_scenario("llava-ov-llama-3-8b", changes));
    let (padded, packed) = (plan_with(&[("/workload/packing", single)]), plan_with(&[]));
    for kind in [PlannerKind::DflopLayout, PlannerKind::Dflop] {
        let seconds = |answers| planned(answers, kind).metrics.iteration_s;
        assert_eq!(seconds(&padded).to_bits(), seconds(&packed).to_bits(), "{kind:?}");
    }
    let seconds = |answers| planned(answers, PlannerKind::OneFOneB).metrics.iteration_s;
    assert!(seconds(&padded) > seconds(&packed));
}
