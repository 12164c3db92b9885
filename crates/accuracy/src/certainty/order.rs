//! Order of two layouts of one model on one cluster: the error that they share cancels.

use planner::certainty::OrderErrors;

use super::{OrderBin, rounded};
use crate::Accuracy;
use crate::set::Set;
use crate::step::Step;

/// Pairs of a set that enter the fit, evenly distributed over all pairs.
const MAX_PAIRS: usize = 1000;

/// Sets with fewer pairs are not used.
const MIN_PAIRS: usize = 20;

/// Name of the bins of all sets, with the fit to all sets.
pub(crate) const ALL: &str = "all sets";

/// Lower limits of the stated probability in the table.
const BINS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// Two layouts. The first has the shorter predicted time.
#[derive(Debug, Clone, Copy)]
struct Pair {
    /// ln(predicted time of the second / predicted time of the first).
    advantage: f64,
    /// The same ratio, measured.
    measured: f64,
    distance: f64,
}

/// Returns the spread of the differences, and the reliability of each set for a fit without it.
pub(super) fn fit(accuracy: &Accuracy) -> (OrderErrors, Vec<OrderBin>) {
    let sets: Vec<(&'static str, Vec<Pair>)> = accuracy
        .sets
        .iter()
        .filter(|set| ["s", "ms"].contains(&set.unit))
        .map(|set| (set.id, pairs(set)))
        .filter(|(_, pairs)| pairs.len() >= MIN_PAIRS)
        .collect();
    let mut bins = Vec::new();
    for (id, pairs) in &sets {
        let others: Vec<&[Pair]> = sets.iter().filter(|(other, _)| other != id).map(|(_, pairs)| &pairs[..]).collect();
        bins.extend(reliability(id, pairs, spread(&others)));
    }
    let all: Vec<&[Pair]> = sets.iter().map(|(_, pairs)| &pairs[..]).collect();
    let errors = spread(&all);
    let pairs: Vec<Pair> = all.concat();
    bins.extend(reliability(ALL, &pairs, errors));
    (errors, bins)
}

fn pairs(set: &Set) -> Vec<Pair> {
    let rows: Vec<_> = set.counted().filter_map(|row| Some((row, row.step?))).collect();
    let mut pairs = Vec::new();
    for (index, (a, first)) in rows.iter().enumerate() {
        for (b, second) in &rows[index + 1..] {
            let advantage = (b.predicted / a.predicted).ln();
            if first.group == second.group && advantage.abs() > 1e-6 {
                let measured = (b.measured / a.measured).ln() * advantage.signum();
                pairs.push(Pair { advantage: advantage.abs(), measured, distance: Step::distance(first, second) });
            }
        }
    }
    let step = pairs.len().div_ceil(MAX_PAIRS).max(1);
    pairs.into_iter().step_by(step).collect()
}

/// Fits scale and exponent by maximum likelihood of a logistic distribution, on a grid. Each set
/// has the same weight.
fn spread(sets: &[&[Pair]]) -> OrderErrors {
    let candidates = (0..=24).flat_map(|power| {
        (0..=40).map(move |step| OrderErrors {
            scale: rounded(0.02 * 1.1_f64.powi(step)),
            exponent: f64::from(power) * 0.05,
        })
    });
    let loss = |errors: &OrderErrors| -> f64 {
        let mean = |pairs: &[Pair]| {
            let total: f64 = pairs
                .iter()
                .map(|pair| {
                    let scale = errors.scale_at(pair.distance);
                    let distance = (pair.measured - pair.advantage).abs() / scale;
                    distance + 2.0 * (-distance).exp().ln_1p() + scale.ln()
                })
                .sum();
            total / pairs.len() as f64
        };
        sets.iter().map(|pairs| mean(pairs)).sum()
    };
    let scored = candidates.map(|errors| (loss(&errors), errors));
    let best = scored.min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(OrderErrors { scale: 1.0, exponent: 0.0 }, |(_, errors)| errors)
}

fn reliability(id: &str, pairs: &[Pair], errors: OrderErrors) -> Vec<OrderBin> {
    let stated = |pair: &Pair| errors.probability_faster(pair.advantage, pair.distance);
    let bin = |(index, low): (usize, &f64)| {
        let high = BINS.get(index + 1).copied().unwrap_or(2.0);
        let inside: Vec<&Pair> = pairs.iter().filter(|pair| stated(pair) >= *low && stated(pair) < high).collect();
        let count = inside.len() as f64;
        (!inside.is_empty()).then(|| OrderBin {
            set: id.to_owned(),
            pairs: inside.len(),
            stated: rounded(inside.iter().map(|pair| stated(pair)).sum::<f64>() / count),
            observed: rounded(inside.iter().filter(|pair| pair.measured > 0.0).count() as f64 / count),
        })
    };
    BINS.iter().enumerate().filter_map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Errors of +-0.1 at distance 0 and +-0.2 at distance 1.
    #[test]
    fn the_spread_grows_with_the_distance() {
        let pair = |error: f64, distance: f64| Pair { advantage: 0.3, measured: 0.3 + error, distance };
        let pairs = [pair(0.1, 0.0), pair(-0.1, 0.0), pair(0.2, 1.0), pair(-0.2, 1.0)];
        let errors = spread(&[&pairs]);
        assert!((errors.exponent - 1.0).abs() < 0.06, "{errors:?}");
        let bins = reliability("set", &pairs, errors);
        assert_eq!(bins.iter().map(|bin| bin.pairs).sum::<usize>(), 4);
        assert!(bins.iter().all(|bin| bin.stated > 0.9 && (bin.observed - 1.0).abs() < 1e-12), "{bins:?}");
    }
}
