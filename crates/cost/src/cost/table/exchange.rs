//! Exchange of weights and gradients between replicas (docs/models.md, section 4).

use super::sharding::Sharding;
use std::ops::Add;

use super::{LayerTable, Parameters, ReplicaLayout};
use crate::cost::layer::{ShardedTraffic, exposed};
use crate::cost::partition::{LayerRange, Partition};
use planscope_core::model::{Gradients, LayerKind};
use planscope_core::units::Seconds;

/// What the devices of a rank exchange at the end of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// Trained dense parameters of a device.
    pub(super) dense: f64,
    /// Trained expert parameters of a device.
    pub(super) expert: f64,
    /// Their weights, dense and expert, in weights of the training precision.
    pub(super) weights: [f64; 2],
    /// Last backward and first forward, which limit the overlap. `None`: no limit.
    pub(super) window: Option<(Seconds, Seconds)>,
}

impl LayerTable<'_> {
    /// Returns the exposed gradient reduction and weight gathering time. The overlap window is
    /// common to dense and expert parameters.
    pub(super) fn exchange(
        &self,
        exchange: &Exchange,
        (partition, rank): (&Partition, usize),
        replica_layout: ReplicaLayout,
    ) -> Seconds {
        let [dense, expert] = self.sharding(replica_layout);
        let both =
            |time: &dyn Fn(&Sharding, f64) -> Seconds| time(&dense, exchange.dense) + time(&expert, exchange.expert);
        let weights = |time: &dyn Fn(&Sharding, f64) -> Seconds| {
            let [of_dense, of_expert] = exchange.weights;
            time(&dense, of_dense) + time(&expert, of_expert)
        };
        let (gradient, width) = (self.training.gradients.bytes(), self.training.width());
        let backward = exchange.window.map(|window| window.0);
        let forward = exchange.window.map(|window| window.1);
        let hidden = |time: Seconds, window: Option<Seconds>| exposed(time, self.training.data_overlap, window);
        match self.training.zero_stage() {
            0 => hidden(both(&|sharding, count| sharding.all_reduce(gradient * count)), backward),
            1 | 2 if self.training.profile().owners_broadcast => {
                let reduced = both(&|sharding, count| sharding.all_reduce(gradient * count));
                let owners = self.rank_tensors(partition, replica_layout, rank).min(dense.shards).max(1.0);
                hidden(reduced, backward) + weights(&|sharding, count| sharding.broadcast(width * count, owners))
            }
            1 | 2 => {
                let reduced = if self.reduces_each_microbatch(replica_layout) {
                    Seconds::ZERO
                } else {
                    both(&|sharding, count| sharding.reduce(gradient * count, 1.0))
                };
                let gathered = weights(&|sharding, count| sharding.gather(width * count, 1.0));
                hidden(reduced, backward) + hidden(gathered, forward)
            }
            // ZeRO 3 communicates around each stage, see `sharded_traffic`.
            _ => Seconds::ZERO,
        }
    }

    /// Weight tensors per device of a rank.
    pub(super) fn rank_tensors(&self, partition: &Partition, replica_layout: ReplicaLayout, rank: usize) -> f64 {
        let ranks = replica_layout.pipeline as usize;
        partition.stages_on(rank, ranks).flatten().map(|range| self.range_tensors(range)).sum::<u64>() as f64
    }

    /// Weight tensors of a range of layers, with its input and output block.
    fn range_tensors(&self, range: &LayerRange) -> u64 {
        let ends = u64::from(range.begins()) + 2 * u64::from(range.ends(self.model));
        self.model.modules[range.module].range_tensors(range.first, range.end) + ends
    }

    /// True if the gradients of every microbatch are reduced to shards at once: ZeRO 2 without gradients that stay
    /// unsharded between microbatches.
    fn reduces_each_microbatch(&self, replica_layout: ReplicaLayout) -> bool {
        let is_sharded = self.training.zero_stage() == 2 && !self.training.unsharded_gradients;
        is_sharded && !self.training.profile().owners_broadcast && self.accumulates(replica_layout)
    }

    /// ZeRO 2 and 3: communication for a single pass through a stage. Every layer is a unit, as in FSDP. Embedding and
    /// output head are a unit each. ZeRO 2 gathers no weights.
    pub(super) fn sharded_traffic(&self, ranges: &[LayerRange], replica_layout: ReplicaLayout) -> ShardedTraffic {
        let gathers = self.training.zero_stage() == 3;
        if !gathers && !self.reduces_each_microbatch(replica_layout) {
            return ShardedTraffic::default();
        }
        let (width, gradient) = (self.training.width(), self.training.gradients.bytes());
        let with_backward = |range: &&LayerRange| self.model.module_gradients(range.module) != Gradients::None;
        let parameters = self.ranges_parameters(ranges);
        let backward_parameters = self.ranges_parameters(ranges.iter().filter(with_backward));
        let range_units =
            |range: &LayerRange| range.len() + u32::from(range.begins()) + u32::from(range.ends(self.model));
        let units = f64::from(ranges.iter().map(range_units).sum::<u32>());
        // Offloaded shards move to the device before they are gathered, and gradients to the host after the reduction.
        let host_rate = self.training.offloads_parameters().then(|| self.cluster.host_rate().get());
        let moved = |bytes: f64| host_rate.map_or(Seconds::ZERO, |rate| Seconds::from_secs(bytes / rate));
        let gather = |parameters: Parameters| {
            let of = |(sharding, weights): (&Sharding, f64)| {
                sharding.gather(width * weights, units) + moved(width * weights / sharding.shards)
            };
            self.sharding(replica_layout).iter().zip(parameters.weights()).map(of).fold(Seconds::ZERO, Add::add)
        };
        let reduce = |sharding: &Sharding, trained: f64| {
            sharding.reduce(gradient * trained, units) + moved(gradient * trained / sharding.shards)
        };
        let [dense, expert] = self.sharding(replica_layout);
        let reduce = reduce(&dense, parameters.dense) + reduce(&expert, parameters.expert);
        if !gathers {
            return ShardedTraffic { reduce, units, ..ShardedTraffic::default() };
        }
        let host = |tensors: u64| Seconds::from_secs(tensors as f64 * self.training.profile().gather_us * 1e-6);
        ShardedTraffic {
            gather: gather(parameters),
            gather_backward: gather(backward_parameters),
            reduce,
            units,
            host: host(ranges.iter().map(|range| self.range_tensors(range)).sum()),
            host_backward: host(ranges.iter().filter(with_backward).map(|range| self.range_tensors(range)).sum()),
        }
    }

    /// ZeRO 2 and 3: additional memory while a layer runs. It includes unreduced gradients if the layer is trained,
    /// and with ZeRO 3 gathered weights and prefetched weights for the next layer.
    pub(super) fn gathered_bytes(&self, ranges: &[LayerRange], replica_layout: ReplicaLayout) -> f64 {
        let stage = self.training.zero_stage();
        let is_unsharded = self.training.unsharded_gradients || self.replicas(replica_layout) == 1;
        if stage < 2 || (stage == 2 && is_unsharded) {
            return 0.0;
        }
        let layer = |range: &LayerRange| {
            let module = &self.model.modules[range.module];
            let bytes = |kind: LayerKind| {
                let (layer, adapters) = (module.kind_parameters(kind), module.adapter_parameters(kind));
                let parameters = self.parameters_per_device(module, layer, adapters, (0, 0));
                let is_double = !self.training.has_single_fp8_copy(&self.cluster.device);
                let stored = parameters.without_saving(is_double, is_double);
                let weights = if stage == 3 { stored.weights().iter().sum::<f64>() } else { 0.0 };
                2.0 * self.training.width() * weights + self.training.gradients.bytes() * parameters.trained()
            };
            module.layer_kinds().into_iter().map(bytes).fold(0.0, f64::max)
        };
        ranges.iter().map(layer).fold(0.0, f64::max)
    }
}
