mod stated;

use super::planned::{ModelShape, Spread};
use super::*;
use crate::run_comparison::flop_formula::{StepFlops, step_flops};
use planscope_core::training::{AttentionKernel, Precision, Recompute};
use planscope_plan::outcome::{BatchSummary, Layout};
use planscope_plan::scenario::{Scenario, parse};

/// 32 devices, 512 sequences with 4,096 tokens, 1.5e17 FLOPs per step.
fn plan() -> PlannedJob {
    let exact = |value| Spread { min: value, mean: value, max: value };
    PlannedJob {
        devices: 32.0,
        samples: 512.0,
        sequences: exact(512.0),
        is_packed: false,
        shape: Some(ModelShape {
            layers: 32.0,
            hidden: 4096.0,
            feed_forward: 11_008.0,
            heads: 32.0,
            kv_heads: 32.0,
            experts: 0.0,
            vocabulary: 32_000.0,
        }),
        context_length: 4096.0,
        tokens: exact(2_097_152.0),
        padded_tokens: exact(2_097_152.0),
        flops: vec![StepFlops { formula: FlopFormula::Model, flops: 1.5e17 }],
        peak_tflops: 312.0,
        memory_gib: 80.0,
        trained_parameters: 6.738e9,
        modules: Vec::new(),
        precision: Precision::Bf16,
        device: DeviceName::find("A100-80GB"),
        layout: Some(StatedLayout {
            tensor: Some(4),
            pipeline: Some(4),
            context: Some(1),
            expert: Some(1),
            data: Some(2),
            chunks: Some(1),
            microbatch: Some(1),
            recompute: Some(Recompute::None),
            sequence_parallel: Some(true),
            sharded_optimizer: Some(true),
            overlapped_gradients: Some(true),
            overlapped_weights: Some(false),
            separate_attention: Some(false),
        }),
    }
}

/// The same job at a lower speed: 30 s per step, 1.5e17 / 32 / 30 s = 156.25 TFLOP/s, 2,097,152 /
/// 30 s = 69,905 tokens/s.
fn log() -> LoggedJob {
    LoggedJob {
        step_s: Some(30.0),
        global_batch: Some(512.0),
        tokens_per_s: Some(69_900.0),
        tokens_per_s_per_device: Some(2_184.4),
        tflops_per_device: Some(156.2),
        memory_gib: Some(61.0),
        layers: Some(32.0),
        hidden_size: Some(4096.0),
        precision: StatedPrecision { is_fp8: Some(false), base: Some(BaseFormat::Bf16) },
        device: DeviceName::find("NVIDIA A100-SXM4-80GB"),
        layout: StatedLayout { tensor: Some(4), pipeline: Some(4), ..StatedLayout::default() },
        ..LoggedJob::default()
    }
}

fn agreements(log: &LoggedJob, plan: &PlannedJob) -> Vec<Agreement> {
    compare_jobs(log, plan).checks.iter().map(|check| check.agreement).collect()
}

fn scenario(json: &serde_json::Value) -> Scenario {
    parse(&json.to_string()).expect("a scenario")
}

fn scenario_json() -> serde_json::Value {
    serde_json::json!({
        "schema": "scenario/1",
        "model": {"preset": "llama-2-7b"},
        "cluster": {"preset": "a100-80gb", "nodes": 4},
        "workload": {
            "samples": {
                "kind": "drawn",
                "text_tokens": {"kind": "constant", "value": 4096},
                "images": {"kind": "constant", "value": 0}
            },
            "global_batch": 512,
            "context_length": 4096,
            "packing": "packed"
        },
        "layout": {"tensor": 4, "pipeline": 4},
        "planners": ["1f1b"]
    })
}

#[test]
fn slow_run_agrees_in_every_check() {
    let comparison = compare_jobs(&log(), &plan());
    assert!(comparison.checks.iter().all(|check| check.agreement == Agreement::Same), "{comparison:?}");
    assert!(comparison.is_same_job() && comparison.corrections.is_empty());
    assert_eq!(comparison.formulas, [FlopFormula::Model]);
    assert!(comparison.checks.iter().all(|check| check.consequence.is_empty()));
    let summary = comparison.summary();
    assert!(summary.starts_with("Log and plan agree in: global batch size"), "{summary}");
    assert!(summary.ends_with("; TFLOP/s are below the device peak; memory is below the device memory."), "{summary}");
}

/// Step time 15.9 % lower and TFLOP/s 42.9 % lower than in the plan: 0.841 x 0.571 = 0.480 of the
/// FLOPs.
#[test]
fn a_faster_step_with_fewer_operations_per_second_is_another_job() {
    let plan_step_s = 1.5e17 / 32.0 / 200e12;
    let other =
        LoggedJob { step_s: Some(0.841 * plan_step_s), tflops_per_device: Some(0.571 * 200.0), ..LoggedJob::default() };
    let comparison = compare_jobs(&other, &plan());
    let different: Vec<JobQuantity> = comparison.differences().map(|check| check.quantity).collect();
    assert_eq!(different, [JobQuantity::FlopsPerStep]);
    let flops = comparison.differences().next().expect("one");
    assert!((flops.measured.expect("derived") / 1.5e17 - 0.480).abs() < 1e-3);
    assert!(
        comparison.formulas.is_empty() && comparison.corrections.is_empty(),
        "the log states nothing to correct by"
    );
}

#[test]
fn empty_log_is_not_checked_and_names_missing_values() {
    let comparison = compare_jobs(&LoggedJob { step_s: Some(1.0), ..LoggedJob::default() }, &plan());
    assert!(comparison.checks.iter().all(|check| check.agreement == Agreement::NotChecked));
    assert!(comparison.checks.iter().all(|check| check.derivation.starts_with("the log states n")));
    assert!(comparison.is_same_job());
}

/// A log with the dimensions of another dense model corrects the scenario to this model and to one chunk of 1F1B.
#[test]
fn another_model_is_corrected_to_the_stated_dimensions() {
    let stated = LoggedJob {
        layers: Some(64.0),
        hidden_size: Some(8192.0),
        attention_heads: Some(32.0),
        feed_forward_size: Some(32_768.0),
        layout: StatedLayout { chunks: Some(1), ..StatedLayout::default() },
        ..log()
    };
    let comparison = compare_jobs(&stated, &plan());
    let model = comparison.corrections.iter().find(|correction| matches!(correction, Correction::Model(_)));
    assert_eq!(model.map(|model| model.describe()).as_deref(), Some("64 layers, width 8192, 32 heads"));
    let mut interleaved = scenario_json();
    interleaved["planners"] = serde_json::json!(["interleaved"]);
    let chunks = Correction::Layout(StatedLayout { chunks: Some(1), ..StatedLayout::default() });
    let changed = corrected(&scenario(&interleaved), &[*model.unwrap(), chunks]);
    let module = &changed.model.modules[0];
    assert_eq!((module.layers, module.hidden, module.heads, module.kv_heads), (64, 8192, 32, 32));
    assert_eq!((module.ffn, module.head_dim()), (32_768, 256));
    assert_eq!(changed.planners[0].id(), "1f1b");
    // Without the number of heads, the model is not known.
    let partial = LoggedJob { attention_heads: None, ..stated };
    let comparison = compare_jobs(&partial, &plan());
    assert!(!comparison.corrections.iter().any(|correction| matches!(correction, Correction::Model(_))));
}

/// Four times the batch in four times the time: samples, tokens and FLOPs differ, but FLOPs per
/// sample agree.
#[test]
fn another_batch_is_corrected_and_explains_the_operations() {
    let large = LoggedJob { step_s: Some(120.0), global_batch: Some(2048.0), ..log() };
    let comparison = compare_jobs(&large, &plan());
    let different: Vec<JobQuantity> = comparison.differences().map(|check| check.quantity).collect();
    assert_eq!(different, [JobQuantity::GlobalBatch, JobQuantity::TokensPerStep, JobQuantity::FlopsPerStep]);
    assert_eq!(comparison.corrections, [Correction::GlobalBatch { samples: 2048 }]);
    assert_eq!(comparison.formulas, [FlopFormula::Model]);
    let flops = comparison.checks.iter().find(|check| check.quantity == JobQuantity::FlopsPerStep).expect("checked");
    assert!(flops.consequence.contains("follows from the batch size"), "{}", flops.consequence);
    let changed = corrected(&scenario(&scenario_json()), &comparison.corrections);
    assert_eq!(changed.workload.global_batch, 2048);
}

/// 512 samples per step and 17,500 x 30 s = 525,000 tokens, 1,025 per sample. The log states no
/// sequence length, so no correction is offered. If it states 1,024, the correction is offered.
#[test]
fn another_context_length_is_offered_where_the_log_states_it() {
    let short =
        LoggedJob { tokens_per_s: Some(17_500.0), tokens_per_s_per_device: None, tflops_per_device: None, ..log() };
    let comparison = compare_jobs(&short, &plan());
    let different: Vec<JobQuantity> = comparison.differences().map(|check| check.quantity).collect();
    assert_eq!(different, [JobQuantity::TokensPerStep]);
    assert!(comparison.corrections.is_empty(), "{:?}", comparison.corrections);
    let comparison = compare_jobs(&LoggedJob { sequence_length: Some(1024.0), ..short }, &plan());
    assert_eq!(comparison.corrections, [Correction::ContextLength { tokens: 1024 }]);
    let changed = corrected(&scenario(&scenario_json()), &comparison.corrections);
    assert_eq!(changed.workload.context_length, 1024);
    assert_eq!(
        serde_json::to_value(&changed.workload.samples).expect("JSON")["text_tokens"]["value"],
        1024,
        "samples fill their sequences"
    );
}

/// A Megatron-LM log whose arguments state 512 sequences of 2,048 tokens, on 64 processes.
#[test]
fn stated_arguments_are_checked_without_rates() {
    let stated = LoggedJob {
        tokens_per_s: None,
        tokens_per_s_per_device: None,
        tflops_per_device: None,
        sequence_length: Some(2048.0),
        devices: Some(64.0),
        ..log()
    };
    let comparison = compare_jobs(&stated, &plan());
    assert_eq!(
        comparison.corrections,
        [Correction::ContextLength { tokens: 2048 }, Correction::Devices { devices: 64 }]
    );
    let tokens = comparison.checks.iter().find(|check| check.quantity == JobQuantity::TokensPerStep).expect("checked");
    assert_eq!(
        (tokens.measured, tokens.derivation.as_str()),
        (Some(1_048_576.0), "global batch size x sequence length")
    );
}

/// A log of a GPT model with 64 layers and hidden size 11,600. Corrections of batch or devices
/// cannot match it to a Llama model.
#[test]
fn another_model_is_recognised_by_dimensions() {
    let gpt = LoggedJob { layers: Some(64.0), hidden_size: Some(11_600.0), tflops_per_device: None, ..log() };
    let comparison = compare_jobs(&gpt, &plan());
    let different: Vec<JobQuantity> = comparison.differences().map(|check| check.quantity).collect();
    assert_eq!(different, [JobQuantity::Layers, JobQuantity::HiddenSize]);
    assert!(comparison.corrections.is_empty());
    // A model with several modules has no such dimensions.
    let several = PlannedJob { shape: None, ..plan() };
    assert!(compare_jobs(&gpt, &several).is_same_job());
}

/// Further Megatron-LM arguments: 32,000 tokens are padded to a vocabulary of 32,768 for TP 8; the
/// other values are exact.
#[test]
fn stated_model_arguments_are_checked() {
    let same = LoggedJob {
        feed_forward_size: Some(11_008.0),
        attention_heads: Some(32.0),
        kv_heads: Some(32.0),
        experts: Some(0.0),
        vocabulary: Some(32_768.0),
        trained_parameters: Some(6_738_415_616.0),
        ..log()
    };
    let comparison = compare_jobs(&same, &plan());
    assert!(comparison.is_same_job(), "{comparison:?}");
    assert_eq!(comparison.checks.len(), 8 + 9);
    let other = LoggedJob {
        feed_forward_size: Some(14_336.0),
        attention_heads: Some(64.0),
        kv_heads: Some(8.0),
        experts: Some(8.0),
        vocabulary: Some(128_256.0),
        precision: StatedPrecision { is_fp8: Some(true), base: Some(BaseFormat::Bf16) },
        device: DeviceName::find("NVIDIA H100"),
        ..same
    };
    let comparison = compare_jobs(&other, &plan());
    let different: Vec<JobQuantity> = comparison.differences().map(|check| check.quantity).collect();
    assert_eq!(
        different,
        [
            JobQuantity::FeedForwardSize,
            JobQuantity::AttentionHeads,
            JobQuantity::KvHeads,
            JobQuantity::Experts,
            JobQuantity::Vocabulary,
            JobQuantity::ProductBits,
            JobQuantity::Device,
        ]
    );
    let names: Vec<(&str, &str)> = comparison
        .differences()
        .map(|check| (check.measured_name.as_str(), check.planned_name.as_str()))
        .filter(|(measured, _)| !measured.is_empty())
        .collect();
    assert_eq!(names, [("fp8", "bf16"), ("H100", "A100")]);
}

/// LoRA trains 20 million of 6.7 billion parameters. 6.738e9 / 32 is one of 32 shards.
#[test]
fn adapters_are_another_job_than_the_full_model() {
    let trained = |count: f64| LoggedJob { trained_parameters: Some(count), ..LoggedJob::default() };
    let comparison = compare_jobs(&trained(20_277_248.0), &plan());
    let [check] = comparison.differences().collect::<Vec<_>>()[..] else { panic!("{comparison:?}") };
    assert_eq!((check.quantity, check.measured), (JobQuantity::TrainedParameters, Some(20_277_248.0)));
    assert!(check.consequence.starts_with("The log trains 20277248 parameters"), "{}", check.consequence);
    assert!(compare_jobs(&trained(6.738e9 / 32.0), &plan()).is_same_job());
    assert!(compare_jobs(&trained(6.8e9), &plan()).is_same_job());
    for other in [13_015_864_320.0, 9.5e9, 7.0e9, 6.9e9, 6.6e9, 7.0e10] {
        assert!(!compare_jobs(&trained(other), &plan()).is_same_job(), "{other}");
    }
}

/// 69,900 tokens/s in total and 1,456 per device give 48.008 devices, in six nodes with eight
/// devices. TP 4 x PP 4 does not divide 20.
#[test]
fn devices_follow_from_both_token_rates() {
    let wide = LoggedJob { tokens_per_s_per_device: Some(1_456.0), tflops_per_device: None, ..log() };
    let comparison = compare_jobs(&wide, &plan());
    let devices = comparison.differences().find(|check| check.quantity == JobQuantity::Devices).expect("checked");
    assert_eq!(devices.measured, Some(48.0));
    assert!(comparison.corrections.is_empty(), "the log states no number of devices");
    let comparison = compare_jobs(&LoggedJob { devices: Some(48.0), ..wide }, &plan());
    assert_eq!(comparison.corrections, [Correction::Devices { devices: 48 }]);
    let changed = corrected(&scenario(&scenario_json()), &comparison.corrections);
    assert_eq!((changed.cluster.nodes, changed.cluster.devices_per_node), (6, 8));
    assert_eq!(changed.layout.tensor, Some(4));
    let odd = corrected(&scenario(&scenario_json()), &[Correction::Devices { devices: 20 }]);
    assert_eq!((odd.cluster.nodes, odd.cluster.devices_per_node), (4, 5));
    assert_eq!((odd.layout.tensor, odd.layout.pipeline), (None, None));
    // Rates of three digits: 3.94 million and 7,700 tokens/s are 511.7 devices, which is the planned 512.
    let many = PlannedJob { devices: 512.0, ..plan() };
    let rounded = LoggedJob { tokens_per_s: Some(3.94e6), tokens_per_s_per_device: Some(7_700.0), ..wide };
    let check = &compare_jobs(&rounded, &many).checks[2];
    assert_eq!((check.agreement, check.measured), (Agreement::Same, Some(512.0)));
    // A ratio that is no whole number of devices gives no count.
    let blurred = LoggedJob { tokens_per_s_per_device: Some(48_000.0), ..wide };
    assert_eq!(agreements(&blurred, &plan())[2], Agreement::NotChecked);
}

#[test]
fn values_above_the_device_peak_indicate_another_device() {
    let above = LoggedJob { tflops_per_device: Some(400.0), memory_gib: Some(120.0), step_s: None, ..log() };
    let different: Vec<JobQuantity> = compare_jobs(&above, &plan()).differences().map(|check| check.quantity).collect();
    assert_eq!(different, [JobQuantity::PeakTflops, JobQuantity::DeviceMemory]);
}

/// Tokens agree within the tolerance of 10 %. A stated batch size must match exactly.
#[test]
fn tolerances_are_those_documented() {
    let with_tokens = |factor: f64| LoggedJob {
        tokens_per_s: Some(2_097_152.0 / 30.0 * factor),
        tokens_per_s_per_device: None,
        ..log()
    };
    for (factor, agreement) in
        [(0.91, Agreement::Same), (1.09, Agreement::Same), (0.89, Agreement::Different), (1.11, Agreement::Different)]
    {
        assert_eq!(agreements(&with_tokens(factor), &plan())[1], agreement, "{factor}");
    }
    let with_batch = |samples: f64| LoggedJob { global_batch: Some(samples), ..log() };
    assert_eq!(agreements(&with_batch(513.0), &plan())[0], Agreement::Different);
    let by_rate = |samples: f64| LoggedJob { global_batch: None, samples_per_s: Some(samples / 30.0), ..log() };
    assert_eq!(agreements(&by_rate(514.0), &plan())[0], Agreement::Same);
    assert_eq!(agreements(&by_rate(520.0), &plan())[0], Agreement::Different);
}

/// 512 samples packed into 120 to 136 sequences. A framework that reports sequences states 128.
#[test]
fn packed_batches_count_sequences() {
    let packed = PlannedJob {
        sequences: Spread { min: 120.0, mean: 128.0, max: 136.0 },
        is_packed: true,
        tokens: Spread { min: 5.0e5, mean: 5.2e5, max: 5.4e5 },
        padded_tokens: Spread { min: 4.9e5, mean: 5.24e5, max: 5.6e5 },
        ..plan()
    };
    let stated = |samples: f64| LoggedJob { global_batch: Some(samples), ..LoggedJob::default() };
    assert_eq!(agreements(&stated(128.0), &packed)[0], Agreement::Same);
    assert_eq!(agreements(&stated(512.0), &packed)[0], Agreement::Same);
    let comparison = compare_jobs(&stated(256.0), &packed);
    let batch = comparison.differences().next().expect("another batch");
    assert_eq!((batch.measured, batch.planned), (Some(256.0), 128.0));
    assert_eq!(batch.derivation, "stated by the log; the plan has 128 sequences packed from 512 samples");
    assert!(batch.consequence.ends_with("set the global batch by hand."), "{}", batch.consequence);
    assert!(comparison.corrections.is_empty(), "256 sequences are no number of samples");
}

/// A log of 512 samples, and a plan of 55,000 samples packed into 2,066 sequences. The log does not
/// contain 512 x 55,000 / 2,066 = 13,630.
#[test]
fn corrections_offer_only_stated_values() {
    let exact = |value| Spread { min: value, mean: value, max: value };
    let packed = PlannedJob { samples: 55_000.0, sequences: exact(2_066.0), is_packed: true, ..plan() };
    let stated = LoggedJob { global_batch: Some(512.0), ..LoggedJob::default() };
    let comparison = compare_jobs(&stated, &packed);
    assert_eq!(agreements(&stated, &packed)[0], Agreement::Different);
    assert!(comparison.corrections.is_empty(), "{:?}", comparison.corrections);
    // If each sample fills a sequence, samples and sequences are equal in number.
    let full = PlannedJob { samples: 2_066.0, ..packed };
    let comparison = compare_jobs(&stated, &full);
    assert_eq!(comparison.corrections, [Correction::GlobalBatch { samples: 512 }]);
    // A rate gives 511.5 samples, which is a mean step and not a batch size.
    let by_rate = LoggedJob { samples_per_s: Some(51.15), step_s: Some(10.0), ..LoggedJob::default() };
    let comparison = compare_jobs(&by_rate, &full);
    assert!(!comparison.is_same_job() && comparison.corrections.is_empty());
}

fn batch(sequences: u32, tokens: u64) -> BatchSummary {
    BatchSummary { samples: sequences, sequences, tokens, images: 0, audio_clips: 0, video_ms: 0, truncated: 0 }
}

fn relative(measured: f64, expected: f64) -> f64 {
    (measured / expected - 1.0).abs()
}

/// `num_floating_point_operations` from Megatron-LM: 12 B s L h² (1 + kv/a + 3/2 f/h + s/h + V/(2 L
/// h)).
#[test]
fn full_attention_matches_the_megatron_formula() {
    let scenario = scenario(&scenario_json());
    let all = step_flops(&scenario, &[batch(512, 512 * 4096)], 1.0);
    let (b, s, l, h, f, v): (f64, f64, f64, f64, f64, f64) = (512.0, 4096.0, 32.0, 4096.0, 11008.0, 32000.0);
    let inner = |attention: f64| 2.0 + 1.5 * f / h + attention * s / h + v / (2.0 * l * h);
    let expected = |attention: f64| 12.0 * b * s * l * h * h * inner(attention);
    assert_eq!(all[1].formula, FlopFormula::FullAttention);
    assert!(relative(all[1].flops, expected(1.0)) < 1e-12, "{}", all[1].flops);
    assert!(relative(all[2].flops, expected(0.5)) < 1e-12, "{}", all[2].flops);
}

/// Narayanan et al. (2021), Eq. 2: 96 B s l h² (1 + s/(6 h) + V/(16 l h)), for a GPT model with f =
/// 4 h.
#[test]
fn full_recomputation_matches_the_paper_formula() {
    let mut document = scenario_json();
    document["model"] = serde_json::json!({"preset": "gpt-3-175b"});
    document["workload"]["context_length"] = serde_json::json!(2048);
    let scenario = scenario(&document);
    let module = scenario.model.backbone().expect("a language model");
    let (l, h, v) = (f64::from(module.layers), f64::from(module.hidden), f64::from(module.vocab));
    let all = step_flops(&scenario, &[batch(1536, 1536 * 2048)], 1.0);
    let expected = 96.0 * 1536.0 * 2048.0 * l * h * h * (1.0 + 2048.0 / (6.0 * h) + v / (16.0 * l * h));
    assert_eq!(all[3].formula, FlopFormula::FullRecompute);
    assert!(relative(all[3].flops, expected) < 1e-12, "{}", all[3].flops);
}

#[test]
fn encoder_models_have_only_the_model_formula() {
    let mut document = scenario_json();
    document["model"] = serde_json::json!({"preset": "vlm-s"});
    let all = step_flops(&scenario(&document), &[batch(512, 1)], 7.0);
    assert_eq!(all, [StepFlops { formula: FlopFormula::Model, flops: 7.0 }]);
}

/// A log that includes recomputation in the FLOPs matches the job, and the formula is reported.
#[test]
fn recomputation_in_the_log_is_named() {
    let plan = PlannedJob {
        flops: vec![
            StepFlops { formula: FlopFormula::Model, flops: 1.5e17 },
            StepFlops { formula: FlopFormula::FullRecompute, flops: 2.0e17 },
        ],
        ..plan()
    };
    let counted = LoggedJob { tflops_per_device: Some(2.0e17 / 32.0 / 30.0 * 1e-12), ..log() };
    let comparison = compare_jobs(&counted, &plan);
    assert!(comparison.is_same_job(), "{comparison:?}");
    assert_eq!(comparison.formulas, [FlopFormula::FullRecompute]);
}
