use api::planner::scenario::PlannerKind;
use api::planner::timeline::{MicrobatchSamples, SamplePart, StageLayers};

use super::super::sample;
use super::*;

#[test]
fn a_timeline_does_not_differ_from_itself() {
    let timeline = sample::one_f_one_b(3, 5);
    let same = Differences::with_equal_devices(&timeline, &timeline);
    assert_eq!((same.matched, same.actions), (30, 30), "3 ranks, 5 microbatches, F and B");
    for span in 0..timeline.len() {
        for aspect in [Aspect::Duration, Aspect::End] {
            assert_eq!(same.at(&timeline, &timeline, span, aspect), Some((0.0, 0.0)));
        }
    }
    assert_eq!(same.clearest_aspect(&timeline, &timeline), Aspect::End);
}

#[test]
fn differences_have_a_sign_and_a_share() {
    let before = sample::one_f_one_b(2, 3);
    let mut after = before.clone();
    let span = after.compute_lane(1).start;
    after.duration_ns[span] += 250;
    let found = Differences::with_equal_devices(&after, &before);
    // 1,250 ns instead of 1,000 ns.
    assert_eq!(found.at(&after, &before, span, Aspect::Duration), Some((250.0, 0.25)));
    assert_eq!(found.clearest_aspect(&after, &before), Aspect::Duration);
    let back = Differences::with_equal_devices(&before, &after);
    assert_eq!(back.at(&before, &after, span, Aspect::Duration), Some((-250.0, -0.2)));
    let difference_text = |aspect| back.difference_text(&before, &after, span, aspect);
    assert_eq!(difference_text(Aspect::Duration), "\u{2212}250 ns (\u{2212}20.0\u{202f}%) than in the baseline");
    assert!(difference_text(Aspect::End).ends_with("ends earlier"), "{}", difference_text(Aspect::End));
    let same = Differences::with_equal_devices(&before, &before);
    assert_eq!(same.difference_text(&before, &before, span, Aspect::Duration), "as long as in the baseline");
    let none = Differences { counterpart: vec![None; before.len()], ..Differences::default() };
    assert_eq!(none.difference_text(&before, &after, span, Aspect::End), "not in the baseline");
}

#[test]
fn other_microbatches_under_the_same_number_are_no_counterparts() {
    let base = sample::one_f_one_b(2, 3);
    let mut other = base.clone();
    other.microbatches[1].tokens += 1;
    let found = Differences::with_equal_devices(&base, &other);
    assert_eq!((found.matched, found.actions), (8, 12));
    assert_eq!(Differences::with_equal_devices(&base, &sample::one_f_one_b(2, 2)).matched, 8);
}

/// Adds contents to `one_f_one_b`: one sample per microbatch, four layers per stage.
fn with_contents(mut timeline: Timeline, samples: &[&[u32]]) -> Timeline {
    let part = |&sample: &u32| SamplePart { sample, tokens: 1_000, from_ppm: 0, to_ppm: 1_000_000 };
    let contents =
        |sample_ids: &&[u32]| MicrobatchSamples { module: None, samples: sample_ids.iter().map(part).collect() };
    timeline.contents = samples.iter().map(contents).collect();
    let layers = |stage: u32| vec![StageLayers { module: 0, first: 4 * stage, end: 4 * stage + 4 }];
    timeline.stage_layers = (0..timeline.ranks).map(layers).collect();
    timeline
}

#[test]
fn actions_are_matched_by_their_samples_not_by_number() {
    let base = with_contents(sample::one_f_one_b(2, 3), &[&[0], &[1], &[2]]);
    let mut other = with_contents(sample::one_f_one_b(2, 3), &[&[2], &[0], &[1]]);
    // Sample 0 is microbatch 1 in `other`. Its forward on rank 0 is 300 ns longer.
    let span = other.compute_lane(0).find(|&span| other.microbatch[span] == 1 && other.kind[span] == 0).unwrap();
    other.duration_ns[span] += 300;
    let found = Differences::with_equal_devices(&base, &other);
    assert_eq!((found.matched, found.actions), (12, 12));
    let here = base.compute_lane(0).find(|&span| base.microbatch[span] == 0 && base.kind[span] == 0).unwrap();
    let (difference, share) = found.at(&base, &other, here, Aspect::Duration).unwrap();
    assert!((difference + 300.0).abs() < 1e-6 && (share + 300.0 / 1_300.0).abs() < 1e-9);
}

#[test]
fn larger_microbatches_are_compared_per_sample() {
    // Two samples in a 1,000 ns microbatch against a single sample in 1,000 ns: twice as long.
    let base = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
    let other = with_contents(sample::one_f_one_b(2, 1), &[&[0, 1]]);
    let found = Differences::with_equal_devices(&base, &other);
    assert_eq!((found.matched, found.actions), (8, 8));
    assert_eq!(found.at(&base, &other, base.compute_lane(0).start, Aspect::Duration), Some((500.0, 1.0)));
    let back = Differences::with_equal_devices(&other, &base);
    assert_eq!(back.at(&other, &base, other.compute_lane(0).start, Aspect::Duration), Some((-1_000.0, -0.5)));
}

#[test]
fn different_model_splits_are_compared_by_layer() {
    // A stage with eight layers against two stages with four layers.
    let mut base = with_contents(sample::one_f_one_b(1, 2), &[&[0], &[1]]);
    base.stage_layers = vec![vec![StageLayers { module: 0, first: 0, end: 8 }]];
    let other = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
    let found = Differences::with_equal_devices(&base, &other);
    assert_eq!((found.matched, found.actions), (4, 4));
    assert_eq!(found.at(&base, &other, 0, Aspect::Duration), Some((-1_000.0, -0.5)), "1,000 against 2 x 1,000");
}

#[test]
fn missing_work_and_other_modules_are_not_compared() {
    let base = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
    let other = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[7]]);
    assert_eq!(Differences::with_equal_devices(&base, &other).matched, 4);
    let mut encoder = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
    encoder.contents[0].module = Some(1);
    assert_eq!(Differences::with_equal_devices(&base, &encoder).matched, 4);
}

/// F and B for two microbatches on a single rank.
fn single_rank(forward: u64, backward: u64) -> Timeline {
    let step = forward + backward;
    let spans = [(0, 0, forward), (1, forward, step), (0, step, step + forward), (1, step + forward, 2 * step)];
    let timeline = Timeline { microbatch: vec![0, 0, 1, 1], ..sample::lane(&spans) };
    with_contents(timeline, &[&[0], &[1]])
}

/// TP 4: 6,000 ns on four devices are 24,000 device-ns. TP 8: 3,200 ns on eight devices are 25,600
/// device-ns.
#[test]
fn different_tensor_degrees_are_compared_by_device_time() {
    let (four, eight) = (single_rank(1_000, 2_000), single_rank(600, 1_000));
    let devices = ComparedDevices { current: RankDevices::Uniform(4), other: RankDevices::Uniform(8) };
    let found = Differences::between(&four, &eight, &devices);
    assert_eq!((found.matched, found.actions, found.refusal()), (4, 4, None));
    // 600 ns on eight devices correspond to 1,200 ns on four devices.
    let forward = found.at(&four, &eight, 0, Aspect::Duration).unwrap();
    assert!((forward.0 + 200.0).abs() < 1e-9 && (forward.1 + 1.0 / 6.0).abs() < 1e-9, "{forward:?}");
    assert_eq!(found.at(&four, &eight, 1, Aspect::Duration), Some((0.0, 0.0)), "2,000 x 4 = 1,000 x 8");
    let headline = four.makespan_ns as f64 * 4.0 - eight.makespan_ns as f64 * 8.0;
    let (sum, share) = found.sum();
    assert!((headline + 1_600.0).abs() < 1e-9 && (sum - headline).abs() < 1e-6, "{sum} of {headline}");
    assert!((share + 0.0625).abs() < 1e-9);
    let text = found.difference_text(&four, &eight, 0, Aspect::Duration);
    assert!(text.ends_with("than in the baseline, at equal device-seconds"), "{text}");
    let back = ComparedDevices { current: RankDevices::Uniform(8), other: RankDevices::Uniform(4) };
    assert!((Differences::between(&eight, &four, &back).sum().0 - 1_600.0).abs() < 1e-6);
}

/// A two-rank group takes 600 ns, or 1,200 device-ns. A single rank takes 1,000 ns for the same
/// work.
#[test]
fn ranks_that_share_a_microbatch_add_up() {
    let base = with_contents(sample::lane(&[(0, 0, 1_000)]), &[&[0]]);
    let shared = sample::lane(&[(0, 0, 600), (0, 0, 600)]);
    let shared = Timeline { ranks: 2, lane_offsets: vec![0, 1, 1, 2, 2], microbatch: vec![0, 0], ..shared };
    let mut shared = with_contents(shared, &[&[0]]);
    shared.stage_layers.truncate(1);
    let found = Differences::with_equal_devices(&base, &shared);
    assert_eq!(found.at(&base, &shared, 0, Aspect::Duration), Some((-200.0, -200.0 / 1_200.0)));
    let back = Differences::with_equal_devices(&shared, &base);
    assert_eq!(back.matched, 2);
    assert_eq!(back.at(&shared, &base, 1, Aspect::Duration), Some((100.0, 0.2)), "600 against half of 1,000");
    assert_eq!(back.sum(), (200.0, 0.2));
}

/// The test compares the mean optimizer time per device: a rank with four devices against two ranks
/// with two devices.
#[test]
fn step_ends_are_compared_by_mean_device_time() {
    let base = sample::lane(&[(7, 0, 100)]);
    let two = sample::lane(&[(7, 0, 100), (7, 0, 300)]);
    let two = Timeline { ranks: 2, lane_offsets: vec![0, 1, 1, 2, 2], microbatch: vec![0, 0], ..two };
    let devices = ComparedDevices { current: RankDevices::Uniform(4), other: RankDevices::Each(vec![2, 2]) };
    let found = Differences::between(&base, &two, &devices);
    assert_eq!(found.at(&base, &two, 0, Aspect::Duration), Some((-100.0, -0.5)));
    assert_eq!(found.sum(), (-400.0, -0.5));
}

#[test]
fn too_few_counterparts_are_no_comparison() {
    let base = with_contents(sample::one_f_one_b(2, 2), &[&[0], &[1]]);
    let same = Differences::with_equal_devices(&base, &base);
    assert_eq!((same.refusal(), same.remainder()), (None, None));
    let half = Differences::with_equal_devices(&base, &with_contents(sample::one_f_one_b(2, 2), &[&[0], &[7]]));
    assert_eq!(half.refusal(), None);
    let remainder = half.remainder().unwrap().replace('\u{202f}', " ");
    assert!(remainder.starts_with("; 50.0 % of the time is of samples or layers"), "{remainder}");
    let none = Differences::with_equal_devices(&base, &with_contents(sample::one_f_one_b(2, 2), &[&[6], &[7]]));
    let refusal = none.refusal().unwrap().replace('\u{202f}', " ");
    assert!(refusal.starts_with("Not comparable action by action: 0"), "{refusal}");
    let nothing = Timeline { lane_offsets: vec![0], ..Timeline::default() };
    assert!(Differences::with_equal_devices(&nothing, &base).refusal().is_some(), "no action");
}

/// Input and weight gradient with 190 ns in total against a backward of 380 ns: each takes half the
/// time of its part of the backward.
#[test]
fn gradients_are_compared_with_backward_shares() {
    let same = |timeline: Timeline| Timeline { microbatch: vec![0; timeline.len()], ..timeline };
    let base = with_contents(same(sample::lane(&[(2, 0, 80), (3, 80, 190)])), &[&[0]]);
    let other = with_contents(same(sample::lane(&[(1, 0, 380)])), &[&[0]]);
    let found = Differences::with_equal_devices(&base, &other);
    assert_eq!(found.matched, 2);
    for (span, expected) in [(0, -80.0), (1, -110.0)] {
        let (difference, share) = found.at(&base, &other, span, Aspect::Duration).unwrap();
        assert!((difference - expected).abs() < 1e-9 && (share + 0.5).abs() < 1e-9, "{span}: {difference}");
    }
    assert!((found.sum().0 + 190.0).abs() < 1e-9);
}

/// A backward against its two gradients.
#[test]
fn a_backward_is_compared_with_its_gradients() {
    let base = with_contents(sample::lane(&[(0, 0, 100), (1, 100, 300)]), &[&[0], &[0]]);
    let other = with_contents(sample::lane(&[(0, 0, 100), (2, 100, 180), (3, 180, 290)]), &[&[0], &[0], &[0]]);
    let same = |timeline: Timeline| Timeline { microbatch: vec![0; timeline.len()], ..timeline };
    let cut = |mut timeline: Timeline| {
        timeline.contents.truncate(1);
        timeline
    };
    let (base_cut, other) = (cut(same(base)), cut(same(other)));
    let found = Differences::with_equal_devices(&base_cut, &other);
    assert_eq!(found.matched, 2);
    assert_eq!(found.at(&base_cut, &other, 1, Aspect::Duration), Some((10.0, 10.0 / 190.0)));
}

#[test]
fn dynamic_plan_is_compared_with_static_plan() {
    use api::planner::scenario::validate::NoDatasets;
    use api::planner::scenario::{ValidScenario, parse};
    use planner::engine::{Unobserved, plan};
    let scenario_json = include_str!("../../../../examples/vlm-s-image-heavy.json");
    let mut scenario = parse(scenario_json).unwrap();
    scenario.planners = vec![PlannerKind::OneFOneB, PlannerKind::PipeWeaverPartition];
    scenario.iterations = 1;
    let planning = plan(&ValidScenario::new(scenario, &NoDatasets).unwrap(), &mut Unobserved).unwrap();
    let planner_timeline =
        |planner| &planning.timelines.iter().find(|timeline| timeline.planner == planner).unwrap().timeline;
    let (fixed, dynamic) =
        (planner_timeline(PlannerKind::OneFOneB), planner_timeline(PlannerKind::PipeWeaverPartition));
    let found = Differences::with_equal_devices(dynamic, fixed);
    // Replicas may contain different samples. With a single replica, nearly all actions have a
    // counterpart.
    assert!(found.matched * 10 >= found.actions * 9, "{} of {}", found.matched, found.actions);
    assert_eq!(found.refusal(), None);
}
