//! Peak memory per rank.

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
