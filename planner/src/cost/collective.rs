//! Collectives and point-to-point sends: latency and bandwidth by placement (docs/models.md, section 4).

use crate::cluster::Cluster;
use crate::units::{BytesPerSecond, Seconds};

/// A communication group as it stands on the cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    size: f64,
    bandwidth: BytesPerSecond,
    latency: Seconds,
}

impl Group {
    /// `size` members, `stride` devices apart, the first at the start of a node.
    ///
    /// Inside a node the ring runs at the intra-node link. Across nodes every member of a node drives its own
    /// network card, so the ring gets the sum of them, up to the intra-node link.
    pub fn placed(cluster: &Cluster, size: u32, stride: u32) -> Self {
        let intra = cluster.intra_node;
        // Groups follow each other in blocks of size x stride devices. Where blocks do not tile the nodes, some
        // group has only the common divisor's share of its members on a node.
        let block = u64::from(size) * u64::from(stride);
        let node = u64::from(cluster.devices_per_node);
        let across = size > 1 && !node.is_multiple_of(block);
        let (bandwidth, hop) = if across {
            let members_of_node = ((common_divisor(block, node) / u64::from(stride)) as u32).clamp(1, size);
            let network = cluster.inter_node.achieved_bandwidth().get() * f64::from(members_of_node);
            let achieved = if members_of_node > 1 { network.min(intra.achieved_bandwidth().get()) } else { network };
            (BytesPerSecond::from_giga(achieved * 1e-9), cluster.inter_node.latency())
        } else {
            (intra.achieved_bandwidth(), intra.latency())
        };
        // A tree needs log2(n) hops each way; a ring would need n - 1, and the library takes the shorter.
        let hops = f64::from(u32::BITS - size.saturating_sub(1).leading_zeros());
        Self { size: f64::from(size), bandwidth, latency: hop * hops }
    }

    /// Reduce-scatter of `bytes` (the whole vector): (n - 1) / n of it passes every link once.
    pub fn reduce_scatter(&self, bytes: f64) -> Seconds {
        if self.size <= 1.0 || bytes <= 0.0 {
            return Seconds::ZERO;
        }
        self.latency + self.bandwidth.time_for(bytes * (self.size - 1.0) / self.size)
    }

    /// All-gather to `bytes` (the whole vector): as long as a reduce-scatter.
    pub fn all_gather(&self, bytes: f64) -> Seconds {
        self.reduce_scatter(bytes)
    }

    /// All-reduce of `bytes`: a reduce-scatter and an all-gather.
    pub fn all_reduce(&self, bytes: f64) -> Seconds {
        self.reduce_scatter(bytes) * 2.0
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// A send of `bytes` between two devices by their number on the cluster.
pub fn point_to_point(cluster: &Cluster, from: u32, to: u32, bytes: f64) -> Seconds {
    if from == to || bytes <= 0.0 {
        return Seconds::ZERO;
    }
    let same_node = from / cluster.devices_per_node == to / cluster.devices_per_node;
    let link = if same_node { cluster.intra_node } else { cluster.inter_node };
    link.latency() + link.achieved_bandwidth().time_for(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::presets::cluster;

    fn nodes(nodes: u32) -> Cluster {
        Cluster { nodes, ..cluster("a100-80gb").unwrap() }
    }

    /// Eight A100s of a node: 2 x 7/8 x 1 GB at 300 x 0.8 GB/s is 7.29 ms, and six hops of 5 µs.
    #[test]
    fn an_all_reduce_inside_a_node_runs_at_the_ring_bandwidth() {
        let time = Group::placed(&nodes(1), 8, 1).all_reduce(1e9).secs();
        assert!((time - (2.0 * 0.875 / 240.0 + 6.0 * 5e-6)).abs() < 1e-9, "{time}");
    }

    #[test]
    fn members_of_one_node_share_the_load_on_their_network_cards() {
        let one_a_node = Group::placed(&nodes(4), 4, 8).all_reduce(1e9);
        let four_a_node = Group::placed(&nodes(4), 16, 2).all_reduce(1e9);
        assert!(four_a_node < one_a_node);
    }

    /// TP 6 on nodes of 8: the second group has two members on the first node.
    #[test]
    fn groups_that_straddle_nodes_pay_for_the_network() {
        let inside = Group::placed(&nodes(3), 4, 1).all_reduce(1e9);
        let straddling = Group::placed(&nodes(3), 6, 1).all_reduce(1e9);
        assert!(straddling.secs() > 4.0 * inside.secs());
    }

    #[test]
    fn a_group_of_one_and_a_send_to_oneself_are_free() {
        assert_eq!(Group::placed(&nodes(1), 1, 1).all_reduce(1e9), Seconds::ZERO);
        assert_eq!(point_to_point(&nodes(1), 3, 3, 1e9), Seconds::ZERO);
    }

    #[test]
    fn a_send_between_nodes_takes_the_network() {
        let near = point_to_point(&nodes(2), 0, 7, 1e8);
        let far = point_to_point(&nodes(2), 7, 8, 1e8);
        assert!(far.secs() > 5.0 * near.secs());
    }
}
