//! Operator names for overrides.

use std::collections::BTreeSet;

use super::LAYER;
use crate::cost::graph::{self, Shape};
use crate::cost::load::ModuleLoad;
use planscope_core::model::presets::models;
use planscope_core::model::{Bias, Diffusion, Module, Moe};
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
    for module in modules.flat_map(|module| [with_all_features(&module), module]) {
        for attention in [AttentionKernel::Flash, AttentionKernel::Unfused] {
            let training = Training {
                attention,
                sequence_parallel: true,
                fused_weight_gradients: false,
                context_parallel: 2,
                expert_parallel: 2,
                ..Training::default()
            };
            let shape = Shape::new(&module, &training, 2.0, load);
            for build in [graph::input, graph::layer, graph::output] {
                names.extend(build(&shape).operators.iter().map(|operator| operator.name));
            }
        }
    }
    names
}

/// Adds experts, modulation, cross-attention, dropout, biases, and a projection for modules with
/// patches.
fn with_all_features(module: &Module) -> Module {
    let mut module = module.clone();
    module.moe = Some(Moe { experts: 8, top_k: 2 });
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
        attention
        attention residual
        bias gradient
        combine from experts
        context
        context ring
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
        gather sequence
        input norm
        item projection
        key gradient
        layer
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
        projection
        qkv
        query gradient
        reduce partial sums
        residual gradient
        rotary positions
        router
        router gradient
        router top-k
        score dropout
        scores
        softmax
        sum over vocabulary
        value gradient
        ");
    }
}
