//! Step times that change during a run.

use api::run::RunPoint;
use planner::run_comparison::{Change, Reason, Segment, Sifted, differing_thirds};

use super::batches;

/// Describes a step time that grows, falls or changes at one step.
pub(super) fn note(points: &[RunPoint], sifted: &Sifted, segment: Option<u32>) -> Option<String> {
    let changing = batches::changing(points);
    let is_warm_up = |index: usize| {
        sifted
            .outliers
            .binary_search_by_key(&index, |it| it.index)
            .is_ok_and(|at| sifted.outliers[at].reason == Reason::WarmUp)
    };
    let times = |part: u32| -> Vec<f64> {
        let own = points.iter().enumerate().filter(|(index, point)| point.segment == part && !is_warm_up(*index));
        own.filter(|(_, point)| batches::is_last(&changing, point))
            .filter_map(|(_, point)| point.step_s.filter(|seconds| seconds.is_finite() && *seconds > 0.0))
            .collect()
    };
    let described = |part: &Segment| {
        if let Some(Change { index, before_s, after_s }) = part.change {
            let how = format!(
                "The step time changes at step {}: the median is {before_s:.3}\u{202f}s before and {after_s:.3}\u{202f}s from there \
                 on. Compared are the steps from there on.",
                points[index].step
            );
            return Some(format!("{how} {}", advice(after_s > before_s)));
        }
        let (first_s, last_s) = differing_thirds(&times(part.segment))?;
        let how = format!(
            "The step time changes during the run: the median is {first_s:.3}\u{202f}s in the first third and \
                 {last_s:.3}\u{202f}s in the last third. One median for all steps says little."
        );
        Some(format!("{how} {}", advice(last_s > first_s)))
    };
    sifted.segments.iter().filter(|part| segment.is_none_or(|segment| segment == part.segment)).find_map(described)
}

const fn advice(is_slower: bool) -> &'static str {
    if is_slower {
        "Compare clocks and temperatures of the devices at both times, and look for a device or link that degraded, other jobs on the \
         network or the storage, and longer samples."
    } else {
        "Look for a cause that ended, for example other jobs on the network or the storage."
    }
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
