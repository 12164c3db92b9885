//! Parses the parallel layout printed by training programs.

use planner::run_comparison::StatedLayout;
use planner::training::Recompute;

use super::words::{flag, is_none, named, values, word};

const TENSOR: [&str; 3] = ["tensor_model_parallel_size", "tensor-model-parallel-size", "tensor-model-parallel size"];
const PIPELINE: [&str; 3] =
    ["pipeline_model_parallel_size", "pipeline-model-parallel-size", "pipeline-model-parallel size"];
const CONTEXT: [&str; 3] = ["context_parallel_size", "context-parallel-size", "context-parallel size"];
const EXPERT: [&str; 3] = ["expert_model_parallel_size", "expert-model-parallel-size", "expert-model-parallel size"];
const DATA: [&str; 3] = ["data_parallel_size", "data-parallel-size", "data-parallel size"];
const CHUNKS: [&str; 1] = ["virtual_pipeline_model_parallel_size"];
/// Keys for sequences per microbatch.
const MICROBATCH: [&str; 4] =
    ["micro_batch_size", "micro-batch-size", "train_micro_batch_size_per_gpu", "instantaneous batch size per device"];
const GRANULARITY: [&str; 2] = ["recompute_granularity", "recompute-granularity"];
/// Flags for full recomputation.
const CHECKPOINTING: [&str; 2] = ["gradient_checkpointing", "checkpoint_activations"];
/// Settings of Megatron-LM.
const SEQUENCE_PARALLEL: [&str; 1] = ["sequence_parallel"];
const DISTRIBUTED_OPTIMIZER: [&str; 1] = ["use_distributed_optimizer"];
const OVERLAP_GRADIENTS: [&str; 1] = ["overlap_grad_reduce"];
const OVERLAP_WEIGHTS: [&str; 1] = ["overlap_param_gather"];
const ATTENTION: [&str; 1] = ["attention_backend"];
/// Text before the degrees in torchtitan's device mesh line.
const MESH: &str = "device mesh with";

/// Returns the layout in a lower-case line.
pub(super) fn read(line: &str) -> StatedLayout {
    let stated = StatedLayout {
        tensor: named(line, &TENSOR),
        pipeline: named(line, &PIPELINE),
        context: named(line, &CONTEXT),
        expert: named(line, &EXPERT),
        data: named(line, &DATA),
        chunks: named(line, &CHUNKS).or_else(|| is_none(line, &CHUNKS).then_some(1)),
        microbatch: named(line, &MICROBATCH),
        recompute: recompute(line),
        sequence_parallel: flag(line, &SEQUENCE_PARALLEL),
        sharded_optimizer: flag(line, &DISTRIBUTED_OPTIMIZER),
        overlapped_gradients: flag(line, &OVERLAP_GRADIENTS),
        overlapped_weights: flag(line, &OVERLAP_WEIGHTS),
        separate_attention: separate_attention(line),
    };
    stated.or(mesh(line).map_or_else(StatedLayout::default, Mesh::layout))
}

/// Returns the device count of a torchtitan device mesh.
pub(super) fn mesh_devices(line: &str) -> Option<u32> {
    mesh(line)?.devices()
}

/// Reads the attention kernel of Megatron-LM. `auto` states none.
fn separate_attention(line: &str) -> Option<bool> {
    let value = values(line, &ATTENTION).next()?;
    match value.strip_prefix("attnbackend.").unwrap_or(value).split(|c: char| !c.is_ascii_alphanumeric()).next()? {
        "unfused" | "local" => Some(true),
        "flash" | "fused" => Some(false),
        _ => None,
    }
}

fn recompute(line: &str) -> Option<Recompute> {
    if line.contains("activation checkpointing") {
        return match () {
            () if line.contains("applied full ") => Some(Recompute::Full),
            // torchtitan, whose selective recomputation is by operator.
            () if line.contains("applied selective ") => Some(Recompute::Operators),
            () => None,
        };
    }
    if line.contains("gradient checkpointing enabled") {
        return Some(Recompute::Full);
    }
    match word(line, &GRANULARITY) {
        Some("full") => Some(Recompute::Full),
        Some("selective") => Some(Recompute::Selective),
        Some("none") => Some(Recompute::None),
        _ => {
            let is_full = flag(line, &CHECKPOINTING)?;
            Some(if is_full { Recompute::Full } else { Recompute::None })
        }
    }
}

/// Device mesh degrees by name.
struct Mesh<'a>(Vec<(&'a str, u32)>);

/// Parses `Building 2-D device mesh with ['dp', 'tp'], [4, 2]` and `Building device mesh with
/// parallelism: pp=4, dp_shard=8`.
fn mesh(line: &str) -> Option<Mesh<'_>> {
    let (_, after) = line.split_once(MESH)?;
    if let Some((_, degrees)) = after.split_once("parallelism:") {
        let degree = |part| {
            let (name, degree) = str::split_once(part, '=')?;
            Some((name.trim(), degree.trim().parse::<u32>().ok()?))
        };
        return degrees.split(',').map(degree).collect::<Option<_>>().map(Mesh);
    }
    let (names, degrees) = after.rsplit_once('[')?;
    let names = names.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|name| !name.is_empty());
    let degrees = degrees.split_once(']')?.0.split(',').map(|degree| degree.trim().parse::<u32>().ok());
    let degrees: Vec<u32> = degrees.collect::<Option<_>>()?;
    let names: Vec<&str> = names.collect();
    (names.len() == degrees.len()).then(|| Mesh(names.into_iter().zip(degrees).collect()))
}

impl Mesh<'_> {
    /// Returns the product over the dimensions selected by `is_wanted`.
    fn product(&self, is_wanted: impl Fn(&str) -> bool) -> Option<u32> {
        let mut degrees = self.0.iter().filter(|(name, _)| is_wanted(name)).map(|&(_, degree)| degree);
        degrees.try_fold(1_u32, u32::checked_mul).filter(|&product| product > 0)
    }

    /// Expert parallelism uses the same devices as the other dimensions.
    fn devices(&self) -> Option<u32> {
        self.product(|name| !matches!(name, "ep" | "etp"))
    }

    /// Missing dimensions are 1. The expert-parallel degree is set only if the mesh contains it.
    fn layout(self) -> StatedLayout {
        if self.devices().is_none() {
            return StatedLayout::default();
        }
        StatedLayout {
            tensor: self.product(|name| name == "tp"),
            pipeline: self.product(|name| name == "pp"),
            context: self.product(|name| name == "cp"),
            expert: self.0.iter().find(|(name, _)| *name == "ep").map(|&(_, degree)| degree),
            data: self.product(|name| name.starts_with("dp")),
            ..StatedLayout::default()
        }
    }
}
