//! Model state memory (docs/models.md, section 5). The operator graph computes activation memory.

use planscope_core::training::{GradientFormat, Shards, Training};

/// Model state in bytes per parameter and device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StateBytes {
    /// Weights in compute precision.
    pub weights: f64,
    /// Accumulated gradients.
    pub gradients: f64,
    /// Master weights and moments on the device, and what the update allocates.
    pub optimizer: f64,
    /// Master weights and moments in host memory, with offload of parameters also weights and gradients, with the offload
    /// of `DeepSpeed` from ZeRO 2 on also gradients.
    pub host: f64,
}

impl StateBytes {
    /// Computes the state for `shards` devices that ZeRO shards over. Stage 1 shards the optimizer
    /// state, stage 2 also gradients, stage 3 also weights.
    pub fn new(training: &Training, shards: f64) -> Self {
        let stage = training.zero_stage();
        let share = |from: u32| if stage >= from { shards } else { 1.0 };
        // Gradients in the format of the weights have no second copy.
        let is_long = training.gradients == GradientFormat::Fp32;
        let copy = if is_long { training.profile().gradient_copy_bytes } else { 0.0 };
        // FSDP stores the shards in fp32 alone. Of these bytes, those of the compute precision count as weights.
        let master = training.master_bytes();
        let master = if shards_masters_alone(training) { master - training.width() } else { master };
        let state = (master + training.moment_bytes()) / share(1);
        let (weights, gradients) = (training.width() / share(3), training.gradients.bytes() / share(2) + copy);
        let unsharded = if training.unsharded_gradients && stage >= 2 && shards > 1.0 { training.width() } else { 0.0 };
        if training.offloads_parameters() {
            return Self { weights: 0.0, gradients: unsharded, optimizer: 0.0, host: weights + gradients + state };
        }
        let (gradients, on_host) = if training.offloads_gradients() { (0.0, gradients) } else { (gradients, 0.0) };
        Self {
            weights,
            gradients: gradients + unsharded,
            optimizer: state * (1.0 - training.optimizer_offload) + training.profile().update_bytes / share(1),
            host: state * training.optimizer_offload + on_host,
        }
    }

    /// Returns the sum of weights, gradients and optimizer state on the device.
    pub fn total(self) -> f64 {
        self.weights + self.gradients + self.optimizer
    }
}

/// True if the shards of trained weights are master weights alone, whatever the format of the products.
pub(super) fn shards_masters_alone(training: &Training) -> bool {
    let is_masters = training.profile().shards == Shards::Masters;
    training.zero_stage() == 3 && is_masters && training.master_bytes() >= training.width()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::ModuleLoad;
    use crate::cost::graph::{self, Repeat, Shape};
    use planscope_core::model::presets::model;
    use planscope_core::training::{AttentionKernel, Framework, MasterWeights, Precision};

    /// Korthikanti et al. Eq. 2, Eq. 4, Sec. 5 for GPT-3 175B (a = 96, s = 2048, h = 12288, t = 8).
    #[test]
    fn gpt_layer_memory_matches_published_formulas() {
        let module = &model("gpt-3-175b").unwrap().modules[0];
        let (s, h) = (2048.0, 12_288.0);
        let load = ModuleLoad::unpadded(s, s * s);
        let unfused = Training { attention: AttentionKernel::Unfused, sequence_parallel: false, ..Training::default() };
        let stored = |training: &Training, repeat| {
            graph::layer(&Shape::new(module, training, 8.0, load)).lifetimes(repeat).stored / (s * h)
        };
        let nothing = stored(&unfused, Repeat::Nothing);
        assert!((nothing - (10.0 + 24.0 / 8.0 + 5.0 * 96.0 * s / (h * 8.0))).abs() < 1e-9, "{nothing}");
        let parallel = Training { sequence_parallel: true, ..unfused.clone() };
        assert!((stored(&parallel, Repeat::Nothing) - (34.0 / 8.0 + 5.0 * 96.0 * s / (h * 8.0))).abs() < 1e-9);
        assert!((stored(&parallel, Repeat::Core) - 34.0 / 8.0).abs() < 1e-9);
        assert!((stored(&unfused, Repeat::All) - 2.0).abs() < 1e-9);
    }

    /// Transformer Engine stores the inputs of the four products in a byte per value, and the attention needs its output in
    /// two: of 34 s h bytes of GPT, 2 + 2 + 8 become 1 + 1 + 4, and 1 is new. torchao stores bf16.
    #[test]
    fn fp8_products_store_their_inputs_in_fp8() {
        let module = &model("gpt-3-175b").unwrap().modules[0];
        let (s, h) = (2048.0, 12_288.0);
        let load = ModuleLoad::unpadded(s, s * s);
        let bf16 = Training { attention: AttentionKernel::Flash, ..Training::default() };
        let stored = |training: &Training| {
            graph::layer(&Shape::new(module, training, 1.0, load)).lifetimes(Repeat::Nothing).stored / (s * h)
        };
        let difference = |training: Training| stored(&training) - stored(&bf16);
        let fp8 = Training { precision: Precision::Fp8, ..bf16.clone() };
        assert!((difference(fp8.clone()) - (-6.0 + 1.0)).abs() < 1e-9, "{}", difference(fp8.clone()));
        // The input of the activation function has 4 h values.
        let activation = Training { fp8_activation_input: true, ..fp8.clone() };
        assert!((difference(activation.clone()) - (-5.0 - 4.0)).abs() < 1e-9, "{}", difference(activation));
        let torchao = |precision| Training { framework: Framework::Fsdp, precision, ..bf16.clone() };
        assert!((stored(&torchao(Precision::Fp8)) - stored(&torchao(Precision::Bf16))).abs() < 1e-9);
    }

    #[test]
    fn each_zero_stage_shards_another_state_part() {
        let bytes = |zero| StateBytes::new(&Training { zero: Some(zero), ..Training::default() }, 4.0).total();
        for (stage, expected) in [(0, 18.0), (1, 9.0), (2, 6.0), (3, 4.5)] {
            assert!((bytes(stage) - expected).abs() < 1e-12, "stage {stage}");
        }
    }

    /// FSDP has no shards in bf16 next to the master weights; DeepSpeed has.
    #[test]
    fn fsdp_shards_master_weights_alone() {
        for (framework, zero, expected) in [
            (Framework::Torchtitan, 3, 4.0),
            (Framework::HuggingFace, 3, 4.0),
            (Framework::Deepspeed, 3, 4.5),
            (Framework::Torchtitan, 2, 6.0),
        ] {
            let bytes = StateBytes::new(&Training { zero: Some(zero), framework, ..Training::default() }, 4.0).total();
            assert!((bytes - expected).abs() < 1e-12, "{framework:?} {zero}: {bytes}");
        }
        let pure = Training { master_weights: MasterWeights::None, framework: Framework::Fsdp, ..Training::default() };
        assert!((StateBytes::new(&Training { zero: Some(3), ..pure }, 4.0).total() - 3.5).abs() < 1e-12);
    }

    /// FSDP without synchronization between microbatches holds whole gradients next to the shards.
    #[test]
    fn unsharded_gradients_have_the_format_of_the_weights() {
        let gradients = |zero, unsharded_gradients| {
            let training = Training { zero: Some(zero), unsharded_gradients, ..Training::default() };
            StateBytes::new(&training, 4.0).gradients
        };
        assert!((gradients(3, true) - 3.0).abs() < 1e-12 && (gradients(3, false) - 1.0).abs() < 1e-12);
        assert!((gradients(2, true) - 3.0).abs() < 1e-12 && (gradients(1, true) - 4.0).abs() < 1e-12);
    }

    /// `DeepSpeed` has its gradients next to the offloaded optimizer, from ZeRO 2 on.
    #[test]
    fn deepspeed_offloads_gradients_with_the_optimizer() {
        let state = |framework, zero, optimizer_offload| {
            StateBytes::new(&Training { framework, zero: Some(zero), optimizer_offload, ..Training::default() }, 4.0)
        };
        for (framework, zero, share, gradients, host) in [
            (Framework::Deepspeed, 2, 1.0, 0.0, 4.0),
            (Framework::Deepspeed, 3, 1.0, 0.0, 4.0),
            (Framework::MegatronDeepspeed, 2, 0.5, 0.0, 2.5),
            (Framework::Deepspeed, 1, 1.0, 4.0, 3.0),
            (Framework::Deepspeed, 2, 0.0, 1.0, 0.0),
            (Framework::Megatron, 2, 1.0, 1.0, 3.0),
        ] {
            let bytes = state(framework, zero, share);
            assert!((bytes.gradients - gradients).abs() < 1e-12, "{framework:?} {zero} {share}: {bytes:?}");
            assert!((bytes.host - host).abs() < 1e-12, "{framework:?} {zero} {share}: {bytes:?}");
        }
    }

    #[test]
    fn offloaded_parameters_are_in_host_memory() {
        let training = |zero| Training { zero: Some(zero), parameter_offload: true, ..Training::default() };
        let sharded = StateBytes::new(&training(3), 4.0);
        assert!(sharded.total().abs() < 1e-12 && (sharded.host - 4.5).abs() < 1e-12, "{sharded:?}");
        // Nothing is offloaded where weights are not sharded.
        let whole = StateBytes::new(&training(2), 4.0);
        assert!((whole.total() - 6.0).abs() < 1e-12 && whole.host.abs() < 1e-12, "{whole:?}");
    }
}
