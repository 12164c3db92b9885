//! What a microbatch asks of each module.

pub mod instances;

pub use instances::Instances;

use super::partition::LayerRange;
use crate::model::{Gradients, Model, Module, ModuleRole};
use crate::timeline::MicrobatchShape;
use crate::units::Flops;
use crate::workload::shaped::{Encoded, ItemLengths, ItemSize};
use crate::workload::{Packing, Sequence};

/// What a microbatch, or a part of it, asks of one module.
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
    /// Items (images, clips) that the module reads or makes; 0 for text. Where the data say how long items are, as many of the model's
    /// own as hand on the same tokens.
    pub items: f64,
}

impl ModuleLoad {
    /// Of tokens that all carry data, in no items of which something is asked by number.
    pub const fn unpadded(tokens: f64, squared: f64) -> Self {
        Self { tokens, squared, useful_tokens: tokens, useful_squared: squared, items: 0.0 }
    }

    /// Of `items` that are each `length` tokens long and attend to themselves.
    fn equal_items(items: f64, length: f64) -> Self {
        Self { items, ..Self::unpadded(items * length, items * length * length) }
    }

    /// Of what an encoder computes.
    fn encoded(encoded: Encoded) -> Self {
        Self { items: encoded.items, ..Self::unpadded(encoded.tokens, encoded.squared) }
    }

    /// Of clips of video.
    fn video(sequence: &Sequence) -> Self {
        Self {
            items: f64::from(sequence.video_clips),
            ..Self::unpadded(sequence.video_tokens as f64, sequence.video_squared as f64)
        }
    }

    /// Of the text of a sequence that is computed over `length` tokens where the packing rule pads to a common length.
    fn text(sequence: &Sequence, length: Option<f64>) -> Self {
        let (tokens, squared) = match length {
            Some(length) => (length, length * length),
            None => (f64::from(sequence.computed_tokens), sequence.squared as f64),
        };
        let (useful_tokens, useful_squared) = (f64::from(sequence.tokens), sequence.useful_squared as f64);
        Self { tokens, squared, useful_tokens, useful_squared, items: 0.0 }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            squared: self.squared + other.squared,
            useful_tokens: self.useful_tokens + other.useful_tokens,
            useful_squared: self.useful_squared + other.useful_squared,
            items: self.items + other.items,
        }
    }

    fn sum(loads: impl Iterator<Item = Self>) -> Self {
        loads.fold(Self::default(), Self::and)
    }
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
    /// The load of the sequences of one microbatch, each module by what it reads or makes: the backbone all tokens,
    /// a vision encoder the images, an audio encoder the clips of sound, a generator the images or the clips of video.
    pub fn of(sequences: &[Sequence], model: &Model, packing: Packing) -> Self {
        let shape = shape(sequences, packing);
        let of_module = |module: &Module| match (module.role, module.video) {
            (ModuleRole::Backbone, _) => {
                let length = common_length(sequences, packing);
                ModuleLoad::sum(sequences.iter().map(|sequence| ModuleLoad::text(sequence, length)))
            }
            (ModuleRole::Generator, Some(_)) => ModuleLoad::sum(sequences.iter().map(ModuleLoad::video)),
            (ModuleRole::Generator, None) => {
                ModuleLoad::equal_items(f64::from(shape.images), f64::from(module.tokens_per_item()))
            }
            (ModuleRole::VisionEncoder, _) => read(sequences, shape.images, |sequence| &sequence.image_lengths, module),
            (ModuleRole::AudioEncoder, _) => {
                read(sequences, shape.audio_clips, |sequence| &sequence.clip_lengths, module)
            }
        };
        Self { modules: model.modules.iter().map(of_module).collect(), shape }
    }

    /// Tokens that travel into the first layer of a module from what stands before it: what the encoders made of
    /// images and sound, merged, and the text that a generator of video is to follow. A generator of images gets a
    /// token of each of its own.
    pub fn entering(&self, model: &Model, module: usize) -> f64 {
        let entered = &model.modules[module];
        if entered.role == ModuleRole::Generator && entered.video.is_none() {
            return f64::from(self.shape.images) * f64::from(entered.backbone_tokens_per_item());
        }
        let handed_on = |(index, before): (usize, &Module)| match before.role {
            ModuleRole::Backbone => self.modules[index].tokens,
            // Behind the backbone they have been read.
            _ if entered.role == ModuleRole::Generator => 0.0,
            ModuleRole::VisionEncoder | ModuleRole::AudioEncoder | ModuleRole::Generator => {
                self.modules[index].items * f64::from(before.backbone_tokens_per_item())
            }
        };
        model.modules.iter().enumerate().take(module).map(handed_on).sum()
    }

    /// Model operations of forward and backward, padding and recomputation not counted: three times the
    /// forward, less what a frozen module leaves out (docs/models.md, section 2).
    pub fn model_flops(&self, model: &Model) -> Flops {
        let whole = |(module, of): (usize, &Module)| LayerRange { module, first: 0, end: of.layers };
        model.modules.iter().enumerate().map(|of| self.range_flops(model, whole(of))).sum()
    }

    /// The same of some layers of one module, with the output head where it ends among them.
    pub fn range_flops(&self, model: &Model, range: LayerRange) -> Flops {
        let (module, load) = (&model.modules[range.module], &self.modules[range.module]);
        let layer = module.layer_linear_flops(load.useful_tokens) + module.layer_attention_flops(load.useful_squared);
        let head = if range.ends(model) { module.head_flops(load.useful_tokens) } else { Flops::new(0.0) };
        let passes = match model.gradients_of(range.module) {
            Gradients::All => 3.0,
            Gradients::Inputs => 2.0,
            Gradients::None => 1.0,
        };
        (layer * f64::from(range.len()) + head) * passes
    }
}

/// What an encoder computes for all of so many items.
fn read(sequences: &[Sequence], count: u32, lengths: instances::LengthsOf, module: &Module) -> ModuleLoad {
    let mut all = ItemLengths::default();
    for sequence in sequences {
        all.join(lengths(sequence));
    }
    ModuleLoad::encoded(all.encoded((count, count), ItemSize::of(module)))
}

/// The length to which every sequence of a microbatch is padded: that of the longest, unless sequences are packed.
fn common_length(sequences: &[Sequence], packing: Packing) -> Option<f64> {
    let longest = sequences.iter().map(|sequence| sequence.computed_tokens).max().unwrap_or(0);
    match packing {
        Packing::Single | Packing::Padded => Some(f64::from(longest)),
        Packing::Packed => None,
    }
}

/// What sequences hold together, for people.
fn shape(sequences: &[Sequence], packing: Packing) -> MicrobatchShape {
    let length = common_length(sequences, packing);
    let items = |of: fn(&Sequence) -> u32| sequences.iter().map(of).fold(0, u32::saturating_add);
    MicrobatchShape {
        samples: sequences.iter().map(|sequence| sequence.samples).sum(),
        tokens: ModuleLoad::sum(sequences.iter().map(|sequence| ModuleLoad::text(sequence, length))).tokens as u32,
        images: items(|sequence| sequence.images),
        audio_clips: items(|sequence| sequence.audio_clips),
        video_ms: sequences.iter().map(|sequence| sequence.video_ms).sum(),
    }
}

/// Cuts sequences into microbatches of `size`, in order; the last may be smaller.
pub fn microbatches(sequences: &[Sequence], size: u32, model: &Model, packing: Packing) -> Vec<MicrobatchLoad> {
    sequences.chunks(size as usize).map(|chunk| MicrobatchLoad::of(chunk, model, packing)).collect()
}

#[cfg(test)]
mod tests;
