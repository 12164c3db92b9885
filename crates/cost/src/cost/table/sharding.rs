//! Groups of replicas over which ZeRO shards (docs/models.md, section 4).

use super::{LayerTable, ReplicaLayout};
use crate::cost::collective::Group;
use crate::cost::kernel::Operation;
use planscope_core::units::Seconds;

/// Devices with the same parameters: shards of a copy, and copies of a shard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sharding {
    /// Number of devices over which ZeRO shards.
    pub(super) shards: f64,
    /// All devices.
    all: Group,
    /// Devices that store the shards of one copy.
    within: Group,
    /// Devices that store the same shard.
    between: Group,
}

impl Sharding {
    /// Returns the time to reduce gradients of `bytes` without sharding.
    pub(super) fn all_reduce(&self, bytes: f64) -> Seconds {
        self.all.all_reduce(bytes)
    }

    /// Returns the time to reduce gradients of `bytes` to shards in `count` parts: a reduce-scatter
    /// within a copy, and an all-reduce of each shard between copies.
    pub(super) fn reduce(&self, bytes: f64, count: f64) -> Seconds {
        self.within.in_parts(Operation::ReduceScatter, bytes, count)
            + self.between.in_parts(Operation::AllReduce, bytes / self.shards, count)
    }

    /// Returns the time to gather weights of `bytes` from shards in `count` parts.
    pub(super) fn gather(&self, bytes: f64, count: f64) -> Seconds {
        self.within.in_parts(Operation::AllGather, bytes, count)
    }

    /// Returns the time in which `owners` devices broadcast their share of `bytes` to their copy.
    pub(super) fn broadcast(&self, bytes: f64, owners: f64) -> Seconds {
        self.within.broadcast(bytes / owners) * owners
    }
}

impl LayerTable<'_> {
    /// Returns the groups for dense and for expert parameters. Experts are distributed over adjacent
    /// devices, so the stride between expert replicas is expert TP x EP.
    pub(super) fn sharding(&self, replica_layout: ReplicaLayout) -> [Sharding; 2] {
        let replicas = self.replicas(replica_layout);
        let shards = self.training.shards(replicas);
        let stride = self.training.expert_tensor(self.tensor).saturating_mul(self.training.expert_parallel).max(1);
        let of_experts = |devices: u32| (f64::from(devices) * f64::from(self.tensor) / f64::from(stride)).max(1.0);
        let groups = |all: f64, shards: f64, stride: u32| Sharding {
            shards,
            all: Group::placed(self.cluster, all as u32, stride),
            within: Group::placed(self.cluster, shards as u32, stride),
            between: Group::placed(self.cluster, (all / shards) as u32, stride.saturating_mul(shards as u32)),
        };
        [
            groups(f64::from(replicas), f64::from(shards), self.tensor),
            groups(of_experts(replicas), of_experts(shards), stride),
        ]
    }
}
