//! What is trained on: where samples come from and how a global batch is put together.

pub mod batch;
pub mod contents;
pub mod distribution;
pub mod packing;
pub mod phases;
pub mod presets;
pub mod sequence;
pub mod shaped;
pub mod source;

pub use batch::{GlobalBatch, Sampler};
pub use contents::MicrobatchContents;
pub use distribution::{Distribution, RealDistribution};
pub use packing::{PackedBatch, PackingRule};
pub use phases::PhasePoint;
pub use sequence::Sequence;
pub use shaped::{Modality, Shaped, ShapedItems};
pub use source::{MixturePart, SampleSource};

use serde::{Deserialize, Serialize};

use crate::model::Model;

/// Longest clip of video that a sample may hold, in seconds.
pub const LONGEST_VIDEO_S: f64 = 3600.0;

/// The workload of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Where samples come from.
    pub samples: SampleSource,
    /// Samples of one global batch, over all data-parallel replicas.
    pub global_batch: u32,
    /// Longest sequence of the backbone, in tokens, images and sound included; what is longer is cut at the end.
    pub context_length: u32,
    /// How samples become sequences.
    pub packing: Packing,
    /// Most samples that are packed into one sequence; absent: as many as fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_samples: Option<u32>,
    /// Longest video of one sequence, in seconds: longer clips are cut, and no more are packed together; absent: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_video_s: Option<f64>,
}

impl Workload {
    /// How samples become sequences, with every limit.
    pub fn packing_rule(&self) -> PackingRule {
        PackingRule {
            packing: self.packing,
            context_length: self.context_length,
            max_samples: self.max_samples,
            max_video_ms: self.max_video_s.map(video_ms),
        }
    }
}

/// How samples become the sequences of microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// Samples are joined first-fit into sequences of at most the context length; attention stays inside
    /// each sample.
    Packed,
    /// One sample is one sequence of its own length.
    Single,
    /// One sample is one sequence, padded to the context length.
    Padded,
}

/// What one training sample costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SampleShape {
    /// Text tokens.
    pub text_tokens: u32,
    /// Images.
    pub images: u32,
    /// Clips of sound.
    #[serde(default)]
    pub audio_clips: u32,
    /// Duration of its clip of video, in milliseconds; 0 without one. A sample holds one clip at most.
    #[serde(default)]
    pub video_ms: u32,
    /// How long its images (or clips) are, where the data say so; absent: as long as the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<Shaped>,
}

impl SampleShape {
    /// What the sample is to a model: where sound is all that a model reads beside text, images count clips of sound.
    #[must_use]
    pub fn as_read_by(self, model: &Model) -> Self {
        if model.images().is_none() && model.sound().is_some() {
            return Self { images: 0, audio_clips: self.audio_clips.saturating_add(self.images), ..self };
        }
        self
    }

    /// Lengths of its items of a modality, where the data say them.
    pub fn shaped_as(self, modality: Modality) -> Option<Shaped> {
        self.shaped.filter(|shaped| shaped.modality == modality)
    }

    /// Tokens in the backbone's sequence before it is cut.
    pub fn backbone_tokens(self, model: &Model) -> u32 {
        let of = |modality: Modality, count: u32, each: u32| match self.shaped_as(modality) {
            Some(shaped) if each > 0 => shaped.backbone_tokens,
            _ => count.saturating_mul(each),
        };
        let images = of(Modality::Images, self.images, model.tokens_per_image());
        let clips = of(Modality::Clips, self.audio_clips, model.tokens_per_clip());
        self.text_tokens.saturating_add(images).saturating_add(clips)
    }
}

/// Seconds of video in whole milliseconds, at most [`LONGEST_VIDEO_S`].
pub(crate) fn video_ms(seconds: f64) -> u32 {
    (seconds.clamp(0.0, LONGEST_VIDEO_S) * 1000.0).round() as u32
}

impl Dataset {
    /// Lengths of items, where media were read by a rule.
    pub const fn shaped(&self) -> Option<&ShapedItems> {
        match self {
            Self::Rows { shaped, .. } => shaped.as_ref(),
            Self::Histogram { .. } => None,
        }
    }
}

/// A dataset as the planner needs it: rows, or a histogram of token counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Dataset {
    /// One entry per sample.
    Rows {
        /// Text tokens of each sample.
        text_tokens: Vec<u32>,
        /// Images of each sample; empty where the file has none. Where media were read by a rule, items of the encoder, b(d).
        images: Vec<u32>,
        /// Lengths of the items where media were read by a rule; absent: as long as the model's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shaped: Option<ShapedItems>,
    },
    /// Counts of samples by text tokens.
    Histogram {
        /// Edges of the bins, one more than counts; equal neighbours are a point mass.
        edges: Vec<f64>,
        /// Samples in each bin.
        counts: Vec<f64>,
    },
}
