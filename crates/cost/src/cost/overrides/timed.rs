//! Layer timings from sequence length profiles, compared with predictions.

use super::{AtDegrees, CostOverride, Price};
use crate::cost::{LayerModel, ModuleLoad};
use planscope_core::cluster::Cluster;
use planscope_core::length_fit::LengthFit;
use planscope_core::model::Module;
use planscope_core::training::Training;

/// Timings for a module's layers at specific degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedLayers {
    /// Parallel degrees; `None` for all degrees.
    pub at: Option<AtDegrees>,
    /// Number of timings.
    pub timings: usize,
    /// T(l) per layer in microseconds, with fit errors.
    pub fit: LengthFit,
}

/// Returns the layer timings in `training` for `module`, in list order.
pub fn timed_layers(training: &Training, module: &Module) -> Vec<TimedLayers> {
    let layer_overrides = training.overrides.iter().filter(|given| given.is_layer() && given.is_for(module));
    let timed = |given: &CostOverride| match Price::parse(given) {
        Ok(Price::Timings(times)) => {
            let timings = given.timings_us.as_ref().map_or(0, Vec::len);
            Some(TimedLayers { at: given.at, timings, fit: *times.fit() })
        }
        _ => None,
    };
    layer_overrides.filter_map(timed).collect()
}

/// Returns the geometric mean of measured / predicted layer time. `timings` contains (tokens per
/// sequence, sequences, microseconds) at specific degrees. The prediction ignores layer overrides.
/// The result is not finite if the prediction is zero.
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
        let cost = layers.kind_without_recomputation(
            module.main_kind(),
            ModuleLoad::unpadded(tokens * sequences, tokens * tokens * sequences),
        );
        let predicted = (cost.forward + cost.input_grad + cost.weight_grad).secs() * 1e6;
        libm::log(micros / predicted)
    };
    libm::exp(timings.iter().map(logarithm).sum::<f64>() / timings.len() as f64)
}
