//! Model states with an optimizer state that is sharded evenly over all devices, independent of the
//! pipelines (Hydraulis Sec. 5.2).

use super::{LayerTable, Parameters, ReplicaLayout};
use crate::cost::kernel::{Streaming, StreamingClass};
use crate::cost::operator::Rates;
use crate::cost::partition::Partition;
use crate::cost::pipeline::StateMemory;
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
        // (trained, frozen) parameters.
        let trained_and_frozen = |parameters: Parameters| (parameters.trained(), parameters.untrained());
        let counts: Vec<(f64, f64)> =
            self.rank_parameters(partition, replica_layout).into_iter().map(trained_and_frozen).collect();
        let parameters = counts.iter().map(|(trained, _)| trained).sum::<f64>() * f64::from(self.tensor);
        let share = parameters / f64::from(devices);
        let (width, gradient) = (self.training.width(), self.training.gradients.bytes());
        let (stored, moved) = if width > 2.0 { (8.0, 24.0) } else { (12.0, 26.0) };
        let state = |&(trained, frozen): &(f64, f64)| StateMemory {
            weights: Bytes::from_f64((trained + frozen) * width),
            gradients: Bytes::from_f64(trained * gradient),
            optimizer: Bytes::from_f64(share * stored),
        };
        let rates = Rates::new(&self.cluster.device);
        let optimizer = |(trained, _): &(f64, f64)| {
            // Same accesses as in `optimizer_bytes`.
            let bytes = share * (2.0 * gradient + moved) + trained * gradient;
            rates.streaming(Streaming { class: StreamingClass::Optimizer, bytes }).to_nanos()
        };
        Disaggregated {
            state: counts.iter().map(state).collect(),
            optimizer: counts.iter().map(optimizer).collect(),
            parameters,
        }
    }
}
