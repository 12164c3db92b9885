//! Peak memory per rank, based on the microbatches in flight.

use planscope_core::units::Bytes;
use planscope_cost::cost::PipelineCosts;
use planscope_pipeline::simulate::Peak;

/// Peak memory on one device of a rank, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankMemory {
    /// Weights.
    pub weights: f64,
    /// Accumulated gradients.
    pub gradients: f64,
    /// Master weights and moments.
    pub optimizer: f64,
    /// Activations of the microbatches in flight.
    pub activations: f64,
    /// Activation gradients and recomputed activations.
    pub temporary: f64,
    /// Microbatches in flight, per chunk.
    pub in_flight: u32,
}

impl RankMemory {
    /// Converts a simulated peak.
    pub(super) fn from_peak(costs: &PipelineCosts, rank: usize, peak: &Peak) -> Self {
        let state = costs.state[rank];
        Self {
            weights: state.weights.get() as f64,
            gradients: state.gradients.get() as f64,
            optimizer: state.optimizer.get() as f64,
            activations: peak.activations.get() as f64,
            temporary: peak.temporary.get() as f64,
            in_flight: peak.in_flight,
        }
    }

    /// Sum of all terms.
    pub fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer + self.activations + self.temporary
    }
}

/// Computes the peak memory per rank. With 1F1B, rank r has p - r microbatches in flight. With v
/// chunks it has one more than the 2 (p - r - 1) + (v - 1) p warm-up microbatches, distributed
/// across its chunks in order.
pub(super) fn peaks(costs: &PipelineCosts, chunks: u32, microbatches: u32) -> Vec<RankMemory> {
    let (p, v) = (costs.ranks() as u32, chunks);
    let rank_peak = |rank: u32| {
        let stage = |chunk: u32| (chunk * p + rank) as usize;
        let counts = in_flight(rank, (p, v), microbatches);
        let activations = stored(&counts, stage, &costs.activation, microbatches);
        let temporary = (0..v).map(|chunk| costs.transient[stage(chunk)].get()).max().unwrap_or(0) as f64;
        let state = costs.state[rank as usize];
        RankMemory {
            weights: state.weights.get() as f64,
            gradients: state.gradients.get() as f64,
            optimizer: state.optimizer.get() as f64,
            activations,
            temporary,
            in_flight: counts.iter().sum(),
        }
    };
    (0..p).map(rank_peak).collect()
}

/// Returns the largest host memory of a device in bytes: offloaded model states, and the offloaded activations of the
/// microbatches in flight.
pub(super) fn host_peak(costs: &PipelineCosts, chunks: u32, microbatches: u32) -> f64 {
    let p = costs.ranks() as u32;
    let rank_peak = |rank: u32| {
        let counts = in_flight(rank, (p, chunks), microbatches);
        let stage = |chunk: u32| (chunk * p + rank) as usize;
        costs.state[rank as usize].host.get() as f64 + stored(&counts, stage, &costs.offloaded, microbatches)
    };
    (0..p).map(rank_peak).fold(0.0, f64::max)
}

/// Returns the microbatches in flight of each chunk of a rank. Chunks fill in groups of p microbatches: complete rounds,
/// then the initial chunks of the next round.
fn in_flight(rank: u32, (p, v): (u32, u32), microbatches: u32) -> Vec<u32> {
    let in_flight = if v > 1 { 2 * (p - rank - 1) + (v - 1) * p + 1 } else { p - rank }.min(microbatches * v);
    let mut counts = vec![0_u32; v as usize];
    for index in 0..in_flight {
        counts[(index / p % v) as usize] += 1;
    }
    counts
}

/// Returns the sum of `bytes` of a stage over the microbatches in flight.
fn stored(counts: &[u32], stage: impl Fn(u32) -> usize, bytes: &[Bytes], microbatches: u32) -> f64 {
    let of_chunk =
        |(chunk, &count): (usize, &u32)| f64::from(count.min(microbatches)) * bytes[stage(chunk as u32)].get() as f64;
    counts.iter().enumerate().map(of_chunk).sum()
}
