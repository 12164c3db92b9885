//! Fits recover the curves that generated the samples and report unfitted coefficients.

mod link;

use super::*;
use crate::cost::Group;
use crate::cost::kernel::{Attention, Collective, MatMul, Product};
use crate::cost::operator::Rates;
use planscope_core::cluster::presets::cluster;
use planscope_core::units::Seconds;

fn products() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for m in [64.0, 512.0, 1024.0, 4096.0] {
        for k in [1024.0, 4096.0, 8192.0] {
            for n in [1024.0, 6144.0, 24_576.0] {
                for product in [Product::Forward, Product::InputGrad, Product::WeightGrad] {
                    kernels.push(Kernel::MatMul(MatMul { batch: 1.0, m, k, n, product, format: Format::Bf16 }));
                }
            }
        }
    }
    kernels
}

#[test]
fn a_device_that_follows_the_curves_is_found_again() {
    let mut truth = cluster("h100").unwrap();
    truth.device.matmul_efficiency = 0.61;
    truth.device.launch_us = 7.0;
    let rates = Rates::new(&truth.device);
    let samples: Vec<Sample> =
        products().into_iter().map(|kernel| Sample { kernel, time: rates.time(&kernel) }).collect();
    let fitted = fit(&cluster("h100").unwrap(), &samples, "made up");
    let report = &fitted.parts[0];
    assert!(report.fitted && report.mean_residual < 0.02, "{report:?}");
    assert_eq!(fitted.cluster.device.curves.as_ref().unwrap().calibration.matmul, samples.len() as u32);
    let again = fit(&cluster("h100").unwrap(), &samples, "made up");
    assert_eq!(fitted, again, "a fit is deterministic");
}

fn attention(backward: bool) -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for sequences in [1.0, 4.0, 16.0] {
        for length in [512.0, 1024.0, 2048.0, 4096.0, 8192.0] {
            kernels.push(Kernel::Attention(Attention {
                tokens: sequences * length,
                squared: sequences * length * length,
                heads: 32.0,
                kv_heads: 8.0,
                qk_dim: 128.0,
                v_dim: 128.0,
                causal: true,
                backward,
            }));
        }
    }
    kernels
}

/// Returns timings for attention efficiency 0.5 and backward factor 0.9.
fn attention_timings(backward: &[bool]) -> (Cluster, Vec<Sample>) {
    let mut truth = cluster("h100").unwrap();
    truth.device.attention_efficiency = 0.5;
    let curves = truth.device.curves.as_mut().unwrap();
    (curves.attention.backward, curves.sustained) = (0.9, 1.0);
    let rates = Rates::new(&truth.device);
    let kernels = backward.iter().flat_map(|&backward| attention(backward));
    (truth.clone(), kernels.map(|kernel| Sample { kernel, time: rates.time(&kernel) }).collect())
}

fn coefficient<'a>(fitted: &'a Fitted, name: &str) -> &'a CoefficientReport {
    let mut all = fitted.parts.iter().flat_map(|part| &part.coefficients);
    all.find(|coefficient| coefficient.name == name).unwrap()
}

/// Forward timings change only the efficiency, backward timings only the factor. Both together
/// change both.
#[test]
fn the_attention_backward_is_fitted_only_where_it_was_timed() {
    const BACKWARD: &str = "device.curves.attention.backward";
    let start = cluster("h100").unwrap();
    let backward = |fitted: &Fitted| fitted.cluster.device.curves.as_ref().unwrap().attention.backward;
    for passes in [&[false][..], &[true], &[false, true]] {
        let (_, samples) = attention_timings(passes);
        let fitted = fit(&start, &samples, "made up");
        let report = &fitted.parts[1];
        assert!(report.fitted && report.mean_residual < 0.02, "{passes:?}: {report:?}");
        let forward_changed = passes.contains(&false);
        let efficiency = fitted.cluster.device.attention_efficiency;
        if forward_changed {
            assert!((efficiency - 0.5).abs() < 0.02, "{passes:?}: {efficiency}");
        } else {
            assert_eq!(efficiency.to_bits(), start.device.attention_efficiency.to_bits());
        }
        if passes.contains(&true) {
            assert_eq!(coefficient(&fitted, BACKWARD).shapes, 15);
        } else {
            assert_eq!(
                backward(&fitted).to_bits(),
                backward(&Fitted { cluster: start.clone(), parts: vec![] }).to_bits()
            );
            let report = coefficient(&fitted, BACKWARD);
            assert_eq!((report.shapes, report.outcome), (0, Outcome::Unchanged(Unchanged::NoBatchClock)));
        }
        if passes.len() == 2 {
            assert!((backward(&fitted) - 0.9).abs() < 0.02, "{}", backward(&fitted));
        }
    }
}

/// Timings three times faster than the upper bound allows. The report shows the bound.
#[test]
fn a_coefficient_at_its_bound_is_reported() {
    let (_, mut samples) = attention_timings(&[false]);
    for sample in &mut samples {
        sample.time = Seconds::from_secs(sample.time.secs() / 3.0);
    }
    let fitted = fit(&cluster("h100").unwrap(), &samples, "made up");
    let report = coefficient(&fitted, "device.attention_efficiency");
    assert_eq!(report.outcome, Outcome::Fitted(Some(Bound::Upper)));
    assert!((report.value - 1.0).abs() < 1e-3);
}

/// Exactly predicted timings, and timings that no fit improves, do not change coefficients.
#[test]
fn a_fit_never_ends_with_a_larger_residual() {
    let start = cluster("h100").unwrap();
    let mut isolated = start.clone();
    isolated.device.curves.as_mut().unwrap().sustained = 1.0;
    let rates = Rates::new(&isolated.device);
    let exact: Vec<Sample> =
        products().into_iter().map(|kernel| Sample { kernel, time: rates.time(&kernel) }).collect();
    let fitted = fit(&start, &exact, "made up");
    assert!(fitted.parts[0].mean_residual <= fitted.parts[0].mean_before);
    let (before, after) = (&start.device, &fitted.cluster.device);
    assert!((before.matmul_efficiency - after.matmul_efficiency).abs() < 1e-9);
    // A single timing is ten times longer. A fit weighted by duration would follow it.
    for (index, sample) in exact.iter().enumerate() {
        let mut noisy = exact.clone();
        noisy[index].time = Seconds::from_secs(sample.time.secs() * 10.0);
        if index % 36 == 0 {
            let report = &fit(&start, &noisy, "made up").parts[0];
            assert!(report.mean_residual <= report.mean_before, "{report:?}");
        }
    }
}

/// A link without timings does not change, with or without a curve.
#[test]
fn unmeasured_coefficients_stay_unchanged() {
    let mut without = cluster("h100").unwrap();
    without.intra_node = planscope_core::cluster::Link { latency_us: 3.0, curve: None, ..without.intra_node };
    let rates = Rates::new(&without.device);
    let samples: Vec<Sample> =
        products().into_iter().map(|kernel| Sample { kernel, time: rates.time(&kernel) }).collect();
    assert_eq!(fit(&without, &samples, "made up").cluster.intra_node, without.intra_node);
}

#[test]
fn collectives_inside_a_node_are_recovered_and_others_ignored() {
    let mut truth = cluster("a100-80gb").unwrap();
    truth.intra_node.efficiency = 0.7;
    let mut samples = Vec::new();
    for ranks in [2, 4, 8] {
        for power in 20..30 {
            let collective = Collective {
                operation: Operation::AllReduce,
                bytes: f64::from(1 << power),
                ranks,
                ranks_per_node: ranks,
            };
            let time = Group::spread(&truth, ranks, ranks).time(collective.operation, collective.bytes);
            samples.push(Sample { kernel: Kernel::Collective(collective), time });
            let across = Collective { ranks_per_node: 1, ..collective };
            samples.push(Sample { kernel: Kernel::Collective(across), time });
        }
    }
    let fitted = fit(&cluster("a100-80gb").unwrap(), &samples, "made up");
    let collectives = fitted.parts.iter().find(|part| part.part.starts_with("collectives")).unwrap();
    assert!(collectives.fitted && collectives.mean_residual < 0.03, "{collectives:?}");
    assert_eq!(collectives.samples, 30);
    assert!(fitted.parts.iter().any(|part| part.part == "others" && part.samples == 30));
}

/// Eight sizes of an all-gather on a machine whose factor is 0.9 determine that factor and nothing else.
#[test]
fn eight_sizes_determine_a_collective_factor() {
    let before = cluster("h100").unwrap();
    let mut truth = before.clone();
    let curve = truth.intra_node.curve.get_or_insert(planscope_core::cluster::LinkCurve::GENERIC);
    curve.half_collectives = 0.9;
    let sample = |exponent: u32| {
        let collective = Collective {
            operation: Operation::AllGather,
            bytes: f64::from(1_u32 << exponent),
            ranks: 8,
            ranks_per_node: 8,
        };
        let time = Group::spread(&truth, 8, 8).time(collective.operation, collective.bytes);
        Sample { kernel: Kernel::Collective(collective), time }
    };
    let samples: Vec<Sample> = (20..28).map(sample).collect();
    let fitted = fit(&before, &samples, "all_gather");
    let curve = fitted.cluster.intra_node.curve.unwrap();
    assert!((curve.half_collectives - 0.9).abs() < 1e-3, "{curve:?}");
    assert!((fitted.cluster.intra_node.efficiency - before.intra_node.efficiency).abs() < f64::EPSILON);
}

#[test]
fn too_few_timings_are_reported_and_change_nothing() {
    let before = cluster("h100").unwrap();
    let kernel = products()[0];
    let fitted = fit(&before, &[Sample { kernel, time: Seconds::from_micros(50.0) }], "one");
    assert!(!fitted.parts[0].fitted && fitted.parts[0].note.contains("too few"));
    assert!((fitted.cluster.device.matmul_efficiency - before.device.matmul_efficiency).abs() < f64::EPSILON);
    assert!(fitted.parts[1].note.contains("no timings"));
}
