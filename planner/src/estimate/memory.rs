//! Memory of every rank at its peak, from the in-flight microbatches of the schedule.

use crate::cost::PipelineCosts;
use crate::simulate::Peak;

/// What one device of a rank holds when it holds most, in bytes.
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
    /// Gradients of activations, and what recomputation brings back.
    pub temporary: f64,
    /// Microbatches (of one chunk) in flight.
    pub in_flight: u32,
}

impl RankMemory {
    /// A simulated peak.
    pub(super) fn of(costs: &PipelineCosts, rank: usize, peak: &Peak) -> Self {
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

    /// All of it.
    pub fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer + self.activations + self.temporary
    }
}

/// The peak of every rank. Rank r keeps p - r microbatches under 1F1B; with v chunks one more than the
/// 2 (p - r - 1) + (v - 1) p that warm up, dealt over its chunks from the first on.
pub(super) fn peaks(costs: &PipelineCosts, chunks: u32, microbatches: u32) -> Vec<RankMemory> {
    let (p, v) = (costs.ranks() as u32, chunks);
    let of_rank = |rank: u32| {
        let in_flight = if v > 1 { 2 * (p - rank - 1) + (v - 1) * p + 1 } else { p - rank }.min(microbatches * v);
        let stage = |chunk: u32| (chunk * p + rank) as usize;
        // Chunks fill in groups of p microbatches: full rounds first, then the first chunks of the next.
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
    (0..p).map(of_rank).collect()
}
