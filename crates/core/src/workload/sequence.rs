//! A backbone sequence, including media.

use super::preprocessed::{Fitted, ItemLengths};
use super::{Modality, Packing, PackingRule, SampleShape};
use crate::model::Model;

/// A backbone sequence from a sample or several samples, including images, sound and video.
///
/// Images and audio clips are tokens in the sequence. Video is processed by the generator; the
/// sequence contains only its caption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sequence {
    /// Samples in the sequence.
    pub samples: u32,
    /// Data tokens, including images and sound.
    pub tokens: u32,
    /// Computed tokens, including padding.
    pub computed_tokens: u32,
    /// Sum of squared attention lengths, including padding.
    pub squared: u64,
    /// Sum of squared sample lengths, excluding padding.
    pub useful_squared: u64,
    /// Images.
    pub images: u32,
    /// Audio clips.
    pub audio_clips: u32,
    /// Images that have dataset-specified lengths.
    pub image_lengths: ItemLengths,
    /// Audio clips that have dataset-specified lengths.
    pub clip_lengths: ItemLengths,
    /// Video clips, at most one per sample.
    pub video_clips: u32,
    /// Total video duration in milliseconds.
    pub video_ms: u64,
    /// Video tokens in the generator.
    pub video_tokens: u64,
    /// Sum of squared clip lengths in the generator.
    pub video_squared: u64,
}

impl Sequence {
    /// Creates the sequence for a sample, truncated to the limits. Returns whether something was
    /// truncated.
    ///
    /// If the sample exceeds the context length, truncation removes text, then complete audio
    /// clips, then complete images. Video is truncated to the maximum duration.
    pub fn from_sample(sample: SampleShape, model: &Model, rule: &PackingRule) -> (Self, bool) {
        let read = sample.as_read_by(model);
        let (per_image, per_clip) = (model.tokens_per_image(), model.tokens_per_clip());
        let images = Fitted::new(read.images, rule.context_length, per_image, read.shaped_as(Modality::Images));
        let clip_capacity = rule.context_length - images.tokens;
        let clips = Fitted::new(read.audio_clips, clip_capacity, per_clip, read.shaped_as(Modality::Clips));
        let text_capacity = clip_capacity - clips.tokens;
        let (images, audio_clips, image_lengths, clip_lengths) =
            (images.count, clips.count, images.lengths, clips.lengths);
        let text = read.text_tokens.min(text_capacity);
        let video_ms = read.video_ms.min(rule.max_video_ms.unwrap_or(u32::MAX));
        let retained = SampleShape { text_tokens: text, images, audio_clips, video_ms, shaped: read.shaped };

        let tokens = rule.context_length - text_capacity + text;
        let squared = u64::from(tokens).pow(2);
        let video_tokens = model.video().map_or(0, |video| video.tokens(video_ms));
        let unpadded = Self {
            samples: 1,
            tokens,
            computed_tokens: tokens,
            squared,
            useful_squared: squared,
            images,
            audio_clips,
            image_lengths,
            clip_lengths,
            video_clips: u32::from(video_ms > 0),
            video_ms: u64::from(video_ms),
            video_tokens,
            video_squared: video_tokens.saturating_pow(2),
        };
        let sequence = match rule.packing {
            Packing::Padded => unpadded.padded(rule.context_length),
            Packing::Packed | Packing::Single => unpadded,
        };
        (sequence, retained != read)
    }

    fn padded(self, length: u32) -> Self {
        Self { computed_tokens: length, squared: u64::from(length).pow(2), ..self }
    }

    /// Appends another sequence. Attention stays separate.
    pub fn join(&mut self, other: &Self) {
        self.samples += other.samples;
        self.tokens += other.tokens;
        self.computed_tokens += other.computed_tokens;
        self.squared += other.squared;
        self.useful_squared += other.useful_squared;
        self.images += other.images;
        self.audio_clips += other.audio_clips;
        self.image_lengths.join(&other.image_lengths);
        self.clip_lengths.join(&other.clip_lengths);
        self.video_clips += other.video_clips;
        self.video_ms += other.video_ms;
        self.video_tokens = self.video_tokens.saturating_add(other.video_tokens);
        self.video_squared = self.video_squared.saturating_add(other.video_squared);
    }
}
