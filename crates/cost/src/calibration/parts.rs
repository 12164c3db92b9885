//! Fitted parts of a device with their coefficients.

use std::collections::BTreeSet;

use super::Sample;
use super::coefficient::Coefficient;
use super::link;
use super::minimise::{Parameter, minimise};
use super::report::{Outcome, PartReport, Unchanged};
use crate::cost::Group;
use crate::cost::kernel::Kernel;
use crate::cost::operator::Rates;
use planscope_core::cluster::Cluster;

/// Maximum number of timings in a fit. Larger sets are thinned evenly.
const MAX_SAMPLES: usize = 3000;
/// Logarithmic residuals above this value have linear weight.
const ROBUST: f64 = 0.1;
/// A timing depends on a coefficient if the predicted time changes by more than this relative
/// amount between its bounds.
const REACTS: f64 = 0.01;

/// A part of the device with a separate curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    MatMul,
    Attention,
    Elementwise,
    Collective,
}

impl Part {
    pub(super) const ALL: [Self; 4] = [Self::MatMul, Self::Attention, Self::Elementwise, Self::Collective];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MatMul => "matrix products",
            Self::Attention => "fused attention",
            Self::Elementwise => "elementwise kernels",
            Self::Collective => "collectives of one node",
        }
    }

    const fn coefficients(self) -> &'static [Coefficient] {
        match self {
            Self::MatMul => &Coefficient::MATMUL,
            Self::Attention => &Coefficient::ATTENTION,
            Self::Elementwise => &Coefficient::ELEMENTWISE,
            Self::Collective => &Coefficient::COLLECTIVE,
        }
    }

    /// Fits this part of `cluster` in place. Coefficients with too few timings do not change. If no
    /// search improves the mean residual, no coefficient changes.
    pub(super) fn fit(self, cluster: &mut Cluster, samples: &[Sample]) -> PartReport {
        let before = if samples.is_empty() { (0.0, 0.0) } else { residuals(cluster, samples) };
        let mut report = PartReport {
            part: self.name(),
            samples: samples.len(),
            fitted: false,
            mean_before: before.0,
            p90_before: before.1,
            mean_residual: before.0,
            p90_residual: before.1,
            note: String::new(),
            coefficients: Vec::new(),
        };
        if samples.is_empty() {
            "no timings: nothing changes".clone_into(&mut report.note);
            return report;
        }
        let selected: Vec<Sample> = samples.iter().copied().step_by(samples.len().div_ceil(MAX_SAMPLES)).collect();
        let shapes: Vec<String> = selected.iter().map(|sample| format!("{:?}", sample.kernel)).collect();
        // Sizes at which a coefficient counts depend on the others.
        let near = match self {
            Self::Collective => link::start(cluster, &Coefficient::COLLECTIVE, &selected),
            _ => cluster.clone(),
        };
        let counted = self.coefficients().iter().map(|&coefficient| {
            let is_separable = is_separable(coefficient, cluster, &selected);
            (coefficient, if is_separable { count_shapes(coefficient, &near, &selected, &shapes) } else { 0 })
        });
        let (open, fixed): (Vec<_>, Vec<_>) = counted.partition(|(coefficient, count)| *count >= coefficient.fewest());
        let stays = |&(coefficient, count): &(Coefficient, usize)| {
            let is_measured = count >= coefficient.fewest();
            let why = if is_measured { Unchanged::NoBetterFit } else { Unchanged::NoBatchClock };
            coefficient.report(count, Outcome::Unchanged(why), cluster)
        };
        if open.is_empty() {
            let shapes = shapes.iter().collect::<BTreeSet<_>>().len();
            report.note =
                format!("{} timings of {shapes} different shapes are too few: nothing changes", samples.len());
            report.coefficients = fixed.iter().map(stays).collect();
            return report;
        }
        let typical = Coefficient::typical(cluster);
        let searches = |starts: &[&Cluster]| {
            let found = starts.iter().map(|start| search(cluster, start, &open, &selected));
            found.filter(|found| residuals(found, samples).0 <= before.0).collect::<Vec<_>>()
        };
        let fitted = if self == Self::Collective {
            let coefficients: Vec<Coefficient> = open.iter().map(|&(coefficient, _)| coefficient).collect();
            let linear = link::start(cluster, &coefficients, &selected);
            let found =
                searches(&[&linear, &typical, &*cluster]).into_iter().map(|found| (cost(&found, samples), found));
            found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, found)| found)
        } else {
            // Each search of other parts takes long.
            searches(&[&typical]).pop().or_else(|| searches(&[&*cluster]).pop())
        };
        // Preset values are a rounded minimum of the same cost, so no search finds a smaller
        // residual.
        let Some(found) = fitted else {
            "no values have a smaller mean residual than the present ones: they are confirmed"
                .clone_into(&mut report.note);
            report.fitted = true;
            report.coefficients = open.iter().chain(&fixed).map(stays).collect();
            return report;
        };
        let ends = |&(coefficient, count): &(Coefficient, usize)| {
            coefficient.report(count, Outcome::Fitted(coefficient.bound_at(coefficient.get(&found))), &found)
        };
        report.coefficients = open.iter().map(ends).chain(fixed.iter().map(stays)).collect();
        report.fitted = true;
        (report.mean_residual, report.p90_residual) = residuals(&found, samples);
        *cluster = found;
        report
    }
}

/// Returns `cluster` with the `open` coefficients that minimize the cost. The search starts at the
/// values of `start`.
fn search(cluster: &Cluster, start: &Cluster, open: &[(Coefficient, usize)], samples: &[Sample]) -> Cluster {
    let parameter = |(coefficient, _): &(Coefficient, usize)| {
        let (low, high) = coefficient.bounds();
        let at = |value: f64| coefficient.coordinate(value);
        Parameter { start: at(coefficient.get(start).clamp(low, high)), low: at(low), high: at(high) }
    };
    let parameters: Vec<Parameter> = open.iter().map(parameter).collect();
    let with = |values: &[f64]| {
        let mut changed = cluster.clone();
        for (&(coefficient, _), &value) in open.iter().zip(values) {
            coefficient.set(&mut changed, coefficient.value_at(value));
        }
        changed
    };
    let best = minimise(&parameters, 400 * parameters.len(), |values| cost(&with(values), samples));
    with(&best)
}

/// Number of different shapes that determine a coefficient: shapes of its case with a predicted
/// time that changes between its bounds.
fn count_shapes(coefficient: Coefficient, cluster: &Cluster, samples: &[Sample], shapes: &[String]) -> usize {
    let (low, high) = coefficient.bounds();
    let at = |value: f64| {
        let mut changed = cluster.clone();
        coefficient.set(&mut changed, value);
        changed
    };
    let current = coefficient.get(cluster).clamp(low, high);
    let clusters = [at(low), at(current), at(high)];
    let rates = clusters.each_ref().map(|cluster| Rates::new(&cluster.device));
    let reacts = |sample: &Sample| {
        let [low_time, current_time, high_time] =
            [0, 1, 2].map(|index| predict(&rates[index], &clusters[index], sample));
        (low_time / current_time - 1.0).abs().max((high_time / current_time - 1.0).abs()) > REACTS
    };
    let relevant =
        samples.iter().zip(shapes).filter(|(sample, _)| coefficient.is_measured_by(sample) && reacts(sample));
    relevant.map(|(_, shape)| shape).collect::<BTreeSet<_>>().len()
}

/// Returns whether the group sizes separate a coefficient from others. The time per rank and the
/// factor for pairs require different sizes, unless the only group starts in less than its hops.
fn is_separable(coefficient: Coefficient, cluster: &Cluster, samples: &[Sample]) -> bool {
    match coefficient {
        Coefficient::PerRank => rank_counts(samples).len() > 1 || link::has_shorter_hops(cluster, samples),
        Coefficient::Pair => rank_counts(samples).len() > 1,
        _ => true,
    }
}

/// Group sizes in the samples.
fn rank_counts(samples: &[Sample]) -> BTreeSet<u32> {
    let ranks = |sample: &Sample| match sample.kernel {
        Kernel::Collective(collective) => Some(collective.ranks),
        _ => None,
    };
    samples.iter().filter_map(ranks).collect()
}

/// Returns the predicted time in seconds.
pub(super) fn predict(rates: &Rates, cluster: &Cluster, sample: &Sample) -> f64 {
    match sample.kernel {
        Kernel::Collective(collective) => {
            let group = Group::spread(cluster, collective.ranks, collective.ranks_per_node);
            group.time(collective.operation, collective.bytes).secs()
        }
        kernel => rates.time(&kernel).secs(),
    }
}

/// Cost function: mean robust residual of the logarithm, quadratic for small residuals and linear
/// for large ones. Matrix products are weighted by duration, because long kernels dominate a
/// training step, but short kernels dominate a profile.
fn cost(cluster: &Cluster, samples: &[Sample]) -> f64 {
    let rates = Rates::new(&cluster.device);
    let (mut sum, mut total) = (0.0, 0.0);
    for sample in samples {
        let residual = libm::log(predict(&rates, cluster, sample) / sample.time.secs()) / ROBUST;
        let weight = duration_weight(sample);
        sum += weight * ((1.0 + residual * residual).sqrt() - 1.0);
        total += weight;
    }
    sum / total
}

fn duration_weight(sample: &Sample) -> f64 {
    match sample.kernel {
        Kernel::MatMul(_) => 0.02 + sample.time.secs() * 1e3,
        _ => 1.0,
    }
}

/// Returns the mean and the ninth decile of relative residuals.
fn residuals(cluster: &Cluster, samples: &[Sample]) -> (f64, f64) {
    let rates = Rates::new(&cluster.device);
    let residual = |sample: &Sample| (predict(&rates, cluster, sample) / sample.time.secs() - 1.0).abs();
    let mut all: Vec<f64> = samples.iter().map(residual).collect();
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    (mean, all[(all.len() * 9 / 10).min(all.len() - 1)])
}
