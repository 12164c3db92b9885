//! Fits of links return the parameters behind a table of collectives.

use super::*;
use crate::cost::Group;
use crate::cost::kernel::Collective;
use planscope_core::cluster::LinkCurve;
use planscope_core::cluster::presets::cluster;
use planscope_core::random::Random;
use planscope_core::units::Seconds;

/// Returns times of a table between `groups` devices, with relative `noise`.
fn table(truth: &Cluster, operations: &[Operation], groups: &[u32], noise: f64, random: &mut Random) -> Vec<Sample> {
    let mut samples = Vec::new();
    for &operation in operations {
        for &ranks in groups {
            for exponent in 10..=30 {
                let bytes = f64::from(1_u32 << exponent);
                let collective = Collective { operation, bytes, ranks, ranks_per_node: ranks };
                let time = Group::spread(truth, ranks, ranks).time(operation, bytes).secs();
                let time = time * (1.0 + noise * (2.0 * random.unit() - 1.0));
                samples.push(Sample { kernel: Kernel::Collective(collective), time: Seconds::from_secs(time) });
            }
        }
    }
    samples
}

fn truth(efficiency: f64, curve: LinkCurve) -> Cluster {
    let mut truth = cluster("h100").unwrap();
    truth.intra_node.efficiency = efficiency;
    truth.intra_node.curve = Some(curve);
    truth
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

/// Tables of one group with efficiency 0.82, and a fixed start or the time of hops. A small-message
/// term with efficiency 1 is a local minimum of the larger sizes.
#[test]
fn an_efficiency_of_0_82_is_found_again() {
    for (start_us, small_bytes) in [(5.0, 0.0), (20.0, 0.0), (70.0, 0.0), (20.0, 5e4), (60.0, 1e3)] {
        let curve = LinkCurve { base_us: start_us, per_rank_us: 0.0, small_bytes, ..LinkCurve::GENERIC };
        let truth = truth(0.82, curve);
        let curves = ["h100", "a100-80gb"].map(|id| cluster(id).unwrap().intra_node.curve);
        for (curve, exponents) in curves.into_iter().chain([None]).zip([10..=30, 20..=33, 13..=27]) {
            let mut start = cluster("h100").unwrap();
            start.intra_node.curve = curve;
            let sample = |exponent: i32| {
                let bytes = libm::exp2(f64::from(exponent));
                let collective = Collective { operation: Operation::AllReduce, bytes, ranks: 8, ranks_per_node: 8 };
                let time = Group::spread(&truth, 8, 8).all_reduce(bytes);
                Sample { kernel: Kernel::Collective(collective), time }
            };
            let samples: Vec<Sample> = exponents.map(sample).collect();
            let fitted = fit(&start, &samples, "made up").cluster;
            let ratio = fitted.intra_node.efficiency / 0.82;
            assert!((ratio - 1.0).abs() < 0.02, "{start_us} {small_bytes}: {:?}", fitted.intra_node);
            for sample in &samples {
                let Kernel::Collective(collective) = sample.kernel else { continue };
                let ratio = Group::spread(&fitted, 8, 8).all_reduce(collective.bytes).secs() / sample.time.secs();
                assert!((ratio - 1.0).abs() < 0.02, "{start_us} {small_bytes}: {ratio} for {collective:?}");
            }
        }
    }
}

#[test]
fn fits_return_the_parameters_of_a_table() {
    let mut random = Random::new(2, 0);
    let operations = [Operation::AllReduce, Operation::AllGather, Operation::AllToAll];
    for round in 0..12 {
        let curve = LinkCurve {
            base_us: between(&mut random, 5.0, 100.0),
            per_rank_us: between(&mut random, 0.5, 20.0),
            small_bytes: between(&mut random, 1e2, 5e5),
            pair: between(&mut random, 0.55, 1.15),
            half_collectives: between(&mut random, 0.55, 1.15),
            all_to_all: between(&mut random, 0.45, 1.15),
        };
        let efficiency = between(&mut random, 0.2, 0.95);
        let truth = truth(efficiency, curve);
        let start = cluster("h100").unwrap();
        let exact = fit(&start, &table(&truth, &operations, &[2, 4, 8], 0.0, &mut random), "made up");
        for coefficient in exact.parts.iter().flat_map(|part| &part.coefficients) {
            let known = coefficient::Coefficient::COLLECTIVE.into_iter().find(|known| known.name() == coefficient.name);
            let Some(expected) = known.map(|known| known.get(&truth)) else { continue };
            let ratio = coefficient.value / expected;
            assert!((ratio - 1.0).abs() < 0.02, "{round}: {coefficient:?}, not {expected}");
        }
        let noisy = table(&truth, &operations, &[2, 4, 8], 0.05, &mut random);
        let fitted = fit(&start, &noisy, "made up").cluster;
        let ratio = fitted.intra_node.efficiency / efficiency;
        assert!((ratio - 1.0).abs() < 0.1, "{round}: {ratio} with {curve:?}");
        for sample in table(&truth, &operations, &[2, 4, 8], 0.0, &mut random) {
            let Kernel::Collective(collective) = sample.kernel else { continue };
            let group = Group::spread(&fitted, collective.ranks, collective.ranks);
            let ratio = group.time(collective.operation, collective.bytes).secs() / sample.time.secs();
            assert!((ratio - 1.0).abs() < 0.1, "{round}: {ratio} for {collective:?}");
        }
    }
}
