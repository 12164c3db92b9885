//! Boards of workstations and smaller servers, and the V100.
//!
//! Peaks are those of dense bf16 products with fp32 accumulation (NVIDIA data sheets and architecture documents of
//! Volta, Ampere, Ada and Blackwell). GeForce boards reach half of the peak with fp16 accumulation.

use super::{ClusterPreset, Device, Link, Rates, a100, board, fitted, network, pcie, preset, unmeasured};

/// Network per device of a node with 8 devices and one card of 100 Gb/s, as in instances with these boards.
const SHARED_CARD: f64 = 12.5 / 8.0;

/// Returns the presets in display order.
pub(super) fn clusters() -> Vec<ClusterPreset> {
    let on_board = |id, name, rates: Rates, link: f64| preset(id, name, board(rates), pcie(link), network(SHARED_CARD));
    let ampere = |memory: (f64, f64), bf16_tflops, multiprocessors| Rates {
        bf16_tflops,
        multiprocessors,
        ..Rates::of_memory(memory.0, memory.1)
    };
    let newer = |memory: (f64, f64), (bf16_tflops, fp8_tflops), multiprocessors| Rates {
        bf16_tflops,
        fp8_tflops: Some(fp8_tflops),
        multiprocessors,
        ..Rates::of_memory(memory.0, memory.1)
    };
    vec![
        preset("a100-80gb-pcie", "A100 PCIe 80GB", a100_pcie(80.0, 1935.0), pcie(32.0), network(25.0)),
        preset("a100-40gb-pcie", "A100 PCIe 40GB", a100_pcie(40.0, 1555.0), pcie(32.0), network(25.0)),
        on_board("a10", "A10", ampere((24.0, 600.0), 125.0, 72), 32.0),
        on_board("a10g", "A10G", ampere((24.0, 600.0), 70.0, 80), 32.0),
        on_board("l4", "L4", newer((24.0, 300.0), (121.0, 242.0), 58), 32.0),
        on_board("rtx-3090", "RTX 3090", ampere((24.0, 936.0), 71.0, 82), 32.0),
        on_board("rtx-4090", "RTX 4090", newer((24.0, 1008.0), (165.2, 330.3), 128), 32.0),
        on_board("rtx-5090", "RTX 5090", newer((32.0, 1792.0), (209.5, 419.0), 170), 64.0),
        on_board("rtx-a6000", "RTX A6000", ampere((48.0, 768.0), 154.8, 84), 32.0),
        on_board("rtx-6000-ada", "RTX 6000 Ada", newer((48.0, 960.0), (364.2, 728.5), 142), 32.0),
        preset("v100-16gb", "V100-16GB", v100(16.0), nvlink_2(), network(6.25)),
        preset("v100-32gb", "V100-32GB", v100(32.0), nvlink_2(), network(6.25)),
    ]
}

/// Board of 250 to 300 W on PCIe 4.0.
fn a100_pcie(memory_gib: f64, memory_gb_per_s: f64) -> Device {
    unmeasured(a100(memory_gib, memory_gb_per_s), "the A100 SXM; its limit of 250 or 300 W is not applied")
}

/// SXM2 module. Its matrix units multiply fp16, not bf16. The network is that of a DGX-1: four cards of 100 Gb/s.
fn v100(memory_gib: f64) -> Device {
    let rates = Rates { bf16_tflops: 125.0, multiprocessors: 80, ..Rates::of_memory(memory_gib, 900.0) };
    let mut device = board(rates);
    device.host_gb_per_s = Some(12.5);
    device.note =
        device.note.map(|note| format!("{note}; it has no bf16: 16-bit training is fp16, with the same size and rate"));
    device
}

/// NVLink of the V100: six links, 150 GB/s per direction, with the curve of the A100.
fn nvlink_2() -> Link {
    Link { gb_per_s: 150.0, ..fitted::a100_nvlink() }
}
