//! What a microbatch asks of each module.

use crate::model::{Model, ModuleRole};
use crate::timeline::MicrobatchShape;
use crate::units::Flops;
use crate::workload::{Packing, Sequence};

/// What a microbatch asks of one module.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModuleLoad {
    /// Tokens (or patches) computed, padding included.
    pub tokens: f64,
    /// Sum of squared lengths between which attention acts.
    pub squared: f64,
    /// Tokens (or patches) that carry data.
    pub useful_tokens: f64,
    /// Sum of squared lengths without padding.
    pub useful_squared: f64,
}

/// What a microbatch asks of every module, in the model's order.
#[derive(Debug, Clone, PartialEq)]
pub struct MicrobatchLoad {
    /// One load per module.
    pub modules: Vec<ModuleLoad>,
    /// What it holds, for people.
    pub shape: MicrobatchShape,
}

impl MicrobatchLoad {
    /// The load of the sequences of one microbatch. Sequences that are not packed are padded to the longest.
    pub fn of(sequences: &[Sequence], model: &Model, packing: Packing) -> Self {
        let longest = f64::from(sequences.iter().map(|sequence| sequence.computed_tokens).max().unwrap_or(0));
        let text = match packing {
            Packing::Single | Packing::Padded => {
                let count = sequences.len() as f64;
                (longest * count, longest * longest * count)
            }
            Packing::Packed => (
                sequences.iter().map(|sequence| f64::from(sequence.computed_tokens)).sum(),
                sequences.iter().map(|sequence| sequence.squared as f64).sum(),
            ),
        };
        let useful_tokens: f64 = sequences.iter().map(|sequence| f64::from(sequence.tokens)).sum();
        let useful_squared = sequences.iter().map(|sequence| sequence.useful_squared as f64).sum();
        let images = sequences.iter().fold(0_u32, |sum, sequence| sum.saturating_add(sequence.images));
        let modules = model
            .modules
            .iter()
            .map(|module| match module.role {
                ModuleRole::Backbone => ModuleLoad { tokens: text.0, squared: text.1, useful_tokens, useful_squared },
                ModuleRole::VisionEncoder | ModuleRole::AudioEncoder | ModuleRole::Generator => {
                    let patches = f64::from(module.tokens_per_item());
                    let (tokens, squared) = (f64::from(images) * patches, f64::from(images) * patches * patches);
                    ModuleLoad { tokens, squared, useful_tokens: tokens, useful_squared: squared }
                }
            })
            .collect();
        let samples = sequences.iter().map(|sequence| sequence.samples).sum();
        Self { modules, shape: MicrobatchShape { samples, tokens: text.0 as u32, images } }
    }

    /// Model operations of forward and backward, padding and recomputation not counted: three times the
    /// forward (docs/models.md, section 2).
    pub fn model_flops(&self, model: &Model) -> Flops {
        let forward = model.modules.iter().zip(&self.modules).map(|(module, load)| {
            let layer =
                module.layer_linear_flops(load.useful_tokens) + module.layer_attention_flops(load.useful_squared);
            layer * f64::from(module.layers) + module.head_flops(load.useful_tokens)
        });
        forward.sum::<Flops>() * 3.0
    }
}

/// Cuts sequences into microbatches of `size`, in order; the last may be smaller.
pub fn microbatches(sequences: &[Sequence], size: u32, model: &Model, packing: Packing) -> Vec<MicrobatchLoad> {
    sequences.chunks(size as usize).map(|chunk| MicrobatchLoad::of(chunk, model, packing)).collect()
}
