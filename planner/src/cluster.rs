//! The machines: devices, the links inside a node and the network between nodes.

pub mod curves;
pub mod presets;

pub use curves::{AttentionCurve, Calibration, Curves, LinkCurve, MatMulCurve, StreamingCurve};

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, BytesPerSecond, FlopsPerSecond, Seconds};

/// A homogeneous cluster of nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Shown name, for example "A100-80GB".
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// Devices of one node.
    pub devices_per_node: u32,
    /// What one device can do.
    pub device: Device,
    /// NVLink or its like, per device.
    pub intra_node: Link,
    /// The network card of each device.
    pub inter_node: Link,
}

/// One accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Memory, in GiB.
    pub memory_gib: f64,
    /// Dense bf16 peak by data sheet, in TFLOP/s; the denominator of MFU.
    pub peak_tflops: f64,
    /// Largest measured share of the peak that a matrix product reaches.
    pub matmul_efficiency: f64,
    /// Share of the peak that a fused attention kernel reaches.
    pub attention_efficiency: f64,
    /// Memory bandwidth by data sheet, in GB/s.
    pub memory_gb_per_s: f64,
    /// Share of the memory bandwidth that streaming kernels reach.
    pub memory_efficiency: f64,
    /// Streaming multiprocessors (or compute units), over which output tiles are dealt in waves.
    pub multiprocessors: u32,
    /// Launch overhead of one kernel on the device, in µs.
    pub launch_us: f64,
    /// Peak of fp8 products, in TFLOP/s; absent where the device has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fp8_tflops: Option<f64>,
    /// Bandwidth to the host's memory, in GB/s; 25 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_gb_per_s: Option<f64>,
    /// How rates depend on shapes; absent: as of a typical device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
    /// What to know before believing the figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A link of one device, one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Bandwidth of one device in one direction by data sheet, in GB/s.
    pub gb_per_s: f64,
    /// Largest share of the bandwidth that large transfers reach.
    pub efficiency: f64,
    /// Latency of one hop, in µs.
    pub latency_us: f64,
    /// How the rate depends on the message; absent: as of a typical link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<LinkCurve>,
}

impl Cluster {
    /// All devices.
    pub const fn devices(&self) -> u32 {
        self.nodes.saturating_mul(self.devices_per_node)
    }
}

impl Device {
    /// Memory of the device.
    pub fn memory(&self) -> Bytes {
        Bytes::from_gib(self.memory_gib)
    }

    /// Dense bf16 peak.
    pub fn peak(&self) -> FlopsPerSecond {
        FlopsPerSecond::from_tera(self.peak_tflops)
    }

    /// Host and launch overhead of one kernel.
    pub fn launch(&self) -> Seconds {
        Seconds::from_micros(self.launch_us)
    }
}

impl Link {
    /// Bandwidth that large transfers reach.
    pub fn achieved_bandwidth(&self) -> BytesPerSecond {
        BytesPerSecond::from_giga(self.gb_per_s * self.efficiency)
    }

    /// Latency of one hop.
    pub fn latency(&self) -> Seconds {
        Seconds::from_micros(self.latency_us)
    }
}
