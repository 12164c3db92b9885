//! What a preprocessing rule made of the media of samples: items of the encoder, with lengths of their own.

use serde::{Deserialize, Serialize};

use crate::data_aware::{InputShape, Preprocessing};
use crate::model::{Model, Module};

/// Qwen2-VL's patches, and how many of them are one token.
const NATIVE_PATCH_PX: u32 = 14;
const NATIVE_MERGED: u32 = 4;

/// What stands beside the counts of a dataset whose media were read by a rule, a value a sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ShapedItems {
    /// The rule.
    pub preprocessing: Preprocessing,
    /// Tokens that the encoder computes for all items of each sample.
    pub encoder_tokens: Vec<u32>,
    /// Sum of the squared lengths of these items in the encoder.
    pub encoder_squared: Vec<u64>,
    /// Tokens of all items in the backbone's sequence; with the text of the sample they are s(d).
    pub backbone_tokens: Vec<u32>,
}

impl ShapedItems {
    /// No sample yet.
    pub const fn new(preprocessing: Preprocessing) -> Self {
        Self { preprocessing, encoder_tokens: Vec::new(), encoder_squared: Vec::new(), backbone_tokens: Vec::new() }
    }

    /// Takes what the rule made of a sample with so much text.
    pub fn push(&mut self, shape: &InputShape, text_tokens: u32) {
        let whole = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let lengths = || shape.encoder.iter().map(|&length| u64::from(length));
        self.encoder_tokens.push(whole(lengths().sum()));
        self.encoder_squared.push(lengths().map(|length| length * length).fold(0, u64::saturating_add));
        self.backbone_tokens.push(whole(shape.backbone.saturating_sub(u64::from(text_tokens))));
    }

    /// What it says of a sample; `None` beyond the last.
    pub fn of(&self, sample: usize) -> Option<Shaped> {
        Some(Shaped {
            modality: self.preprocessing.modality(),
            encoder_tokens: *self.encoder_tokens.get(sample)?,
            encoder_squared: *self.encoder_squared.get(sample)?,
            backbone_tokens: *self.backbone_tokens.get(sample)?,
        })
    }

    /// Why a model's own encoder would make something else of the media; `None` where it would not, or reads none.
    pub fn misfit(&self, model: &Model) -> Option<String> {
        let rule = self.preprocessing;
        let encoder = match rule.modality() {
            Modality::Images => model.images(),
            Modality::Clips => model.sound(),
        }?;
        let own = encoder.tokens_per_item();
        let told = match rule.item_tokens() {
            Some(length) if length != own => {
                format!("items of {length} tokens in the encoder, where those of {} have {own}", encoder.name)
            }
            None => {
                let patch_px = encoder.patch.map_or(NATIVE_PATCH_PX, |patch| patch.patch_px);
                // Positions that were learned are of one resolution.
                let reads_any = encoder.learned_positions == 0 && encoder.merged_patches() == NATIVE_MERGED;
                match (patch_px == NATIVE_PATCH_PX, reads_any) {
                    (true, true) => return None,
                    (true, false) => {
                        format!(
                            "images in their own resolution, where those of {} have {own} tokens in the encoder",
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
            "The dataset was read by the rule of {}: {told}. It is planned as the dataset says; upload the file by another rule for what {} would \
             make of it.",
            rule.title(),
            model.name
        ))
    }
}

/// What a rule reads beside text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Modality {
    /// Images and frames of video.
    Images,
    /// Clips of sound.
    Clips,
}

/// Lengths of all images, or all clips, of one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Shaped {
    /// Of which items.
    pub modality: Modality,
    /// Tokens that the encoder computes.
    pub encoder_tokens: u32,
    /// Sum of the squared lengths in the encoder.
    pub encoder_squared: u64,
    /// Tokens in the backbone's sequence.
    pub backbone_tokens: u32,
}

impl Shaped {
    /// The first `kept` of `all` items, as if they were equally long.
    fn part(self, kept: u32, all: u32) -> Self {
        let share = |value: u64| (u128::from(value) * u128::from(kept) / u128::from(all.max(1))) as u64;
        Self {
            encoder_tokens: share(self.encoder_tokens.into()) as u32,
            encoder_squared: share(self.encoder_squared),
            backbone_tokens: share(self.backbone_tokens.into()) as u32,
            ..self
        }
    }
}

/// Items of a sequence whose lengths the data say, and what they come to; the others are as long as the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItemLengths {
    /// Such items.
    pub items: u32,
    /// Their tokens in the encoder.
    pub tokens: u64,
    /// Sum of their squared lengths in the encoder.
    pub squared: u64,
    /// Their tokens in the backbone's sequence.
    pub backbone_tokens: u64,
}

impl ItemLengths {
    /// Both together.
    pub fn join(&mut self, other: &Self) {
        self.items += other.items;
        self.tokens += other.tokens;
        self.squared = self.squared.saturating_add(other.squared);
        self.backbone_tokens += other.backbone_tokens;
    }

    /// Tokens and squared lengths that an encoder computes for `count` of `all` items, and as how many of its own they hand on.
    /// Of items that differ every one counts as their mean.
    pub fn encoded(&self, (count, all): (u32, u32), own: ItemSize) -> Encoded {
        let length = own.encoder;
        if self.items == 0 {
            let items = f64::from(count);
            return Encoded { items, tokens: items * length, squared: items * length * length };
        }
        let share = f64::from(count) / f64::from(all.max(1));
        let rest = f64::from(all.saturating_sub(self.items)) * share;
        let handed_on = self.backbone_tokens as f64 / own.backbone.max(1.0);
        Encoded {
            items: rest + handed_on * share,
            tokens: rest * length + self.tokens as f64 * share,
            squared: rest * length * length + self.squared as f64 * share,
        }
    }
}

/// How long a model's own items are, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ItemSize {
    /// In the encoder.
    pub encoder: f64,
    /// In the backbone's sequence.
    pub backbone: f64,
}

impl ItemSize {
    /// Of an encoder.
    pub fn of(module: &Module) -> Self {
        Self { encoder: module.tokens_per_item().into(), backbone: module.backbone_tokens_per_item().into() }
    }
}

/// What an encoder computes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Encoded {
    /// Items of the model's own length that hand on as many tokens to the backbone.
    pub items: f64,
    /// Tokens.
    pub tokens: f64,
    /// Sum of squared lengths.
    pub squared: f64,
}

/// What is left of the items of one modality where a sequence has room for so many tokens.
pub(super) struct Fitted {
    /// Whole items.
    pub(super) count: u32,
    /// Their tokens in the sequence.
    pub(super) tokens: u32,
    /// Their lengths, where the data say them.
    pub(super) lengths: ItemLengths,
}

impl Fitted {
    /// Of `count` items, each of `each` tokens where the data do not say.
    pub(super) fn of(count: u32, room: u32, each: u32, shaped: Option<Shaped>) -> Self {
        let Some(shaped) = shaped.filter(|_| each > 0) else {
            let count = count.min(room.checked_div(each).unwrap_or(u32::MAX));
            return Self { count, tokens: count * each, lengths: ItemLengths::default() };
        };
        let kept = if shaped.backbone_tokens <= room {
            count
        } else {
            (u64::from(count) * u64::from(room) / u64::from(shaped.backbone_tokens)) as u32
        };
        let part = if kept == count { shaped } else { shaped.part(kept, count) };
        let lengths = ItemLengths {
            items: kept,
            tokens: part.encoder_tokens.into(),
            squared: part.encoder_squared,
            backbone_tokens: part.backbone_tokens.into(),
        };
        Self { count: kept, tokens: part.backbone_tokens, lengths }
    }
}

#[cfg(test)]
mod tests;
