//! Collectives and point-to-point sends: latency and bandwidth for a placement (docs/models.md,
//! section 4).

use super::kernel::Operation;
use planscope_core::cluster::{Cluster, LinkCurve};
use planscope_core::units::{BytesPerSecond, Seconds};

/// A communication group with its placement on the cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    size: f64,
    bandwidth: f64,
    /// Bandwidth for a send between adjacent ring members.
    single: f64,
    /// Group members per node. `intra` is their bandwidth.
    near: f64,
    intra: f64,
    curve: LinkCurve,
}

impl Group {
    /// Creates a group from `size` and `stride` (in devices). The first member is the first device
    /// of a node.
    ///
    /// A ring within a node uses the intra-node link. In a ring across nodes, all members of a node
    /// use their own network cards: the ring gets the sum of these bandwidths, up to the intra-node
    /// bandwidth.
    pub fn placed(cluster: &Cluster, size: u32, stride: u32) -> Self {
        // Groups occupy consecutive blocks of size x stride devices. If the blocks do not align
        // with node boundaries, some group has only gcd(block, devices per node) / stride members
        // on a node.
        let block = u64::from(size) * u64::from(stride);
        let node = u64::from(cluster.devices_per_node);
        let across = size > 1 && cluster.nodes > 1 && !node.is_multiple_of(block);
        let members = if across { common_divisor(block, node) / u64::from(stride) } else { u64::from(size) };
        Self::spread(cluster, size, (members as u32).clamp(1, size.max(1)))
    }

    /// Creates a group from `size` and `stride` (in devices) on the minimum number of nodes.
    pub fn compact(cluster: &Cluster, size: u32, stride: u32) -> Self {
        Self::spread(cluster, size, size.min(cluster.devices_per_node / stride.max(1)).max(1))
    }

    /// Creates a group with `size` members, `per_node` on each node.
    pub fn spread(cluster: &Cluster, size: u32, per_node: u32) -> Self {
        let intra = cluster.intra_node.achieved_bandwidth().get();
        let (bandwidth, single, link) = if per_node >= size {
            (intra, intra, cluster.intra_node)
        } else {
            let card = cluster.inter_node.achieved_bandwidth().get();
            let network = card * f64::from(per_node);
            (if per_node > 1 { network.min(intra) } else { network }, card, cluster.inter_node)
        };
        let curve = link.curve.unwrap_or(LinkCurve {
            base_us: link.latency_us,
            per_rank_us: link.latency_us * 0.5,
            ..LinkCurve::GENERIC
        });
        Self { size: f64::from(size), bandwidth, single, near: f64::from(per_node.clamp(1, size.max(1))), intra, curve }
    }

    /// Returns the time for an operation on a full vector of `bytes` (see
    /// [`Collective`](super::kernel::Collective)).
    ///
    /// start + steps x hop + wire bytes / (bandwidth x share) x (1 + (small / bytes)^(1/5))
    pub fn time(&self, operation: Operation, bytes: f64) -> Seconds {
        if self.size <= 1.0 || bytes <= 0.0 {
            return Seconds::ZERO;
        }
        let curve = &self.curve;
        let others = self.size - 1.0;
        let (passes, share) = match operation {
            Operation::AllReduce => (2.0, 1.0),
            Operation::AllGather | Operation::ReduceScatter => (1.0, curve.half_collectives),
            Operation::AllToAll => (1.0, curve.all_to_all),
            Operation::SendReceive => return Seconds::from_secs(curve.base_us * 1e-6 + bytes / self.single),
        };
        if operation == Operation::AllToAll {
            // A device sends data for other nodes over its network card, concurrently with data for
            // the same node.
            let far = bytes * (self.size - self.near) / self.size / self.single;
            let near = bytes * (self.near - 1.0) / self.size / self.intra;
            let start = (curve.base_us + curve.per_rank_us * others) * 1e-6;
            return Seconds::from_secs(start + far.max(near) / curve.all_to_all);
        }
        let pair = if self.size < 3.0 { curve.pair } else { 1.0 };
        let wire = passes * bytes * others / self.size;
        let slow = 1.0 + libm::pow(curve.small_bytes / bytes, 0.2);
        let start = (curve.base_us + curve.per_rank_us * passes * others) * 1e-6;
        Seconds::from_secs(start + wire * slow / (self.bandwidth * share * pair))
    }

    /// Returns the time to send `bytes` of token copies to experts, or back. Each token has `copies`
    /// copies, crosses the network once per node, and is distributed inside the node. With a balanced
    /// router on N nodes, a token has experts on N (1 - (1 - 1/N)^copies) nodes, at most `node_limit`.
    pub fn dispatch(&self, bytes: f64, copies: f64, node_limit: u32) -> Seconds {
        if self.size <= 1.0 || bytes <= 0.0 {
            return Seconds::ZERO;
        }
        let nodes = (self.size / self.near).max(1.0);
        let distinct = nodes * (1.0 - libm::pow(1.0 - 1.0 / nodes, copies));
        let limited = if node_limit > 0 { distinct.min(f64::from(node_limit)) } else { distinct };
        let far = bytes * limited / copies * (nodes - 1.0) / nodes / self.single;
        let near = bytes * (self.near - 1.0) / self.near / self.intra;
        let start = (self.curve.base_us + self.curve.per_rank_us * (nodes - 1.0)) * 1e-6;
        Seconds::from_secs(start + far.max(near) / self.curve.all_to_all)
    }

    /// Returns the reduce-scatter time. `bytes` is the full vector size.
    pub fn reduce_scatter(&self, bytes: f64) -> Seconds {
        self.time(Operation::ReduceScatter, bytes)
    }

    /// Returns the all-gather time. `bytes` is the full vector size.
    pub fn all_gather(&self, bytes: f64) -> Seconds {
        self.time(Operation::AllGather, bytes)
    }

    /// Returns the time of `count` equal operations one after the other on `bytes` in all.
    pub fn in_parts(&self, operation: Operation, bytes: f64, count: f64) -> Seconds {
        let count = count.max(1.0);
        self.time(operation, bytes / count) * count
    }

    /// Returns the time to broadcast `bytes` from one member with a pipelined ring.
    pub fn broadcast(&self, bytes: f64) -> Seconds {
        // An all-gather does not transfer the member's local shard.
        self.time(Operation::AllGather, bytes * self.size / (self.size - 1.0).max(1.0))
    }

    /// Returns the all-reduce time for `bytes`.
    pub fn all_reduce(&self, bytes: f64) -> Seconds {
        self.time(Operation::AllReduce, bytes)
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Returns the time for a point-to-point send. `from` and `to` are device numbers in the cluster.
pub fn point_to_point(cluster: &Cluster, from: u32, to: u32, bytes: f64) -> Seconds {
    Hop::between(cluster, from, to).time(bytes)
}

/// A device-to-device link, resolved once for many sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hop {
    /// `None` if both ends are the same device.
    link: Option<(Seconds, BytesPerSecond)>,
}

impl Hop {
    /// Resolves the link. `from` and `to` are device numbers in the cluster.
    pub fn between(cluster: &Cluster, from: u32, to: u32) -> Self {
        if from == to {
            return Self { link: None };
        }
        let same_node = from / cluster.devices_per_node == to / cluster.devices_per_node;
        let link = if same_node { cluster.intra_node } else { cluster.inter_node };
        Self { link: Some((link.latency(), link.achieved_bandwidth())) }
    }

    /// Returns the time to send `bytes`.
    pub fn time(&self, bytes: f64) -> Seconds {
        match self.link {
            Some((latency, bandwidth)) if bytes > 0.0 => latency + bandwidth.time_for(bytes),
            _ => Seconds::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::cluster::presets::cluster;

    fn nodes(nodes: u32) -> Cluster {
        Cluster { nodes, ..cluster("a100-80gb").unwrap() }
    }

    /// Eight A100s in a node, 1 GB: 48 µs start, then 2 x 7/8 x 1 GB at 300 x 0.834 GB/s plus the
    /// small-message term. vTrain measured 7.85 ms for 1 GB.
    #[test]
    fn all_reduce_inside_a_node_uses_measurements() {
        let time = Group::placed(&nodes(1), 8, 1).all_reduce(1e9).secs();
        assert!((time - 7.85e-3).abs() < 0.3e-3, "{time}");
    }

    #[test]
    fn members_in_a_node_share_network_cards() {
        let single_per_node = Group::placed(&nodes(4), 4, 8).all_reduce(1e9);
        let four_a_node = Group::placed(&nodes(4), 16, 2).all_reduce(1e9);
        assert!(four_a_node < single_per_node);
    }

    /// 64 devices on eight nodes, eight copies per token: experts on 8 (1 - (7/8)^8) = 5.25 nodes, of which
    /// 7/8 are others. With a limit of four nodes, 3.5 of 8 copies cross instead of 7.
    #[test]
    fn tokens_dispatched_by_node_cross_once() {
        let group = Group::placed(&nodes(8), 64, 1);
        let copies = group.time(Operation::AllToAll, 1e10).secs();
        let (free, limited) = (group.dispatch(1e10, 8.0, 0).secs(), group.dispatch(1e10, 8.0, 4).secs());
        assert!((free / copies / (5.25 / 8.0) - 1.0).abs() < 0.02, "{free} {copies}");
        assert!((limited / copies / 0.5 - 1.0).abs() < 0.02, "{limited} {copies}");
        // Inside a node, nothing crosses.
        let inside = Group::placed(&nodes(1), 8, 1);
        assert!(inside.dispatch(1e9, 8.0, 0) > Seconds::ZERO);
    }

    /// TP 6 on nodes with 8 devices: group 1 has two members on node 0.
    #[test]
    fn groups_that_straddle_nodes_pay_for_the_network() {
        let inside = Group::placed(&nodes(3), 4, 1).all_reduce(1e9);
        let straddling = Group::placed(&nodes(3), 6, 1).all_reduce(1e9);
        assert!(straddling.secs() > 4.0 * inside.secs());
    }

    /// A cluster with one node never uses the network, here with three replicas on two devices
    /// each.
    #[test]
    fn groups_inside_a_node_stay_in_it() {
        let (three, six) = (Group::placed(&nodes(1), 3, 2), Group::placed(&nodes(1), 6, 1));
        assert_eq!(three, Group::spread(&nodes(1), 3, 3));
        assert_eq!(six, Group::spread(&nodes(1), 6, 6));
    }

    #[test]
    fn single_member_groups_and_self_sends_are_free() {
        assert_eq!(Group::placed(&nodes(1), 1, 1).all_reduce(1e9), Seconds::ZERO);
        assert_eq!(point_to_point(&nodes(1), 3, 3, 1e9), Seconds::ZERO);
    }

    #[test]
    fn a_send_between_nodes_takes_the_network() {
        let near = point_to_point(&nodes(2), 0, 7, 1e8);
        let far = point_to_point(&nodes(2), 7, 8, 1e8);
        assert!(far.secs() > 5.0 * near.secs());
    }

    /// Eight devices per node, two devices per rank. Groups with two and four ranks fit in one
    /// node. A group with five ranks does not, so it uses the network bandwidth of four members.
    #[test]
    fn compact_groups_stand_on_as_few_nodes_as_hold_them() {
        let cluster = nodes(4);
        for (size, stride, members) in [(2, 2, 2.0), (4, 2, 4.0), (5, 2, 4.0), (8, 1, 8.0), (9, 1, 8.0), (3, 8, 1.0)] {
            let near: f64 = Group::compact(&cluster, size, stride).near;
            assert_eq!(near.to_bits(), f64::to_bits(members), "{size} x {stride}");
        }
        let (inside, across) = (Group::compact(&cluster, 4, 2), Group::compact(&cluster, 5, 2));
        assert_eq!(inside.bandwidth.to_bits(), cluster.intra_node.achieved_bandwidth().get().to_bits());
        assert!(across.bandwidth < inside.bandwidth);
    }
}
