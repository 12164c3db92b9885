//! Kernels and formats that a device cannot run.

use planner::cluster::Cluster;
use planner::cluster::presets::lacks_bf16;
use planner::training::AttentionKernel;

/// Beginnings of the names of presets that are not devices of NVIDIA.
const OTHER_VENDORS: [&str; 4] = ["MI3", "TPU", "Trainium", "Ascend"];
/// Ada: fp8 without the instructions of Hopper.
const ADA: [&str; 5] = ["L40S", "L20", "L4", "RTX 4090", "RTX 6000 Ada"];
/// Returns the reason why the device has no such attention kernel. `None` if it has.
pub(super) fn missing(kernel: AttentionKernel, cluster: &Cluster) -> Option<&'static str> {
    let is_gpu = !["TPU", "Trainium", "Ascend"].iter().any(|name| cluster.name.starts_with(name));
    let is_nvidia = !OTHER_VENDORS.iter().any(|name| cluster.name.starts_with(name));
    let has_hopper = cluster.device.fp8_tflops.is_some() && !ADA.contains(&cluster.name.as_str());
    match kernel {
        AttentionKernel::Flash | AttentionKernel::Unfused => None,
        AttentionKernel::Flash3 if !is_nvidia || !has_hopper => Some("needs H100 or a newer device of NVIDIA"),
        AttentionKernel::Cudnn if !is_nvidia => Some("needs a device of NVIDIA"),
        _ if !is_gpu => Some("is a kernel for GPUs; state flash for the fused kernel of the device"),
        // The V100 is the only preset without bf16 and older than these kernels.
        _ if lacks_bf16(cluster) => {
            Some("needs A100 or a newer device; state flash for the fused kernel of the device")
        }
        _ => None,
    }
}
