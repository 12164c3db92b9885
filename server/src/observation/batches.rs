//! Steps of a run whose global batch size changes.

use std::collections::BTreeMap;

use api::run::RunPoint;

/// Fewest steps of the last batch size, and of each batch size on average. With fewer, a trainer prints the number of samples of
/// every step, and there is no size that most steps have.
const MIN_STEPS: usize = 3;

/// The last global batch size of a part of a run in which it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LastBatch {
    /// Samples of the first steps.
    first: u64,
    /// Samples of the last steps.
    last: u64,
    /// Number of steps with the last size.
    steps: usize,
    /// Number of steps with another size.
    others: usize,
}

/// Finds the parts in which the global batch size changes, for example with a ramp at the start.
pub(super) fn changing(points: &[RunPoint]) -> BTreeMap<u32, LastBatch> {
    let mut by_part: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for point in points {
        if let Some(samples) = point.global_batch {
            by_part.entry(point.segment).or_default().push(samples);
        }
    }
    by_part.into_iter().filter_map(|(part, sizes)| Some((part, last_batch(&sizes)?))).collect()
}

fn last_batch(sizes: &[u64]) -> Option<LastBatch> {
    let (&first, &last) = (sizes.first()?, sizes.last()?);
    let runs = 1 + sizes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let trailing = sizes.iter().rev().take_while(|&&samples| samples == last).count();
    let steps = sizes.iter().filter(|&&samples| samples == last).count();
    let is_ramp = runs > 1 && trailing >= MIN_STEPS && sizes.len() >= MIN_STEPS * runs;
    is_ramp.then_some(LastBatch { first, last, steps, others: sizes.len() - steps })
}

/// Whether a step has the last batch size of its part. Steps without a batch size have.
pub(super) fn is_last(changing: &BTreeMap<u32, LastBatch>, point: &RunPoint) -> bool {
    let last = changing.get(&point.segment).map(|batch| batch.last);
    last.is_none_or(|last| point.global_batch.is_none_or(|samples| samples == last))
}

/// Says which steps are compared.
pub(super) fn notes(points: &[RunPoint], segment: Option<u32>) -> Vec<String> {
    let parts = changing(points).into_iter().filter(|(part, _)| segment.is_none_or(|segment| segment == *part));
    let note = |LastBatch { first, last, steps, others }| {
        format!(
            "The global batch size changes during the run: it is {first} at the start and {last} at the end. Only the {steps} steps with \
             {last} are compared; {others} steps have other sizes."
        )
    };
    parts.map(|(_, batch)| note(batch)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::comparison::{selected_points, sifted};

    fn points(steps: &[(usize, u64, f64)]) -> Vec<RunPoint> {
        let each = steps.iter().flat_map(|&(count, samples, step_s)| std::iter::repeat_n((samples, step_s), count));
        let point = |(step, (samples, step_s))| RunPoint {
            step,
            global_batch: Some(samples),
            step_s: Some(step_s),
            ..RunPoint::default()
        };
        (1..).zip(each).map(point).collect()
    }

    /// 30 steps with 8 samples, 30 with 16 and 10 with 32.
    #[test]
    fn the_steps_of_the_last_batch_are_compared() {
        let ramp = points(&[(30, 8, 1.0), (30, 16, 2.0), (10, 32, 4.0)]);
        let sifted = sifted(&ramp);
        let selected = selected_points(&ramp, &sifted, None);
        assert!(selected.len() >= 9 && selected.iter().all(|point| point.step_s == Some(4.0)), "{}", selected.len());
        assert_eq!(sifted.segments[0].median_s, Some(4.0));
        let notes = notes(&ramp, None);
        assert!(
            notes.len() == 1 && notes[0].contains("the 10 steps with 32") && notes[0].contains("60 steps"),
            "{notes:?}"
        );
    }

    #[test]
    fn equal_and_irregular_batches_are_all_compared() {
        assert!(changing(&points(&[(30, 8, 1.0)])).is_empty());
        // The last size has one step only, or each step has another number of samples.
        assert!(changing(&points(&[(30, 8, 1.0), (1, 16, 2.0)])).is_empty());
        let irregular: Vec<(usize, u64, f64)> = (0..30).map(|step| (1, 8 + step % 7, 1.0)).collect();
        assert!(changing(&points(&irregular)).is_empty());
    }
}
