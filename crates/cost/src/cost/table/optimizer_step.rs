//! Time of the optimizer step (docs/models.md, section 5).

use crate::cost::kernel::{Format, Kernel, MatMul, Product, Streaming, StreamingClass};
use crate::cost::layer::HOST_GB_PER_S;
use crate::cost::operator::Rates;
use planscope_core::cluster::Cluster;
use planscope_core::training::{Optimizer, Training};
use planscope_core::units::Seconds;

/// Bandwidth of host memory per node in GB/s, which limits the update on the host. Assumed: two
/// sockets with eight channels of DDR4-3200 reach about half of their 409 GB/s.
const HOST_MEMORY_GB_PER_S: f64 = 200.0;

/// Products per Newton-Schulz iteration, and iterations of Muon.
const ORTHOGONALIZATION: (f64, f64) = (3.0, 5.0);

/// Returns the time of a device for (parameters, replicas) pairs. `hidden` is the size of the square
/// blocks as which Muon's matrices count.
pub(super) fn time(
    training: &Training,
    cluster: &Cluster,
    hidden: f64,
    rates: &Rates,
    shares: [(f64, f64); 2],
) -> Seconds {
    let stage = training.zero_stage();
    let updated: f64 = shares.iter().map(|(all, replicas)| if stage >= 1 { all / replicas } else { *all }).sum();
    let zeroed: f64 = shares.iter().map(|(all, replicas)| if stage >= 2 { all / replicas } else { *all }).sum();
    let on_host = updated * training.optimizer_offload;
    let gradient = training.gradients.bytes();
    let bytes = (updated - on_host) * state_bytes(training) + updated * 2.0 * gradient + zeroed * gradient;
    let device = rates.streaming(Streaming { class: StreamingClass::Optimizer, bytes });
    device + orthogonalization(training, hidden, rates, updated) + host(training, cluster, on_host)
}

/// Bytes per parameter read and written: master weight, moments, and the weight. fp32 training
/// updates the weight in place. The gradient is read twice, the second time for its norm.
fn state_bytes(training: &Training) -> f64 {
    let weight = if training.width() > 2.0 { 0.0 } else { training.width() };
    2.0 * (4.0 + training.optimizer.moment_bytes()) + weight
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
/// and all devices of a node share the host's memory bandwidth.
fn host(training: &Training, cluster: &Cluster, parameters: f64) -> Seconds {
    let link = cluster.device.host_gb_per_s.unwrap_or(HOST_GB_PER_S) * 1e9;
    let memory = HOST_MEMORY_GB_PER_S * 1e9 / f64::from(cluster.devices_per_node);
    let moved = parameters * (training.gradients.bytes() + training.width());
    let updated = parameters * (state_bytes(training) + training.gradients.bytes());
    Seconds::from_secs(moved / link + updated / memory)
}
