//! The scenario that a change must give.

use planner::cost::Partition;
use planner::fit::{self, Change, FieldChange};
use planner::outcome::Layout;
use planner::scenario::{FreeSetting, Scenario};
use planner::training::{AttentionKernel, ContextExchange, Recompute, RecomputedModule};
use serde_json::{Value, json};

/// Data-parallel replicas, which are no field of a scenario. They follow from the devices and the degrees.
pub(super) const REPLICAS: &str = "replicas";
/// Layers of each stage, which are fixed, found or usual.
pub(super) const STAGES: &str = "/stages";
/// The schedule, which is no field of a scenario: 1F1B becomes interleaved 1F1B.
pub(super) const SCHEDULE: &str = "schedule";
/// Pointer of the global batch.
pub(super) const GLOBAL_BATCH: &str = "/workload/global_batch";

/// A simulated scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    /// The scenario with its change.
    pub(super) scenario: Scenario,
    /// Layers of each stage; empty if they are equal.
    pub(super) stage_layers: Vec<u32>,
    /// True if the change itself states whether gradients are sharded between microbatches.
    pub(super) states_gradients: bool,
}

impl Target {
    /// Returns the scenario with a change, and the fields that change. A free layout has the degrees that were found.
    pub(super) fn new(scenario: &Scenario, change: &Change) -> Option<(Self, Vec<String>)> {
        let field = |field: &FieldChange| match (field.pointer.as_str(), change.result.layout) {
            ("/layout", Some(Layout { tensor, pipeline, chunks, microbatch, .. })) => {
                let value = json!({"tensor": tensor, "pipeline": pipeline, "chunks": chunks, "microbatch": microbatch});
                FieldChange { pointer: field.pointer.clone(), value }
            }
            _ => field.clone(),
        };
        let fields: Vec<FieldChange> = change.fields.iter().map(field).collect();
        let document = serde_json::to_value(scenario).ok()?;
        let changed = serde_json::from_value(fit::apply(&document, &fields)?).ok()?;
        let states_gradients = change.fields.iter().any(|field| field.pointer == "/training/unsharded_gradients");
        let stage_layers = change.result.stage_layers.clone();
        let target = Self { scenario: changed, stage_layers, states_gradients };
        let mut changed = target.differences(scenario);
        if target.replicas() != replicas(scenario) {
            changed.push(REPLICAS.to_owned());
        }
        if change.fields.iter().any(|field| field.pointer == "/planners") {
            changed.push(SCHEDULE.to_owned());
        }
        // The key of the chunks can depend on the stages.
        if changed.iter().any(|field| field == "/layout/pipeline") && target.scenario.layout.chunks > Some(1) {
            changed.push("/layout/chunks".to_owned());
        }
        Some((target, changed))
    }

    /// Returns the pointers of fields in which another scenario differs, except for those without effect. The padded
    /// vocabulary may differ, because it depends on the tensor-parallel degree.
    pub(super) fn differences(&self, other: &Scenario) -> Vec<String> {
        // Free stages are equal to free stages, whatever a planner found.
        let is_free = |scenario: &Scenario| scenario.is_free(FreeSetting::LayersPerStage);
        let (stages, other_stages) = match (is_free(&self.scenario), is_free(other)) {
            (true, true) => (None, None),
            (_, true) => (self.stages(), Some(Vec::new())),
            _ => (self.stages(), Self { scenario: other.clone(), stage_layers: Vec::new(), ..*self }.stages()),
        };
        let expected = self.comparable(&self.scenario, stages.as_deref());
        let other = self.comparable(other, other_stages.as_deref());
        let mut pointers = Vec::new();
        for section in names(&expected, &other) {
            let (Some(expected), Some(other)) = (expected.get(section), other.get(section)) else {
                pointers.push(format!("/{section}"));
                continue;
            };
            if !matches!(section, "training" | "layout" | "workload") {
                pointers.extend((expected != other).then(|| format!("/{section}")));
                continue;
            }
            let is_changed = |name: &&str| expected.get(name) != other.get(name);
            pointers.extend(names(expected, other).filter(is_changed).map(|name| format!("/{section}/{name}")));
        }
        pointers
    }

    /// Returns the parts of a scenario that affect its simulation, without fields that have no effect in this one.
    fn comparable(&self, scenario: &Scenario, stages: Option<&[u32]>) -> Value {
        let Scenario { layout, training, .. } = &self.scenario;
        let mut other = scenario.clone();
        for module in &mut other.model.modules {
            module.vocab = 0;
        }
        let stage = other.training.zero_stage();
        (other.training.zero, other.training.distributed_optimizer) = (Some(stage), stage > 0);
        // The sharding of the job decides it, unless the change does.
        other.training.unsharded_gradients &= self.states_gradients;
        // Offloaded parameters have their optimizer on the host.
        other.training.optimizer_offload = other.training.offloaded_optimizer();
        if layout.tensor == Some(1) {
            other.training.sequence_parallel = false;
        }
        if !training.sequence_parallel || layout.tensor == Some(1) {
            other.training.tensor_overlap = 0.0;
        }
        if training.context_parallel == 1 {
            other.training.context_exchange = ContextExchange::default();
        }
        // A file names the usual kernel of its framework only as fused attention.
        let has_fp8 = other.cluster.device.fp8_tflops.is_some();
        if other.training.framework.attention(has_fp8) == Some(other.training.attention) {
            other.training.attention = AttentionKernel::Flash;
        }
        if training.recompute != Recompute::Full {
            other.training.recompute_layers = None;
        }
        // With separate kernels, the attention core is what selective recomputation repeats.
        let is_core =
            !other.training.attention.is_fused() && other.training.recompute_modules == [RecomputedModule::CoreAttn];
        if training.recompute != Recompute::Selective || is_core {
            other.training.recompute_modules.clear();
        }
        other.layout.chunks = other.layout.chunks.filter(|&chunks| chunks > 1);
        other.free.retain(|&setting| setting != FreeSetting::LayersPerStage);
        let Scenario { model, cluster, workload, training, layout, free, .. } = other;
        json!({"model": model, "cluster": cluster, "workload": workload, "training": training, "layout": layout,
            "free": free, "stages": stages})
    }

    /// Returns the layers of each stage of this scenario, as fixed or found. `None`: as usual in the framework.
    pub(super) fn stages(&self) -> Option<Vec<u32>> {
        let Scenario { layout, layers_per_stage, model, .. } = &self.scenario;
        let stages = if !layers_per_stage.is_empty() {
            layers_per_stage.clone()
        } else if self.scenario.is_free(FreeSetting::LayersPerStage) && self.stage_layers.is_empty() {
            let count = layout.pipeline? * layout.chunks.unwrap_or(1);
            vec![self.layers_per_chunk()?; count as usize]
        } else {
            self.stage_layers.clone()
        };
        let usual = Partition::usual(model, stages.len() as u32, self.scenario.training.framework);
        (!stages.is_empty() && usual != Partition::stated(model, &stages)).then_some(stages)
    }

    /// Number of data-parallel replicas.
    pub(super) fn replicas(&self) -> u32 {
        replicas(&self.scenario)
    }

    /// Number of devices over which ZeRO shards, and number of copies. `None` if the shard degree has no effect.
    pub(super) fn shards_and_copies(&self) -> Option<(u32, u32)> {
        let training = &self.scenario.training;
        let all = self.replicas().saturating_mul(training.context_parallel.max(1));
        let shards = training.shards(all);
        let is_effective = training.shard_degree.is_none_or(|degree| degree == shards && shards < all);
        (training.zero_stage() > 0 && is_effective).then(|| (shards, all / shards))
    }

    /// Number of devices of a replica.
    pub(super) fn devices_per_replica(&self) -> u32 {
        self.scenario.cluster.devices() / self.replicas()
    }

    /// Sequences of a replica in a step; `None` if the replicas do not divide the global batch.
    pub(super) fn replica_batch(&self) -> Option<u32> {
        let (global, replicas) = (self.scenario.workload.global_batch, self.replicas());
        global.is_multiple_of(replicas).then_some(global / replicas)
    }

    /// Microbatches of a replica in a step; `None` if they are not whole.
    pub(super) fn accumulation(&self) -> Option<u32> {
        let (batch, microbatch) = (self.replica_batch()?, self.scenario.layout.microbatch?);
        batch.is_multiple_of(microbatch).then_some(batch / microbatch)
    }

    /// Number of layers of a stage or chunk; `None` if they are not even.
    pub(super) fn layers_per_chunk(&self) -> Option<u32> {
        let (layout, layers) = (self.scenario.layout, self.scenario.model.layers());
        let stages = layout.pipeline.unwrap_or(1).checked_mul(layout.chunks.unwrap_or(1))?;
        (stages > 0 && layers.is_multiple_of(stages)).then_some(layers / stages)
    }
}

/// Number of data-parallel replicas of a scenario.
fn replicas(scenario: &Scenario) -> u32 {
    let Scenario { layout, training, cluster, .. } = scenario;
    let unit = [layout.tensor.unwrap_or(1), layout.pipeline.unwrap_or(1), training.context_parallel];
    let unit = unit.into_iter().fold(1_u32, |unit, degree| unit.saturating_mul(degree.max(1)));
    (cluster.devices() / unit).max(1)
}

/// Returns the names of the fields of two objects.
fn names<'a>(first: &'a Value, second: &'a Value) -> impl Iterator<Item = &'a str> {
    let names = |value: &'a Value| value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let added = names(second).filter(|name| first.get(name).is_none());
    names(first).chain(added)
}
