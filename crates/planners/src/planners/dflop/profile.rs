//! Model profile for a module: throughput and memory by tensor-parallel degree (DFLOP Sec. 3.2.1).

use super::curve::Curve;

/// Profiles for a module under all measured tensor-parallel degrees.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleProfile {
    /// Number of layers, E_l or L_l; upper limit for PP.
    pub layers: u32,
    /// Profiles in ascending TP order.
    pub degrees: Vec<DegreeProfile>,
}

/// Profile for a module and a tensor-parallel degree. Throughput is in model FLOPs (forward and
/// backward) per second and device.
#[derive(Debug, Clone, PartialEq)]
pub struct DegreeProfile {
    /// TP.
    pub tensor: u32,
    /// Encoder: total throughput by effective batch (E_thr). Backbone: linear-layer throughput by
    /// packed length (L_lin_thr).
    pub linear: Curve,
    /// Backbone: attention throughput by sequence length before packing (L_attn_thr). Not used for
    /// an encoder.
    pub attention: Curve,
    /// Bytes for parameters, gradients and optimizer states.
    pub state: StateTable,
    /// Activation bytes stored per microbatch for the backward pass, by effective batch or packed
    /// length.
    pub activation: ActivationTable,
}

/// model_state(l, TP), linear in l.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateTable {
    /// Bytes per layer and device.
    pub layer: StateSize,
    /// Bytes at the first end of the module, in addition to its layers.
    pub first: StateSize,
    /// Bytes at the last end of the module, in addition to its layers.
    pub last: StateSize,
}

/// Model states per device, before data-parallel sharding.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateSize {
    /// Bytes for a single replica.
    pub bytes: f64,
    /// Fraction that is sharded among replicas (ZeRO); 0 in the paper. Frozen layers contain only
    /// weights, so the fraction can differ within a module.
    pub sharded: f64,
    /// Largest number of replicas that share a copy (hybrid sharding); `None` for all.
    pub shard_degree: Option<u32>,
}

impl StateSize {
    /// Creates states that are fully replicated.
    pub const fn replicated(bytes: f64) -> Self {
        Self { bytes, sharded: 0.0, shard_degree: None }
    }

    /// Returns the bytes per device for `data` replicas.
    pub fn among(self, data: u32) -> f64 {
        let shards = self.shard_degree.map_or(data, |degree| degree.min(data));
        self.bytes * (1.0 - self.sharded) + self.bytes * self.sharded / f64::from(shards)
    }
}

/// act_state(l, TP, size), linear in l; a size curve per layer.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivationTable {
    /// Bytes per layer and stored microbatch.
    pub layer: Curve,
    /// Bytes per device that do not depend on the number of stored microbatches: logits, backward
    /// buffers.
    pub fixed: Curve,
}

impl StateTable {
    /// Creates the table from two measurements (layers, bytes) with different layer counts
    /// (DFLOP Sec. 3.2.1).
    pub fn between((few, low): (f64, f64), (many, high): (f64, f64)) -> Self {
        let layer = (high - low) / (many - few);
        Self {
            layer: StateSize::replicated(layer),
            first: StateSize::replicated(low - few * layer),
            last: StateSize::default(),
        }
    }

    /// Returns the bytes for a stage with `layers` layers and `data` replicas. `replicated` is true if
    /// the stage contains the complete module.
    pub fn bytes(&self, layers: u32, has_all_layers: bool, data: u32) -> f64 {
        let (first, last) = (self.first.among(data), self.last.among(data));
        let ends = if has_all_layers { first + last } else { first.max(last) };
        self.layer.among(data) * f64::from(layers) + ends
    }
}

impl ActivationTable {
    /// Returns the bytes for a stage with `layers` layers that stores `kept` microbatches with the
    /// given size.
    pub fn bytes(&self, (layers, stored): (u32, u32), size: f64) -> f64 {
        self.layer.extended(size) * f64::from(layers) * f64::from(stored) + self.fixed.extended(size)
    }

    /// Returns the minimum of [`Self::bytes`] on a size range.
    pub fn min_bytes(&self, (layers, stored): (u32, u32), from: f64, to: f64) -> f64 {
        self.layer.min_between(from, to) * f64::from(layers) * f64::from(stored) + self.fixed.min_between(from, to)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "small sums of numbers that are exact")]
mod tests {
    use super::*;

    /// 2 layers need 140 bytes, 4 layers 180: 20 per layer plus 100.
    #[test]
    fn states_are_linear_in_the_layers() {
        let state = StateTable::between((2.0, 140.0), (4.0, 180.0));
        assert_eq!(state.bytes(10, false, 1), 300.0);
        // Three quarters are sharded among 3 replicas: 75 + 75.
        let sharded = |size: StateSize| StateSize { sharded: 0.75, ..size };
        let dealt = StateTable { layer: sharded(state.layer), first: sharded(state.first), ..state };
        assert_eq!(dealt.bytes(10, false, 3), 150.0);
        // Two replicas share a copy: a quarter of 80, and a half of the rest.
        let hybrid = StateSize { shard_degree: Some(2), ..sharded(StateSize::replicated(80.0)) };
        assert_eq!(hybrid.among(4), 50.0);
        // Both ends if a stage is the complete module, otherwise their maximum.
        let [layer, first, last] = [1.0, 5.0, 7.0].map(StateSize::replicated);
        let ends = StateTable { layer, first, last };
        assert_eq!((ends.bytes(4, true, 1), ends.bytes(2, false, 1)), (16.0, 9.0));
    }

    /// 3 layers with 2 + 4 size bytes, for two microbatches, plus 10. The curve is extrapolated
    /// beyond the measured sizes.
    #[test]
    fn activations_grow_with_layers_and_size() {
        let layer = Curve::new(vec![(0.0, 2.0), (1.0, 6.0)]).unwrap();
        let table = ActivationTable { layer, fixed: Curve::constant(10.0) };
        assert_eq!(table.bytes((3, 2), 5.0), 6.0 * 22.0 + 10.0);
        assert_eq!(table.min_bytes((3, 2), 2.0, 5.0), 6.0 * 10.0 + 10.0);
    }
}
