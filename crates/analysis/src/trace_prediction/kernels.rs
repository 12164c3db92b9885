//! Types of kernels, by their names.

use serde::{Deserialize, Serialize};

use crate::trace_comparison::{Activity, DeviceSlice, Phase, Recorded};

/// Type of a kernel or copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum KernelType {
    /// Matrix products.
    Matmul,
    /// Fused attention.
    Attention,
    /// Norms, activations, residuals, softmax, loss, embedding: kernels that memory bandwidth limits.
    MemoryBound,
    /// Optimizer step, with clipping of gradients.
    Optimizer,
    /// All-reduce.
    AllReduce,
    /// All-gather.
    AllGather,
    /// Reduce-scatter.
    ReduceScatter,
    /// All-to-all.
    AllToAll,
    /// Sends and receives, also between pipeline stages.
    SendReceive,
    /// Other communication.
    OtherCommunication,
    /// Copies and fills of memory.
    Copies,
    /// Kernels whose names state no type.
    Unassigned,
}

impl KernelType {
    /// Name in texts.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Matmul => "matrix products",
            Self::Attention => "attention",
            Self::MemoryBound => "memory-bound kernels",
            Self::Optimizer => "optimizer",
            Self::AllReduce => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::SendReceive => "sends and receives",
            Self::OtherCommunication => "other communication",
            Self::Copies => "copies",
            Self::Unassigned => "kernels of unknown type",
        }
    }
}

/// Parts of names in lower case, with their type. The first that a name contains decides.
const PARTS: [(&str, KernelType); 64] = [
    ("multi_tensor_apply", KernelType::Optimizer),
    ("multitensorapply", KernelType::Optimizer),
    ("fusedoptimizer", KernelType::Optimizer),
    ("fusedadam", KernelType::Optimizer),
    ("adam", KernelType::Optimizer),
    ("muon", KernelType::Optimizer),
    ("flash_attn", KernelType::Attention),
    ("flash_fwd", KernelType::Attention),
    ("flash_bwd", KernelType::Attention),
    ("flashattn", KernelType::Attention),
    ("flashfwd", KernelType::Attention),
    ("flashbwd", KernelType::Attention),
    ("flash::", KernelType::Attention),
    ("fmha", KernelType::Attention),
    ("mha_fwd", KernelType::Attention),
    ("mha_bwd", KernelType::Attention),
    ("sdpa", KernelType::Attention),
    ("flex_attention", KernelType::Attention),
    ("fused_attn", KernelType::Attention),
    ("fusedattention", KernelType::Attention),
    ("attention_kernel", KernelType::Attention),
    ("_attn_fwd", KernelType::Attention),
    ("_attn_bwd", KernelType::Attention),
    ("gemm", KernelType::Matmul),
    ("gemv", KernelType::Matmul),
    ("matmul", KernelType::Matmul),
    ("nvjet", KernelType::Matmul),
    ("cutlass", KernelType::Matmul),
    ("cijk_", KernelType::Matmul),
    ("triton_mm", KernelType::Matmul),
    ("triton_tem_fused_mm", KernelType::Matmul),
    ("triton_tem_fused_addmm", KernelType::Matmul),
    ("splitkreduce", KernelType::Matmul),
    ("splitk", KernelType::Matmul),
    ("wgmma", KernelType::Matmul),
    ("_scaled_mm", KernelType::Matmul),
    ("xmma", KernelType::Matmul),
    ("::native::", KernelType::MemoryBound),
    ("elementwise", KernelType::MemoryBound),
    ("triton_", KernelType::MemoryBound),
    ("norm", KernelType::MemoryBound),
    ("ln_fwd", KernelType::MemoryBound),
    ("ln_bwd", KernelType::MemoryBound),
    ("softmax", KernelType::MemoryBound),
    ("cross_entropy", KernelType::MemoryBound),
    ("embedding", KernelType::MemoryBound),
    ("index", KernelType::MemoryBound),
    ("swiglu", KernelType::MemoryBound),
    ("gelu", KernelType::MemoryBound),
    ("silu", KernelType::MemoryBound),
    ("rope", KernelType::MemoryBound),
    ("rotary", KernelType::MemoryBound),
    ("dropout", KernelType::MemoryBound),
    ("transpose", KernelType::MemoryBound),
    ("permute", KernelType::MemoryBound),
    ("reduce", KernelType::MemoryBound),
    ("cast", KernelType::MemoryBound),
    ("quantize", KernelType::MemoryBound),
    ("copy", KernelType::MemoryBound),
    ("fill", KernelType::MemoryBound),
    ("scatter", KernelType::MemoryBound),
    ("gather", KernelType::MemoryBound),
    ("sort", KernelType::MemoryBound),
    ("cub::", KernelType::MemoryBound),
];

/// Operations of communication, as parts of names without `_`.
const OPERATIONS: [(&str, KernelType); 7] = [
    ("allreduce", KernelType::AllReduce),
    ("allgather", KernelType::AllGather),
    ("reducescatter", KernelType::ReduceScatter),
    ("alltoall", KernelType::AllToAll),
    ("sendrecv", KernelType::SendReceive),
    ("send", KernelType::SendReceive),
    ("recv", KernelType::SendReceive),
];

pub(super) fn name<'r>(recorded: &'r Recorded, slice: &DeviceSlice) -> &'r str {
    recorded.names.get(slice.name as usize).map_or("", String::as_str)
}

/// Returns the type of a slice.
pub(super) fn kind(recorded: &Recorded, slice: &DeviceSlice) -> KernelType {
    let name = name(recorded, slice);
    match slice.activity {
        Activity::Copy => KernelType::Copies,
        Activity::Communication => {
            let call = slice.call.and_then(|call| recorded.calls.get(call as usize));
            communication(call.map_or(name, |call| &call.operation))
        }
        Activity::Compute if slice.phase == Some(Phase::Optimizer) => KernelType::Optimizer,
        Activity::Compute => computation(name),
    }
}

fn communication(operation: &str) -> KernelType {
    let letters: String =
        operation.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let found = OPERATIONS.into_iter().find(|(part, _)| letters.contains(part));
    found.map_or(KernelType::OtherCommunication, |(_, kind)| kind)
}

fn computation(name: &str) -> KernelType {
    let lower = name.to_ascii_lowercase();
    PARTS.into_iter().find(|(part, _)| lower.contains(part)).map_or(KernelType::Unassigned, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_state_types() {
        for (name, kind) in [
            ("nvjet_hsh_256x128_64x4_2x1_v_bz_coopA_NTN", KernelType::Matmul),
            ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", KernelType::Matmul),
            ("Cijk_Alik_Bljk_BBS_BH_MT256x256x64", KernelType::Matmul),
            ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>", KernelType::Attention),
            ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", KernelType::Attention),
            ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80", KernelType::Attention),
            ("void at::native::vectorized_elementwise_kernel<4, add>", KernelType::MemoryBound),
            ("triton_poi_fused_mul_silu_3", KernelType::MemoryBound),
            ("void at::native::multi_tensor_apply_kernel<FusedAdamMath>", KernelType::Optimizer),
            ("my_kernel", KernelType::Unassigned),
        ] {
            assert_eq!(computation(name), kind, "{name}");
        }
        for (name, kind) in [
            ("ncclDevKernel_AllGather_RING_LL", KernelType::AllGather),
            ("all_to_all", KernelType::AllToAll),
            ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", KernelType::SendReceive),
            ("ncclDevKernel_ReduceScatter_Sum_bf16", KernelType::ReduceScatter),
            ("ncclDevKernel_Broadcast_RING_LL", KernelType::OtherCommunication),
        ] {
            assert_eq!(communication(name), kind, "{name}");
        }
    }
}
