//! Start values for the curve of a link.
//!
//! The time of an all-reduce is linear in four numbers: start, time per rank, inverse efficiency,
//! and small-message term. Least squares over relative residuals therefore gives the global
//! minimum, while a search of the curve can stop at a wrong pair of efficiency and small-message
//! term.

use super::Sample;
use super::coefficient::Coefficient;
use super::parts::predict;
use crate::cost::kernel::{Collective, Kernel, Operation};
use crate::cost::operator::Rates;
use planscope_core::cluster::Cluster;
use planscope_core::least_squares::non_negative;

/// Rates between two devices that are compared, relative to larger groups.
const PAIRS: u32 = 36;

/// Times of the linear terms, and the fixed part of the measured time, both relative to it.
type Row = ([f64; 4], f64);

/// Coefficients of the linear form, in column order.
const LINEAR: [Coefficient; 4] =
    [Coefficient::Base, Coefficient::PerRank, Coefficient::LinkEfficiency, Coefficient::SmallBytes];

/// Returns `cluster` with start values for the `open` coefficients. Values that the timings do not
/// determine stay.
pub(super) fn start(cluster: &Cluster, open: &[Coefficient], samples: &[Sample]) -> Cluster {
    let reduces = all_reduces(samples);
    let pairs: Vec<f64> = if open.contains(&Coefficient::Pair) {
        let (low, high) = Coefficient::Pair.bounds();
        (0..PAIRS).map(|at| low + (high - low) * f64::from(at) / f64::from(PAIRS - 1)).collect()
    } else {
        vec![Coefficient::Pair.get(cluster)]
    };
    let mut found = if open.contains(&Coefficient::PerRank) && group_size(&reduces).is_some() {
        // Base and time per rank keep their ratio.
        with_scaled_start(cluster, open, &reduces)
    } else {
        let solved = pairs.into_iter().filter_map(|pair| linear(cluster, open, &reduces, pair));
        solved.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, found)| found)
    }
    .unwrap_or_else(|| cluster.clone());
    for factor in [Coefficient::HalfCollectives, Coefficient::AllToAll] {
        if open.contains(&factor)
            && let Some(value) = relative_rate(factor, &found, samples)
        {
            set(&mut found, factor, value);
        }
    }
    found
}

/// True if all all-reduces have one group size and start in less than the time of its hops. The time
/// per rank is then too long, although one group size does not separate it from the base.
pub(super) fn has_shorter_hops(cluster: &Cluster, samples: &[Sample]) -> bool {
    let reduces = all_reduces(samples);
    let open = [Coefficient::LinkEfficiency, Coefficient::SmallBytes, Coefficient::PerRank];
    let per_rank = || {
        group_size(&reduces)?;
        let (_, found) = linear(&without_base(cluster), &open, &reduces, Coefficient::Pair.get(cluster))?;
        Some(Coefficient::PerRank.get(&found))
    };
    per_rank().is_some_and(|per_rank| per_rank < Coefficient::PerRank.get(cluster))
}

fn all_reduces(samples: &[Sample]) -> Vec<(Collective, f64)> {
    let reduce = |sample: &Sample| match sample.kernel {
        Kernel::Collective(collective) if collective.operation == Operation::AllReduce => {
            Some((collective, sample.time.secs()))
        }
        _ => None,
    };
    samples.iter().filter_map(reduce).collect()
}

/// Returns the group size if there is only one.
fn group_size(reduces: &[(Collective, f64)]) -> Option<u32> {
    let (first, _) = reduces.first()?;
    reduces.iter().all(|(collective, _)| collective.ranks == first.ranks).then_some(first.ranks)
}

fn without_base(cluster: &Cluster) -> Cluster {
    let mut without = cluster.clone();
    Coefficient::Base.set(&mut without, 0.0);
    without
}

/// Returns the linear fit with base and time per rank of `cluster`, both scaled to the measured
/// start.
fn with_scaled_start(cluster: &Cluster, open: &[Coefficient], reduces: &[(Collective, f64)]) -> Option<Cluster> {
    let hops = 2.0 * (f64::from(group_size(reduces)?) - 1.0);
    let open: Vec<Coefficient> = open.iter().copied().filter(|&coefficient| coefficient != Coefficient::Base).collect();
    let (_, mut found) = linear(&without_base(cluster), &open, reduces, Coefficient::Pair.get(cluster))?;
    let (base, per_rank) = (Coefficient::Base.get(cluster), Coefficient::PerRank.get(cluster));
    let scale = Coefficient::PerRank.get(&found) * hops / (base + per_rank * hops);
    set(&mut found, Coefficient::Base, base * scale);
    set(&mut found, Coefficient::PerRank, per_rank * scale);
    Some(found)
}

fn set(cluster: &mut Cluster, coefficient: Coefficient, value: f64) {
    let (low, high) = coefficient.bounds();
    coefficient.set(cluster, value.clamp(low, high));
}

/// Returns the sum of squared relative residuals and the cluster with the linear coefficients for a
/// given rate between two devices.
fn linear(cluster: &Cluster, open: &[Coefficient], reduces: &[(Collective, f64)], pair: f64) -> Option<(f64, Cluster)> {
    if reduces.is_empty() || !open.contains(&Coefficient::LinkEfficiency) {
        return None;
    }
    let [base, per_rank, _, small] = LINEAR.map(|coefficient| coefficient.get(cluster));
    let root = libm::pow(small, 0.2);
    let is_open = LINEAR.map(|coefficient| open.contains(&coefficient));
    // Row of coefficients and right side, divided by the measured time.
    let row = |(collective, time): &(Collective, f64)| {
        let others = f64::from(collective.ranks) - 1.0;
        let wire = 2.0 * collective.bytes * others / f64::from(collective.ranks);
        let rate = cluster.intra_node.gb_per_s * 1e9 * if collective.ranks < 3 { pair } else { 1.0 };
        let (seconds, small) = (wire / rate, libm::pow(collective.bytes, -0.2));
        let hops = 2.0 * others * 1e-6;
        let start = [(1e-6, base), (hops, per_rank)];
        let [first, second] = [0, 1].map(|at| if is_open[at] { start[at].0 } else { 0.0 });
        let fixed: f64 = (0..2).filter(|&at| !is_open[at]).map(|at| start[at].0 * start[at].1).sum();
        // All terms are times, so no coefficient is negative.
        let columns = if is_open[3] {
            [first, second, seconds, seconds * small]
        } else {
            [first, second, seconds * (1.0 + root * small), 0.0]
        };
        (columns.map(|column| column / time), 1.0 - fixed / time)
    };
    let rows: Vec<Row> = reduces.iter().map(row).collect();
    let values = non_negative(&rows);
    let residual = |(columns, right): &Row| {
        let predicted: f64 = columns.iter().zip(values).map(|(column, value)| column * value).sum();
        (predicted - right) * (predicted - right)
    };
    let sum = rows.iter().map(residual).sum();
    let mut found = cluster.clone();
    let (inverse, term) = (values[2], values[3]);
    if inverse <= 0.0 {
        return None;
    }
    set(&mut found, Coefficient::LinkEfficiency, 1.0 / inverse);
    let small = libm::pow(term / inverse, 5.0);
    for (at, value) in [(0, values[0]), (1, values[1]), (3, small)] {
        if is_open[at] {
            set(&mut found, LINEAR[at], value);
        }
    }
    if open.contains(&Coefficient::Pair) {
        set(&mut found, Coefficient::Pair, pair);
    }
    Some((sum, found))
}

/// Returns the median rate of a collective relative to all-reduce, from its time without the start.
fn relative_rate(factor: Coefficient, cluster: &Cluster, samples: &[Sample]) -> Option<f64> {
    let with = |value: f64| {
        let mut changed = cluster.clone();
        factor.set(&mut changed, value);
        changed
    };
    let (full, half) = (with(1.0), with(0.5));
    let rates = Rates::new(&cluster.device);
    let rate = |sample: &Sample| {
        let at_full = predict(&rates, &full, sample);
        let transfer = predict(&rates, &half, sample) - at_full;
        let rate = transfer / (sample.time.secs() - (at_full - transfer));
        // Short transfers have a time of noise.
        (transfer > at_full * 0.5 && rate > 0.0).then_some(rate)
    };
    let mut all: Vec<f64> = samples.iter().filter(|sample| factor.is_measured_by(sample)).filter_map(rate).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
