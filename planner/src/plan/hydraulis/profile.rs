//! The schemes that pipelines may have: what a microbatch costs in each, and how long it may be.

use crate::cost::{MicrobatchLoad, Partition, PipelineCosts, Place, Pricing};
use crate::heterogeneous_strategies::SchemeCost;
use crate::plan::strategy::{OptimizerSharding, Scheme};
use crate::scenario::Scenario;
use crate::units::Bytes;
use crate::workload::{Packing, Sequence};

/// Lengths that are profiled, from the shortest to the longest in equal ratios.
const LENGTHS: u32 = 14;
/// The shortest of them, in tokens.
const SHORTEST: u32 = 256;
/// UtilLen: share of the best tokens per second (Hydraulis, appendix D).
const UTILISED: f64 = 0.85;

/// A scheme with what was found out about it.
#[derive(Debug, Clone)]
pub(super) struct Profiled {
    pub scheme: Scheme,
    pub partition: Partition,
    /// T(l, P) as fitted, MaxLen and UtilLen.
    pub cost: SchemeCost,
    /// Mean and largest relative error of the fit over the profiled lengths.
    pub error: (f64, f64),
}

/// What the profile looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct Profile {
    /// Schemes that hold a sequence, by devices.
    pub schemes: Vec<Profiled>,
    /// Schemes whose states alone are too large.
    pub too_large: u32,
    /// The smallest memory that one of them asks for a device before any activation, and the scheme.
    pub least_states: Option<(Bytes, Scheme)>,
}

/// Every scheme <TP,PP,CP> on the devices of a scenario.
///
/// TP goes over one node or two and divides the heads, PP divides the layers, CP is a power of two. T is the forward and
/// backward of the slowest stage in the operator graph, fitted by least squares of relative errors with no coefficient below
/// zero; MaxLen is where the first rank that runs out of memory does, PP microbatches in flight on the first.
pub(super) fn profile(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    optimizer: OptimizerSharding,
    longest: u64,
) -> Profile {
    let lengths = lengths(longest);
    let loads: Vec<MicrobatchLoad> = lengths.iter().map(|&tokens| load(scenario, tokens)).collect();
    let mut profile = Profile::default();
    for scheme in schemes(scenario) {
        let Some(partition) = Partition::even(&scenario.model, scheme.pipeline) else { continue };
        let devices = scenario.cluster.devices();
        let copies = devices / scheme.devices();
        let whole = devices.is_multiple_of(scheme.devices());
        if optimizer == OptimizerSharding::Replicas && !whole {
            continue;
        }
        let Some(table) = pricing.table_shared_by(scheme.tensor, scheme.context, copies * scheme.context, &loads)
        else {
            continue;
        };
        let place = Place { pipeline: scheme.pipeline, data: 1, replica: 0 };
        let all: Vec<usize> = (0..loads.len()).collect();
        let mut costs = table.pipeline(&partition, place, &all);
        if optimizer == OptimizerSharding::AllDevices {
            let shares = table.disaggregated(&partition, place, devices);
            costs.static_memory = shares.state.iter().map(|state| state.total()).collect();
        }
        let max_len = max_len(scenario, &costs, &lengths);
        if max_len == 0 {
            profile.too_large += 1;
            let states = costs.static_memory.iter().copied().max().unwrap_or(Bytes::ZERO);
            if profile.least_states.is_none_or(|(least, _)| states < least) {
                profile.least_states = Some((states, scheme));
            }
            continue;
        }
        let seconds: Vec<f64> = all.iter().map(|&microbatch| slowest_stage(&costs, microbatch)).collect();
        let (coefficients, error) = fit(&lengths, &seconds);
        let [a, b, c] = coefficients;
        let Scheme { tensor: tp, pipeline: pp, context: cp } = scheme;
        let mut cost = SchemeCost { tp, pp, cp, a, b, c, max_len, util_len: 0 };
        cost.util_len = cost.utilised_length(UTILISED);
        profile.schemes.push(Profiled { scheme, partition, cost, error });
    }
    profile
}

/// Without schemes that another one beats in everything: as few devices, as long sequences, as fast at every length, no more
/// stages.
pub(super) fn undominated(schemes: &[Profiled]) -> Vec<Profiled> {
    let no_worse = |one: &Profiled, other: &Profiled| {
        let (a, b) = (&one.cost, &other.cost);
        a.devices() <= b.devices() && a.pp <= b.pp && a.max_len >= b.max_len && a.a <= b.a && a.b <= b.b && a.c <= b.c
    };
    let beaten = |place: usize| {
        let own = &schemes[place];
        schemes
            .iter()
            .enumerate()
            .any(|(other, scheme)| other != place && no_worse(scheme, own) && (other < place || !no_worse(own, scheme)))
    };
    (0..schemes.len()).filter(|&place| !beaten(place)).map(|place| schemes[place].clone()).collect()
}

fn lengths(longest: u64) -> Vec<u32> {
    let longest = u32::try_from(longest).unwrap_or(u32::MAX).max(2 * SHORTEST);
    let ratio = f64::from(longest) / f64::from(SHORTEST);
    let at = |step: u32| f64::from(SHORTEST) * libm::pow(ratio, f64::from(step) / f64::from(LENGTHS - 1));
    (0..LENGTHS).map(|step| at(step).round() as u32).collect()
}

fn load(scenario: &Scenario, tokens: u32) -> MicrobatchLoad {
    let squared = u64::from(tokens) * u64::from(tokens);
    let sequence = Sequence {
        samples: 1,
        tokens,
        computed_tokens: tokens,
        squared,
        useful_squared: squared,
        ..Sequence::default()
    };
    MicrobatchLoad::of(&[sequence], &scenario.model, Packing::Packed)
}

fn schemes(scenario: &Scenario) -> Vec<Scheme> {
    let devices = scenario.cluster.devices();
    let node = scenario.cluster.devices_per_node;
    let layers = scenario.model.layers();
    let module = &scenario.model.modules[0];
    let divides = |tensor: u32| module.heads.is_multiple_of(tensor) && module.kv_heads.is_multiple_of(tensor);
    let tensors: Vec<u32> = match scenario.layout.tensor {
        Some(tensor) => vec![tensor],
        None => (1..=node).filter(|tensor| node.is_multiple_of(*tensor)).chain([2 * node]).collect(),
    };
    let pipelines: Vec<u32> = match scenario.layout.pipeline {
        Some(pipeline) => vec![pipeline],
        None => (1..=layers).filter(|stages| layers.is_multiple_of(*stages)).collect(),
    };
    let mut schemes = Vec::new();
    for tensor in tensors.into_iter().filter(|&tensor| divides(tensor)) {
        for &pipeline in &pipelines {
            let mut context = 1;
            while u64::from(tensor) * u64::from(pipeline) * u64::from(context) <= u64::from(devices) {
                schemes.push(Scheme { tensor, pipeline, context });
                context *= 2;
            }
        }
    }
    schemes.sort_by_key(|scheme| (scheme.devices(), scheme.pipeline, scheme.context));
    schemes
}

/// Forward and backward of a microbatch on the stage that takes longest, in seconds.
fn slowest_stage(costs: &PipelineCosts, microbatch: usize) -> f64 {
    let cells = costs.flows.cells_of(microbatch);
    cells.map(|cell| (costs.forward[cell] + costs.backward(cell)).secs()).fold(0.0, f64::max)
}

/// Tokens of a microbatch at which the first rank is full; 0 where states leave nothing.
///
/// Memory of activations grows with tokens, from the first to the last of `lengths` on a straight line.
fn max_len(scenario: &Scenario, costs: &PipelineCosts, lengths: &[u32]) -> u64 {
    let limit = scenario.memory_limit().get() as f64;
    let last = lengths.len() - 1;
    let (short, long) = (f64::from(lengths[0]), f64::from(lengths[last]));
    let stages = costs.ranks();
    let of_rank = |rank: usize| {
        let held = |microbatch: usize| {
            let cell = costs.flows.cells_of(microbatch).start + rank;
            let in_flight = (stages - rank) as f64;
            in_flight * costs.activation[cell].get() as f64 + costs.transient[cell].get() as f64
        };
        let per_token = ((held(last) - held(0)) / (long - short)).max(1.0);
        let fixed = (held(0) - per_token * short).max(0.0);
        (limit - costs.static_memory[rank].get() as f64 - fixed) / per_token
    };
    (0..stages).map(of_rank).fold(f64::INFINITY, f64::min).max(0.0) as u64
}

/// Coefficients of a l² + b l + c with the least sum of squared relative errors, none below zero, and the mean and the largest error.
///
/// Of the sets of coefficients that are not zero all seven are solved, and the best legal one is taken.
fn fit(lengths: &[u32], seconds: &[f64]) -> ([f64; 3], (f64, f64)) {
    let longest = lengths.iter().copied().map(f64::from).fold(1.0, f64::max);
    // In units of the longest, so that the equations are well scaled.
    let basis = |tokens: u32| {
        let length = f64::from(tokens) / longest;
        [length * length, length, 1.0]
    };
    let error = |of: &[f64; 3]| -> (f64, f64, f64) {
        let errors = lengths.iter().zip(seconds).map(|(&tokens, &time)| {
            let predicted: f64 = basis(tokens).iter().zip(of).map(|(base, of)| base * of).sum();
            (predicted / time - 1.0).abs()
        });
        let (mut squares, mut sum, mut most) = (0.0, 0.0, 0.0_f64);
        for error in errors {
            (squares, sum, most) = (squares + error * error, sum + error, most.max(error));
        }
        (squares, sum / lengths.len() as f64, most)
    };
    let mut best: Option<([f64; 3], (f64, f64, f64))> = None;
    for set in 1_u32..8 {
        let used: Vec<usize> = (0..3).filter(|&place| set & (1 << place) != 0).collect();
        let Some(found) = solve(lengths, seconds, &used, &basis) else { continue };
        if found.iter().all(|&of| of >= 0.0) {
            let found_error = error(&found);
            if best.as_ref().is_none_or(|(_, known)| found_error.0 < known.0) {
                best = Some((found, found_error));
            }
        }
    }
    let (of, (_, mean, most)) = best.unwrap_or(([0.0; 3], (0.0, 1.0, 1.0)));
    ([of[0] / (longest * longest), of[1] / longest, of[2]], (mean, most))
}

/// The normal equations of some coefficients, by elimination with pivots; `None` where they have no one solution.
fn solve(lengths: &[u32], seconds: &[f64], used: &[usize], basis: &dyn Fn(u32) -> [f64; 3]) -> Option<[f64; 3]> {
    let count = used.len();
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (&tokens, &time) in lengths.iter().zip(seconds) {
        let base = basis(tokens);
        for (row, &i) in rows.iter_mut().zip(used) {
            for (column, &j) in used.iter().enumerate() {
                row[column] += base[i] * base[j] / (time * time);
            }
            row[count] += base[i] / time;
        }
    }
    for at in 0..count {
        let pivot = (at..count).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < 1e-300 {
            return None;
        }
        for other in at + 1..count {
            let factor = rows[other][at] / rows[at][at];
            for column in at..=count {
                rows[other][column] -= factor * rows[at][column];
            }
        }
    }
    let mut found = [0.0; 3];
    for at in (0..count).rev() {
        let known: f64 = (at + 1..count).map(|column| rows[at][column] * found[used[column]]).sum();
        found[used[at]] = (rows[at][count] - known) / rows[at][at];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2e-8 l² + 3e-4 l + 0.5 is found again; and without a positive constant to be had, none is taken: of 1e-8 l² + 1e-4 l - 0.001 the
    /// best legal fit leaves c at 0.
    #[test]
    fn a_quadratic_is_found_again_and_nothing_is_negative() {
        let lengths = lengths(32_768);
        assert_eq!((lengths[0], lengths[13]), (256, 32_768));
        let of = |a: f64, b: f64, c: f64| -> Vec<f64> {
            lengths.iter().map(|&l| a * f64::from(l) * f64::from(l) + b * f64::from(l) + c).collect()
        };
        let ([a, b, c], (mean, most)) = fit(&lengths, &of(2e-8, 3e-4, 0.5));
        assert!((a / 2e-8 - 1.0).abs() < 1e-6 && (b / 3e-4 - 1.0).abs() < 1e-6 && (c / 0.5 - 1.0).abs() < 1e-6);
        assert!(mean <= most && most < 1e-6);
        let ([a, b, c], (_, most)) = fit(&lengths, &of(1e-8, 1e-4, -0.001));
        assert!(a > 0.0 && b > 0.0 && c == 0.0 && most > 1e-3);
    }
}
