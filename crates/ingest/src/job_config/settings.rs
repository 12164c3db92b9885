//! Common representation of all formats: a model and the job settings stated in the file.

use planner::cluster::Cluster;
use planner::model::{Adapters, Model, ModuleRole};
use planner::scenario::PlannerKind;
use planner::training::{
    AttentionKernel, ContextExchange, Experts, Fp8Recipe, Framework, GradientFormat, MasterWeights, MomentFormat,
    Optimizer, Precision, Recompute, RecomputedModule,
};

use super::JobConfigError;
use super::keys::Keys;
use super::megatron_stages::Ends;

/// Devices of a node that the file does not describe.
pub(super) const NODE: u32 = 8;

#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// The model, if the file states its sizes.
    pub(super) model: Option<Model>,
    /// Number of layers, if it replaces that of a model in another file.
    pub(super) layers: Option<u32>,
    /// Key and value of the model's name, for files that state no sizes.
    pub(super) model_name: Option<(&'static str, String)>,
    /// Cluster preset.
    pub(super) device: Option<&'static str>,
    /// Sequence length in tokens.
    pub(super) sequence: Option<u32>,
    /// Maximum sequence length of the model's position embeddings, in tokens.
    pub(super) max_positions: Option<u32>,
    /// Key and value of the most pixels of an image.
    pub(super) image_pixels: Option<(String, u32)>,
    pub(super) tensor: Option<u32>,
    pub(super) pipeline: Option<u32>,
    /// Layers of each stage, PP x VPP numbers. Empty: as the framework splits them.
    pub(super) layers_per_stage: Vec<u32>,
    /// Layers of the first and last rank, if the file does not state those of the model.
    pub(super) stage_ends: Option<Ends>,
    /// The file states uneven stages whose numbers of layers are not known.
    pub(super) has_uneven_stages: bool,
    /// Framework, if it differs from that of the format.
    pub(super) framework: Option<Framework>,
    /// Planner of the job's schedule. `None`: 1F1B, interleaved with several chunks.
    pub(super) schedule: Option<PlannerKind>,
    /// Microbatches of a replica after which the pipeline is flushed.
    pub(super) microbatches_per_flush: Option<u32>,
    /// Model chunks per rank.
    pub(super) chunks: Option<u32>,
    pub(super) context: Option<u32>,
    pub(super) expert: Option<u32>,
    /// Tensor-parallel degree of experts: 1, or that of the model.
    pub(super) expert_tensor: Option<u32>,
    pub(super) replicas: Option<u32>,
    pub(super) nodes: Option<u32>,
    pub(super) devices_per_node: Option<u32>,
    /// Total device count.
    pub(super) devices: Option<u32>,
    /// Sequences per microbatch.
    pub(super) microbatch: Option<u32>,
    pub(super) batch: Batch,
    /// Microbatches of a replica and step (gradient accumulation).
    pub(super) accumulation: Option<u32>,
    /// Key of the global batch.
    pub(super) batch_key: Option<&'static str>,
    pub(super) recompute: Option<Recompute>,
    /// Modules of selective recomputation. Empty: the attention core.
    pub(super) recompute_modules: Vec<RecomputedModule>,
    /// Recomputed layers per stage, with full recomputation.
    pub(super) recompute_layers: Option<u32>,
    pub(super) context_exchange: ContextExchange,
    pub(super) attention: Option<AttentionKernel>,
    pub(super) precision: Option<Precision>,
    pub(super) fp8: Fp8,
    pub(super) zero: Option<u32>,
    /// Devices over which ZeRO shards. `None`: all with the same parameters.
    pub(super) sharding: Option<Sharding>,
    pub(super) gradients: Option<GradientFormat>,
    /// Without effect at a tensor-parallel degree of 1.
    pub(super) sequence_parallel: Option<bool>,
    pub(super) fused_weight_gradients: Option<bool>,
    /// Memory-bound operators are fused by torch.compile or Liger-Kernel.
    pub(super) is_compiled: bool,
    pub(super) loss: Loss,
    /// Gradient and parameter communication overlaps with computation.
    pub(super) overlapped_gradients: Option<bool>,
    /// The gathering of weights overlaps with computation. `None`: as the communication of gradients.
    pub(super) overlapped_weights: Option<bool>,
    /// The collectives of tensor parallelism run in chunks next to their products.
    pub(super) chunked_collectives: Option<bool>,
    /// True if the file fixes the degrees; missing degrees are then 1. Otherwise the planner
    /// searches them.
    pub(super) has_layout: bool,
    /// Roles of frozen modules.
    pub(super) frozen: Vec<ModuleRole>,
    /// Parts of a vision-language model whose training a scenario does not have.
    pub(super) vision: VisionParts,
    /// Adapters of the language model.
    pub(super) adapters: Option<Adapters>,
    /// Tokens cross to a node once (DeepEP).
    pub(super) dispatch_by_node: Option<bool>,
    pub(super) optimizer: Optimizer,
    pub(super) master_weights: MasterWeights,
    pub(super) moments: MomentFormat,
    /// Format of the moments that the name of the optimizer states, whatever that of the weights.
    pub(super) own_moments: Option<MomentFormat>,
    /// FSDP holds unsharded gradients between microbatches.
    pub(super) unsharded_gradients: Option<bool>,
    /// Order of the experts of a layer. `None`: as usual in the framework.
    pub(super) experts: Option<Experts>,
    /// Share of the activations that are offloaded to host memory.
    pub(super) activation_offload: f64,
    /// Number of layers per device whose activations are offloaded. `None`: all.
    pub(super) offloaded_layers: Option<u32>,
    /// Share of the optimizer state in host memory.
    pub(super) optimizer_offload: f64,
    /// Name of a stated device without a preset.
    pub(super) other_device: Option<String>,
    /// Place of the shards of weights and gradients.
    pub(super) shards: Shards,
}

/// Parts of a vision-language model whose training a scenario does not have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VisionParts {
    /// The projector between an encoder and the language model is frozen.
    pub(super) has_frozen_projector: bool,
    /// The layers of the encoder have adapters.
    pub(super) has_adapters: bool,
}

/// Settings of fp8, without effect in another precision.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fp8 {
    /// Recipe of products. `None`: as usual in the framework.
    pub(super) recipe: Option<Fp8Recipe>,
    /// Weights are stored and gathered in fp8.
    pub(super) has_weights: bool,
    /// The input of the MLP's activation function is stored in fp8.
    pub(super) has_activation_input: bool,
}

impl Settings {
    /// Applies the offload of all sharded states to the host.
    pub(super) fn offload_states(&mut self) {
        self.shards = Shards::OnHost;
        self.optimizer_offload = 1.0;
    }
}

/// Place of sharded weights and gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Shards {
    /// In device memory.
    #[default]
    OnDevice,
    /// In host memory.
    OnHost,
}

/// Memory of the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Loss {
    /// Stores the logits of all tokens.
    #[default]
    Whole,
    /// Computes chunks of the tokens and stores no logits.
    Chunked,
    /// Replaces the logits by their gradient.
    InPlace,
}

/// Hybrid sharding: several copies of the model, each sharded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharding {
    /// Number of copies.
    Copies(u32),
    /// Number of devices with a copy.
    Shards(u32),
    /// Every node has a copy.
    WithinNode,
}

/// Returns hybrid sharding of a program whose file does not state the number of devices.
pub(super) fn within_node(keys: &mut Keys) -> Sharding {
    keys.assume("Hybrid sharding shards within each node.");
    Sharding::WithinNode
}

/// Batch size in sequences per step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Batch {
    /// Over all replicas.
    Global(u32),
    /// Per replica.
    Replica(u32),
    /// Microbatches of `sequences` on every replica, as many as all replicas need for at least `least` sequences.
    Least { least: u32, sequences: u32 },
    /// Over all replicas, without accumulation.
    Whole(u32),
    #[default]
    Unknown,
}

impl Settings {
    /// Returns settings with only a model.
    pub(super) fn from_model(model: Model) -> Self {
        Self { model: Some(model), ..Self::default() }
    }

    /// Sets weights, gradients and moments in bf16 without longer copies.
    pub(super) fn set_pure_bf16(&mut self) {
        self.master_weights = MasterWeights::None;
        self.moments = MomentFormat::Bf16;
        self.gradients = Some(GradientFormat::Bf16);
    }

    /// Number of devices that hold one replica.
    pub(super) fn devices_per_replica(&self) -> u32 {
        [self.tensor, self.pipeline, self.context]
            .into_iter()
            .fold(1_u32, |unit, degree| unit.saturating_mul(degree.unwrap_or(1).max(1)))
    }

    /// Number of devices that the file states.
    pub(super) fn stated_devices(&self) -> Option<u32> {
        self.devices.or_else(|| Some(self.nodes?.saturating_mul(self.devices_per_node.unwrap_or(NODE))))
    }

    /// Number of devices of which the file states both factors, nodes and devices of a node.
    pub(super) fn scheduled_devices(&self) -> Option<u32> {
        Some(self.nodes?.saturating_mul(self.devices_per_node?))
    }

    /// Sets the number of devices and nodes of a launcher that starts a process for each device.
    pub(super) fn set_processes(
        &mut self,
        (key, processes): (&str, Option<u32>),
        nodes: Option<u32>,
    ) -> Result<(), JobConfigError> {
        self.devices = processes.or(self.devices);
        if let (Some(processes), Some(nodes)) = (processes, nodes) {
            if !processes.is_multiple_of(nodes) {
                let detail = format!("{processes} processes do not fill {nodes} machines evenly");
                return Err(JobConfigError::Value { key: key.to_owned(), detail });
            }
            self.devices_per_node = Some(processes / nodes);
        }
        Ok(())
    }

    /// Returns the shard degree on the cluster, or `None` if all devices with the same parameters share one copy.
    pub(super) fn shard_degree(&self, cluster: &Cluster) -> Option<u32> {
        let tensor = self.tensor.unwrap_or(1).max(1);
        let replicas = cluster.devices() / tensor / self.pipeline.unwrap_or(1).max(1);
        let shards = match self.sharding? {
            Sharding::Copies(copies) => replicas / copies.max(1),
            Sharding::Shards(shards) => shards,
            Sharding::WithinNode => cluster.devices_per_node / tensor,
        };
        (self.zero != Some(0) && shards < replicas).then_some(shards.max(1))
    }

    /// Returns the share of the activations in host memory, of a model with `layers` layers.
    pub(super) fn offloaded_activations(&self, layers: u32) -> f64 {
        let on_device = (f64::from(layers) / f64::from(self.pipeline.unwrap_or(1).max(1))).max(1.0);
        self.activation_offload * self.offloaded_layers.map_or(1.0, |layers| (f64::from(layers) / on_device).min(1.0))
    }

    /// Reports that torchtitan refuses the local batch of a pipeline: its sequences on `replicas` replicas do not divide the
    /// global batch.
    pub(super) fn refuse_local_batch(&self, replicas: u32, keys: &mut Keys) {
        let (Batch::Global(global), Some(flush), Some(microbatch)) =
            (self.batch, self.microbatches_per_flush, self.microbatch)
        else {
            return;
        };
        let local = flush.saturating_mul(microbatch);
        let step = local.saturating_mul(replicas);
        let is_stated = self.stated_devices().is_some() || self.replicas.is_some();
        if is_stated && !global.is_multiple_of(step.max(1)) {
            keys.refuse(format!(
                "torchtitan refuses a global batch ({global}) that is no multiple of the local batch times the data-parallel \
                 replicas ({local} x {replicas}). Change local_batch_size or global_batch_size."
            ));
        }
    }

    /// True if replicas fill the devices, or the file does not state them.
    fn fills_devices(&self, devices: Option<u32>) -> bool {
        devices.is_none_or(|devices| devices.is_multiple_of(self.devices_per_replica().max(1)))
    }

    /// Refuses a global batch that the microbatch, the accumulation and the replicas do not form.
    pub(super) fn check_batch(&self) -> Result<(), JobConfigError> {
        let (Batch::Global(global), Some(microbatch)) = (self.batch, self.microbatch) else { return Ok(()) };
        let devices = self.devices.or_else(|| Some(self.nodes?.saturating_mul(self.devices_per_node?)));
        let replicas = devices.map(|devices| (devices / self.devices_per_replica()).max(1)).or(self.replicas);
        let Some(replicas) = replicas else { return Ok(()) };
        let step = microbatch.saturating_mul(replicas);
        let detail = match self.accumulation {
            Some(accumulation) if step.saturating_mul(accumulation) != global => format!(
                "{global} is not {microbatch} x {accumulation} x {replicas} (sequences of a microbatch, accumulation \
                 steps, data-parallel replicas)"
            ),
            None if !global.is_multiple_of(step) && !self.fills_devices(devices) => {
                let [tensor, pipeline, context] =
                    [self.tensor, self.pipeline, self.context].map(|degree| degree.unwrap_or(1));
                let detail = format!(
                    "{} is no multiple of {tensor} x {pipeline} x {context} (tensor, pipeline and context parallelism)",
                    devices.unwrap_or_default()
                );
                return Err(JobConfigError::Value { key: "devices".to_owned(), detail });
            }
            None if !global.is_multiple_of(step) => format!(
                "{global} is no multiple of {microbatch} x {replicas} (sequences of a microbatch, data-parallel \
                 replicas)"
            ),
            _ => return Ok(()),
        };
        Err(JobConfigError::Value { key: self.batch_key.unwrap_or("global batch").to_owned(), detail })
    }
}
