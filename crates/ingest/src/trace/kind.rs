//! Classifies slices by category and name.

use serde::{Deserialize, Serialize};

/// Slice kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Compute kernel on a device.
    Compute,
    /// Communication kernel on a device.
    Communication,
    /// Memory copy on a device.
    Memcpy,
    /// Memory set on a device.
    Memset,
    /// Operator on the host.
    Cpu,
    /// Device runtime call on the host.
    Runtime,
    /// User annotation on the host.
    Annotation,
    /// User annotation on the device timeline.
    DeviceAnnotation,
    /// Anything else.
    Other,
}

impl Kind {
    /// All kinds in index order.
    pub const ALL: [Self; 9] = [
        Self::Compute,
        Self::Communication,
        Self::Memcpy,
        Self::Memset,
        Self::Cpu,
        Self::Runtime,
        Self::Annotation,
        Self::DeviceAnnotation,
        Self::Other,
    ];

    /// Returns the index in [`Self::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns true if the slice occupies a device.
    pub const fn is_on_device(self) -> bool {
        matches!(self, Self::Compute | Self::Communication | Self::Memcpy | Self::Memset)
    }

    /// Classifies a category. Older profilers capitalize categories.
    pub(super) fn classify(category: &str, name: &str) -> Self {
        match category.to_ascii_lowercase().as_str() {
            "kernel" if is_collective(name) => Self::Communication,
            "kernel" | "computation" => Self::Compute,
            "communication" => Self::Communication,
            "gpu_memcpy" | "memcpy" => Self::Memcpy,
            "gpu_memset" | "memset" => Self::Memset,
            "cpu_op" | "operator" | "python_function" => Self::Cpu,
            "cuda_runtime" | "cuda_driver" | "hip_runtime" | "runtime" | "cuda_sync" => Self::Runtime,
            "user_annotation" => Self::Annotation,
            "gpu_user_annotation" => Self::DeviceAnnotation,
            _ => Self::Other,
        }
    }
}

/// Communication libraries: NCCL, RCCL, HCCL, MSCCL and MSCCL++. Names match as words:
/// `ncclDevKernel` and `nccl:all_reduce` match, `ncclless` does not.
const LIBRARIES: [&str; 6] = ["nccl", "rccl", "hccl", "hcom", "mscclpp", "msccl"];

/// Name substrings of other communication kernels: NVSHMEM, DeepEP, PyTorch symmetric memory,
/// Transformer Engine user buffers, and custom all-reduces in vLLM, SGLang, TensorRT-LLM and
/// FlashInfer.
const COLLECTIVES: [&str; 7] =
    ["nvshmem", "deep_ep", "multimem_", "shot_all_reduce", "userbuffers", "cross_device_reduce", "allreduce_fusion"];

/// True if the name indicates a communication kernel.
fn is_collective(name: &str) -> bool {
    LIBRARIES.iter().any(|library| places(name, library).any(|(before, after)| is_word(before, after)))
        || COLLECTIVES.iter().any(|part| places(name, part).next().is_some())
}

/// Returns the bytes before and after each case-insensitive match.
fn places<'a>(name: &'a str, part: &'static str) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    let bytes = name.as_bytes();
    let is_part = move |start: &usize| bytes[*start..*start + part.len()].eq_ignore_ascii_case(part.as_bytes());
    let places = 0..(bytes.len() + 1).saturating_sub(part.len());
    places.filter(is_part).map(move |start| (&bytes[..start], &bytes[start + part.len()..]))
}

/// True if a library name is a complete word: the next word starts with a capital letter, or is
/// part of a lower-case kernel name.
fn is_word(before: &[u8], after: &[u8]) -> bool {
    const NEXT_TERMS: [&[u8]; 7] = [b"dev", b"kernel", b"sym", b"all", b"reduce", b"broadcast", b"send"];
    let is_start = before.last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let is_end = after.first().is_none_or(|byte| !byte.is_ascii_lowercase());
    is_start && (is_end || NEXT_TERMS.iter().any(|word| after.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn communication_kernels_are_known_by_name() {
        let nccl = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        assert_eq!(Kind::classify("kernel", nccl), Kind::Communication);
        for name in [
            "multimem_all_reduce_kernel<c10::BFloat16, 16>",
            "void (anonymous namespace)::two_shot_all_reduce_kernel<__nv_bfloat16, 16, 8>",
            "one_shot_all_reduce_kernel",
            "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop",
            "kuserbuffers_pushsend",
            "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
            "mscclpp_kernel",
            "mscclKernel_Sum_half_Simple_MSCCL",
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport",
            "NCCL_AllReduce",
            "nccldevkernel_allreduce_sum",
            "void rcclGenericKernel<1, false>",
            "nccl:all_reduce",
            "hcom_allReduce_",
            "HcclAllGather",
        ] {
            assert_eq!(Kind::classify("kernel", name), Kind::Communication, "{name}");
        }
        for name in [
            "void at::native::reduce_kernel<512, 1>",
            "small_reduce_kernel",
            "fused_add_rms_norm_kernel",
            "my_gemm_with_ncclless_epilogue",
            "xnccl_gemm",
        ] {
            assert_eq!(Kind::classify("kernel", name), Kind::Compute, "{name}");
        }
        assert_eq!(Kind::classify("Kernel", "ampere_bf16_s16816gemm"), Kind::Compute);
        assert_eq!(Kind::classify("cpu_op", "nccl:all_reduce"), Kind::Cpu);
        assert_eq!(Kind::classify("", ""), Kind::Other);
    }
}
