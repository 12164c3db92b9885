//! What the formats have in common: a model, and the settings of the job as far as the file states them.

use planner::model::Model;
use planner::training::{AttentionKernel, GradientFormat, Precision, Recompute};

/// A model and the stated settings of a job.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) model: Model,
    /// Preset of the cluster.
    pub(super) device: Option<&'static str>,
    /// Tokens of a sequence.
    pub(super) sequence: Option<u32>,
    /// Tokens of the longest sequence that the model has positions for.
    pub(super) longest: Option<u32>,
    pub(super) tensor: Option<u32>,
    pub(super) pipeline: Option<u32>,
    /// Model chunks of a rank.
    pub(super) chunks: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) expert: Option<u32>,
    /// Data-parallel replicas.
    pub(super) replicas: Option<u32>,
    pub(super) nodes: Option<u32>,
    pub(super) devices_per_node: Option<u32>,
    /// All devices.
    pub(super) devices: Option<u32>,
    /// Sequences of a microbatch.
    pub(super) microbatch: Option<u32>,
    pub(super) batch: Batch,
    pub(super) recompute: Option<Recompute>,
    /// Layers of a stage that are recomputed, with full recomputation.
    pub(super) recompute_layers: Option<u32>,
    pub(super) attention: Option<AttentionKernel>,
    pub(super) precision: Option<Precision>,
    /// ZeRO stage.
    pub(super) zero: Option<u32>,
    pub(super) gradients: Option<GradientFormat>,
    pub(super) sequence_parallel: Option<bool>,
    pub(super) fused_weight_gradients: Option<bool>,
    /// Gradient and parameter communication runs beside computation.
    pub(super) overlapped_gradients: Option<bool>,
    /// The file fixes the degrees: those it does not state are one. Otherwise they are searched.
    pub(super) has_layout: bool,
}

/// Sequences of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    /// Of all replicas.
    Global(u32),
    /// Of one replica.
    Replica(u32),
    /// The file does not state it.
    Unknown,
}

impl Settings {
    /// A model, and nothing about the job.
    pub(super) const fn of_model(model: Model) -> Self {
        Self {
            model,
            device: None,
            sequence: None,
            longest: None,
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
