//! The parts of a device that are fitted, each with its parameters.

use std::collections::BTreeSet;

use super::minimise::{Parameter, minimise};
use super::{FEWEST, PartReport, Sample};
use crate::cluster::{AttentionCurve, Cluster, Curves, LinkCurve, MatMulCurve};
use crate::cost::Group;
use crate::cost::kernel::{Kernel, Operation, Product};
use crate::cost::operator::Rates;

/// Timings that a fit looks at; of more, every k-th is taken.
const MOST: usize = 3000;
/// Residuals above this (in the logarithm) count linearly.
const ROBUST: f64 = 0.1;

/// A part of the machine with a curve of its own.
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

    /// Fits this part of `cluster` in place.
    pub(super) fn fit(self, cluster: &mut Cluster, samples: &[Sample]) -> PartReport {
        let before = if samples.is_empty() { (0.0, 0.0) } else { residuals(cluster, samples) };
        let report = |fitted: bool, after: (f64, f64), note: String| PartReport {
            part: self.name(),
            samples: samples.len(),
            fitted,
            mean_before: before.0,
            p90_before: before.1,
            mean_residual: after.0,
            p90_residual: after.1,
            note,
        };
        let shapes = distinct_shapes(samples);
        let few = |what: String| format!("{what} are too few for a curve ({FEWEST} are needed): kept as it was");
        let note = match samples.len() {
            0 => "no timings: the curve is assumed".to_owned(),
            count if count < FEWEST => few(format!("{count} timings")),
            _ if shapes < FEWEST => few(format!("{shapes} different shapes")),
            _ => String::new(),
        };
        if !note.is_empty() {
            return report(false, before, note);
        }
        let chosen: Vec<Sample> = samples.iter().copied().step_by(samples.len().div_ceil(MOST)).collect();
        let parameters = self.parameters(cluster, samples);
        let with = |values: &[f64]| {
            let mut changed = cluster.clone();
            self.set(&mut changed, values, &chosen);
            changed
        };
        let best = minimise(&parameters, 400 * parameters.len(), |values| {
            let changed = with(values);
            cost(&changed, &chosen)
        });
        *cluster = with(&best);
        report(true, residuals(cluster, samples), self.note(samples))
    }

    fn note(self, samples: &[Sample]) -> String {
        match self {
            Self::MatMul if !has_backward(samples) => {
                "forward products only: gradients are assumed as fast as on a typical device".to_owned()
            }
            Self::Collective if rank_counts(samples).len() < 2 => {
                "one group size only: what a further rank costs is assumed".to_owned()
            }
            _ => String::new(),
        }
    }

    fn parameters(self, cluster: &Cluster, samples: &[Sample]) -> Vec<Parameter> {
        let of = |start: f64, low: f64, high: f64| Parameter { start: start.clamp(low, high), low, high };
        let device = &cluster.device;
        match self {
            Self::MatMul => {
                let mut parameters = vec![
                    of(device.matmul_efficiency, 0.2, 1.0),
                    of(100.0, 0.0, 600.0),
                    of(0.95, 0.5, 1.0),
                    of(0.75, 0.3, 1.0),
                    of(0.7, 0.2, 1.0),
                    of(0.3, 0.0, 1.0),
                    of(0.8, 0.3, 1.0),
                    of(4.0, 0.5, 20.0),
                    of(0.15, 0.0, 1.0),
                ];
                if has_backward(samples) {
                    parameters.extend([of(1.0, 0.6, 1.2), of(0.95, 0.4, 1.2)]);
                }
                if has_groups(samples) {
                    parameters.push(of(0.85, 0.2, 1.1));
                }
                parameters
            }
            Self::Attention => {
                let start = device.attention_efficiency;
                vec![of(start, 0.1, 1.0), of(195.0, 0.0, 2000.0), of(0.8, 0.3, 1.3)]
            }
            // No stream reaches the data sheet's figure; one that seems to comes from the cache.
            Self::Elementwise => vec![of(device.memory_efficiency, 0.2, 0.95)],
            Self::Collective => {
                let link = &cluster.intra_node;
                let mut parameters = vec![of(link.efficiency, 0.1, 1.0), of(20.0, 0.0, 200.0), of(5e4, 0.0, 1e6)];
                // What a further rank costs shows between groups of different size only.
                if rank_counts(samples).len() > 1 {
                    parameters.push(of(4.0, 0.0, 30.0));
                }
                if has_pairs(samples) {
                    parameters.push(of(0.9, 0.5, 1.2));
                }
                if has_all_to_all(samples) {
                    parameters.push(of(0.85, 0.4, 1.2));
                }
                parameters
            }
        }
    }

    fn set(self, cluster: &mut Cluster, values: &[f64], samples: &[Sample]) {
        let curves = cluster.device.curves.get_or_insert_with(Curves::generic);
        match self {
            Self::MatMul => {
                cluster.device.matmul_efficiency = values[0];
                cluster.device.launch_us = values[7];
                curves.matmul = MatMulCurve {
                    fill: values[1],
                    tile_128: values[2],
                    tile_64: values[3],
                    tile_small: values[4],
                    last_wave: values[5],
                    traffic: values[6],
                    power_drop: values[8],
                    ..curves.matmul
                };
                if has_backward(samples) {
                    (curves.matmul.input_grad, curves.matmul.weight_grad) = (values[9], values[10]);
                }
                if has_groups(samples) {
                    curves.matmul.grouped = values[values.len() - 1];
                }
            }
            Self::Attention => {
                cluster.device.attention_efficiency = values[0];
                curves.attention = AttentionCurve { half_blocks: values[1], backward: values[2], ..curves.attention };
            }
            Self::Elementwise => cluster.device.memory_efficiency = values[0],
            Self::Collective => {
                cluster.intra_node.efficiency = values[0];
                let curve = cluster.intra_node.curve.unwrap_or(LinkCurve::GENERIC);
                let mut others = values[3..].iter().copied();
                let mut next = |fitted: bool, kept: f64| if fitted { others.next().unwrap_or(kept) } else { kept };
                cluster.intra_node.curve = Some(LinkCurve {
                    base_us: values[1],
                    small_bytes: values[2],
                    per_rank_us: next(rank_counts(samples).len() > 1, curve.per_rank_us),
                    pair: next(has_pairs(samples), curve.pair),
                    all_to_all: next(has_all_to_all(samples), curve.all_to_all),
                    ..curve
                });
            }
        }
    }
}

fn has_backward(samples: &[Sample]) -> bool {
    let backward =
        |sample: &&Sample| matches!(sample.kernel, Kernel::MatMul(product) if product.product != Product::Forward);
    samples.iter().filter(backward).count() >= FEWEST
}

fn has_groups(samples: &[Sample]) -> bool {
    let group = |sample: &&Sample| matches!(sample.kernel, Kernel::MatMul(product) if product.batch > 1.0);
    samples.iter().filter(group).count() >= FEWEST
}

/// Sizes of the groups that were measured.
fn rank_counts(samples: &[Sample]) -> BTreeSet<u32> {
    let ranks = |sample: &Sample| match sample.kernel {
        Kernel::Collective(collective) => Some(collective.ranks),
        _ => None,
    };
    samples.iter().filter_map(ranks).collect()
}

/// Whether groups of two were measured, and larger ones beside them.
fn has_pairs(samples: &[Sample]) -> bool {
    let counts = rank_counts(samples);
    counts.contains(&2) && counts.len() > 1
}

/// Timings of the same shape say one thing once.
fn distinct_shapes(samples: &[Sample]) -> usize {
    samples.iter().map(|sample| format!("{:?}", sample.kernel)).collect::<BTreeSet<_>>().len()
}

fn has_all_to_all(samples: &[Sample]) -> bool {
    let exchange = |sample: &&Sample| matches!(sample.kernel, Kernel::Collective(collective) if collective.operation == Operation::AllToAll);
    samples.iter().filter(exchange).count() >= FEWEST
}

/// Predicted time of one timing, in seconds.
pub(super) fn predict(rates: &Rates, cluster: &Cluster, sample: &Sample) -> f64 {
    match sample.kernel {
        Kernel::Collective(collective) => {
            let group = Group::spread(cluster, collective.ranks, collective.ranks_per_node);
            group.time(collective.operation, collective.bytes).secs()
        }
        kernel => rates.time(&kernel).secs(),
    }
}

/// A training step is a sum of products, most of its time in long ones, a profile a list of mostly short ones: a
/// timing counts by its duration. Collectives and streams count alike.
fn weight(sample: &Sample) -> f64 {
    match sample.kernel {
        Kernel::MatMul(_) => 0.02 + sample.time.secs() * 1e3,
        _ => 1.0,
    }
}

/// Mean robust residual: quadratic for small ones, linear beyond.
fn cost(cluster: &Cluster, samples: &[Sample]) -> f64 {
    let rates = Rates::of(&cluster.device);
    let (mut sum, mut weights) = (0.0, 0.0);
    for sample in samples {
        let residual = libm::log(predict(&rates, cluster, sample) / sample.time.secs()) / ROBUST;
        let weight = weight(sample);
        sum += weight * ((1.0 + residual * residual).sqrt() - 1.0);
        weights += weight;
    }
    sum / weights
}

/// Mean and ninth decile of relative residuals.
fn residuals(cluster: &Cluster, samples: &[Sample]) -> (f64, f64) {
    let rates = Rates::of(&cluster.device);
    let residual = |sample: &Sample| (predict(&rates, cluster, sample) / sample.time.secs() - 1.0).abs();
    let mut all: Vec<f64> = samples.iter().map(residual).collect();
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    (mean, all[(all.len() * 9 / 10).min(all.len() - 1)])
}
