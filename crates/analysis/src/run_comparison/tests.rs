#![allow(clippy::float_cmp, reason = "medians and counts of exact numbers")]

use proptest::prelude::*;

use super::*;

fn steps(times: &[f64]) -> Vec<Step> {
    (1..).zip(times).map(|(step, &seconds)| Step { segment: 0, step, seconds: Some(seconds) }).collect()
}

/// The first step is warm-up, the checkpoint (step 6) is slow, the empty step (8) is fast. Without
/// the first step, the median of 1, 1, 1.02, 0.98, 9, 1.01, 0.1 and 0.99 is 1. The distances 0, 0,
/// 0.02, 0.02, 8, 0.01, 0.9 and 0.01 have a median of 0.015.
#[test]
fn checkpoints_and_the_first_step_are_outliers() {
    let sifted = sift(&steps(&[5.0, 1.0, 1.0, 1.02, 0.98, 9.0, 1.01, 0.1, 0.99]));
    let outliers: Vec<(usize, Reason)> = sifted.outliers.iter().map(|step| (step.index, step.reason)).collect();
    assert_eq!(outliers, [(0, Reason::WarmUp), (5, Reason::Slow), (7, Reason::Fast)]);
    assert!((sifted.outliers[1].deviations - 8.0 / 0.015).abs() < 1e-6, "{}", sifted.outliers[1].deviations);
    assert_eq!(sifted.regular, [1, 2, 3, 4, 6, 8]);
    // Regular steps: 0.98 0.99 1.0 1.0 1.01 1.02.
    assert_eq!(sifted.segments[0].median_s, Some(1.0));
}

/// Identical steps have zero deviation. Steps within 1 % of the median are regular, others are
/// outliers.
#[test]
fn zero_deviation_accepts_close_steps() {
    let sifted = sift(&steps(&[2.0, 1.0, 1.0, 1.0, 1.0, 1.009, 1.0, 1.011]));
    let outliers: Vec<usize> = sifted.outliers.iter().map(|step| step.index).collect();
    assert_eq!(outliers, [0, 7]);
}

#[test]
fn warm_up_lasts_as_long_as_steps_are_slow_and_a_restart_warms_up_again() {
    let mut all = steps(&[30.0, 9.0, 4.0, 1.0, 1.01, 0.99, 1.0, 1.0, 1.0, 1.0, 1.0]);
    all.extend([(8, 12.0), (9, 1.0), (10, 1.0), (11, 1.0)].map(|(step, seconds)| Step {
        segment: 1,
        step,
        seconds: Some(seconds),
    }));
    let sifted = sift(&all);
    let warm: Vec<usize> =
        sifted.outliers.iter().filter(|step| step.reason == Reason::WarmUp).map(|a| a.index).collect();
    assert_eq!(warm, [0, 1, 2, 11]);
    let parts: Vec<(u32, u64, u64, u64)> =
        sifted.segments.iter().map(|part| (part.segment, part.first_step, part.last_step, part.points)).collect();
    assert_eq!(parts, [(0, 1, 11, 11), (1, 8, 11, 4)]);
}

/// A log whose step numbers go back repeatedly has a new segment each time. Processes 100,000
/// segments.
#[test]
fn as_many_parts_as_steps_are_sifted_at_once() {
    let all: Vec<Step> = (0..100_000).map(|part| Step { segment: part, step: 7, seconds: Some(1.0) }).collect();
    let sifted = sift(&all);
    assert_eq!((sifted.regular.len(), sifted.segments.len()), (100_000, 100_000));
    assert_eq!(sifted.segments[99_999].segment, 99_999);
}

#[test]
fn short_runs_have_no_outliers() {
    assert_eq!(sift(&[]), Sifted::default());
    let untimed =
        sift(&[Step { segment: 0, step: 4, seconds: None }, Step { segment: 0, step: 5, seconds: Some(f64::NAN) }]);
    assert!(untimed.regular.is_empty() && untimed.outliers.is_empty());
    assert_eq!((untimed.segments[0].points, untimed.segments[0].median_s), (2, None));
    // Of two steps, the first contains the warm-up. One step is all there is.
    assert_eq!(sift(&steps(&[3.0, 1.0])).regular, [1]);
    assert_eq!(sift(&steps(&[3.0])).regular, [0]);
}

/// Every second step waits 4 s. The second step of the warm-up takes a time between both.
#[test]
fn the_faster_of_two_kinds_of_steps_is_regular() {
    let half = |step: u32| if step.is_multiple_of(2) { 3.0 } else { 7.0 } + 0.01 * f64::from(step % 3);
    let warm: Vec<f64> = [20.0, 5.0].into_iter().chain((0..40).map(half)).collect();
    let sifted = sift(&steps(&warm));
    assert_eq!(sifted.segments[0].median_s, Some(3.01));
    let slow = sifted.outliers.iter().filter(|outlier| outlier.reason == Reason::Slow).count();
    assert_eq!((sifted.regular.len(), slow), (20, 20));
    // A run that becomes slower once keeps its median, and noise is one kind.
    let changed: Vec<f64> = (0..42).map(|step| if step < 20 { 3.0 } else { 7.0 }).collect();
    assert_eq!(sift(&steps(&changed)).segments[0].median_s, Some(7.0));
    let noise: Vec<f64> = (0..40).map(|step| 3.0 + 0.02 * f64::from(step * 7 % 11)).collect();
    assert!(sift(&steps(&noise)).outliers.iter().all(|outlier| outlier.reason == Reason::WarmUp));
}

/// 16 steps of 4.38 s, then steps of 6 s, one of them with a checkpoint: the present time is 6 s, also while its steps are the fewer.
#[test]
fn a_time_that_stays_changed_is_the_present_time() {
    for slow in [8, 20] {
        let noise = |step: u32| 0.01 * f64::from(step % 5);
        let times: Vec<f64> = std::iter::once(9.0)
            .chain((0..16).map(|step| 4.38 + noise(step)))
            .chain((0..slow).map(|step| if step == 3 { 40.0 } else { 6.0 + noise(step) }))
            .collect();
        let sifted = sift(&steps(&times));
        let part = sifted.segments[0];
        let change = part.change.unwrap();
        assert_eq!(
            (change.index, part.median_s),
            (17, Some(median(&times[17..].iter().copied().filter(|s| *s < 40.0).collect::<Vec<_>>()).unwrap()))
        );
        assert!((change.before_s - 4.4).abs() < 0.02 && (change.after_s - 6.02).abs() < 0.02, "{change:?}");
        let outliers: Vec<(usize, Reason)> = sifted.outliers.iter().map(|step| (step.index, step.reason)).collect();
        assert_eq!(outliers, [(0, Reason::WarmUp), (20, Reason::Slow)], "{slow}");
    }
    // A slow episode that ends is no change.
    let episode: Vec<f64> = (0..60).map(|step| if (30..40).contains(&step) { 6.0 } else { 4.4 }).collect();
    assert_eq!(sift(&steps(&episode)).segments[0].change, None);
}

/// Predictions from 8 to 12 s with an interval of 0.9 to 1.2 times the prediction.
#[test]
fn bands_are_spreads_widened_by_the_interval() {
    let band = Band::new(10.0, &[8.0, 12.0], (0.9, 1.2));
    assert!((band.low - 7.2).abs() < 1e-12 && (band.high - 14.4).abs() < 1e-12);
    assert_eq!(inside(&band, &[7.0, 7.5, 14.0, 15.0]), Some(0.5));
    assert_eq!(inside(&band, &[]), None);
    assert_eq!(Band::new(10.0, &[], (1.0, 1.0)), Band { value: 10.0, low: 10.0, high: 10.0 });
}

/// Steps of 1.2 s move a band of 0.8 to 1.25 s to them, and more steps narrow it further.
#[test]
fn measured_steps_narrow_a_band() {
    let band = Band::new(1.0, &[], (0.8, 1.25));
    assert_eq!(band.narrowed(&[1.2; 4]), None);
    let few = band.narrowed(&[1.19, 1.21, 1.2, 1.2, 1.22]).unwrap();
    let many = band.narrowed(&[1.19, 1.21, 1.2, 1.2, 1.22].repeat(20)).unwrap();
    assert!((few.value - 1.204).abs() < 2e-3 && (many.value - 1.204).abs() < 1e-3, "{few:?} {many:?}");
    assert!(few.low < 1.19 && few.high > 1.21 && few.high - few.low > many.high - many.low);
    assert!(many.high - many.low < 0.1 * (band.high - band.low));
    // Steady steps have the least noise; no step is certain.
    let steady = band.narrowed(&[1.2; 100]).unwrap();
    assert!(steady.high / steady.low > 1.01);
    // Far from the prediction, the steps win.
    assert!((band.narrowed(&[3.0; 50]).unwrap().value - 3.0).abs() < 0.01);
}

/// Timers for one rank from the BigScience GPT-2 runs. The optimizer timer includes its parts.
#[test]
fn timers_count_once() {
    let timers = [
        ("forward-compute", 264.79),
        ("forward-recv", 2365.31),
        ("backward-compute", 481.96),
        ("backward-send", 63.98),
        ("backward-send-forward-recv", 152.47),
        ("backward-params-all-reduce", 24.39),
        ("backward-embedding-all-reduce", 2398.39),
        ("optimizer-copy-to-main-grad", 10.11),
        ("optimizer-unscale-and-check-inf", 75.24),
        ("optimizer", 85.49),
        ("batch-generator", 3.05),
        ("save-checkpoint", 999.0),
        ("forward-backward", 999.0),
    ];
    let timed: Vec<Timed<'_>> = timers.iter().map(|&(name, seconds)| Timed { name, seconds }).collect();
    let phases: Vec<(Phase, f64)> = phase_times(&timed).iter().map(|times| (times.phase, times.seconds)).collect();
    let expected = [
        (Phase::Forward, 264.79),
        (Phase::Backward, 481.96),
        (Phase::Pipeline, 2365.31 + 63.98 + 152.47),
        (Phase::Reduction, 24.39 + 2398.39),
        (Phase::Optimizer, 85.49),
        (Phase::Data, 3.05),
    ];
    assert_eq!(phases.len(), expected.len());
    for ((phase, seconds), (expected, sum)) in phases.into_iter().zip(expected) {
        assert_eq!(phase, expected);
        assert!((seconds - sum).abs() < 1e-9, "{seconds} {sum}");
    }
    let parts = [("optimizer-inner-step", 2.0), ("optimizer-clip-main-grad", 1.0)];
    let parts: Vec<Timed<'_>> = parts.iter().map(|&(name, seconds)| Timed { name, seconds }).collect();
    assert_eq!(phase_times(&parts)[0].seconds, 3.0);
}

/// Returns the true step time and the search result, for a step of which a part scales with the
/// factor and a bubble bends the curve.
fn bent(stretches: f64, fixed: f64, bend: f64, truth: f64) -> (f64, Solved) {
    let step = |factor: f64| fixed.max(bend * factor * factor) + stretches * factor;
    let solved = solve::<std::convert::Infallible>(Target::Step(step(truth)), |factors| {
        Ok(Evaluation { forward_s: 0.0, backward_s: 0.0, step_s: step(factors.forward) })
    });
    (step(truth), solved.unwrap())
}

#[test]
fn a_bend_close_to_the_target_is_met() {
    for (stretches, fixed, bend, truth) in
        [(0.2, 1.162_663_002, 0.462_592_658, 1.629_651_212), (0.2, 1.833_402_542, 0.709_838_883, 1.616_457_469)]
    {
        let (_, solved) = bent(stretches, fixed, bend, truth);
        assert!(solved.is_met && solved.evaluations <= 12, "{solved:?}");
    }
}

proptest! {
    /// A part of the step scales with the factor, and a bubble bends the curve. The search
    /// converges in a small number of simulations.
    #[test]
    fn single_factor_reaches_any_step_in_range(stretches in 0.2_f64..5.0, fixed in 0.0_f64..2.0, bend in 0.0_f64..1.0, truth in 0.3_f64..4.0) {
        let (target, solved) = bent(stretches, fixed, bend, truth);
        prop_assert!(solved.is_met, "{solved:?} for {truth}");
        prop_assert!((solved.reached.step_s / target - 1.0).abs() <= 5e-4);
    }

    /// Part of the forward and backward time is outside the layers. The search returns both
    /// factors.
    #[test]
    fn both_factors_meet_both_phases(heads in 0.0_f64..0.5, forward in 0.3_f64..4.0, backward in 0.3_f64..4.0) {
        let phase = |factor: f64, layers: f64| layers * (heads + factor);
        let solved = solve::<std::convert::Infallible>(
            Target::Phases { forward_s: phase(forward, 1.0), backward_s: phase(backward, 2.0) },
            |factors| Ok(Evaluation { forward_s: phase(factors.forward, 1.0), backward_s: phase(factors.backward, 2.0), step_s: 1.0 }),
        ).unwrap();
        prop_assert!(solved.is_met);
        prop_assert!((solved.factors.forward / forward - 1.0).abs() < 2e-3);
        prop_assert!((solved.factors.backward / backward - 1.0).abs() < 2e-3);
    }
}

#[test]
fn unreachable_targets_are_reported() {
    let constant = |_| Ok::<_, std::convert::Infallible>(Evaluation { forward_s: 0.0, backward_s: 0.0, step_s: 10.0 });
    let solved = solve(Target::Step(1.0), constant).unwrap();
    assert!(!solved.is_met && solved.reached.step_s == 10.0);
    assert!(solve(Target::Step(f64::NAN), constant).is_err() && solve(Target::Step(0.0), constant).is_err());
}

#[test]
fn a_summary_names_agreeing_and_unchecked_quantities() {
    let check = |quantity, agreement| JobCheck {
        quantity,
        agreement,
        measured: None,
        planned: 1.0,
        derivation: String::new(),
        consequence: String::new(),
        measured_name: String::new(),
        planned_name: String::new(),
    };
    let unchecked = check(JobQuantity::Devices, Agreement::NotChecked);
    let same = [JobQuantity::GlobalBatch, JobQuantity::FlopsPerStep].map(|quantity| check(quantity, Agreement::Same));
    let checks = [same.to_vec(), vec![unchecked.clone()]].concat();
    let summary = |checks| JobComparison { checks, ..JobComparison::default() }.summary();
    assert_eq!(summary(checks), "Log and plan agree in: global batch size, FLOPs per step. Not checked: devices.");
    assert!(summary(vec![unchecked]).starts_with("The log does not state enough"));
}
