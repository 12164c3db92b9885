//! Model states with an optimizer state that is sharded evenly over all devices, independent of the
//! pipelines (Hydraulis Sec. 5.2).

use super::{LayerTable, Parameters, ReplicaLayout, optimizer_step};
use crate::cost::memory::StateBytes;
use crate::cost::operator::Rates;
use crate::cost::partition::Partition;
use crate::cost::pipeline::StateMemory;
use planscope_core::training::Training;
use planscope_core::units::{Bytes, Nanos};

/// Model state and optimizer time per pipeline device.
#[derive(Debug, Clone, PartialEq)]
pub struct Disaggregated {
    /// Model state per device of each rank: full weights, full gradients, and a shard of the
    /// model's optimizer state. Frozen parameters have only weights.
    pub state: Vec<StateMemory>,
    /// Optimizer time per device of each rank, including zeroing gradients.
    pub optimizer: Vec<Nanos>,
    /// Number of trained parameters in the model, over all devices of the pipeline.
    pub parameters: f64,
}

impl LayerTable<'_> {
    /// Computes the model state with an optimizer state sharded over `devices` devices.
    ///
    /// With 12 bytes of optimizer state and 4 bytes of 16-bit weights and gradients per parameter,
    /// the fractions are 3/4 and 1/4 as in Hydraulis App. C.1.
    pub fn disaggregated(&self, partition: &Partition, replica_layout: ReplicaLayout, devices: u32) -> Disaggregated {
        // Trained parameters, and all weights.
        let is_double = !self.training.has_single_fp8_copy(&self.cluster.device);
        let trained_and_all = |parameters: Parameters| {
            (parameters.trained(), parameters.without_saving(is_double, is_double).weights().iter().sum())
        };
        let counts: Vec<(f64, f64)> =
            self.rank_parameters(partition, replica_layout).into_iter().map(trained_and_all).collect();
        let parameters = counts.iter().map(|(trained, _)| trained).sum::<f64>() * f64::from(self.tensor);
        let share = parameters / f64::from(devices);
        let bytes = StateBytes::new(&Training { zero: Some(0), ..self.training.clone() }, 1.0);
        let state = |&(trained, weights): &(f64, f64)| StateMemory {
            weights: Bytes::from_f64(weights * bytes.weights),
            gradients: Bytes::from_f64(trained * bytes.gradients),
            optimizer: Bytes::from_f64(share * bytes.optimizer),
            host: Bytes::from_f64(share * bytes.host),
        };
        let rates = Rates::new(&self.cluster.device);
        let optimizer = |&(trained, _): &(f64, f64)| {
            self.optimizer_time(&rates, optimizer_step::Parameters { updated: share, zeroed: trained })
        };
        Disaggregated {
            state: counts.iter().map(state).collect(),
            optimizer: counts.iter().map(optimizer).collect(),
            parameters,
        }
    }
}
