//! Operator names for overrides.

use std::collections::BTreeSet;

use super::LAYER;
use crate::cost::graph::{self, Shape};
use crate::cost::load::ModuleLoad;
use planscope_core::model::presets::models;
use planscope_core::model::{Adapters, Bias, Diffusion, Module, Moe};
use planscope_core::training::{AttentionKernel, Training};

/// Names of all operators in any module under any settings, and the name for the full layer.
///
/// The names come from operator graphs of the preset modules, both unchanged and with all optional
/// features. The settings include every operator: groups with several devices, both attention
/// kernels, and a separate gradient accumulation kernel.
pub fn operator_names() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::from([LAYER]);
    let load = ModuleLoad::unpadded(1024.0, 1_048_576.0);
    let modules = models().into_iter().flat_map(|preset| preset.model.modules);
    for module in modules.flat_map(|module| [with_adapters(&module), with_all_features(&module), module]) {
        for attention in [AttentionKernel::Flash, AttentionKernel::Unfused] {
            let training = Training {
                attention,
                sequence_parallel: true,
                fused_weight_gradients: false,
                context_parallel: 2,
                expert_parallel: 2,
                ..Training::default()
            };
            for kind in module.layer_kinds() {
                let shape = Shape::of_kind(&module, kind, (&training, 2.0), load);
                for build in [graph::input, graph::layer, graph::output, graph::prediction] {
                    names.extend(build(&shape).operators.iter().map(|operator| operator.name));
                }
            }
        }
    }
    names
}

/// Adds adapters to all linear layers.
fn with_adapters(module: &Module) -> Module {
    Module { adapters: Some(Adapters { rank: 16, mlp: true, base_bits: None }), ..module.clone() }
}

/// Adds experts, modulation, cross-attention, dropout, biases, and a projection for modules with
/// patches.
fn with_all_features(module: &Module) -> Module {
    let mut module = module.clone();
    module.moe = Some(Moe::new(8, 2));
    module.diffusion = Some(Diffusion { text_tokens: 64, modulation: true });
    module.dropout = true;
    module.bias = Bias::All;
    if let Some(patch) = &mut module.patch {
        patch.projected_width = Some(module.hidden);
    }
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario files contain these names. Renaming an operator breaks stored scenarios.
    #[test]
    fn operator_names_are_stable() {
        let names = operator_names().into_iter().collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(names, @r"
        accumulate gradient
        activation
        adapter down
        adapter up
        add adapter
        add gradients
        add shared expert
        attention
        attention residual
        bias gradient
        combine from experts
        context
        context ring
        convolution
        cross attention
        cross keys and values
        cross projection
        cross query
        cross residual
        dispatch to experts
        dropout
        embedding
        embedding dropout
        final norm
        gated norm
        gather latent
        gather sequence
        input norm
        item projection
        key gradient
        key-value down
        key-value up
        latent norm
        layer
        linear attention
        linear attention input
        loss
        merge and project
        merge ring blocks
        mlp down
        mlp norm
        mlp residual
        mlp up
        modulate
        modulation
        order by expert
        output head
        permute from experts
        permute to experts
        prediction norm
        prediction projection
        projection
        qkv
        query down
        query gradient
        query up
        reduce latent gradient
        reduce partial sums
        residual gradient
        rotary positions
        router
        router gradient
        router top-k
        score dropout
        scores
        shared expert down
        shared expert up
        softmax
        sum over vocabulary
        value gradient
        ");
    }
}
