//! Fit coefficients: path in the cluster, bounds, and the timings that determine them.

use crate::cost::kernel::{Kernel, Operation, Product};
use planscope_core::cluster::{Cluster, Curves, Device, Link, LinkCurve};

use super::report::{Bound, CoefficientReport, Outcome};
use super::{MIN, Sample};

/// Minimum message size in bytes that is limited by link bandwidth.
const LARGE_MESSAGE: f64 = 16_777_216.0;

/// Fewest message sizes that determine the factor of a collective.
const FACTOR_MIN_SHAPES: usize = 4;

/// Fewest message sizes that determine the small-message term. With a wrong term the efficiency of
/// the link compensates it.
const SMALL_BYTES_MIN_SHAPES: usize = 8;

/// Kernel launch time for a typical device, in µs.
const TYPICAL_LAUNCH_US: f64 = 4.0;

/// A device or link coefficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coefficient {
    MatMulEfficiency,
    Fill,
    Tile128,
    Tile64,
    TileSmall,
    LastWave,
    Traffic,
    Launch,
    PowerDrop,
    InputGrad,
    WeightGrad,
    Grouped,
    AttentionEfficiency,
    HalfBlocks,
    AttentionBackward,
    MemoryEfficiency,
    LinkEfficiency,
    Base,
    SmallBytes,
    PerRank,
    Pair,
    HalfCollectives,
    AllToAll,
}

impl Coefficient {
    pub(super) const MATMUL: [Self; 12] = [
        Self::MatMulEfficiency,
        Self::Fill,
        Self::Tile128,
        Self::Tile64,
        Self::TileSmall,
        Self::LastWave,
        Self::Traffic,
        Self::Launch,
        Self::PowerDrop,
        Self::InputGrad,
        Self::WeightGrad,
        Self::Grouped,
    ];
    pub(super) const ATTENTION: [Self; 3] = [Self::AttentionEfficiency, Self::HalfBlocks, Self::AttentionBackward];
    pub(super) const ELEMENTWISE: [Self; 1] = [Self::MemoryEfficiency];
    pub(super) const COLLECTIVE: [Self; 7] = [
        Self::LinkEfficiency,
        Self::Base,
        Self::SmallBytes,
        Self::PerRank,
        Self::Pair,
        Self::HalfCollectives,
        Self::AllToAll,
    ];

    /// JSON path in a cluster.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::MatMulEfficiency => "device.matmul_efficiency",
            Self::Fill => "device.curves.matmul.fill",
            Self::Tile128 => "device.curves.matmul.tile_128",
            Self::Tile64 => "device.curves.matmul.tile_64",
            Self::TileSmall => "device.curves.matmul.tile_small",
            Self::LastWave => "device.curves.matmul.last_wave",
            Self::Traffic => "device.curves.matmul.traffic",
            Self::Launch => "device.launch_us",
            Self::PowerDrop => "device.curves.matmul.power_drop",
            Self::InputGrad => "device.curves.matmul.input_grad",
            Self::WeightGrad => "device.curves.matmul.weight_grad",
            Self::Grouped => "device.curves.matmul.grouped",
            Self::AttentionEfficiency => "device.attention_efficiency",
            Self::HalfBlocks => "device.curves.attention.half_blocks",
            Self::AttentionBackward => "device.curves.attention.backward",
            Self::MemoryEfficiency => "device.memory_efficiency",
            Self::LinkEfficiency => "intra_node.efficiency",
            Self::Base => "intra_node.curve.base_us",
            Self::SmallBytes => "intra_node.curve.small_bytes",
            Self::PerRank => "intra_node.curve.per_rank_us",
            Self::Pair => "intra_node.curve.pair",
            Self::HalfCollectives => "intra_node.curve.half_collectives",
            Self::AllToAll => "intra_node.curve.all_to_all",
        }
    }

    /// Minimum and maximum value in a fit.
    pub(super) const fn bounds(self) -> (f64, f64) {
        match self {
            Self::Grouped => (0.2, 1.1),
            Self::MatMulEfficiency | Self::TileSmall => (0.2, 1.0),
            Self::Fill => (0.0, 600.0),
            Self::Tile128 => (0.5, 1.0),
            Self::Tile64 | Self::Traffic => (0.3, 1.0),
            Self::LastWave | Self::PowerDrop => (0.0, 1.0),
            Self::Launch => (0.5, 20.0),
            Self::InputGrad => (0.6, 1.2),
            Self::WeightGrad | Self::AllToAll => (0.4, 1.2),
            Self::AttentionEfficiency | Self::LinkEfficiency => (0.1, 1.0),
            Self::HalfBlocks => (0.0, 2000.0),
            Self::AttentionBackward => (0.3, 1.3),
            // No stream reaches the data-sheet bandwidth. A higher measurement comes from the
            // cache.
            Self::MemoryEfficiency => (0.2, 0.95),
            Self::Base => (0.0, 200.0),
            Self::SmallBytes => (0.0, 1e6),
            Self::PerRank => (0.0, 30.0),
            Self::Pair | Self::HalfCollectives => (0.5, 1.2),
        }
    }

    /// Fewest different shapes that determine it: one large all-reduce measures the bandwidth of a link, a few sizes of another
    /// collective its factor, while other coefficients shape a curve.
    pub(super) const fn fewest(self) -> usize {
        match self {
            Self::LinkEfficiency => 1,
            Self::SmallBytes => SMALL_BYTES_MIN_SHAPES,
            Self::HalfCollectives | Self::AllToAll => FACTOR_MIN_SHAPES,
            _ => MIN,
        }
    }

    /// Returns `cluster` with typical curves for device and link, but unchanged efficiencies.
    pub(super) fn typical(cluster: &Cluster) -> Cluster {
        let mut typical = cluster.clone();
        typical.device.curves = Some(Curves::generic());
        typical.device.launch_us = TYPICAL_LAUNCH_US;
        typical.intra_node.curve = Some(LinkCurve::GENERIC);
        typical
    }

    /// Returns the coefficient. A cluster without curves has typical values.
    pub(super) fn get(self, cluster: &Cluster) -> f64 {
        let mut copy = cluster.clone();
        *self.value_mut(&mut copy)
    }

    pub(super) fn set(self, cluster: &mut Cluster, value: f64) {
        *self.value_mut(cluster) = value;
    }

    /// Returns the coordinate of a value in a search. Times depend on the fifth root of the
    /// small-message scale.
    pub(super) fn coordinate(self, value: f64) -> f64 {
        if self == Self::SmallBytes { libm::pow(value, 0.2) } else { value }
    }

    /// Returns the value at a coordinate of a search.
    pub(super) fn value_at(self, coordinate: f64) -> f64 {
        if self == Self::SmallBytes { libm::pow(coordinate, 5.0) } else { coordinate }
    }

    /// Returns the bound that `value` has reached, if any.
    pub(super) fn bound_at(self, value: f64) -> Option<Bound> {
        let (low, high) = self.bounds();
        let near = (high - low) * 1e-4;
        match value {
            _ if value <= low + near => Some(Bound::Lower),
            _ if value >= high - near => Some(Bound::Upper),
            _ => None,
        }
    }

    /// Creates the report for this coefficient.
    pub(super) fn report(self, shapes: usize, outcome: Outcome, cluster: &Cluster) -> CoefficientReport {
        let (name, fewest, value) = (self.name(), self.fewest(), self.get(cluster));
        CoefficientReport { name, shapes, fewest, outcome, value }
    }

    fn value_mut(self, cluster: &mut Cluster) -> &mut f64 {
        let Cluster { device, intra_node: link, .. } = cluster;
        match self {
            Self::MatMulEfficiency => &mut device.matmul_efficiency,
            Self::Fill => &mut curves(device).matmul.fill,
            Self::Tile128 => &mut curves(device).matmul.tile_128,
            Self::Tile64 => &mut curves(device).matmul.tile_64,
            Self::TileSmall => &mut curves(device).matmul.tile_small,
            Self::LastWave => &mut curves(device).matmul.last_wave,
            Self::Traffic => &mut curves(device).matmul.traffic,
            Self::Launch => &mut device.launch_us,
            Self::PowerDrop => &mut curves(device).matmul.power_drop,
            Self::InputGrad => &mut curves(device).matmul.input_grad,
            Self::WeightGrad => &mut curves(device).matmul.weight_grad,
            Self::Grouped => &mut curves(device).matmul.grouped,
            Self::AttentionEfficiency => &mut device.attention_efficiency,
            Self::HalfBlocks => &mut curves(device).attention.half_blocks,
            Self::AttentionBackward => &mut curves(device).attention.backward,
            Self::MemoryEfficiency => &mut device.memory_efficiency,
            Self::LinkEfficiency => &mut link.efficiency,
            Self::Base => &mut curve(link).base_us,
            Self::SmallBytes => &mut curve(link).small_bytes,
            Self::PerRank => &mut curve(link).per_rank_us,
            Self::Pair => &mut curve(link).pair,
            Self::HalfCollectives => &mut curve(link).half_collectives,
            Self::AllToAll => &mut curve(link).all_to_all,
        }
    }

    /// Returns whether a timing counts for this coefficient, if its predicted time depends on it.
    /// Relative factors (backward to forward, other collectives to all-reduce) need timings of
    /// their specific case. Other coefficients need timings of the base case, because otherwise a
    /// factor and its base are not separable.
    pub(super) fn is_measured_by(self, sample: &Sample) -> bool {
        match (self, &sample.kernel) {
            (Self::InputGrad, Kernel::MatMul(product)) => product.product == Product::InputGrad,
            (Self::WeightGrad, Kernel::MatMul(product)) => product.product == Product::WeightGrad,
            (Self::Grouped, Kernel::MatMul(product)) => product.batch > 1.0,
            (_, Kernel::MatMul(product)) => product.product == Product::Forward && product.batch <= 1.0,
            (Self::AttentionBackward, Kernel::Attention(attention)) => attention.backward,
            (_, Kernel::Attention(attention)) => !attention.backward,
            (Self::AllToAll, Kernel::Collective(collective)) => collective.operation == Operation::AllToAll,
            (Self::HalfCollectives, Kernel::Collective(collective)) => {
                matches!(collective.operation, Operation::AllGather | Operation::ReduceScatter)
            }
            (Self::Pair, Kernel::Collective(collective)) => collective.ranks == 2,
            (Self::LinkEfficiency, Kernel::Collective(collective)) => {
                collective.operation == Operation::AllReduce && collective.bytes >= LARGE_MESSAGE
            }
            (_, Kernel::Collective(collective)) => collective.operation == Operation::AllReduce,
            (_, Kernel::Streaming(_)) => true,
        }
    }
}

fn curves(device: &mut Device) -> &mut Curves {
    device.curves.get_or_insert_with(Curves::generic)
}

fn curve(link: &mut Link) -> &mut LinkCurve {
    link.curve.get_or_insert(LinkCurve::GENERIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planscope_core::cluster::presets::clusters;

    /// All names are valid paths, and the presets are within the bounds.
    #[test]
    fn names_are_paths_and_presets_are_within_the_bounds() {
        let all = Coefficient::MATMUL
            .into_iter()
            .chain(Coefficient::ATTENTION)
            .chain(Coefficient::ELEMENTWISE)
            .chain(Coefficient::COLLECTIVE);
        for coefficient in all {
            let pointer = format!("/{}", coefficient.name().replace('.', "/"));
            for preset in clusters() {
                let mut cluster = preset.cluster;
                let (low, high) = coefficient.bounds();
                let value = coefficient.get(&cluster);
                assert!(low <= value && value <= high, "{} of {}: {value}", coefficient.name(), preset.id);
                coefficient.set(&mut cluster, 0.375);
                let json = serde_json::to_value(&cluster).unwrap();
                assert_eq!(json.pointer(&pointer), Some(&serde_json::json!(0.375)), "{pointer}");
            }
        }
    }
}
