//! Checks of stated formats, devices and layouts.

use super::*;

/// A plan that trains an encoder of 0.6 billion and a backbone of 6.1 billion parameters, and a log of the backbone alone.
#[test]
fn logged_model_part_is_named() {
    let module = |name: &str, parameters| planned::ModuleParameters { name: name.to_owned(), parameters };
    let several = PlannedJob { modules: vec![module("ViT", 0.638e9), module("LLM", 6.1e9)], ..plan() };
    let backbone = LoggedJob { trained_parameters: Some(6.101e9), ..LoggedJob::default() };
    let comparison = compare_jobs(&backbone, &several);
    let [check] = comparison.differences().collect::<Vec<_>>()[..] else { panic!("{comparison:?}") };
    assert_eq!(check.consequence, "The log trains as many parameters as LLM has: freeze the other modules.");
}

fn find_check(comparison: &JobComparison, quantity: JobQuantity) -> JobCheck {
    comparison.checks.iter().find(|check| check.quantity == quantity).cloned().expect("a check")
}

/// Every pair of formats of a log and a plan. A log that states bf16 alone leaves fp8 products open.
#[test]
fn product_format_is_checked() {
    use Agreement::{Different, NotChecked, Same};
    let stated = |is_fp8, base| StatedPrecision { is_fp8, base };
    let (bf16, fp16, fp32) = (Some(BaseFormat::Bf16), Some(BaseFormat::Fp16), Some(BaseFormat::Fp32));
    for (precision, name, agreements) in [
        (stated(Some(true), bf16), "fp8", [Different, Same, Different]),
        (stated(Some(true), None), "fp8", [Different, Same, Different]),
        (stated(Some(false), bf16), "bf16", [Same, Different, Different]),
        (stated(None, bf16), "bf16", [Same, NotChecked, Different]),
        (stated(None, fp16), "fp16", [Same, NotChecked, Different]),
        (stated(Some(false), fp32), "fp32", [Different, Different, Same]),
        (stated(Some(false), None), "not fp8", [NotChecked, Different, NotChecked]),
        (stated(None, None), "", [NotChecked, NotChecked, NotChecked]),
    ] {
        for (planned, agreement) in [Precision::Bf16, Precision::Fp8, Precision::Fp32].into_iter().zip(agreements) {
            let plan = PlannedJob { precision: planned, ..plan() };
            let check = find_check(&compare_jobs(&LoggedJob { precision, ..log() }, &plan), JobQuantity::ProductBits);
            assert_eq!(check.agreement, agreement, "{precision:?} {planned:?}");
            if agreement != NotChecked {
                assert_eq!(check.measured_name, name);
            }
        }
    }
}

/// A log or a plan that names no device leaves the check open.
#[test]
fn a_device_without_a_name_is_not_checked() {
    let nameless = LoggedJob { device: None, ..log() };
    let check = find_check(&compare_jobs(&nameless, &plan()), JobQuantity::Device);
    assert_eq!((check.agreement, check.derivation.as_str()), (Agreement::NotChecked, "the log states no device"));
    let unnamed_plan = PlannedJob { device: None, ..plan() };
    let check = find_check(&compare_jobs(&log(), &unnamed_plan), JobQuantity::Device);
    assert_eq!(check.derivation, "the log names A100, the cluster of the plan no known device");
}

/// The run has TP 2, PP 4 and full recomputation, the plan TP 4, PP 4 and none: the same job with other times.
#[test]
fn another_layout_is_no_other_job() {
    let layout = StatedLayout {
        tensor: Some(2),
        pipeline: Some(4),
        recompute: Some(Recompute::Full),
        data: Some(4),
        ..StatedLayout::default()
    };
    let other = LoggedJob { layout, ..log() };
    let comparison = compare_jobs(&other, &plan());
    assert!(comparison.is_same_job() && !comparison.is_same_layout() && !comparison.is_comparable());
    let check = find_check(&comparison, JobQuantity::Layout);
    assert_eq!(check.measured_name, "TP 2, PP 4, DP 4, full recomputation");
    assert_eq!(check.planned_name, "TP 4, PP 4, DP 2, no recomputation");
    assert_eq!(
        check.consequence,
        "The run has TP 2, DP 4, full recomputation, the plan TP 4, DP 2, no recomputation. The layouts differ, so the times \
         cannot be compared. Plan the layout of the run."
    );
    let [Correction::Layout(correction)] = comparison.corrections[..] else { panic!("{comparison:?}") };
    assert_eq!(correction.to_string(), "TP 2, full recomputation");
    let changed = corrected(&scenario(&scenario_json()), &comparison.corrections);
    assert_eq!((changed.layout.tensor, changed.layout.pipeline), (Some(2), Some(4)));
    assert_eq!(changed.training.recompute, Recompute::Full);
    let json = serde_json::to_value(comparison.corrections[0]).expect("JSON");
    assert_eq!(json, serde_json::json!({"kind": "layout", "tensor": 2, "recompute": "full"}));
    // TP 5 does not divide 32 devices.
    let odd = LoggedJob { layout: StatedLayout { tensor: Some(5), ..StatedLayout::default() }, ..log() };
    assert!(compare_jobs(&odd, &plan()).corrections.is_empty());
    // Modules with layouts of their own have no degree to compare.
    let placed = PlannedJob { layout: None, ..plan() };
    assert_eq!(find_check(&compare_jobs(&other, &placed), JobQuantity::Layout).agreement, Agreement::NotChecked);
}

/// By the clock, 25.6 samples per second for 30 s are 768 samples of a batch of 512: the rate leaves out time between the steps. Fewer
/// samples than the batch are another job.
#[test]
fn rates_by_the_clock_are_not_checked_above_the_plan() {
    let by_clock = |samples: f64| LoggedJob {
        step_s: Some(30.0),
        is_clock_step: true,
        per_step: StepProducts { samples: Some(samples), ..StepProducts::default() },
        sequence_length: Some(4096.0),
        ..LoggedJob::default()
    };
    let agreement = |log: &LoggedJob, quantity| find_check(&compare_jobs(log, &plan()), quantity).agreement;
    let slow = by_clock(768.0);
    assert_eq!(agreement(&slow, JobQuantity::GlobalBatch), Agreement::NotChecked);
    assert_eq!(agreement(&slow, JobQuantity::TokensPerStep), Agreement::NotChecked);
    assert_eq!(agreement(&by_clock(512.0), JobQuantity::GlobalBatch), Agreement::Same);
    assert_eq!(agreement(&by_clock(256.0), JobQuantity::GlobalBatch), Agreement::Different);
    let printed = LoggedJob { is_clock_step: false, ..slow };
    assert_eq!(agreement(&printed, JobQuantity::GlobalBatch), Agreement::Different);
    let tflop = StepProducts { tflop_per_device: Some(2.0 * 1.5e5 / 32.0), ..StepProducts::default() };
    let flops = LoggedJob { per_step: tflop, is_clock_step: true, ..LoggedJob::default() };
    assert_eq!(agreement(&flops, JobQuantity::FlopsPerStep), Agreement::NotChecked);
}

/// A setting of the log that differs from the plan changes the time of a step.
#[test]
fn other_settings_are_another_layout() {
    let all = StatedLayout {
        sequence_parallel: Some(false),
        sharded_optimizer: Some(false),
        overlapped_gradients: Some(false),
        overlapped_weights: Some(false),
        separate_attention: Some(true),
        ..StatedLayout::default()
    };
    let comparison = compare_jobs(&LoggedJob { layout: all, ..log() }, &plan());
    assert!(comparison.is_same_job() && !comparison.is_same_layout());
    let consequence = &find_check(&comparison, JobQuantity::Layout).consequence;
    let expected = "The run has no sequence parallelism, no distributed optimizer, no overlap of gradient reduction, attention in \
                    separate kernels, the plan sequence parallelism, distributed optimizer, overlap of gradient reduction, fused \
                    attention.";
    assert!(consequence.starts_with(expected), "{consequence}");
    let training = corrected(&scenario(&scenario_json()), &comparison.corrections).training;
    assert!(!training.sequence_parallel && training.zero_stage() == 0 && training.data_overlap <= 0.0);
    assert_eq!(training.attention, AttentionKernel::Unfused);
    let same =
        StatedLayout { sequence_parallel: Some(true), overlapped_weights: Some(false), ..StatedLayout::default() };
    assert!(compare_jobs(&LoggedJob { layout: same, ..log() }, &plan()).is_comparable());
}

/// Settings that have no effect at the degrees of the plan are not compared.
#[test]
fn settings_without_effect_are_not_planned() {
    let planned = |tensor: u32, zero: u32| {
        let mut json = scenario_json();
        json["training"] = serde_json::json!({"zero": zero, "data_overlap": 1.0});
        let degrees = Layout { tensor, pipeline: 4, data: 2, chunks: 1, microbatch: 1, group: None };
        planned::stated_layout(&scenario(&json), degrees)
    };
    let one = planned(4, 1);
    assert_eq!(
        (one.sequence_parallel, one.sharded_optimizer, one.overlapped_weights),
        (Some(true), Some(true), Some(true))
    );
    let fsdp = planned(1, 3);
    assert_eq!((fsdp.sequence_parallel, fsdp.sharded_optimizer, fsdp.overlapped_weights), (None, None, None));
}

/// Qwen2 7B has 2.8 % more operations than Llama-2 7B. Only layers and hidden size distinguish them.
#[test]
fn operations_near_a_formula_do_not_prove_the_model() {
    let near = LoggedJob { layers: None, hidden_size: None, tflops_per_device: Some(156.25 * 1.028), ..log() };
    let check = find_check(&compare_jobs(&near, &plan()), JobQuantity::FlopsPerStep);
    assert_eq!(check.agreement, Agreement::NotChecked);
    assert!(check.derivation.contains("is 2.8 % from the nearest known formula"), "{}", check.derivation);
    let exact = LoggedJob { tflops_per_device: Some(156.25 * 1.008), ..near };
    assert_eq!(find_check(&compare_jobs(&exact, &plan()), JobQuantity::FlopsPerStep).agreement, Agreement::Same);
    // The program counts otherwise: the dimensions of the model are stated.
    let stated = LoggedJob { layers: Some(32.0), hidden_size: Some(4096.0), ..near };
    assert_eq!(find_check(&compare_jobs(&stated, &plan()), JobQuantity::FlopsPerStep).agreement, Agreement::Same);
}
