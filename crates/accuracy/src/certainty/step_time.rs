//! Intervals of step times: two quantiles of the error, chosen and evaluated on sets that are left
//! out.

use planner::certainty::{Bounds, Feature, Linear};

use super::quantile::{LOWER, Point, UPPER, regress, weighted};
use super::{COVERAGE, Sample, StepTimeEvaluation, rounded, samples, scores, widened, widening};
use crate::Accuracy;

/// A property enters the model if it lowers the loss by this fraction.
const MIN_GAIN: f64 = 0.02;

/// Returns the bounds, the widest bounds, and the evaluation.
pub(super) fn fit(accuracy: &Accuracy) -> (Bounds, (f64, f64), StepTimeEvaluation) {
    let (ids, samples) = samples(accuracy, &["s", "ms"]);
    let lower = left_out(&ids, &samples, &[], LOWER);
    let bounds = |features: &[Feature]| -> Vec<(f64, f64)> {
        lower.iter().copied().zip(left_out(&ids, &samples, features, UPPER)).collect()
    };
    let loss = |features: &[Feature]| scores(&ids, &samples, &bounds(features)).1.pinball;
    let mut used: Vec<Feature> = Vec::new();
    let mut best = loss(&used);
    let mut tested = Vec::new();
    loop {
        let candidates = Feature::ALL.into_iter().filter(|feature| !used.contains(feature));
        let losses: Vec<(Feature, f64)> =
            candidates.map(|feature| (feature, loss(&[used.as_slice(), &[feature]].concat()))).collect();
        if tested.is_empty() {
            tested = losses.iter().map(|(feature, loss)| (*feature, rounded(*loss))).collect();
        }
        match losses.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((feature, loss)) if loss < best * (1.0 - MIN_GAIN) => {
                used.push(feature);
                best = loss;
            }
            _ => break,
        }
    }
    let chosen = bounds(&used);
    let shift = widening(&ids, &samples, &chosen, COVERAGE);
    let (sets, mean) = scores(&ids, &samples, &widened(&chosen, shift));
    let constant = bounds(&[]);
    let constant_shift = widening(&ids, &samples, &constant, mean.coverage);
    let (_, constant) = scores(&ids, &samples, &widened(&constant, constant_shift));
    let line = |level: f64, features: &[Feature], shift: f64| {
        let fitted = regress(&points(&samples, features, None), level);
        let slopes = features.iter().zip(&fitted[1..]).map(|(feature, slope)| (*feature, rounded(*slope)));
        Linear { constant: rounded(fitted[0] + shift), slopes: slopes.filter(|(_, slope)| *slope > 0.0).collect() }
    };
    let fitted = Bounds { lower: line(LOWER, &[], -shift), upper: line(UPPER, &used, shift) };
    let errors: Vec<(f64, f64)> = samples.iter().map(|sample| (sample.error, sample.weight)).collect();
    let widest = (rounded(weighted(&errors, 0.05) - shift), rounded(weighted(&errors, 0.95) + shift));
    let (mean, constant) = (mean.rounded(), constant.rounded());
    (fitted, widest, StepTimeEvaluation { sets, mean, constant, tested, used })
}

/// Returns the quantile of every row, fitted without the set of the row.
fn left_out(ids: &[&'static str], samples: &[Sample], features: &[Feature], level: f64) -> Vec<f64> {
    let fits: Vec<Vec<f64>> = (0..ids.len()).map(|set| regress(&points(samples, features, Some(set)), level)).collect();
    let quantile = |sample: &Sample| {
        let fit = &fits[sample.set];
        let slopes = features.iter().zip(&fit[1..]);
        fit[0] + slopes.map(|(feature, slope)| slope * sample.features.get(*feature)).sum::<f64>()
    };
    samples.iter().map(quantile).collect()
}

fn points(samples: &[Sample], features: &[Feature], without: Option<usize>) -> Vec<Point> {
    let kept = samples.iter().filter(|sample| Some(sample.set) != without);
    kept.map(|sample| Point {
        values: features.iter().map(|feature| sample.features.get(*feature)).collect(),
        error: sample.error,
        weight: sample.weight,
    })
    .collect()
}
