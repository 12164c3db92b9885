//! Time of a run outside of regular steps.

use std::collections::BTreeMap;

use api::run::{RunPoint, StepTimeOrigin};
use planner::run_comparison::{Reason, Sifted, median};

use super::comparison::selected_points;

/// Smallest share of the wall time that is reported.
const MIN_SHARE: f64 = 0.03;
/// Fewest steps of a report.
const MIN_STEPS: usize = 5;

/// Sums over the steps of a run after its warm-up.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    steps: f64,
    /// Sum of the step times in s.
    stepped_s: f64,
    /// Time of slow steps above the median, in s.
    slow_s: f64,
    /// Time between the steps by the clock, in s.
    between_s: f64,
}

/// Describes the mean time of a step and the share of the wall time outside of regular steps, if it is large.
pub(super) fn note(points: &[RunPoint], sifted: &Sifted, segment: Option<u32>) -> Option<String> {
    let parts = sifted.segments.iter().filter(|part| segment.is_none_or(|segment| part.segment == segment));
    let mut sums = Sums::default();
    for part in parts {
        let median_s = part.median_s?;
        let slow_or_fast = sifted.outliers.iter().filter(|it| it.reason != Reason::WarmUp).map(|it| it.index);
        let mut kept: Vec<usize> = sifted.regular.iter().copied().chain(slow_or_fast).collect();
        let since = part.change.map_or(0, |change| change.index);
        kept.retain(|&index| points[index].segment == part.segment && index >= since);
        kept.sort_unstable();
        let timed: Vec<&RunPoint> = kept.into_iter().map(|index| &points[index]).collect();
        sums = add(sums, &timed, median_s);
    }
    let Sums { steps, stepped_s, slow_s, between_s } = sums;
    let (all_s, outside_s) = (stepped_s + between_s, slow_s + between_s);
    if steps < MIN_STEPS as f64 || outside_s < MIN_SHARE * all_s {
        return None;
    }
    let period = period(points, sifted, segment);
    let regular: Vec<f64> =
        selected_points(points, sifted, segment).into_iter().filter_map(|point| point.step_s).collect();
    Some(format!(
        "The mean time per step is {:.3}\u{202f}s, the median of regular steps is {:.3}\u{202f}s. {:.0}\u{202f}% of \
         the time is outside of regular steps: {slow_s:.1}\u{202f}s in slow steps, {between_s:.1}\u{202f}s between \
         steps. Look for {}checkpoints, evaluation and waiting for data.{}{}",
        all_s / steps,
        median(&regular)?,
        100.0 * outside_s / all_s,
        if period.is_some() { "garbage collection (in Megatron-LM: --manual-gc-interval), " } else { "" },
        period.map_or_else(String::new, |period| format!(" One of {period} steps is slow.")),
        timed(points, segment)
    ))
}

/// Fewest slow steps at equal distances that are a period.
const MIN_PERIODS: usize = 3;

/// Returns the distance of the slow steps, if most of them have the same.
fn period(points: &[RunPoint], sifted: &Sifted, segment: Option<u32>) -> Option<u64> {
    let slow = sifted.outliers.iter().filter(|it| it.reason == Reason::Slow).map(|it| &points[it.index]);
    let slow: Vec<&RunPoint> = slow.filter(|point| segment.is_none_or(|segment| point.segment == segment)).collect();
    let distances: Vec<u64> = slow.windows(2).filter_map(|pair| pair[1].step.checked_sub(pair[0].step)).collect();
    let first = *distances.first().filter(|&&distance| distance > 1)?;
    let equal = distances.iter().filter(|&&distance| distance == first).count();
    (equal >= MIN_PERIODS && 4 * equal >= 3 * distances.len()).then_some(first)
}

/// Returns the sums of the timers of evaluation and checkpoints as a sentence; empty without them.
fn timed(points: &[RunPoint], segment: Option<u32>) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    let part = points.iter().filter(|point| segment.is_none_or(|segment| point.segment == segment));
    let is_pause = |name: &str| name.starts_with("eval") || name.contains("save-checkpoint");
    for timer in part.flat_map(|point| &point.phases).filter(|timer| is_pause(&timer.name)) {
        *sums.entry(&timer.name).or_default() += timer.time_s;
    }
    let listed: Vec<String> = sums.iter().map(|(name, sum)| format!("{name} {sum:.1}\u{202f}s")).collect();
    if listed.is_empty() { String::new() } else { format!(" Timers of pauses, in sum: {}.", listed.join(", ")) }
}

/// Adds the steps of a part. Rows of averages over several steps count as these steps.
fn add(mut sums: Sums, points: &[&RunPoint], median_s: f64) -> Sums {
    let mut last: Option<&RunPoint> = None;
    // Wall time and step times between points with a time of day.
    let (mut wall_s, mut in_steps_s) = (0.0, 0.0);
    for &point in points {
        let Some(step_s) = point.step_s else { continue };
        let count = last.map_or(1, |last| point.step.saturating_sub(last.step).max(1)) as f64;
        sums.steps += count;
        sums.stepped_s += count * step_s;
        sums.slow_s += count * (step_s - median_s).max(0.0);
        // A step time from the clock contains all pauses.
        if point.step_s_origin != Some(StepTimeOrigin::Clock)
            && let Some(interval_ms) = last.and_then(|last| Some(point.time_ms? - last.time_ms?))
        {
            wall_s += interval_ms as f64 / 1e3;
            in_steps_s += count * step_s;
        }
        last = Some(point);
    }
    sums.between_s += (wall_s - in_steps_s).max(0.0);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::comparison::sifted;

    fn points(seconds: impl Fn(i64) -> (f64, i64)) -> Vec<RunPoint> {
        let point = |number: i64| {
            let (step_s, time_ms) = seconds(number);
            let step = number.unsigned_abs();
            RunPoint { row: step, step, step_s: Some(step_s), time_ms: Some(time_ms), ..RunPoint::default() }
        };
        (1..=60).map(point).collect()
    }

    /// Every third step takes three times as long; or a pause of 9 s follows every tenth step of 1 s.
    #[test]
    fn slow_steps_and_pauses_are_described() {
        let text = |points: &[RunPoint]| note(points, &sifted(points), None).map(|text| text.replace('\u{202f}', " "));
        let slow = points(|step| (if step % 3 == 0 { 3.0 } else { 1.0 }, 0));
        let slow: Vec<RunPoint> = slow.into_iter().map(|point| RunPoint { time_ms: None, ..point }).collect();
        let slow = text(&slow).unwrap();
        assert!(slow.contains("median of regular steps is 1.000 s") && slow.contains("40 % of the time"), "{slow}");
        let paused = text(&points(|step| (1.0, 1000 * step + 9000 * (step / 10)))).unwrap();
        assert!(paused.contains("48 % of the time") && paused.contains("54.0 s between steps"), "{paused}");
        assert_eq!(text(&points(|step| (1.0, 1000 * step))), None);
        assert!(slow.contains("Look for garbage collection") && slow.contains("One of 3 steps is slow."), "{slow}");
        assert!(!paused.contains("garbage"), "{paused}");
    }
}
