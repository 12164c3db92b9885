//! Load of a microbatch per module.

pub mod instances;

pub use instances::Instances;

use super::partition::LayerRange;
use planscope_core::model::{Gradients, Model, Module, ModuleRole};
use planscope_core::timeline::MicrobatchShape;
use planscope_core::units::Flops;
use planscope_core::workload::preprocessed::{Encoded, ItemLengths, ItemSize};
use planscope_core::workload::{Packing, Sequence};

/// Load of a microbatch or sub-microbatch in a module.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModuleLoad {
    /// Computed tokens (or patches), including padding.
    pub tokens: f64,
    /// Sum of squared attention lengths, including padding.
    pub squared: f64,
    /// Tokens (or patches) without padding.
    pub useful_tokens: f64,
    /// Sum of squared attention lengths without padding.
    pub useful_squared: f64,
    /// Number of input or output items (images, clips); 0 for text. If the dataset contains item
    /// lengths, this is the equivalent number of items with the model's default size and the same
    /// number of merged tokens.
    pub items: f64,
}

/// Key of loads with equal costs.
pub(super) type LoadKey = [u64; 3];

impl ModuleLoad {
    /// Returns the key of the fields that costs depend on.
    pub(super) fn key(&self) -> LoadKey {
        [self.tokens, self.squared, self.items].map(f64::to_bits)
    }

    /// Creates a load without padding and without items.
    pub const fn unpadded(tokens: f64, squared: f64) -> Self {
        Self { tokens, squared, useful_tokens: tokens, useful_squared: squared, items: 0.0 }
    }

    /// Creates a load from `items` equal items. Attention acts within an item, `length` tokens
    /// long.
    fn equal_items(items: f64, length: f64) -> Self {
        Self { items, ..Self::unpadded(items * length, items * length * length) }
    }

    fn encoded(encoded: Encoded) -> Self {
        Self { items: encoded.items, ..Self::unpadded(encoded.tokens, encoded.squared) }
    }

    fn video(sequence: &Sequence) -> Self {
        Self {
            items: f64::from(sequence.video_clips),
            ..Self::unpadded(sequence.video_tokens as f64, sequence.video_squared as f64)
        }
    }

    /// Creates a text load. `length` is the padded sequence length, or `None` for packed sequences.
    fn text(sequence: &Sequence, length: Option<f64>) -> Self {
        let (tokens, squared) = match length {
            Some(length) => (length, length * length),
            None => (f64::from(sequence.computed_tokens), sequence.squared as f64),
        };
        let (useful_tokens, useful_squared) = (f64::from(sequence.tokens), sequence.useful_squared as f64);
        Self { tokens, squared, useful_tokens, useful_squared, items: 0.0 }
    }

    /// Returns the sum of two loads.
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

/// Loads of a microbatch in all modules, in model order.
#[derive(Debug, Clone, PartialEq)]
pub struct MicrobatchLoad {
    /// One load per module.
    pub modules: Vec<ModuleLoad>,
    /// Contents of the microbatch for display.
    pub shape: MicrobatchShape,
}

impl MicrobatchLoad {
    /// Computes the load of a microbatch. The backbone processes all tokens, a vision encoder
    /// images, an audio encoder audio clips, a generator images or video clips.
    pub fn new(sequences: &[Sequence], model: &Model, packing: Packing) -> Self {
        let shape = shape(sequences, packing);
        let module_load = |module: &Module| match (module.role, module.video) {
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
        Self { modules: model.modules.iter().map(module_load).collect(), shape }
    }

    /// Returns the number of tokens that enter the first layer of a module from its preceding
    /// modules: merged image and audio tokens from encoders, and the text for a video generator. An
    /// image generator receives its default number of tokens per image.
    pub fn entering(&self, model: &Model, module: usize) -> f64 {
        let entered = &model.modules[module];
        if entered.role == ModuleRole::Generator && entered.video.is_none() {
            return f64::from(self.shape.images) * f64::from(entered.backbone_tokens_per_item());
        }
        let handed_on = |(index, before): (usize, &Module)| match before.role {
            ModuleRole::Backbone => self.modules[index].tokens,
            // The backbone has already consumed the encoder outputs.
            _ if entered.role == ModuleRole::Generator => 0.0,
            ModuleRole::VisionEncoder | ModuleRole::AudioEncoder | ModuleRole::Generator => {
                self.modules[index].items * f64::from(before.backbone_tokens_per_item())
            }
        };
        model.modules.iter().enumerate().take(module).map(handed_on).sum()
    }

    /// Returns the model operations for forward and backward, without padding and recomputation:
    /// three times the forward, less the gradients that a frozen module does not compute
    /// (docs/models.md, section 2).
    pub fn model_flops(&self, model: &Model) -> Flops {
        let full_range = |(module, definition): (usize, &Module)| LayerRange::new(module, 0, definition.layers);
        model.modules.iter().enumerate().map(|entry| self.range_flops(model, full_range(entry))).sum()
    }

    /// Returns the model operations for a layer range, including the output head if the range
    /// contains the last layer.
    pub fn range_flops(&self, model: &Model, range: LayerRange) -> Flops {
        let (module, load) = (&model.modules[range.module], &self.modules[range.module]);
        let (tokens, squared) = (load.useful_tokens, load.useful_squared);
        let layer = |kind| module.kind_linear_flops(kind, tokens) + module.kind_attention_flops(kind, tokens, squared);
        let kinds = module.layer_kinds();
        let counts = module.count_kinds(&kinds, range.first, range.end);
        let layers = kinds.iter().zip(counts).map(|(&kind, count)| layer(kind) * f64::from(count));
        let layers = layers.fold(Flops::new(0.0), |sum, flops| sum + flops);
        let head = if range.ends(model) {
            let ahead = module.prediction_linear_flops(tokens) + module.prediction_attention_flops(tokens, squared);
            module.head_flops(tokens) + ahead
        } else {
            Flops::new(0.0)
        };
        let passes = match model.module_gradients(range.module) {
            // Frozen weights have no weight gradients.
            Gradients::All if module.adapters.is_some() => 2.0,
            Gradients::All => 3.0,
            Gradients::Inputs => 2.0,
            Gradients::None => 1.0,
        };
        (layers + head) * passes
    }
}

/// Returns the encoder load for `count` items.
fn read(sequences: &[Sequence], count: u32, lengths: instances::LengthAccessor, module: &Module) -> ModuleLoad {
    let mut all = ItemLengths::default();
    for sequence in sequences {
        all.join(lengths(sequence));
    }
    ModuleLoad::encoded(all.encoded((count, count), ItemSize::from_module(module)))
}

/// Returns the padded length: the maximum sequence length in the microbatch, or `None` for packed
/// sequences.
fn common_length(sequences: &[Sequence], packing: Packing) -> Option<f64> {
    let max_length = sequences.iter().map(|sequence| sequence.computed_tokens).max().unwrap_or(0);
    match packing {
        Packing::Single | Packing::Padded => Some(f64::from(max_length)),
        Packing::Packed => None,
    }
}

/// Summarizes the contents of sequences for display.
fn shape(sequences: &[Sequence], packing: Packing) -> MicrobatchShape {
    let length = common_length(sequences, packing);
    let items = |count: fn(&Sequence) -> u32| sequences.iter().map(count).fold(0, u32::saturating_add);
    MicrobatchShape {
        samples: sequences.iter().map(|sequence| sequence.samples).sum(),
        tokens: ModuleLoad::sum(sequences.iter().map(|sequence| ModuleLoad::text(sequence, length))).tokens as u32,
        images: items(|sequence| sequence.images),
        audio_clips: items(|sequence| sequence.audio_clips),
        video_ms: sequences.iter().map(|sequence| sequence.video_ms).sum(),
    }
}

/// Splits sequences in order into microbatches with `size` sequences. The last microbatch can be
/// smaller.
pub fn microbatches(sequences: &[Sequence], size: u32, model: &Model, packing: Packing) -> Vec<MicrobatchLoad> {
    sequences.chunks(size as usize).map(|chunk| MicrobatchLoad::new(chunk, model, packing)).collect()
}

#[cfg(test)]
mod tests;
