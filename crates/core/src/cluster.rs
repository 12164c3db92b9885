//! Cluster description: devices, intra-node links and inter-node network.

pub mod curves;
pub mod presets;

pub use curves::{AttentionCurve, Calibration, Curves, LinkCurve, MatMulCurve, StreamingCurve};

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};

/// A homogeneous cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Display name, for example "A100-80GB".
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Devices per node.
    pub devices_per_node: u32,
    /// Device type.
    pub device: Device,
    /// Intra-node link per device, for example NVLink.
    pub intra_node: Link,
    /// Network card per device.
    pub inter_node: Link,
    /// Host memory per node for offloaded activations and optimizer state, in GiB. Every device has an equal share.
    /// Default: 256 GiB per device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory_gib: Option<f64>,
    /// Bandwidth of the host memory of a node in GB/s, which its devices share. Default: the sum of the links of the
    /// devices to the host, and at least 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_memory_gb_per_s: Option<f64>,
}

/// Default host memory per device in GiB. A DGX H100 and a DGX A100 have 2 TB for eight devices.
const HOST_MEMORY_GIB: f64 = 256.0;
/// Default bandwidth of a device to host memory in GB/s: PCIe 4.
const HOST_GB_PER_S: f64 = 25.0;
/// Least default bandwidth of the host memory of a node in GB/s: half of 409 GB/s, of two sockets with eight
/// channels of DDR4-3200.
const HOST_MEMORY_GB_PER_S: f64 = 200.0;

/// An accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Dense bf16 peak from the data sheet in TFLOP/s. Denominator of MFU.
    pub peak_tflops: f64,
    /// Maximum measured fraction of the peak for matrix products.
    pub matmul_efficiency: f64,
    /// Fraction of the peak for fused attention.
    pub attention_efficiency: f64,
    /// Memory bandwidth from the data sheet in GB/s.
    pub memory_gb_per_s: f64,
    /// Fraction of the memory bandwidth for streaming kernels.
    pub memory_efficiency: f64,
    /// Number of streaming multiprocessors (or compute units). Output tiles are scheduled on them
    /// in waves.
    pub multiprocessors: u32,
    /// Launch overhead per kernel in µs.
    pub launch_us: f64,
    /// fp8 peak for matrix products in TFLOP/s; unset if the device does not support fp8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp8_tflops: Option<f64>,
    /// Bandwidth to host memory in GB/s. Default: 25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_gb_per_s: Option<f64>,
    /// Shape-dependent rates. Default: typical curves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
    /// Caveat about the accuracy of the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A link of a device, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bandwidth per device and direction from the data sheet, in GB/s.
    pub gb_per_s: f64,
    /// Maximum fraction of the bandwidth for large transfers.
    pub efficiency: f64,
    /// Latency per hop in µs.
    pub latency_us: f64,
    /// Rate by message size. Default: a typical curve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<LinkCurve>,
}

impl Cluster {
    /// Total number of devices.
    pub const fn devices(&self) -> u32 {
        self.nodes.saturating_mul(self.devices_per_node)
    }

    /// Share of a device in the host memory of its node.
    pub fn host_share(&self) -> Bytes {
        let devices = f64::from(self.devices_per_node.max(1));
        Bytes::from_gib(self.host_memory_gib.map_or(HOST_MEMORY_GIB, |memory| memory / devices))
    }

    /// Returns the devices of each rack, if `devices` are in racks of up to `devices_per_node` and of equal size. Racks
    /// have whole hosts of 4 devices if the number of devices allows it: then groups of 4 do not cross the network.
    pub fn devices_per_rack(&self, devices: u32) -> u32 {
        const HOST: u32 = 4;
        let limit = self.devices_per_node.min(devices.max(1));
        let largest =
            |unit: u32| (1..=limit).rev().find(|&count| devices.is_multiple_of(count) && count.is_multiple_of(unit));
        largest(HOST).or_else(|| largest(1)).unwrap_or(1)
    }

    /// Returns the reason if plans that offload `needed_gib` per node exceed its host memory.
    pub fn host_excess(&self, needed_gib: f64) -> Option<String> {
        let available = self.host_share().gib() * f64::from(self.devices_per_node);
        (needed_gib > available).then(|| {
            format!("offloaded activations and optimizer state exceed the host memory of a node, {available:.0} GiB")
        })
    }

    /// Share of a device in the bandwidth of the host memory of its node.
    pub fn host_memory_rate(&self) -> BytesPerSecond {
        let devices = f64::from(self.devices_per_node.max(1));
        let default = || (devices * self.device.link_to_host()).max(HOST_MEMORY_GB_PER_S);
        BytesPerSecond::from_giga(self.host_memory_gb_per_s.unwrap_or_else(default) / devices)
    }

    /// Rate of transfers between a device and host memory, while all devices of the node transfer.
    pub fn host_rate(&self) -> BytesPerSecond {
        let link = BytesPerSecond::from_giga(self.device.link_to_host());
        if link.get() < self.host_memory_rate().get() { link } else { self.host_memory_rate() }
    }
}

impl Device {
    /// Memory per device.
    pub fn memory(&self) -> Bytes {
        Bytes::from_gib(self.memory_gib)
    }

    /// Dense bf16 peak.
    pub fn peak(&self) -> FlopsPerSecond {
        FlopsPerSecond::from_tera(self.peak_tflops)
    }

    /// Bandwidth of the link to host memory in GB/s.
    fn link_to_host(&self) -> f64 {
        self.host_gb_per_s.unwrap_or(HOST_GB_PER_S)
    }

    /// Launch overhead per kernel.
    pub fn launch(&self) -> Seconds {
        Seconds::from_micros(self.launch_us)
    }
}

impl Link {
    /// Achieved bandwidth for large transfers.
    pub fn achieved_bandwidth(&self) -> BytesPerSecond {
        BytesPerSecond::from_giga(self.gb_per_s * self.efficiency)
    }

    /// Latency per hop.
    pub fn latency(&self) -> Seconds {
        Seconds::from_micros(self.latency_us)
    }
}
