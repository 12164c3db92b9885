//! Step times that change during a run.

use api::run::RunPoint;
use planner::run_comparison::{Reason, Sifted, median};

use super::batches;

/// Fewest steps of a part in which a change is looked for.
const MIN_STEPS: usize = 12;
/// Smallest relative difference of the medians of the first and the last third.
const MIN_CHANGE: f64 = 0.08;
/// A change at one step leaves at most this share of the squared deviations that a linear change leaves.
const ABRUPT: f64 = 0.25;

/// A timed step.
type Timed = (u64, f64);

/// Describes a step time that grows, falls or changes at one step.
pub(super) fn note(points: &[RunPoint], sifted: &Sifted, segment: Option<u32>) -> Option<String> {
    let changing = batches::changing(points);
    let is_warm_up = |index: usize| {
        sifted
            .outliers
            .binary_search_by_key(&index, |it| it.index)
            .is_ok_and(|at| sifted.outliers[at].reason == Reason::WarmUp)
    };
    let timed = |part: u32| -> Vec<Timed> {
        let own = points.iter().enumerate().filter(|(index, point)| point.segment == part && !is_warm_up(*index));
        own.filter(|(_, point)| batches::is_last(&changing, point))
            .filter_map(|(_, point)| {
                Some((point.step, point.step_s.filter(|seconds| seconds.is_finite() && *seconds > 0.0)?))
            })
            .collect()
    };
    let parts = sifted.segments.iter().map(|part| part.segment);
    parts.filter(|part| segment.is_none_or(|segment| segment == *part)).find_map(|part| described(&timed(part)))
}

fn described(steps: &[Timed]) -> Option<String> {
    if steps.len() < MIN_STEPS {
        return None;
    }
    let third = steps.len() / 3;
    let middle = |steps: &[Timed]| median(&steps.iter().map(|(_, seconds)| *seconds).collect::<Vec<_>>());
    let (first_s, last_s) = (middle(&steps[..third])?, middle(&steps[steps.len() - third..])?);
    if (last_s / first_s - 1.0).abs() < MIN_CHANGE {
        return None;
    }
    let at = change(steps);
    let (first_s, last_s) = match at {
        Some(at) => (middle(&steps[..at])?, middle(&steps[at..])?),
        None => (first_s, last_s),
    };
    let how = match at {
        Some(at) => format!(
            "The step time changes at step {}: the median is {first_s:.3}\u{202f}s before and {last_s:.3}\u{202f}s from there on.",
            steps[at].0
        ),
        None => format!(
            "The step time changes during the run: the median is {first_s:.3}\u{202f}s in the first third and {last_s:.3}\u{202f}s in the \
             last third."
        ),
    };
    let advice = if last_s > first_s {
        "Compare clocks and temperatures of the devices at both times, and look for a device or link that degraded, other jobs on the \
         network or the storage, and longer samples."
    } else {
        "Look for a cause that ended, for example other jobs on the network or the storage."
    };
    Some(format!("{how} One median for all steps says little. {advice}"))
}

/// Returns the index of the first step after an abrupt change. `None` if the time changes gradually.
fn change(steps: &[Timed]) -> Option<usize> {
    let sums = |steps: &[Timed]| {
        steps.iter().fold((0.0, 0.0), |(sum, squares), (_, seconds)| (sum + seconds, squares + seconds * seconds))
    };
    let (all, all_squares) = sums(steps);
    let count = steps.len() as f64;
    let mut best = (f64::INFINITY, 0);
    let (mut left, mut left_squares) = (0.0, 0.0);
    for (index, (_, seconds)) in steps.iter().enumerate().take(steps.len() - 1) {
        left += seconds;
        left_squares += seconds * seconds;
        let before = (index + 1) as f64;
        let right = all - left;
        let rest =
            left_squares - left * left / before + (all_squares - left_squares) - right * right / (count - before);
        if rest < best.0 {
            best = (rest, index + 1);
        }
    }
    // Squared deviations from a straight line over the position.
    let (mean, centre) = (all / count, (count - 1.0) / 2.0);
    let (mut covariance, mut variance, mut squares) = (0.0, 0.0, 0.0);
    for (index, (_, seconds)) in steps.iter().enumerate() {
        let (x, y) = (index as f64 - centre, seconds - mean);
        covariance += x * y;
        variance += x * x;
        squares += y * y;
    }
    let linear = squares - covariance * covariance / variance;
    (best.0 < ABRUPT * linear).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::comparison::sifted;

    fn text(seconds: impl Fn(u64) -> f64) -> Option<String> {
        let point = |step: u64| RunPoint { step, step_s: Some(seconds(step)), ..RunPoint::default() };
        let points: Vec<RunPoint> = (1..=90).map(point).collect();
        note(&points, &sifted(&points), None).map(|text| text.replace('\u{202f}', " "))
    }

    #[test]
    fn changes_are_described() {
        let noise = |step: u64| 0.01 * (step % 7) as f64;
        let grows = text(|step| 2.0 + step as f64 / 90.0 + noise(step)).unwrap();
        assert!(grows.contains("in the last third") && grows.contains("clocks"), "{grows}");
        for at in [40, 50] {
            let abrupt = text(|step| if step < at { 2.0 } else { 3.0 } + noise(step)).unwrap();
            assert!(abrupt.contains(&format!("changes at step {at}: the median is 2.03")), "{abrupt}");
        }
        assert!(text(|step| if step < 50 { 3.0 } else { 2.0 }).unwrap().contains("a cause that ended"));
        // Slow steps throughout the run are no change.
        assert_eq!(text(|step| if step % 3 == 0 { 6.0 } else { 2.0 } + noise(step)), None);
        assert_eq!(text(|step| 2.0 + noise(step)), None);
    }
}
