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
}

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
