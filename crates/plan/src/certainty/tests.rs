//! Known answers, and consistency of the committed coefficients.

use super::*;

fn near(is: f64, should: f64) -> bool {
    (is - should).abs() < 1e-9
}

#[test]
fn an_interval_is_two_factors_of_the_prediction() {
    let interval = Interval::around(2.0, (-std::f64::consts::LN_2, std::f64::consts::LN_2));
    assert!(near(interval.low, 1.0) && near(interval.high, 4.0), "{interval:?}");
}

#[test]
fn memory_quantiles_have_their_probabilities() {
    let errors = MemoryErrors { lower: 0.1, median: 0.3, upper: 0.8 };
    for (error, probability) in [(0.1, 0.9), (0.3, 0.5), (0.8, 0.1)] {
        assert!(near(errors.probability_above(error), probability), "{error}");
    }
}

#[test]
fn largest_peak_has_the_probability() {
    for risk in [0.01, 0.1, 0.5] {
        let probability = memory_certainty(largest_peak(80.0, risk), 80.0).probability_out_of_memory;
        assert!(probability <= risk && risk - probability < 1e-6, "{risk}: {probability}");
    }
}

#[test]
fn equal_times_are_a_tie_and_distance_lowers_the_probability() {
    let order = OrderErrors { scale: 0.1, exponent: 1.0 };
    assert!(near(order.probability_faster(0.0, 3.0), 0.5));
    // Odds are exp(advantage / scale): 9 to 1.
    let advantage = 0.1 * libm::log(9.0);
    assert!(near(order.probability_faster(advantage, 0.0), 0.9));
    // Distance 1 doubles the scale: odds of 3 to 1.
    assert!(near(order.probability_faster(advantage, 1.0), 0.75));
    assert!(near(order.probability_faster(-advantage, 1.0), 0.25));
}

#[test]
fn committed_coefficients_are_ordered() {
    let Coefficients { step_time, widest, peak_memory, order } = Coefficients::committed();
    assert!(step_time.lower.constant < step_time.upper.constant);
    assert!(widest.0 <= step_time.lower.constant && widest.1 >= step_time.upper.constant);
    assert!(peak_memory.lower < peak_memory.median && peak_memory.median < peak_memory.upper);
    assert!(order.scale > 0.0 && order.exponent >= 0.0);
}

#[test]
fn a_fuller_device_runs_out_more_likely() {
    let [half, full] = [40.0, 80.0].map(|predicted| memory_certainty(predicted, 80.0));
    assert!(half.probability_out_of_memory < full.probability_out_of_memory);
    assert!(near(full.interval_gib.low, 2.0 * half.interval_gib.low));
}

/// A calibration replaces assumed rates, and with them the widest interval, unless its curves do not describe the
/// measurements.
#[test]
fn a_good_calibration_narrows_the_interval() {
    let model = planscope_core::model::presets::model("llama-3-8b").unwrap();
    let mut cluster = planscope_core::cluster::presets::cluster("l40s").unwrap();
    let assumed = reason_for(&model, &cluster).unwrap();
    assert_eq!(assumed, "The rates of L40S are assumed, not measured.");
    let curves = cluster.device.curves.as_mut().unwrap();
    curves.matmul.fill *= 2.0;
    curves.calibration.residual = 0.067;
    assert_eq!(reason_for(&model, &cluster), None);
    cluster.device.curves.as_mut().unwrap().calibration.residual = 0.308;
    let poor = reason_for(&model, &cluster).unwrap();
    assert_eq!(poor, "The curves of L40S differ from its measured operators by 31 % on average.");
}
