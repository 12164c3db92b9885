//! Tensor transfers across modules with different layouts: boundary communicators
//! (arXiv 2605.27678; docs/models.md, section 14).
//!
//! The last stage of the sending module produces a tensor in the sender's layout. The first stage
//! of the receiving module needs it in the receiver's layout. Gradients travel in the opposite
//! direction.

use std::ops::Range;

use super::collective::{Group, point_to_point};
use planscope_core::cluster::Cluster;
use planscope_core::stage_graph::BoundaryKind;
use planscope_core::units::Seconds;

/// Rank and layout on one side of a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Devices of the rank.
    pub devices: Range<u32>,
    /// Tensor-parallel degree.
    pub tensor: u32,
    /// Context-parallel degree.
    pub context: u32,
    /// Number of data-parallel copies on the rank.
    pub copies_per_rank: u32,
    /// Layout index. Tensors between sides with equal indices need no conversion.
    pub layout: usize,
}

/// Time and volume to transfer a tensor forward and its gradient backward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossing {
    /// Conversion type.
    pub kind: BoundaryKind,
    /// Fan-in or fan-out factor k; 1 for all other conversions.
    pub fan: u32,
    /// Forward transfer time.
    pub forward: Seconds,
    /// Gradient transfer time.
    pub backward: Seconds,
    /// Tensor bytes per receiving device.
    pub forward_bytes: f64,
    /// Gradient bytes per receiving device.
    pub backward_bytes: f64,
}

impl Crossing {
    /// Returns the transfer cost between two ranks. `bytes` is the full tensor size for a
    /// sub-microbatch.
    ///
    /// Set `colocated` if the two modules share devices.
    pub fn new(cluster: &Cluster, from: &Side, to: &Side, colocated: bool, bytes: f64) -> Self {
        let alike = (from.tensor, from.context, from.copies_per_rank) == (to.tensor, to.context, to.copies_per_rank);
        if from.devices == to.devices && (alike || from.layout == to.layout) {
            let (forward, backward) = (Seconds::ZERO, Seconds::ZERO);
            return Self {
                kind: BoundaryKind::Equal,
                fan: 1,
                forward,
                backward,
                forward_bytes: 0.0,
                backward_bytes: 0.0,
            };
        }
        let mut crossing = if colocated {
            Self::colocated(cluster, from, to, bytes)
        } else {
            Self::disjoint(cluster, from, to, bytes)
        };
        // The sender gathers a context-parallel sequence before the transfer. The receiver splits
        // it without cost.
        if from.context > 1 && from.context != to.context {
            let sequence_bytes = bytes / f64::from(from.copies_per_rank);
            crossing.forward += Group::placed(cluster, from.context, from.tensor).all_gather(sequence_bytes);
            crossing.forward_bytes += others(from.context) * sequence_bytes;
        }
        if to.context > 1 && from.context != to.context {
            let gradient_bytes = bytes / f64::from(to.copies_per_rank);
            crossing.backward += Group::placed(cluster, to.context, to.tensor).all_gather(gradient_bytes);
            crossing.backward_bytes += others(to.context) * gradient_bytes;
        }
        crossing
    }

    /// Sides on the same devices, or on ranks of the same devices.
    fn colocated(cluster: &Cluster, from: &Side, to: &Side, bytes: f64) -> Self {
        let (before, behind) = (f64::from(from.copies_per_rank), f64::from(to.copies_per_rank));
        let (local, wanted) = (bytes / before, bytes / behind);
        // Point-to-point sends between corresponding devices, one shard per device.
        let hop = |bytes: f64, side: &Side| {
            let share = bytes / f64::from(side.tensor * side.context);
            point_to_point(cluster, from.devices.start, to.devices.start, share)
        };
        let hopped = |bytes: f64| if from.devices == to.devices { 0.0 } else { bytes };
        let mut crossing = Self {
            kind: BoundaryKind::Aligned,
            fan: 1,
            forward: hop(local, from),
            backward: hop(wanted, to),
            forward_bytes: hopped(local),
            backward_bytes: hopped(wanted),
        };
        if from.copies_per_rank > to.copies_per_rank {
            let fan = from.copies_per_rank / to.copies_per_rank;
            crossing.forward += Group::placed(cluster, fan, from.tensor * from.context).all_gather(wanted);
            crossing.forward_bytes += f64::from(fan - 1) * local;
            (crossing.kind, crossing.fan) = (BoundaryKind::FanIn, fan);
        } else if from.copies_per_rank < to.copies_per_rank {
            let fan = to.copies_per_rank / from.copies_per_rank;
            crossing.backward += Group::placed(cluster, fan, to.tensor * to.context).all_gather(local);
            crossing.backward_bytes += f64::from(fan - 1) * wanted;
            (crossing.kind, crossing.fan) = (BoundaryKind::FanOut, fan);
        }
        crossing
    }

    /// Sides on disjoint devices.
    fn disjoint(cluster: &Cluster, from: &Side, to: &Side, bytes: f64) -> Self {
        let sent = |from: &Side, to: &Side| {
            let (block, spread) = (bytes / f64::from(to.copies_per_rank), to.tensor * to.context);
            let leaders = point_to_point(cluster, from.devices.start, to.devices.start, bytes);
            leaders + Group::placed(cluster, spread, 1).broadcast(block)
        };
        let got = |to: &Side| bytes / f64::from(to.copies_per_rank);
        Self {
            kind: BoundaryKind::Apart,
            fan: 1,
            forward: sent(from, to),
            backward: sent(to, from),
            forward_bytes: got(to),
            backward_bytes: got(from),
        }
    }
}

/// Returns the fraction of a tensor that a device receives in an all-gather in a group of `degree`
/// devices.
fn others(degree: u32) -> f64 {
    f64::from(degree - 1) / f64::from(degree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::cluster::presets::cluster;

    fn side(devices: Range<u32>, tensor: u32, context: u32, layout: usize) -> Side {
        let copies_per_rank = (devices.end - devices.start) / (tensor * context);
        Side { devices, tensor, context, copies_per_rank, layout }
    }

    fn two_nodes() -> Cluster {
        Cluster { nodes: 2, ..cluster("h100").unwrap() }
    }

    fn crossing(from: &Side, to: &Side) -> Crossing {
        let colocated = from.devices == to.devices;
        Crossing::new(&two_nodes(), from, to, colocated, 8e6)
    }

    /// Eight single-device encoders produce 1 MB each for an 8 MB microbatch. A backbone with TP 8
    /// gathers 7 x 1 MB per device. The encoders' gradients are already local.
    #[test]
    fn fan_in_gathers_other_batches_and_narrows_back() {
        let eight = crossing(&side(0..8, 1, 1, 0), &side(0..8, 8, 1, 1));
        assert_eq!((eight.kind, eight.fan), (BoundaryKind::FanIn, 8));
        assert_eq!((eight.forward_bytes, eight.backward_bytes), (7e6, 0.0));
        assert_eq!(eight.forward, Group::placed(&two_nodes(), 8, 1).all_gather(8e6));
        assert_eq!(eight.backward, Seconds::ZERO);
        // Four two-device encoders produce 2 MB each. A device receives three of these four blocks.
        let four = crossing(&side(0..8, 2, 1, 0), &side(0..8, 8, 1, 1));
        assert_eq!((four.fan, four.forward_bytes), (4, 6e6));
        // A backbone copy gathers 4 MB from two encoders, of which 2 MB are remote.
        let pairs = crossing(&side(0..8, 2, 1, 0), &side(0..8, 4, 1, 1));
        assert_eq!((pairs.fan, pairs.forward_bytes), (2, 2e6));
    }

    #[test]
    fn fan_out_mirrors_fan_in() {
        let (narrow, wide) = (side(0..8, 1, 1, 0), side(0..8, 8, 1, 1));
        let (fan_in, fan_out) = (crossing(&narrow, &wide), crossing(&wide, &narrow));
        assert_eq!((fan_out.kind, fan_out.fan), (BoundaryKind::FanOut, 8));
        assert_eq!((fan_out.forward, fan_out.backward), (fan_in.backward, fan_in.forward));
        assert_eq!((fan_out.forward_bytes, fan_out.backward_bytes), (0.0, 7e6));
    }

    #[test]
    fn equal_layouts_hand_on_for_free() {
        let same = crossing(&side(0..8, 4, 1, 0), &side(0..8, 4, 1, 1));
        assert_eq!((same.kind, same.forward, same.backward), (BoundaryKind::Equal, Seconds::ZERO, Seconds::ZERO));
    }

    /// The receiver uses CP 4, the encoders use no CP. The forward costs only the fan-in. In the
    /// backward, a device gathers 3/4 of 8 MB.
    #[test]
    fn split_sequence_gradient_is_gathered_for_an_unsplit_encoder() {
        let cut = crossing(&side(0..8, 1, 1, 0), &side(0..8, 2, 4, 1));
        let unsplit = crossing(&side(0..8, 1, 1, 0), &side(0..8, 8, 1, 1));
        assert_eq!(cut.forward, unsplit.forward);
        assert_eq!((cut.forward_bytes, cut.backward_bytes), (7e6, 6e6));
        assert_eq!(cut.backward, Group::placed(&two_nodes(), 4, 2).all_gather(8e6));
    }

    /// Forward: 8 MB between leaders over the network, then a broadcast to eight devices. Backward:
    /// a single receiver.
    #[test]
    fn disjoint_transfer_goes_between_leaders_then_to_all() {
        let (near, far) = (side(0..1, 1, 1, 0), side(8..16, 8, 1, 1));
        let crossing = crossing(&near, &far);
        let sent = point_to_point(&two_nodes(), 0, 8, 8e6);
        assert_eq!(crossing.kind, BoundaryKind::Apart);
        assert_eq!(crossing.forward, sent + Group::placed(&two_nodes(), 8, 1).broadcast(8e6));
        assert_eq!(crossing.backward, sent);
        assert_eq!((crossing.forward_bytes, crossing.backward_bytes), (8e6, 8e6));
    }
}
