//! Devices without measurements of their own: data-sheet figures with the curves of another device.

mod boards;

use super::{Cluster, ClusterPreset, a100, b200, borrowed, fitted, h100, infinity_fabric, mi300x, network, preset};
use crate::cluster::{Curves, Device, Link, LinkCurve};

/// Returns the presets in display order.
pub(super) fn clusters() -> Vec<ClusterPreset> {
    let mut all = vec![
        preset("h100-pcie", "H100 PCIe", h100_pcie(), pcie(64.0), network(25.0)),
        preset("h20", "H20", h20(), fitted::h100_nvlink(), network(50.0)),
        preset("l40s", "L40S", l40s(), pcie(32.0), network(25.0)),
        preset("l20", "L20", l20(), pcie(32.0), network(25.0)),
        preset("b300", "B300", b300(270.0, 2250.0), fitted::b200_nvlink(), network(100.0)),
        in_rack("gb200-nvl72", "GB200 NVL72", gb200(), network(50.0)),
        in_rack("gb300-nvl72", "GB300 NVL72", b300(277.0, 2500.0), network(100.0)),
        preset("mi325x", "MI325X", mi325x(), infinity_fabric(), network(50.0)),
        preset("mi355x", "MI355X", mi355x(), Link { gb_per_s: 537.0, ..infinity_fabric() }, network(50.0)),
        nodes_of(4, preset("tpu-v5p", "TPU v5p", tpu_v5p(), inter_chip(300.0), inter_chip(300.0))),
        preset("tpu-v6e", "TPU v6e", tpu_v6e(), inter_chip(224.0), inter_chip(224.0)),
        nodes_of(16, preset("trainium2", "Trainium2", trainium2(), inter_chip(512.0), network(25.0))),
    ];
    all.extend(boards::clusters());
    all
}

fn nodes_of(devices_per_node: u32, preset: ClusterPreset) -> ClusterPreset {
    ClusterPreset { cluster: Cluster { devices_per_node, ..preset.cluster }, ..preset }
}

/// A rack in which NVLink connects 72 devices.
fn in_rack(id: &'static str, name: &str, device: Device, inter_node: Link) -> ClusterPreset {
    nodes_of(72, preset(id, name, device, fitted::b200_nvlink(), inter_node))
}

fn unmeasured(mut device: Device, of: &str) -> Device {
    let curves = device.curves.take().unwrap_or_else(Curves::generic);
    device.curves = Some(borrowed(curves, of));
    device.note = Some(format!("not measured: data-sheet figures with the rates of {of}"));
    device
}

/// 350 W board with 114 multiprocessors, HBM2e and PCIe 5.0.
fn h100_pcie() -> Device {
    let device = Device { peak_tflops: 756.0, fp8_tflops: Some(1513.0), multiprocessors: 114, ..h100(80.0, 2039.0) };
    unmeasured(device, "the H100 SXM; its 350 W limit is not applied")
}

/// 148 TFLOP/s with the memory and the NVLink of an H100.
fn h20() -> Device {
    let device = Device { peak_tflops: 148.0, fp8_tflops: Some(296.0), multiprocessors: 78, ..h100(96.0, 4000.0) };
    unmeasured(device, "the H100")
}

/// Ada board with GDDR6 and without NVLink.
fn l40s() -> Device {
    board(Rates { bf16_tflops: 362.0, fp8_tflops: Some(733.0), multiprocessors: 142, ..Rates::of_memory(48.0, 864.0) })
}

/// Ada board with a third of the peak of the L40S.
fn l20() -> Device {
    board(Rates { bf16_tflops: 119.5, fp8_tflops: Some(239.0), multiprocessors: 92, ..Rates::of_memory(48.0, 864.0) })
}

/// Data-sheet figures of a PCIe board: dense products with fp32 accumulation.
#[derive(Debug, Clone, Copy)]
struct Rates {
    memory_gib: f64,
    memory_gb_per_s: f64,
    bf16_tflops: f64,
    fp8_tflops: Option<f64>,
    multiprocessors: u32,
}

impl Rates {
    const fn of_memory(memory_gib: f64, memory_gb_per_s: f64) -> Self {
        Self { memory_gib, memory_gb_per_s, bf16_tflops: 0.0, fp8_tflops: None, multiprocessors: 0 }
    }
}

/// Board on PCIe 4.0 without NVLink, with the efficiencies of a typical device.
fn board(rates: Rates) -> Device {
    let device = Device {
        peak_tflops: rates.bf16_tflops,
        fp8_tflops: rates.fp8_tflops,
        multiprocessors: rates.multiprocessors,
        host_gb_per_s: Some(25.0),
        curves: Some(Curves::generic()),
        ..h100(rates.memory_gib, rates.memory_gb_per_s)
    };
    unmeasured(device, "a typical device")
}

/// Memory of the B300 or GB300, and its bf16 peak.
fn b300(memory_gib: f64, peak_tflops: f64) -> Device {
    unmeasured(Device { memory_gib, peak_tflops, fp8_tflops: Some(2.0 * peak_tflops), ..b200() }, "the B200")
}

fn gb200() -> Device {
    let device = Device {
        memory_gib: 185.0,
        peak_tflops: 2500.0,
        fp8_tflops: Some(5000.0),
        host_gb_per_s: Some(225.0),
        ..b200()
    };
    unmeasured(device, "the B200")
}

fn mi325x() -> Device {
    instinct(Device {
        memory_gib: 256.0,
        peak_tflops: 1307.0,
        fp8_tflops: Some(2615.0),
        memory_gb_per_s: 6000.0,
        ..mi300x()
    })
}

fn mi355x() -> Device {
    instinct(Device {
        memory_gib: 288.0,
        peak_tflops: 2500.0,
        fp8_tflops: Some(5000.0),
        memory_gb_per_s: 8000.0,
        multiprocessors: 256,
        ..mi300x()
    })
}

fn instinct(device: Device) -> Device {
    unmeasured(device, "the MI300X, which are assumed except for its largest product")
}

/// Base of the accelerators that are no GPUs. The efficiencies are assumed.
fn accelerator(memory_gib: f64, peak_tflops: f64, memory_gb_per_s: f64, units: u32) -> Device {
    let device = Device {
        memory_gib,
        peak_tflops,
        matmul_efficiency: 0.75,
        attention_efficiency: 0.45,
        memory_gb_per_s,
        memory_efficiency: 0.8,
        multiprocessors: units,
        // Compiled graphs: operators are not launched one by one.
        launch_us: 1.0,
        fp8_tflops: None,
        host_gb_per_s: Some(25.0),
        curves: Some(Curves::generic()),
        note: None,
    };
    unmeasured(device, "a typical device; the links count as if all chips of a slice were connected equally")
}

fn tpu_v5p() -> Device {
    accelerator(95.0, 459.0, 2765.0, 2)
}

fn tpu_v6e() -> Device {
    accelerator(32.0, 918.0, 1640.0, 1)
}

fn trainium2() -> Device {
    Device { fp8_tflops: Some(1299.0), ..accelerator(96.0, 667.0, 2900.0, 8) }
}

fn pcie(gb_per_s: f64) -> Link {
    Link { gb_per_s, efficiency: 0.7, latency_us: 10.0, curve: Some(LinkCurve::GENERIC) }
}

/// Links between chips, in one direction over all links of a chip.
fn inter_chip(gb_per_s: f64) -> Link {
    Link { gb_per_s, efficiency: 0.8, latency_us: 5.0, curve: Some(LinkCurve::GENERIC) }
}
