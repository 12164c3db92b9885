//! Schemes of pipelines: fitted microbatch cost and MaxLen.

use crate::planners::hydraulis::SchemeCost;
use planscope_core::length_fit::{LengthFit, LengthTiming};
use planscope_core::units::Bytes;
use planscope_core::workload::{Packing, Sequence};
use planscope_cost::cost::{MicrobatchLoad, Partition, PipelineCosts, Pricing, ReplicaLayout};
use planscope_plan::plan::{OptimizerSharding, Scheme};
use planscope_plan::scenario::Scenario;

/// Number of profiled lengths, in geometric progression.
const LENGTHS: u32 = 10;
/// Minimum profiled length, in tokens.
const MIN: u32 = 256;
/// Totals of the packed microbatches, relative to the longest sequence. Further totals double up to MaxLen. Single
/// sequences are profiled too.
const PACKED: [f64; 3] = [0.25, 0.5, 1.0];
/// Limit on doublings beyond the longest sequence.
const MAX_DOUBLINGS: u32 = 12;
/// UtilLen: minimum fraction of the highest tokens/s (Hydraulis App. D).
const UTILISED: f64 = 0.85;

/// A scheme and its fitted cost.
#[derive(Debug, Clone)]
pub(crate) struct Profiled {
    pub scheme: Scheme,
    pub partition: Partition,
    /// Fitted T(l, P), MaxLen and UtilLen.
    pub cost: SchemeCost,
    /// Mean and maximum relative error of the fit over the profiled lengths.
    pub error: (f64, f64),
}

/// Result of the profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Profile {
    /// Schemes of positive MaxLen, sorted by device count.
    pub schemes: Vec<Profiled>,
    /// Schemes whose model states exceed the memory limit.
    pub too_large: u32,
    /// Smallest model states per device among those schemes, excluding activations.
    pub min_states: Option<(Bytes, Scheme)>,
    /// Model parameters.
    pub parameters: f64,
}

/// Profiles all schemes <TP,PP,CP> on the scenario's devices.
///
/// TP divides the heads and spans one or two nodes. PP divides the layers, and CP is a power of
/// two. T is the forward plus backward time of the slowest stage in the operator graph, for single
/// sequences and for packed equal sequences up to MaxLen. The fit minimises squared relative errors
/// under non-negative coefficients. MaxLen is the smallest token count that fills a rank, assuming
/// PP microbatches in flight on rank 0.
pub(crate) fn profile(
    scenario: &Scenario,
    pricing: &Pricing<'_>,
    optimizer: OptimizerSharding,
    max_length: u64,
) -> Profile {
    // MaxLen follows from single sequences. Packed sequences are then timed up to the largest MaxLen.
    let single = samples(max_length, 0);
    let known = timed(scenario, pricing, optimizer, &single);
    let largest = known.schemes.iter().map(|known| known.cost.max_len).max().unwrap_or(0);
    timed(scenario, pricing, optimizer, &samples(max_length, largest))
}

/// Times `samples` for all schemes and fits the cost.
fn timed(scenario: &Scenario, pricing: &Pricing<'_>, optimizer: OptimizerSharding, samples: &[Sample]) -> Profile {
    let loads: Vec<MicrobatchLoad> = samples.iter().map(|&sample| load(scenario, sample)).collect();
    let mut profile = Profile::default();
    for scheme in schemes(scenario) {
        let Some(partition) = Partition::even(&scenario.model, scheme.pipeline) else { continue };
        let devices = scenario.cluster.devices();
        let copies = devices / scheme.devices();
        let uses_all_devices = devices.is_multiple_of(scheme.devices());
        if optimizer == OptimizerSharding::Replicas && !uses_all_devices {
            continue;
        }
        let Some(table) = pricing.table_shared_by(scheme.tensor, scheme.context, copies * scheme.context, &loads)
        else {
            continue;
        };
        let position = ReplicaLayout { pipeline: scheme.pipeline, data: 1, replica: 0 };
        let all: Vec<usize> = (0..loads.len()).collect();
        let mut costs = table.pipeline(&partition, position, &all);
        if optimizer == OptimizerSharding::AllDevices {
            let shares = table.disaggregated(&partition, position, devices);
            costs.static_memory = shares.state.iter().map(|state| state.total()).collect();
            profile.parameters = profile.parameters.max(shares.parameters);
        }
        let max_len = max_len(scenario, &costs, samples);
        if max_len == 0 {
            profile.too_large += 1;
            let states = costs.static_memory.iter().copied().max().unwrap_or(Bytes::ZERO);
            if profile.min_states.is_none_or(|(known, _)| states < known) {
                profile.min_states = Some((states, scheme));
            }
            continue;
        }
        let timing = |at: usize| LengthTiming {
            tokens: f64::from(samples[at].tokens),
            sequences: f64::from(samples[at].sequences),
            time: slowest_stage(&costs, at),
        };
        let mut measured: Vec<LengthTiming> =
            all.iter().filter(|&&at| samples[at].total() <= max_len).map(|&at| timing(at)).collect();
        if measured.len() < LENGTHS as usize {
            measured = (0..LENGTHS as usize).map(timing).collect();
        }
        let fit = LengthFit::from_timings(&measured);
        let LengthFit { a, b, c, mean, max_error } =
            fit.unwrap_or(LengthFit { a: 0.0, b: 0.0, c: 0.0, mean: 1.0, max_error: 1.0 });
        let error = (mean, max_error);
        let Scheme { tensor: tp, pipeline: pp, context: cp } = scheme;
        let mut cost = SchemeCost { tp, pp, cp, a, b, c, max_len, util_len: 0 };
        cost.util_len = cost.utilised_length(UTILISED);
        profile.schemes.push(Profiled { scheme, partition, cost, error });
    }
    profile
}

/// Removes dominated schemes. A scheme dominates another if it is no worse in devices, MaxLen, time
/// at all lengths, stages and parameters per device.
pub(crate) fn undominated(schemes: &[Profiled]) -> Vec<Profiled> {
    let no_worse = |first: &Profiled, other: &Profiled| {
        let (a, b) = (&first.cost, &other.cost);
        a.devices() <= b.devices()
            && a.pp <= b.pp
            && a.max_len >= b.max_len
            && a.a <= b.a
            && a.b <= b.b
            && a.c <= b.c
            // The pulled bytes per device are proportional to 1 / (TP PP).
            && a.tp * a.pp >= b.tp * b.pp
    };
    let beaten = |index: usize| {
        let current = &schemes[index];
        schemes.iter().enumerate().any(|(other, scheme)| {
            other != index && no_worse(scheme, current) && (other < index || !no_worse(current, scheme))
        })
    };
    (0..schemes.len()).filter(|&index| !beaten(index)).map(|index| schemes[index].clone()).collect()
}

/// A microbatch of equal sequences.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    tokens: u32,
    sequences: u32,
}

impl Sample {
    fn total(self) -> u64 {
        u64::from(self.tokens) * u64::from(self.sequences)
    }
}

/// Returns single sequences for all lengths, then packed sequences with up to `max_total` tokens. If `max_total` is 0,
/// there are no packed sequences.
fn samples(max_length: u64, max_total: u64) -> Vec<Sample> {
    let max_tokens = u32::try_from(max_length).unwrap_or(u32::MAX).max(2 * MIN);
    let ratio = f64::from(max_tokens) / f64::from(MIN);
    let at = |step: u32| f64::from(MIN) * libm::pow(ratio, f64::from(step) / f64::from(LENGTHS - 1));
    let lengths: Vec<u32> = (0..LENGTHS).map(|step| at(step).round() as u32).collect();
    let doubled = (1..=MAX_DOUBLINGS).map(|power| f64::from(1 << power) * f64::from(max_tokens));
    let totals: Vec<f64> = PACKED
        .iter()
        .map(|share| share * f64::from(max_tokens))
        .chain(doubled.take_while(|&total| total < max_total as f64).chain([max_total as f64]))
        .filter(|&total| total <= max_total as f64)
        .collect();
    let packed = lengths.iter().flat_map(|&tokens| {
        let count = move |&total: &f64| (total / f64::from(tokens)) as u32;
        totals.iter().map(count).filter(|&count| count > 1).map(move |sequences| Sample { tokens, sequences })
    });
    lengths.iter().map(|&tokens| Sample { tokens, sequences: 1 }).chain(packed).collect()
}

fn load(scenario: &Scenario, sample: Sample) -> MicrobatchLoad {
    let tokens = sample.tokens;
    let squared = u64::from(tokens) * u64::from(tokens);
    let sequence = Sequence {
        samples: 1,
        tokens,
        computed_tokens: tokens,
        squared,
        useful_squared: squared,
        ..Sequence::default()
    };
    MicrobatchLoad::new(&vec![sequence; sample.sequences as usize], &scenario.model, Packing::Packed)
}

fn schemes(scenario: &Scenario) -> Vec<Scheme> {
    let devices = scenario.cluster.devices();
    let node = scenario.cluster.devices_per_node;
    let layers = scenario.model.layers();
    let module = &scenario.model.modules[0];
    let divides = |tensor: u32| module.supports_tensor(tensor);
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

/// Forward plus backward time of a microbatch on the slowest stage, in seconds.
fn slowest_stage(costs: &PipelineCosts, microbatch: usize) -> f64 {
    let cells = costs.flows.microbatch_cells(microbatch);
    cells.map(|cell| (costs.forward[cell] + costs.backward(cell)).secs()).fold(0.0, f64::max)
}

/// Smallest number of tokens per microbatch that fills a rank; 0 if model states exceed the limit.
///
/// Activation memory is linear in the tokens, interpolated between the shortest and the longest
/// single sequence.
fn max_len(scenario: &Scenario, costs: &PipelineCosts, samples: &[Sample]) -> u64 {
    let limit = scenario.memory_limit().get() as f64;
    let last = LENGTHS as usize - 1;
    let (short, long) = (f64::from(samples[0].tokens), f64::from(samples[last].tokens));
    let stages = costs.ranks();
    let rank_capacity = |rank: usize| {
        let activation_bytes = |microbatch: usize| {
            let cell = costs.flows.microbatch_cells(microbatch).start + rank;
            let in_flight = (stages - rank) as f64;
            in_flight * costs.activation[cell].get() as f64 + costs.transient[cell].get() as f64
        };
        let per_token = ((activation_bytes(last) - activation_bytes(0)) / (long - short)).max(1.0);
        let fixed = (activation_bytes(0) - per_token * short).max(0.0);
        (limit - costs.static_memory[rank].get() as f64 - fixed) / per_token
    };
    (0..stages).map(rank_capacity).fold(f64::INFINITY, f64::min).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_sequences_come_first_and_short_ones_are_packed() {
        let samples = samples(32_768, 100_000);
        assert_eq!((samples[0].tokens, samples[9].tokens, samples[9].sequences), (256, 32_768, 1));
        for total in [8192, 32_768, 65_536, 99_840] {
            assert!(samples.contains(&Sample { tokens: 256, sequences: total / 256 }), "{total}");
        }
        assert!(samples.iter().all(|sample| sample.total() <= 100_000));
    }
}
