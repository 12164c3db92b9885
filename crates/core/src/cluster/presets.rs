//! Published clusters by name. Scenarios can edit all figures.
//!
//! Peaks, memory and link rates are data-sheet figures (stas00/ml-engineering, accelerator and
//! network tables; cli99/llm-analysis, device files). Efficiencies and curves are fitted
//! ([`fitted`]) if measurements are published. Otherwise they are copied from the most similar
//! measured device, and the calibration source names it.

mod fitted;
mod unmeasured;

use super::{Cluster, Curves, Device, Link, LinkCurve};

/// A named cluster.
#[derive(Debug, Clone)]
pub struct ClusterPreset {
    /// Stable identifier used in scenarios.
    pub id: &'static str,
    /// The cluster with a single node. Scenarios set the number of nodes.
    pub cluster: Cluster,
}

/// Returns all cluster presets in display order.
pub fn clusters() -> Vec<ClusterPreset> {
    let network_25 = || network(25.0);
    let mut all = vec![
        preset("a100-80gb", "A100-80GB", a100(80.0, 2039.0), fitted::a100_nvlink(), network_25()),
        preset("a100-40gb", "A100-40GB", a100(40.0, 1555.0), fitted::a100_nvlink(), network_25()),
        preset("a800", "A800", a800(), cut_nvlink(0.8, fitted::a100_nvlink()), network_25()),
        preset("h100", "H100", h100(80.0, 3350.0), fitted::h100_nvlink(), network(50.0)),
        preset("h100-96gb", "H100-96GB (500 W)", h100_96gb(), fitted::h100_nvlink(), network(50.0)),
        preset("h800", "H800", h800(), cut_nvlink(0.824, fitted::h100_nvlink()), network_25()),
        preset("h200", "H200", h200(), fitted::h100_nvlink(), network(50.0)),
        preset("b200", "B200", b200(), fitted::b200_nvlink(), network(50.0)),
        preset("mi300x", "MI300X", mi300x(), infinity_fabric(), network(50.0)),
        preset("ascend-910b", "Ascend 910B", ascend_910b(), hccs(), network_25()),
    ];
    all.extend(unmeasured::clusters());
    all
}

/// True if the matrix units of a device preset have fp16, but no bf16.
pub fn lacks_bf16(cluster: &Cluster) -> bool {
    cluster.name.starts_with("V100-")
}

/// Beginnings of the names of devices with products of values that have a scale per 32.
const WITH_BLOCK_SCALES: [&str; 6] = ["B200", "B300", "GB200", "GB300", "RTX 5090", "MI355X"];

/// True if the matrix units of a device preset have no fp8 with a scale per block of 32 values.
pub fn lacks_mxfp8(cluster: &Cluster) -> bool {
    !WITH_BLOCK_SCALES.iter().any(|name| cluster.name.starts_with(name))
}

/// Returns the cluster preset with this identifier.
pub fn cluster(id: &str) -> Option<Cluster> {
    clusters().into_iter().find(|preset| preset.id == id).map(|preset| preset.cluster)
}

fn preset(id: &'static str, name: &str, device: Device, intra_node: Link, inter_node: Link) -> ClusterPreset {
    let (host_memory_gib, host_memory_gb_per_s) = (None, None);
    let cluster = Cluster {
        name: name.into(),
        nodes: 1,
        devices_per_node: 8,
        device,
        intra_node,
        inter_node,
        host_memory_gib,
        host_memory_gb_per_s,
    };
    ClusterPreset { id, cluster }
}

/// Returns the curves for an unmeasured device, with zero as the number of timings.
fn borrowed(mut curves: Curves, from: &str) -> Curves {
    curves.calibration = super::Calibration { source: format!("not measured: curves of {from}"), ..Default::default() };
    curves
}

fn a100(memory_gib: f64, memory_gb_per_s: f64) -> Device {
    Device {
        memory_gib,
        peak_tflops: 312.0,
        matmul_efficiency: fitted::A100_MATMUL,
        attention_efficiency: fitted::A100_ATTENTION,
        memory_gb_per_s,
        memory_efficiency: fitted::A100_MEMORY,
        multiprocessors: 108,
        launch_us: fitted::A100_LAUNCH_US,
        fp8_tflops: None,
        host_gb_per_s: Some(25.0),
        curves: Some(fitted::a100()),
        note: None,
    }
}

fn a800() -> Device {
    Device { curves: Some(borrowed(fitted::a100(), "the A100, whose compute it has")), ..a100(80.0, 2039.0) }
}

fn h100(memory_gib: f64, memory_gb_per_s: f64) -> Device {
    Device {
        memory_gib,
        peak_tflops: 989.0,
        matmul_efficiency: fitted::H100_MATMUL,
        attention_efficiency: fitted::H100_ATTENTION,
        memory_gb_per_s,
        memory_efficiency: fitted::H100_MEMORY,
        multiprocessors: 132,
        launch_us: fitted::H100_LAUNCH_US,
        fp8_tflops: Some(1979.0),
        host_gb_per_s: Some(50.0),
        curves: Some(fitted::h100()),
        note: None,
    }
}

fn h800() -> Device {
    Device { curves: Some(borrowed(fitted::h100(), "the H100, whose compute it has")), ..h100(80.0, 3350.0) }
}

fn h200() -> Device {
    Device { curves: Some(borrowed(fitted::h100(), "the H100, whose compute it has")), ..h100(141.0, 4800.0) }
}

/// The variant in torchtitan's published runs: HBM2e and a 500 W limit.
fn h100_96gb() -> Device {
    let mut curves = borrowed(fitted::h100(), "the H100, its clock lowered for 500 W of 700 W");
    // At the power limit, the clock is roughly proportional to the square root of the power.
    let slower = 0.845;
    curves.matmul.power_drop = (1.0 + curves.matmul.power_drop) / slower - 1.0;
    Device {
        curves: Some(curves),
        note: Some("500 W variant: how far the power limit lowers the clock is estimated, not measured".to_owned()),
        ..h100(96.0, 2400.0)
    }
}

fn b200() -> Device {
    Device {
        memory_gib: 180.0,
        peak_tflops: 2250.0,
        matmul_efficiency: fitted::B200_MATMUL,
        attention_efficiency: fitted::B200_ATTENTION,
        memory_gb_per_s: 8000.0,
        memory_efficiency: 0.666,
        multiprocessors: 148,
        launch_us: fitted::B200_LAUNCH_US,
        fp8_tflops: Some(4500.0),
        host_gb_per_s: Some(50.0),
        curves: Some(fitted::b200()),
        note: None,
    }
}

/// Only the maximum matrix product rate is measured: 668 of 1,300 TFLOP/s. Other values are
/// assumed.
fn mi300x() -> Device {
    Device {
        memory_gib: 192.0,
        peak_tflops: 1300.0,
        matmul_efficiency: 0.514,
        attention_efficiency: 0.35,
        memory_gb_per_s: 5300.0,
        memory_efficiency: 0.75,
        multiprocessors: 304,
        launch_us: 6.0,
        fp8_tflops: Some(2600.0),
        host_gb_per_s: Some(50.0),
        curves: Some(borrowed(Curves::generic(), "a typical device; only its largest product is known (668 TFLOP/s)")),
        note: Some("only the largest matrix product is measured; attention and collectives are assumed".to_owned()),
    }
}

fn ascend_910b() -> Device {
    Device {
        memory_gib: 64.0,
        peak_tflops: 320.0,
        matmul_efficiency: 0.75,
        attention_efficiency: 0.45,
        memory_gb_per_s: 400.0,
        memory_efficiency: 0.8,
        multiprocessors: 25,
        launch_us: 10.0,
        fp8_tflops: None,
        host_gb_per_s: Some(25.0),
        curves: Some(borrowed(Curves::generic(), "a typical device")),
        note: Some(
            "uncertain: public sources contradict each other (320 TFLOP/s with 400 GB/s, or 256 with 768); \
             edit the figures before you believe a plan"
                .to_owned(),
        ),
    }
}

/// Returns a fitted NVLink reduced to 200 GB/s per direction. `efficiency` is the achieved fraction
/// (SimAI, bus bandwidths).
fn cut_nvlink(efficiency: f64, fitted: Link) -> Link {
    Link { gb_per_s: 200.0, efficiency, ..fitted }
}

fn infinity_fabric() -> Link {
    Link { gb_per_s: 448.0, efficiency: 0.7, latency_us: 5.0, curve: Some(LinkCurve::GENERIC) }
}

fn hccs() -> Link {
    Link { gb_per_s: 196.0, efficiency: 0.7, latency_us: 10.0, curve: Some(LinkCurve::GENERIC) }
}

/// Returns a network with one card per device. Efficiency and latency per step follow SimAI's
/// published ratios for rings with 16 to 1,024 devices (96 % of the card for messages beyond 4 GB,
/// 11 µs per step).
fn network(gb_per_s: f64) -> Link {
    let curve = LinkCurve {
        base_us: 20.0,
        per_rank_us: 11.0,
        small_bytes: 0.0,
        pair: 1.0,
        half_collectives: 1.0,
        all_to_all: 0.8,
    };
    Link { gb_per_s, efficiency: 0.95, latency_us: 12.0, curve: Some(curve) }
}
