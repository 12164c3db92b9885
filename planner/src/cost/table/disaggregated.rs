//! Model states where the optimizer's are cut evenly over all devices, whatever the pipelines are (Hydraulis, section 5).

use super::{LayerTable, Parameters, Place};
use crate::cost::kernel::{Streaming, StreamingClass};
use crate::cost::operator::Rates;
use crate::cost::partition::Partition;
use crate::cost::pipeline::StateMemory;
use crate::units::{Bytes, Nanos};

/// What the devices of one pipeline hold, and how long they take for their part of the optimizer's step.
#[derive(Debug, Clone, PartialEq)]
pub struct Disaggregated {
    /// Of a device of every rank: weights and gradients whole, of the optimizer's state its share of the whole model's; of what is
    /// frozen weights alone.
    pub state: Vec<StateMemory>,
    /// Of a device of every rank: its share of the step, and setting its gradients to zero.
    pub optimizer: Vec<Nanos>,
    /// Parameters of the whole model that are trained, over all devices of the pipeline.
    pub parameters: f64,
}

impl LayerTable<'_> {
    /// The states of a pipeline among `devices` devices that share the optimizer's.
    ///
    /// With 12 bytes a parameter of optimizer state and 4 of 16-bit weights and gradients it is the 3/4 and 1/4 of
    /// appendix C.1.
    pub fn disaggregated(&self, partition: &Partition, place: Place, devices: u32) -> Disaggregated {
        // Trained, and frozen.
        let of_rank = |parameters: Parameters| (parameters.trained(), parameters.untrained());
        let own: Vec<(f64, f64)> = self.rank_parameters(partition, place).into_iter().map(of_rank).collect();
        let parameters = own.iter().map(|(trained, _)| trained).sum::<f64>() * f64::from(self.tensor);
        let share = parameters / f64::from(devices);
        let (width, gradient) = (self.training.width(), self.training.gradients.bytes());
        let (kept, moved) = if width > 2.0 { (8.0, 24.0) } else { (12.0, 26.0) };
        let state = |&(trained, frozen): &(f64, f64)| StateMemory {
            weights: Bytes::from_f64((trained + frozen) * width),
            gradients: Bytes::from_f64(trained * gradient),
            optimizer: Bytes::from_f64(share * kept),
        };
        let rates = Rates::of(&self.cluster.device);
        let optimizer = |(trained, _): &(f64, f64)| {
            // As everywhere: the gradient is read twice, states are read and written, all gradients are zeroed.
            let bytes = share * (2.0 * gradient + moved) + trained * gradient;
            rates.streaming(Streaming { class: StreamingClass::Optimizer, bytes }).to_nanos()
        };
        Disaggregated {
            state: own.iter().map(state).collect(),
            optimizer: own.iter().map(optimizer).collect(),
            parameters,
        }
    }
}
