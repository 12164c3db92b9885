//! Models, machines and training settings shared by several publications.

use planner::cluster::{Cluster, presets};
use planner::estimate::{Configuration, Estimate, estimate};
use planner::model::Model;
use planner::model::module::{Bias, Module, Norm};
use planner::outcome::Layout;
use planner::training::{AttentionKernel, GradientFormat, Recompute, Training};

use super::Error;

/// Size parameters of a GPT model in Megatron-LM.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gpt {
    pub(super) hidden: u32,
    pub(super) layers: u32,
    pub(super) heads: u32,
    pub(super) vocab: u32,
    pub(super) sequence_length: u32,
    pub(super) dropout: bool,
}

impl Gpt {
    /// Builds the model: MLP width 4h, layer norms, biases in all layers, learned positions, tied
    /// embeddings.
    pub(super) fn model(self, name: &str) -> Model {
        let module = Module {
            name: name.to_owned(),
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            kv_heads: self.heads,
            ffn: 4 * self.hidden,
            gated: false,
            norm: Norm::Layer,
            bias: Bias::All,
            dropout: self.dropout,
            vocab: self.vocab,
            tied_embeddings: true,
            learned_positions: self.sequence_length,
            ..Module::decoder()
        };
        Model { name: name.to_owned(), modules: vec![module] }
    }

    /// Operations per iteration according to Narayanan et al. (2021), section 5.1. `passes` is the
    /// work in forward passes: 4 with full recomputation (96 B s L h² ...), 3 without (72 B s L h²
    /// ...).
    pub(super) fn published_flops(self, global_batch: u32, passes: f64) -> f64 {
        let [b, s, l, h, v] = [global_batch, self.sequence_length, self.layers, self.hidden, self.vocab].map(f64::from);
        // The output head is never recomputed: 6 B s h V in both cases.
        24.0 * passes * b * s * l * h * h * (1.0 + s / (6.0 * h)) + 6.0 * b * s * h * v
    }
}

/// Builds a machine with this device count. Fewer than eight devices form a single node.
pub(super) fn machine(preset: &str, devices: u32) -> Result<Cluster, Error> {
    let cluster = presets::cluster(preset).ok_or_else(|| Error::row(preset, &"no such cluster preset"))?;
    if devices < cluster.devices_per_node {
        return Ok(Cluster { nodes: 1, devices_per_node: devices, ..cluster });
    }
    Ok(Cluster { nodes: devices / cluster.devices_per_node, ..cluster })
}

/// Megatron-LM settings in 2021: full recomputation, unfused attention, no overlap, gradient
/// reduction in the weight format.
pub(super) fn megatron_2021() -> Training {
    Training {
        recompute: Recompute::Full,
        attention: AttentionKernel::Unfused,
        sequence_parallel: false,
        distributed_optimizer: false,
        fused_weight_gradients: false,
        overlapped_backward: false,
        overlapped_sends: false,
        gradients: GradientFormat::Bf16,
        ..Training::default()
    }
}

/// Estimates a fully specified layout.
pub(crate) fn given(label: &str, configuration: &Configuration) -> Result<Estimate, Error> {
    estimate(configuration).map_err(|error| Error::row(label, &error))
}

/// Formats a layout.
pub(super) fn layout_label(layout: Layout) -> String {
    let Layout { tensor, pipeline, data, chunks, microbatch, .. } = layout;
    format!("TP {tensor}, PP {pipeline}, DP {data}, VPP {chunks}, microbatch {microbatch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published form with the head inside the bracket: 96 B s L h² (1 + s/6h + V/16Lh).
    #[test]
    fn operation_counts_match_the_published_formula() {
        let gpt = Gpt { hidden: 2304, layers: 24, heads: 24, vocab: 51_200, sequence_length: 2048, dropout: true };
        let (b, s, l, h, v) = (512.0, 2048.0, 24.0, 2304.0, 51_200.0);
        let all = 96.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
        let none = 72.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
        assert!((gpt.published_flops(512, 4.0) / all - 1.0).abs() < 1e-12);
        assert!((gpt.published_flops(512, 3.0) / none - 1.0).abs() < 1e-12);
    }
}
