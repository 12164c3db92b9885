//! Model of errors: fits it to the errors of the published sets, and evaluates it on sets that are
//! left out of the fit.

mod memory;
pub(crate) mod order;
mod quantile;
mod step_time;

use planner::certainty::{Coefficients, Feature, Features};
use serde::{Deserialize, Serialize};

use crate::Accuracy;

/// The fitted model of errors with its evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Certainty {
    /// Coefficients fitted to all sets.
    pub coefficients: Coefficients,
    /// Evaluation on sets that are left out.
    pub evaluation: Evaluation,
}

/// Evaluation on sets that are left out of the fit. Part of docs/accuracy.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// 80 % intervals of step times.
    pub step_time: StepTimeEvaluation,
    /// 80 % intervals of peak memory.
    pub peak_memory: MemoryEvaluation,
    /// Stated probability that a layout is faster against the observed frequency.
    pub order: Vec<OrderBin>,
}

/// Evaluation of the intervals of step times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepTimeEvaluation {
    /// One entry per set.
    pub sets: Vec<SetCoverage>,
    /// Means over the sets.
    pub mean: Score,
    /// Means over the sets for one constant interval.
    pub constant: Score,
    /// Pinball loss if a property is added to the model, by property.
    pub tested: Vec<(Feature, f64)>,
    /// Properties that the model uses.
    pub used: Vec<Feature>,
}

/// Coverage of a set that is left out of the fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetCoverage {
    /// Set identifier.
    pub set: String,
    /// Number of rows.
    pub rows: usize,
    /// Scores of the rows.
    pub score: Score,
}

/// Scores of 80 % intervals.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Score {
    /// Fraction of measurements inside the interval.
    pub coverage: f64,
    /// Mean of ln(upper bound / lower bound).
    pub width: f64,
    /// Mean pinball loss of both bounds, in ln.
    pub pinball: f64,
}

impl Score {
    fn rounded(self) -> Self {
        let Self { coverage, width, pinball } = self;
        Self { coverage: rounded(coverage), width: rounded(width), pinball: rounded(pinball) }
    }
}

/// Evaluation of the intervals of peak memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryEvaluation {
    /// One entry per set.
    pub sets: Vec<SetCoverage>,
    /// Means over the sets.
    pub mean: Score,
    /// Mean stated probability of running out of memory for runs that fitted.
    pub fitted: (usize, f64),
    /// Mean stated probability of running out of memory for runs that ran out.
    pub exhausted: (usize, f64),
}

/// Pairs of layouts with a similar stated probability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderBin {
    /// Set identifier.
    pub set: String,
    /// Number of pairs.
    pub pairs: usize,
    /// Mean stated probability that the layout with the shorter predicted time is faster.
    pub stated: f64,
    /// Fraction of pairs in which it is faster.
    pub observed: f64,
}

/// Sets that do not inform the model, because the measured quantity is ambiguous: operations with or
/// without masked scores, and memory of the allocator or of the process.
const AMBIGUOUS: [&str; 2] = ["nemo_long_sequence", "internevo_memory"];

/// Mean coverage of the intervals over the sets.
const COVERAGE: f64 = 0.8;

/// Fits the model of errors and evaluates it.
pub fn fit(accuracy: &Accuracy) -> Certainty {
    let (bounds, widest, step_time) = step_time::fit(accuracy);
    let (memory, peak_memory) = memory::fit(accuracy);
    let (order_errors, order) = order::fit(accuracy);
    Certainty {
        coefficients: Coefficients { step_time: bounds, widest, peak_memory: memory, order: order_errors },
        evaluation: Evaluation { step_time, peak_memory, order },
    }
}

/// Formats the coefficients as the committed file.
///
/// # Errors
/// Returns an error if a coefficient is not a number.
pub fn to_json(coefficients: &Coefficients) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(coefficients)? + "\n")
}

/// Rounds to four decimals.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// An error ln(measured / predicted) of a row.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Index of the set.
    set: usize,
    features: Features,
    error: f64,
    /// Weight of the row. The weights of a set sum to 1, or less for fewer than five rows.
    weight: f64,
}

/// Returns the errors of the counted rows of sets with a unit, and the identifiers of these sets.
fn samples(accuracy: &Accuracy, units: &[&str]) -> (Vec<&'static str>, Vec<Sample>) {
    let (mut ids, mut samples) = (Vec::new(), Vec::new());
    for set in accuracy.sets.iter().filter(|set| units.contains(&set.unit) && !AMBIGUOUS.contains(&set.id)) {
        let rows: Vec<_> = set.counted().filter_map(|row| Some((row, row.step?))).collect();
        if rows.is_empty() {
            continue;
        }
        let weight = (rows.len() as f64 / 5.0).min(1.0) / rows.len() as f64;
        samples.extend(rows.iter().map(|(row, step)| Sample {
            set: ids.len(),
            features: step.features,
            error: (row.measured / row.predicted).ln(),
            weight,
        }));
        ids.push(set.id);
    }
    (ids, samples)
}

/// Returns the scores by set, and the mean over the sets by their weight.
fn scores(ids: &[&'static str], samples: &[Sample], bounds: &[(f64, f64)]) -> (Vec<SetCoverage>, Score) {
    let mut sets = Vec::new();
    let (mut mean, mut total) = (Score::default(), 0.0);
    for (index, id) in ids.iter().enumerate() {
        let rows: Vec<_> = samples.iter().zip(bounds).filter(|(sample, _)| sample.set == index).collect();
        let count = rows.len() as f64;
        let average = |value: &dyn Fn(&Sample, (f64, f64)) -> f64| {
            rows.iter().map(|(sample, bounds)| value(sample, **bounds)).sum::<f64>() / count
        };
        let score = Score {
            coverage: average(&|sample, (low, high)| f64::from(u8::from(sample.error >= low && sample.error <= high))),
            width: average(&|_, (low, high)| high - low),
            pinball: average(&|sample, (low, high)| {
                quantile::pinball(sample.error - low, quantile::LOWER)
                    + quantile::pinball(sample.error - high, quantile::UPPER)
            }),
        };
        let weight: f64 = rows.iter().map(|(sample, _)| sample.weight).sum();
        mean.coverage += weight * score.coverage;
        mean.width += weight * score.width;
        mean.pinball += weight * score.pinball;
        total += weight;
        sets.push(SetCoverage { set: (*id).to_owned(), rows: rows.len(), score: score.rounded() });
    }
    let mean = Score { coverage: mean.coverage / total, width: mean.width / total, pinball: mean.pinball / total };
    (sets, mean)
}

/// Returns the smallest shift of both bounds, in steps of 0.001, with which the mean coverage over
/// the sets is at least `coverage`.
fn widening(ids: &[&'static str], samples: &[Sample], bounds: &[(f64, f64)], coverage: f64) -> f64 {
    let reached = |shift: f64| scores(ids, samples, &widened(bounds, shift)).1.coverage >= coverage - 1e-9;
    (0..1000).map(|step| f64::from(step) * 0.001).find(|shift| reached(*shift)).unwrap_or(1.0)
}

fn widened(bounds: &[(f64, f64)], shift: f64) -> Vec<(f64, f64)> {
    bounds.iter().map(|(low, high)| (low - shift, high + shift)).collect()
}
