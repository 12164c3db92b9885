//! What the model profiler of DFLOP knows of a module: throughput and memory by tensor-parallel degree.

use super::curve::Curve;

/// A module under every tensor-parallel degree that was profiled.
#[derive(Debug, Clone, PartialEq)]
pub struct ModuleProfile {
    /// Its layers, E_l or L_l: a pipeline has at most as many stages.
    pub layers: u32,
    /// Ascending degrees.
    pub degrees: Vec<DegreeProfile>,
}

/// A module under one tensor-parallel degree. Rates are model operations of forward and backward per second and device.
#[derive(Debug, Clone, PartialEq)]
pub struct DegreeProfile {
    /// TP.
    pub tensor: u32,
    /// Of an encoder everything, by its effective batch (E_thr); of a backbone what is linear, by the packed length (L_lin_thr).
    pub linear: Curve,
    /// Of a backbone attention, by the length of a sequence before packing (L_attn_thr); an encoder has none apart.
    pub attention: Curve,
    /// Bytes of parameters, gradients and optimizer.
    pub state: StateTable,
    /// Bytes that one microbatch keeps for its backward, by effective batch or packed length.
    pub activation: ActivationTable,
}

/// model_state(l, TP): linear in the layers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StateTable {
    /// Each layer's on a device.
    pub layer: Held,
    /// What stands at the one end of the module.
    pub first: Held,
    /// What stands at the other.
    pub last: Held,
}

/// Model states on a device, before replicas divide some of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Held {
    /// Bytes with one replica.
    pub bytes: f64,
    /// The share of them that replicas divide among them (ZeRO); 0 as published. What is frozen has weights alone, so the parts of a
    /// module may differ.
    pub sharded: f64,
}

impl Held {
    /// Bytes that every replica holds whole.
    pub const fn whole(bytes: f64) -> Self {
        Self { bytes, sharded: 0.0 }
    }

    /// Bytes with `data` replicas.
    pub fn among(self, data: u32) -> f64 {
        self.bytes * (1.0 - self.sharded) + self.bytes * self.sharded / f64::from(data)
    }
}

/// act_state(l, TP, size): linear in the layers, by a curve over the size each.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivationTable {
    /// Each layer's bytes, for every microbatch that is kept.
    pub layer: Curve,
    /// What a device holds once, whatever is kept: logits, buffers of the backward.
    pub fixed: Curve,
}

impl StateTable {
    /// From two stages with one and the other number of layers (section 3.2.1): layers, bytes.
    pub fn between((few, low): (f64, f64), (many, high): (f64, f64)) -> Self {
        let layer = (high - low) / (many - few);
        Self { layer: Held::whole(layer), first: Held::whole(low - few * layer), last: Held::default() }
    }

    /// Bytes of a stage of `layers` layers, of all that the module has where `whole`, with `data` replicas.
    pub fn bytes(&self, layers: u32, whole: bool, data: u32) -> f64 {
        let (first, last) = (self.first.among(data), self.last.among(data));
        let ends = if whole { first + last } else { first.max(last) };
        self.layer.among(data) * f64::from(layers) + ends
    }
}

impl ActivationTable {
    /// Bytes of a stage of `layers` layers that keeps `kept` microbatches of that size.
    pub fn bytes(&self, (layers, kept): (u32, u32), size: f64) -> f64 {
        self.layer.extended(size) * f64::from(layers) * f64::from(kept) + self.fixed.extended(size)
    }

    /// At least, for sizes of a range.
    pub fn least(&self, (layers, kept): (u32, u32), from: f64, to: f64) -> f64 {
        self.layer.least(from, to) * f64::from(layers) * f64::from(kept) + self.fixed.least(from, to)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "small sums of numbers that are exact")]
mod tests {
    use super::*;

    /// 2 layers 140, 4 layers 180: 20 each and 100 besides.
    #[test]
    fn states_are_linear_in_the_layers() {
        let state = StateTable::between((2.0, 140.0), (4.0, 180.0));
        assert_eq!(state.bytes(10, false, 1), 300.0);
        // Three quarters dealt over 3 replicas: 75 + 75.
        let sharded = |held: Held| Held { sharded: 0.75, ..held };
        let dealt = StateTable { layer: sharded(state.layer), first: sharded(state.first), ..state };
        assert_eq!(dealt.bytes(10, false, 3), 150.0);
        // Both ends where one stage is the whole module, else the larger.
        let [layer, first, last] = [1.0, 5.0, 7.0].map(Held::whole);
        let ends = StateTable { layer, first, last };
        assert_eq!((ends.bytes(4, true, 1), ends.bytes(2, false, 1)), (16.0, 9.0));
    }

    /// 3 layers of 2 + 4 size for each of two microbatches, and 10 besides, beyond the measured sizes too.
    #[test]
    fn activations_grow_with_layers_and_size() {
        let layer = Curve::new(vec![(0.0, 2.0), (1.0, 6.0)]).unwrap();
        let table = ActivationTable { layer, fixed: Curve::constant(10.0) };
        assert_eq!(table.bytes((3, 2), 5.0), 6.0 * 22.0 + 10.0);
        assert_eq!(table.least((3, 2), 2.0, 5.0), 6.0 * 10.0 + 10.0);
    }
}
