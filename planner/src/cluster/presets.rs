//! Published machines by name. Every figure can be edited in a scenario.
//!
//! Peaks, memory and link rates are data-sheet figures. `matmul_efficiency` is the largest measured bf16
//! matrix product (stas00/ml-engineering, MAMF table: A100 271 of 312, H100 795 of 989 TFLOP/s); the H800 is
//! an H100 with NVLink cut to 200 GB/s (PipeWeaver, section 8, testbed), its network there 200 Gb/s a device.

use super::{Cluster, Device, Link};

/// A named cluster.
#[derive(Debug, Clone)]
pub struct ClusterPreset {
    /// Stable identifier used in scenarios.
    pub id: &'static str,
    /// One node of it; scenarios set the number of nodes.
    pub cluster: Cluster,
}

/// Every cluster preset, in the order in which pickers list them.
pub fn clusters() -> Vec<ClusterPreset> {
    vec![
        preset("a100-80gb", "A100-80GB", a100_80gb(), nvlink(300.0), network(25.0)),
        preset("h100", "H100", h100(), nvlink(450.0), network(50.0)),
        preset("h800", "H800", h100(), nvlink(200.0), network(25.0)),
    ]
}

/// The cluster preset of that identifier.
pub fn cluster(id: &str) -> Option<Cluster> {
    clusters().into_iter().find(|preset| preset.id == id).map(|preset| preset.cluster)
}

fn preset(id: &'static str, name: &str, device: Device, intra_node: Link, inter_node: Link) -> ClusterPreset {
    let cluster = Cluster { name: name.into(), nodes: 1, devices_per_node: 8, device, intra_node, inter_node };
    ClusterPreset { id, cluster }
}

fn a100_80gb() -> Device {
    Device {
        memory_gib: 80.0,
        peak_tflops: 312.0,
        matmul_efficiency: 0.87,
        attention_efficiency: 0.55,
        memory_gb_per_s: 2039.0,
        memory_efficiency: 0.8,
        multiprocessors: 108,
        launch_us: 4.0,
    }
}

fn h100() -> Device {
    Device {
        memory_gib: 80.0,
        peak_tflops: 989.0,
        matmul_efficiency: 0.8,
        attention_efficiency: 0.5,
        memory_gb_per_s: 3350.0,
        memory_efficiency: 0.8,
        multiprocessors: 132,
        launch_us: 4.0,
    }
}

fn nvlink(gb_per_s: f64) -> Link {
    Link { gb_per_s, efficiency: 0.8, latency_us: 5.0 }
}

fn network(gb_per_s: f64) -> Link {
    Link { gb_per_s, efficiency: 0.85, latency_us: 12.0 }
}
