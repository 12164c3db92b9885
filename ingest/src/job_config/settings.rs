//! Common representation of all formats: a model and the job settings stated in the file.

use planner::model::Model;
use planner::training::{AttentionKernel, GradientFormat, Precision, Recompute};

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) model: Model,
    /// Cluster preset.
    pub(super) device: Option<&'static str>,
    /// Sequence length in tokens.
    pub(super) sequence: Option<u32>,
    /// Maximum sequence length of the model's position embeddings, in tokens.
    pub(super) max_positions: Option<u32>,
    pub(super) tensor: Option<u32>,
    pub(super) pipeline: Option<u32>,
    /// Model chunks per rank.
    pub(super) chunks: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) expert: Option<u32>,
    pub(super) replicas: Option<u32>,
    pub(super) nodes: Option<u32>,
    pub(super) devices_per_node: Option<u32>,
    /// Total device count.
    pub(super) devices: Option<u32>,
    /// Sequences per microbatch.
    pub(super) microbatch: Option<u32>,
    pub(super) batch: Batch,
    pub(super) recompute: Option<Recompute>,
    /// Recomputed layers per stage, with full recomputation.
    pub(super) recompute_layers: Option<u32>,
    pub(super) attention: Option<AttentionKernel>,
    pub(super) precision: Option<Precision>,
    pub(super) zero: Option<u32>,
    pub(super) gradients: Option<GradientFormat>,
    pub(super) sequence_parallel: Option<bool>,
    pub(super) fused_weight_gradients: Option<bool>,
    /// Gradient and parameter communication overlaps with computation.
    pub(super) overlapped_gradients: Option<bool>,
    /// True if the file fixes the degrees; missing degrees are then 1. Otherwise the planner
    /// searches them.
    pub(super) has_layout: bool,
}

/// Batch size in sequences per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    /// Over all replicas.
    Global(u32),
    /// Per replica.
    Replica(u32),
    Unknown,
}

impl Settings {
    /// Returns settings with only a model.
    pub(super) const fn from_model(model: Model) -> Self {
        Self {
            model,
            device: None,
            sequence: None,
            max_positions: None,
            tensor: None,
            pipeline: None,
            chunks: None,
            context: None,
            expert: None,
            replicas: None,
            nodes: None,
            devices_per_node: None,
            devices: None,
            microbatch: None,
            batch: Batch::Unknown,
            recompute: None,
            recompute_layers: None,
            attention: None,
            precision: None,
            zero: None,
            gradients: None,
            sequence_parallel: None,
            fused_weight_gradients: None,
            overlapped_gradients: None,
            has_layout: false,
        }
    }
}
