//! Exchange of weights and gradients between replicas (docs/models.md, section 4).

use super::{LayerTable, ReplicaLayout};
use crate::cost::collective::Group;
use crate::cost::kernel::Operation;
use crate::cost::layer::{ShardedTraffic, exposed};
use crate::cost::partition::{LayerRange, Partition};
use planscope_core::model::LayerKind;
use planscope_core::units::Seconds;

/// What the devices of a rank exchange at the end of a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    /// Trained dense parameters of a device.
    pub(super) dense: f64,
    /// Trained expert parameters of a device.
    pub(super) expert: f64,
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
        let (dense, expert) = self.replica_groups(replica_layout);
        let both =
            |time: &dyn Fn(&Group, f64) -> Seconds| time(&dense, exchange.dense) + time(&expert, exchange.expert);
        let (gradient, width) = (self.training.gradients.bytes(), self.training.width());
        let backward = exchange.window.map(|window| window.0);
        let forward = exchange.window.map(|window| window.1);
        let hidden = |time: Seconds, window: Option<Seconds>| exposed(time, self.training.data_overlap, window);
        match self.training.zero_stage() {
            0 => hidden(both(&|group, count| group.all_reduce(gradient * count)), backward),
            1 | 2 if self.training.profile().owners_broadcast => {
                let reduced = both(&|group, count| group.all_reduce(gradient * count));
                let tensors = self.rank_tensors(partition, replica_layout, rank);
                let owners = tensors.min(f64::from(self.replicas(replica_layout))).max(1.0);
                let sent = both(&|group, count| group.broadcast(width * count / owners) * owners);
                hidden(reduced, backward) + sent
            }
            1 | 2 => {
                let reduced = both(&|group, count| group.reduce_scatter(gradient * count));
                let gathered = both(&|group, count| group.all_gather(width * count));
                hidden(reduced, backward) + hidden(gathered, forward)
            }
            // ZeRO-3 communicates around each stage, see `sharded_traffic`.
            _ => Seconds::ZERO,
        }
    }

    /// Weight tensors per device of a rank.
    pub(super) fn rank_tensors(&self, partition: &Partition, replica_layout: ReplicaLayout, rank: usize) -> f64 {
        let ranks = replica_layout.pipeline as usize;
        let tensors = |range: &LayerRange| {
            let ends = u64::from(range.begins()) + 2 * u64::from(range.ends(self.model));
            self.model.modules[range.module].range_tensors(range.first, range.end) + ends
        };
        partition.stages_on(rank, ranks).flatten().map(tensors).sum::<u64>() as f64
    }

    /// ZeRO-3 communication for a single pass through a stage. Every layer is a unit, as in FSDP. Embedding and output
    /// head are a unit each.
    pub(super) fn sharded_traffic(&self, ranges: &[LayerRange], replica_layout: ReplicaLayout) -> ShardedTraffic {
        if self.training.zero_stage() < 3 {
            return ShardedTraffic::default();
        }
        let (width, gradient) = (self.training.width(), self.training.gradients.bytes());
        let (dense_group, expert_group) = self.replica_groups(replica_layout);
        let parameters = self.ranges_parameters(ranges);
        let range_units =
            |range: &LayerRange| range.len() + u32::from(range.begins()) + u32::from(range.ends(self.model));
        let units = f64::from(ranges.iter().map(range_units).sum::<u32>());
        let group_traffic = |group: &Group, trained: f64, frozen: f64| {
            let gather = group.in_parts(Operation::AllGather, width * (trained + frozen), units);
            (gather, group.in_parts(Operation::ReduceScatter, gradient * trained, units))
        };
        let dense = group_traffic(&dense_group, parameters.dense, parameters.frozen);
        let expert = group_traffic(&expert_group, parameters.expert, parameters.frozen_expert);
        ShardedTraffic { gather: dense.0 + expert.0, reduce: dense.1 + expert.1, units }
    }

    /// ZeRO-3: additional memory while a layer runs. It includes gathered weights, prefetched
    /// weights for the next layer, and unreduced gradients if the layer is trained.
    pub(super) fn gathered_bytes(&self, ranges: &[LayerRange]) -> f64 {
        if self.training.zero_stage() < 3 {
            return 0.0;
        }
        let layer = |range: &LayerRange| {
            let module = &self.model.modules[range.module];
            let bytes = |kind: LayerKind| {
                let (layer, adapters) = (module.kind_parameters(kind), module.adapter_parameters(kind));
                let parameters = self.parameters_per_device(module, layer, adapters, (0, 0));
                2.0 * self.training.width() * parameters.total()
                    + self.training.gradients.bytes() * parameters.trained()
            };
            module.layer_kinds().into_iter().map(bytes).fold(0.0, f64::max)
        };
        ranges.iter().map(layer).fold(0.0, f64::max)
    }

    /// Replica groups for dense and expert parameters. Experts are distributed over adjacent
    /// devices, so the stride between expert replicas is expert TP x EP.
    fn replica_groups(&self, replica_layout: ReplicaLayout) -> (Group, Group) {
        let replicas = self.replicas(replica_layout);
        let stride = self.training.expert_tensor(self.tensor) * self.training.expert_parallel;
        (
            Group::placed(self.cluster, replicas, self.tensor),
            Group::placed(self.cluster, self.expert_replicas(replica_layout) as u32, stride),
        )
    }
}
