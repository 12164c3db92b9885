//! Preprocessed media: encoder items that have individual lengths.

use serde::{Deserialize, Serialize};

use crate::model::{Model, Module};
use crate::workload::InputShape;
use crate::workload::preprocessing::Preprocessing;

/// Qwen2-VL patch size in pixels; `NATIVE_MERGED` is the number of patches per token.
const NATIVE_PATCH_PX: u32 = 14;
const NATIVE_MERGED: u32 = 4;

/// Item lengths per sample for a dataset with preprocessed media.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ShapedItems {
    /// Preprocessing rule.
    pub preprocessing: Preprocessing,
    /// Encoder tokens per sample.
    pub encoder_tokens: Vec<u32>,
    /// Sum of squared item lengths in the encoder, per sample.
    pub encoder_squared: Vec<u64>,
    /// Backbone tokens per sample. Together with the text tokens they form s(d).
    pub backbone_tokens: Vec<u32>,
}

impl ShapedItems {
    /// Creates an empty set.
    pub const fn new(preprocessing: Preprocessing) -> Self {
        Self { preprocessing, encoder_tokens: Vec::new(), encoder_squared: Vec::new(), backbone_tokens: Vec::new() }
    }

    /// Adds a preprocessed sample that has the given text length.
    pub fn push(&mut self, shape: &InputShape, text_tokens: u32) {
        let saturated = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let lengths = || shape.encoder.iter().map(|&length| u64::from(length));
        self.encoder_tokens.push(saturated(lengths().sum()));
        self.encoder_squared.push(lengths().map(|length| length * length).fold(0, u64::saturating_add));
        self.backbone_tokens.push(saturated(shape.backbone.saturating_sub(u64::from(text_tokens))));
    }

    /// Returns the item lengths for a sample, or `None` if the index is out of range.
    pub fn get(&self, sample: usize) -> Option<Shaped> {
        Some(Shaped {
            modality: self.preprocessing.modality(),
            encoder_tokens: *self.encoder_tokens.get(sample)?,
            encoder_squared: *self.encoder_squared.get(sample)?,
            backbone_tokens: *self.backbone_tokens.get(sample)?,
        })
    }

    /// Returns a warning if the model's encoder would preprocess the media differently. `None` if
    /// not, or if the model does not support the media.
    pub fn mismatch(&self, model: &Model) -> Option<String> {
        let rule = self.preprocessing;
        let encoder = match rule.modality() {
            Modality::Images => model.images(),
            Modality::Clips => model.sound(),
        }?;
        let model_tokens = encoder.tokens_per_item();
        let reason = match rule.item_tokens() {
            Some(length) if length != model_tokens => {
                format!("items of {length} tokens in the encoder, where those of {} have {model_tokens}", encoder.name)
            }
            None => {
                let patch_px = encoder.patch.map_or(NATIVE_PATCH_PX, |patch| patch.patch_px);
                // Learned position embeddings support a fixed resolution.
                let reads_any = encoder.learned_positions == 0 && encoder.merged_patches() == NATIVE_MERGED;
                match (patch_px == NATIVE_PATCH_PX, reads_any) {
                    (true, true) => return None,
                    (true, false) => {
                        format!(
                            "images in their own resolution, where those of {} have {model_tokens} tokens in the encoder",
                            encoder.name
                        )
                    }
                    (false, _) => {
                        format!("patches of {NATIVE_PATCH_PX} pixels, where {} reads {patch_px}", encoder.name)
                    }
                }
            }
            _ => return None,
        };
        Some(format!(
            "The dataset was read by the rule of {}: {reason}. It is planned as the dataset says; upload the file by another rule for what {} would \
             make of it.",
            rule.title(),
            model.name
        ))
    }
}

/// Media type supported by a preprocessing rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    /// Images and video frames.
    Images,
    /// Audio clips.
    Clips,
}

/// Lengths of all images, or all clips, in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Shaped {
    /// Item type.
    pub modality: Modality,
    /// Encoder tokens.
    pub encoder_tokens: u32,
    /// Sum of squared lengths in the encoder.
    pub encoder_squared: u64,
    /// Backbone tokens.
    pub backbone_tokens: u32,
}

impl Shaped {
    /// Returns the lengths of the first `kept` of `all` items, assuming equal lengths.
    fn part(self, retained: u32, all: u32) -> Self {
        let share = |value: u64| (u128::from(value) * u128::from(retained) / u128::from(all.max(1))) as u64;
        Self {
            encoder_tokens: share(self.encoder_tokens.into()) as u32,
            encoder_squared: share(self.encoder_squared),
            backbone_tokens: share(self.backbone_tokens.into()) as u32,
            ..self
        }
    }
}

/// Totals for items that have dataset-specified lengths. Other items use the model's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ItemLengths {
    /// Items with specified lengths.
    pub items: u32,
    /// Encoder tokens.
    pub tokens: u64,
    /// Sum of squared lengths in the encoder.
    pub squared: u64,
    /// Backbone tokens.
    pub backbone_tokens: u64,
}

impl ItemLengths {
    /// Adds another set of items.
    pub fn join(&mut self, other: &Self) {
        self.items += other.items;
        self.tokens += other.tokens;
        self.squared = self.squared.saturating_add(other.squared);
        self.backbone_tokens += other.backbone_tokens;
    }

    /// Returns the encoder load for `count` of `all` items, including the equivalent number of
    /// model-length items. The function uses the mean length for items that have different lengths.
    pub fn encoded(&self, (count, all): (u32, u32), item_size: ItemSize) -> Encoded {
        let length = item_size.encoder;
        if self.items == 0 {
            let items = f64::from(count);
            return Encoded { items, tokens: items * length, squared: items * length * length };
        }
        let share = f64::from(count) / f64::from(all.max(1));
        let rest = f64::from(all.saturating_sub(self.items)) * share;
        let handed_on = self.backbone_tokens as f64 / item_size.backbone.max(1.0);
        Encoded {
            items: rest + handed_on * share,
            tokens: rest * length + self.tokens as f64 * share,
            squared: rest * length * length + self.squared as f64 * share,
        }
    }
}

/// A model's item length in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemSize {
    /// Encoder tokens.
    pub encoder: f64,
    /// Backbone tokens.
    pub backbone: f64,
}

impl ItemSize {
    /// Returns the item length for an encoder.
    pub fn from_module(module: &Module) -> Self {
        Self { encoder: module.tokens_per_item().into(), backbone: module.backbone_tokens_per_item().into() }
    }
}

/// Encoder load.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Encoded {
    /// Equivalent number of items at the model's length, i.e. with the same backbone tokens.
    pub items: f64,
    /// Encoder tokens.
    pub tokens: f64,
    /// Sum of squared lengths.
    pub squared: f64,
}

/// Items of a modality that fit into the remaining tokens of a sequence.
pub(crate) struct Fitted {
    /// Number of complete items.
    pub(crate) count: u32,
    /// Tokens in the sequence.
    pub(crate) tokens: u32,
    /// Lengths, if the dataset specifies them.
    pub(crate) lengths: ItemLengths,
}

impl Fitted {
    /// Fits `count` items into `room` tokens. `each` is the item length if the dataset specifies
    /// none.
    pub(crate) fn new(count: u32, capacity: u32, each: u32, shaped: Option<Shaped>) -> Self {
        let Some(shaped) = shaped.filter(|_| each > 0) else {
            let count = count.min(capacity.checked_div(each).unwrap_or(u32::MAX));
            return Self { count, tokens: count * each, lengths: ItemLengths::default() };
        };
        let retained = if shaped.backbone_tokens <= capacity {
            count
        } else {
            (u64::from(count) * u64::from(capacity) / u64::from(shaped.backbone_tokens)) as u32
        };
        let part = if retained == count { shaped } else { shaped.part(retained, count) };
        let lengths = ItemLengths {
            items: retained,
            tokens: part.encoder_tokens.into(),
            squared: part.encoder_squared,
            backbone_tokens: part.backbone_tokens.into(),
        };
        Self { count: retained, tokens: part.backbone_tokens, lengths }
    }
}

#[cfg(test)]
mod tests;
