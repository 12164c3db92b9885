//! A fit finds the curves that made the samples, and says what it could not fit.

use super::*;
use crate::cluster::presets::cluster;
use crate::cost::Group;
use crate::cost::kernel::{Collective, MatMul, Product};
use crate::cost::operator::Rates;
use crate::units::Seconds;

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
    let rates = Rates::of(&truth.device);
    let samples: Vec<Sample> =
        products().into_iter().map(|kernel| Sample { kernel, time: rates.time(&kernel) }).collect();
    let fitted = fit(&cluster("h100").unwrap(), &samples, "made up");
    let report = &fitted.parts[0];
    assert!(report.fitted && report.mean_residual < 0.02, "{report:?}");
    assert_eq!(fitted.cluster.device.curves.as_ref().unwrap().calibration.matmul, samples.len() as u32);
    let again = fit(&cluster("h100").unwrap(), &samples, "made up");
    assert_eq!(fitted, again, "a fit is deterministic");
}

/// A link that no timing speaks of is as it was, with a curve of its own or without one.
#[test]
fn what_was_not_measured_stays() {
    let mut without = cluster("h100").unwrap();
    without.intra_node = crate::cluster::Link { latency_us: 3.0, curve: None, ..without.intra_node };
    let rates = Rates::of(&without.device);
    let samples: Vec<Sample> =
        products().into_iter().map(|kernel| Sample { kernel, time: rates.time(&kernel) }).collect();
    assert_eq!(fit(&without, &samples, "made up").cluster.intra_node, without.intra_node);
}

#[test]
fn collectives_of_a_node_are_found_again_and_those_across_nodes_left_out() {
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

#[test]
fn too_few_timings_are_reported_and_change_nothing() {
    let before = cluster("h100").unwrap();
    let kernel = products()[0];
    let fitted = fit(&before, &[Sample { kernel, time: Seconds::from_micros(50.0) }], "one");
    assert!(!fitted.parts[0].fitted && fitted.parts[0].note.contains("too few"));
    assert!((fitted.cluster.device.matmul_efficiency - before.device.matmul_efficiency).abs() < f64::EPSILON);
    assert!(fitted.parts[1].note.contains("no timings"));
}
