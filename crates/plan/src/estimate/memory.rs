//! Peak memory per rank, based on the microbatches in flight.

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
        let in_flight = if v > 1 { 2 * (p - rank - 1) + (v - 1) * p + 1 } else { p - rank }.min(microbatches * v);
        let stage = |chunk: u32| (chunk * p + rank) as usize;
        // Chunks fill in groups of p microbatches: complete rounds, then the initial chunks of the
        // next round.
        let mut counts = vec![0_u32; v as usize];
        for index in 0..in_flight {
            counts[(index / p % v) as usize] += 1;
        }
        let activations = counts.iter().enumerate().map(|(chunk, &count)| {
            f64::from(count.min(microbatches)) * costs.activation[stage(chunk as u32)].get() as f64
        });
        let temporary = (0..v).map(|chunk| costs.transient[stage(chunk)].get()).max().unwrap_or(0) as f64;
        let state = costs.state[rank as usize];
        RankMemory {
            weights: state.weights.get() as f64,
            gradients: state.gradients.get() as f64,
            optimizer: state.optimizer.get() as f64,
            activations: activations.sum(),
            temporary,
            in_flight,
        }
    };
    (0..p).map(rank_peak).collect()
}
