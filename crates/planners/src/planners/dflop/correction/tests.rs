#![allow(clippy::float_cmp, reason = "small sums of numbers that are exact, or the same sum twice")]

use super::*;
use crate::planners::dflop::partition::PartitionSettings;
use planscope_core::random::Random;

const QUICK: PartitionSettings = PartitionSettings { steps: 100_000, gap: 1e-3 };

/// Batches with 128 items from 200 shapes. The probability for shape s is about proportional to 1 /
/// s, so rare shapes dominate.
fn batches(count: u64) -> Vec<Vec<ShapedItem>> {
    let batch = |stream| {
        let mut random = Random::new(5, stream);
        let item = |random: &mut Random| {
            let shape = libm::exp(random.unit() * libm::log(200.0)) as u32;
            let size = 1.0 + f64::from(shape * 37 % 200) / 40.0;
            ShapedItem { item: Item { encoder: 0.8 * size, backbone: size }, shape }
        };
        (0..128).map(|_| item(&mut random)).collect()
    };
    (0..count).map(batch).collect()
}

fn simulated(rate: f64, magnitude: f64) -> Simulated {
    let anomalies = Anomalies { rate, magnitude, seed: 2 };
    simulate(
        &batches(60),
        Pipelines { copies: 4, microbatches: 4, depth: 3 },
        anomalies,
        CorrectionSettings::default(),
        QUICK,
    )
    .unwrap()
}

/// Predicted 100, measured 80: ratio 1.25. Another pair, 100 and 50, results in (1.25 + 2) / 2.
#[test]
fn penalties_are_mean_ratios() {
    let mut correction = Correction::new(CorrectionSettings::default());
    correction.observe(3, 100.0, 80.0);
    assert!((correction.penalty(3) - 1.25).abs() < 1e-12);
    correction.observe(3, 100.0, 50.0);
    assert!((correction.penalty(3) - 1.625).abs() < 1e-12);
    // Noise, invalid rates, and an unmeasured shape.
    correction.observe(4, 100.0, 97.0);
    correction.observe(5, 100.0, 0.0);
    correction.observe(5, f64::NAN, 100.0);
    assert_eq!([4, 5, 6].map(|shape| correction.penalty(shape)), [1.0; 3]);
    let item = ShapedItem { item: Item { encoder: 2.0, backbone: 4.0 }, shape: 3 };
    assert_eq!(correction.corrected(&[item]), [Item { encoder: 3.25, backbone: 6.5 }]);
}

#[test]
fn it_switches_itself_off_where_it_does_not_pay() {
    for (benefits, mean, on) in [([0.04, 0.04], 0.04, false), ([0.01, 0.08], 0.045, true), ([0.5, -0.43], 0.035, false)]
    {
        let mut correction = Correction::new(CorrectionSettings { iterations: 2, cost: 0.04 });
        correction.observe(1, 2.0, 1.0);
        assert_eq!(correction.end_iteration(benefits[0]), None, "the second decides");
        assert!(correction.is_on());
        assert!((correction.end_iteration(benefits[1]).unwrap() - mean).abs() < 1e-12);
        assert_eq!(correction.is_on(), on, "{benefits:?}");
        assert_eq!(correction.penalty(1), if on { 2.0 } else { 1.0 });
        // The switch-off is permanent, so later measurements are ignored.
        correction.observe(2, 2.0, 1.0);
        correction.end_iteration(1.0);
        assert_eq!(correction.is_on(), on);
        assert_eq!(correction.penalty(2), if on { 2.0 } else { 1.0 });
    }
}

/// Without anomalies the benefit is zero, so correction switches off after I iterations at its
/// cost.
#[test]
fn a_run_as_predicted_pays_for_the_first_iterations_only() {
    let simulated = simulated(0.0, 1.0);
    assert_eq!(simulated.switched_off, Some(19));
    let paid = 1.0 / 1.04 - 1.0;
    assert!(simulated.net[..20].iter().all(|net| (net - paid).abs() < 1e-9), "{:?}", &simulated.net[..20]);
    assert!(simulated.net[20..].iter().all(|&net| net == 0.0));
    // The only decision has a benefit of zero. The monitoring cost is the only difference between
    // the times.
    assert_eq!(simulated.decisions, [(19, 0.0)]);
    assert_eq!(simulated.slow, 0);
    for (iteration, (with, without)) in simulated.with.iter().zip(&simulated.without).enumerate() {
        let cost = if iteration < 20 { 1.04 } else { 1.0 };
        assert!((with / without - cost).abs() < 1e-12, "{iteration}");
    }
}

/// Rare and short delays do not pay for the monitoring cost. Frequent and long delays do, and the
/// gain increases accordingly.
#[test]
fn correction_stays_on_if_it_pays() {
    let (none, much) = (simulated(0.01, 0.05), simulated(0.05, 1.0));
    assert!(none.switched_off.is_some() && none.settled() == 0.0);
    assert!(much.switched_off.is_none() && much.settled() > 0.04, "{}", much.settled());
    assert!(simulated(0.05, 0.5).settled() <= much.settled());
}
