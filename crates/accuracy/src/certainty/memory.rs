//! Intervals of peak memory, and the probability of running out.

use planner::certainty::MemoryErrors;

use super::quantile::{LOWER, UPPER, weighted};
use super::{COVERAGE, MemoryEvaluation, Sample, rounded, samples, scores, widened, widening};
use crate::Accuracy;
use crate::truth::OUT_OF_MEMORY;

/// Returns the quantiles of the error and the evaluation.
pub(super) fn fit(accuracy: &Accuracy) -> (MemoryErrors, MemoryEvaluation) {
    let (ids, samples) = samples(accuracy, &["GiB"]);
    let fits: Vec<MemoryErrors> = (0..ids.len()).map(|set| quantiles(&samples, Some(set))).collect();
    let bounds: Vec<(f64, f64)> =
        samples.iter().map(|sample| (fits[sample.set].lower, fits[sample.set].upper)).collect();
    let shift = widening(&ids, &samples, &bounds, COVERAGE);
    let (sets, mean) = scores(&ids, &samples, &widened(&bounds, shift));
    let (mut fitted, mut exhausted) = (Vec::new(), Vec::new());
    for set in &accuracy.sets {
        let Some(index) = ids.iter().position(|id| *id == set.id) else { continue };
        for row in &set.rows {
            let Some(step) = row.step else { continue };
            let probability = fits[index].probability_above((step.device_gib / row.predicted).ln());
            if row.left_out == Some(OUT_OF_MEMORY) { exhausted.push(probability) } else { fitted.push(probability) }
        }
    }
    let stated = |values: &[f64]| (values.len(), rounded(values.iter().sum::<f64>() / values.len().max(1) as f64));
    let evaluation =
        MemoryEvaluation { sets, mean: mean.rounded(), fitted: stated(&fitted), exhausted: stated(&exhausted) };
    let MemoryErrors { lower, median, upper } = quantiles(&samples, None);
    (MemoryErrors { lower: rounded(lower - shift), median, upper: rounded(upper + shift) }, evaluation)
}

fn quantiles(samples: &[Sample], without: Option<usize>) -> MemoryErrors {
    let errors: Vec<(f64, f64)> = samples
        .iter()
        .filter(|sample| Some(sample.set) != without)
        .map(|sample| (sample.error, sample.weight))
        .collect();
    let [lower, median, upper] = [LOWER, 0.5, UPPER].map(|level| rounded(weighted(&errors, level)));
    MemoryErrors { lower, median, upper }
}
