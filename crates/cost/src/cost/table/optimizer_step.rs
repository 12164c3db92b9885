//! Time of the optimizer step (docs/models.md, section 5).

use crate::cost::kernel::{Format, Kernel, MatMul, Product, Streaming, StreamingClass};
use crate::cost::operator::Rates;
use planscope_core::cluster::Cluster;
use planscope_core::training::{Optimizer, Training};
use planscope_core::units::Seconds;

/// Products per Newton-Schulz iteration, and iterations of Muon.
const ORTHOGONALIZATION: (f64, f64) = (3.0, 5.0);

/// Parameters that the processors of a node update per second. Public steps with DeepSpeed's CPU Adam imply 0.4e9 to
/// 1.8e9 (docs/models.md, section 5).
const HOST_UPDATES: f64 = 1.5e9;

/// Returns the time of a device that updates `updated` parameters and then zeroes the gradients of `zeroed` parameters.
/// `hidden` is the size of the square blocks as which Muon's matrices count.
pub(super) fn time(
    training: &Training,
    cluster: &Cluster,
    hidden: f64,
    rates: &Rates,
    Parameters { updated, zeroed }: Parameters,
) -> Seconds {
    if training.offloads_parameters() {
        return host(training, cluster, updated);
    }
    let on_host = updated * training.optimizer_offload;
    let gradient = training.gradients.bytes();
    let bytes = (updated - on_host) * state_bytes(training) + updated * 2.0 * gradient + zeroed * gradient;
    let device = rates.streaming(Streaming { class: StreamingClass::Optimizer, bytes });
    device + orthogonalization(training, hidden, rates, updated) + host(training, cluster, on_host)
}

/// Numbers of parameters of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameters {
    /// With an optimizer state on this device.
    pub updated: f64,
    /// With a gradient on this device.
    pub zeroed: f64,
}

impl Parameters {
    /// Returns the parameters for (parameters, replicas) pairs after sharding by the ZeRO stage.
    pub(super) fn sharded(training: &Training, shares: [(f64, f64); 2]) -> Self {
        let stage = training.zero_stage();
        let count = |from: u32| {
            shares.iter().map(|(all, replicas)| if stage >= from { all / replicas } else { *all }).sum::<f64>()
        };
        Self { updated: count(1), zeroed: count(2) }
    }
}

/// Bytes per parameter read and written: moments, master weight, and the weight that is its copy. Without a master
/// weight, the weight itself is read and written. The gradient is read twice, the second time for its norm.
fn state_bytes(training: &Training) -> f64 {
    let master = training.master_bytes();
    let weights = if master > 0.0 { 2.0 * master + training.width() } else { 2.0 * training.width() };
    weights + 2.0 * training.moment_bytes()
}

/// Returns the time of Muon's matrix products.
fn orthogonalization(training: &Training, hidden: f64, rates: &Rates, parameters: f64) -> Seconds {
    if training.optimizer != Optimizer::Muon {
        return Seconds::ZERO;
    }
    let product =
        MatMul { batch: 1.0, m: hidden, k: hidden, n: hidden, product: Product::Forward, format: Format::Bf16 };
    let (products, iterations) = ORTHOGONALIZATION;
    rates.time(&Kernel::MatMul(product)) * (products * iterations * parameters / (hidden * hidden))
}

/// Returns the time of `parameters` updated on the host: gradients move to the host and weights back,
/// and all devices of a node share the host's memory bandwidth. Offloaded parameters move in the forward and backward.
fn host(training: &Training, cluster: &Cluster, parameters: f64) -> Seconds {
    let moves = !training.offloads_parameters();
    let moved = if moves { parameters * (training.gradients.bytes() + training.width()) } else { 0.0 };
    let updated = parameters * (state_bytes(training) + training.gradients.bytes());
    let updated = updated / cluster.host_memory_rate().get();
    let computed = parameters * f64::from(cluster.devices_per_node) / HOST_UPDATES;
    Seconds::from_secs(moved / cluster.host_rate().get() + updated.max(computed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::cluster::presets::cluster;

    /// The processors of a node update 1.5e9 parameters of its eight devices in a second.
    #[test]
    fn processors_limit_updates_in_host_memory() {
        let cluster = cluster("h100").unwrap();
        let training = Training { optimizer_offload: 1.0, ..Training::default() };
        let parameters = 1.5e9 / 8.0;
        let moved = parameters * 6.0 / cluster.host_rate().get();
        let time = host(&training, &cluster, parameters).secs();
        assert!((time - 1.0 - moved).abs() < 1e-9, "{time}");
    }
}
