//! Layers that a profile of sequence lengths timed at some degrees, beside what the model predicts for them.

use super::{AtDegrees, CostOverride, Price};
use crate::calibration::LengthFit;
use crate::cluster::Cluster;
use crate::cost::{LayerModel, ModuleLoad};
use crate::model::Module;
use crate::training::Training;

/// The timings of a module's layers at some degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedLayers {
    /// The degrees; absent: all.
    pub at: Option<AtDegrees>,
    /// How many timings there are.
    pub timings: usize,
    /// T(l) of a layer, in microseconds, with its errors.
    pub fit: LengthFit,
}

/// What `training` has of the layers of `module`, in its order.
pub fn timed_layers(training: &Training, module: &Module) -> Vec<TimedLayers> {
    let own = training.overrides.iter().filter(|given| given.is_layer() && given.is_for(module));
    let of = |given: &CostOverride| match Price::of(given) {
        Ok(Price::Timings(times)) => {
            let timings = given.timings_us.as_ref().map_or(0, Vec::len);
            Some(TimedLayers { at: given.at, timings, fit: *times.fit() })
        }
        _ => None,
    };
    own.filter_map(of).collect()
}

/// Measured over predicted time of whole layers, the geometric mean over `timings` (tokens of a sequence, sequences, microseconds)
/// at some degrees; times that are given for whole layers are left out of the prediction. Not finite where nothing is predicted.
pub fn measured_to_predicted(
    module: &Module,
    cluster: &Cluster,
    training: &Training,
    at: AtDegrees,
    timings: &[[f64; 3]],
) -> f64 {
    let mut training = training.clone();
    training.overrides.retain(|given| !given.is_layer());
    training.context_parallel = at.context;
    training.context_exchange = at.exchange.unwrap_or(training.context_exchange);
    let layers = LayerModel::new(module, cluster, &training, at.tensor).in_groups(cluster, at.tensor);
    let logarithm = |&[tokens, sequences, micros]: &[f64; 3]| {
        let cost = layers.kept_layer(ModuleLoad::unpadded(tokens * sequences, tokens * tokens * sequences));
        let predicted = (cost.forward + cost.input_grad + cost.weight_grad).secs() * 1e6;
        libm::log(micros / predicted)
    };
    libm::exp(timings.iter().map(logarithm).sum::<f64>() / timings.len() as f64)
}
