//! Training data: sample sources, and how samples form a global batch.

pub mod batch;
mod batch_summary;
pub mod distribution;
mod input_shape;
pub mod microbatch;
pub mod packing;
pub mod phases;
pub mod preprocessed;
pub mod preprocessing;
pub mod presets;
pub mod sequence;
pub mod source;

pub use batch::GlobalBatch;
pub use batch_summary::BatchSummary;
pub use distribution::{Distribution, RealDistribution};
pub use input_shape::InputShape;
pub use microbatch::MicrobatchContents;
pub use packing::{PackedBatch, PackingRule};
pub use phases::PhasePoint;
pub use preprocessed::{Modality, Shaped, ShapedItems};
pub use sequence::Sequence;
pub use source::{MixturePart, SampleSource};

use serde::{Deserialize, Serialize};

use crate::model::Model;

/// Maximum video clip duration per sample, in seconds.
pub const MAX_VIDEO_S: f64 = 3600.0;

/// The workload of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Sample source.
    pub samples: SampleSource,
    /// Samples per global batch, total for all data-parallel replicas.
    pub global_batch: u32,
    /// Maximum backbone sequence length in tokens, including images and sound. Longer sequences are
    /// truncated at the end.
    pub context_length: u32,
    /// Sequence packing method.
    pub packing: Packing,
    /// Maximum samples per packed sequence. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_samples: Option<u32>,
    /// Maximum video per sequence, in seconds. Longer clips are truncated, and packing respects the
    /// limit. Default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_video_s: Option<f64>,
}

impl Workload {
    /// Returns the packing method and all limits.
    pub fn packing_rule(&self) -> PackingRule {
        PackingRule {
            packing: self.packing,
            context_length: self.context_length,
            max_samples: self.max_samples,
            max_video_ms: self.max_video_s.map(video_ms),
        }
    }
}

/// Method for building microbatch sequences from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// First-fit packing into sequences up to the context length. Attention is limited to each
    /// sample.
    Packed,
    /// A sample forms a sequence, at its own length.
    Single,
    /// A sample forms a sequence, padded to the context length.
    Padded,
}

/// Size of a training sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SampleShape {
    /// Text tokens.
    pub text_tokens: u32,
    /// Images.
    pub images: u32,
    /// Audio clips.
    #[serde(default)]
    pub audio_clips: u32,
    /// Video clip duration in milliseconds, 0 for no video. A sample contains at most one video
    /// clip.
    #[serde(default)]
    pub video_ms: u32,
    /// Item lengths for images or clips if the dataset specifies them. Default: the model's item
    /// length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaped: Option<Shaped>,
}

impl SampleShape {
    /// Returns the sample from the model's perspective: if the model supports only sound besides
    /// text, images become audio clips.
    #[must_use]
    pub fn as_read_by(self, model: &Model) -> Self {
        if model.images().is_none() && model.sound().is_some() {
            return Self { images: 0, audio_clips: self.audio_clips.saturating_add(self.images), ..self };
        }
        self
    }

    /// Returns the item lengths for a modality if the dataset specifies them.
    pub fn shaped_as(self, modality: Modality) -> Option<Shaped> {
        self.shaped.filter(|shaped| shaped.modality == modality)
    }

    /// Returns the backbone sequence length in tokens before truncation.
    pub fn backbone_tokens(self, model: &Model) -> u32 {
        let item_tokens = |modality: Modality, count: u32, each: u32| match self.shaped_as(modality) {
            Some(shaped) if each > 0 => shaped.backbone_tokens,
            _ => count.saturating_mul(each),
        };
        let images = item_tokens(Modality::Images, self.images, model.tokens_per_image());
        let clips = item_tokens(Modality::Clips, self.audio_clips, model.tokens_per_clip());
        self.text_tokens.saturating_add(images).saturating_add(clips)
    }
}

/// Converts video seconds to whole milliseconds, at most [`MAX_VIDEO_S`].
pub fn video_ms(seconds: f64) -> u32 {
    (seconds.clamp(0.0, MAX_VIDEO_S) * 1000.0).round() as u32
}

impl Dataset {
    /// Returns the item lengths if a preprocessing rule was applied to the media.
    pub const fn shaped(&self) -> Option<&ShapedItems> {
        match self {
            Self::Rows { shaped, .. } => shaped.as_ref(),
            Self::Histogram { .. } => None,
        }
    }
}

/// A dataset in planner format: rows, or a token histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Dataset {
    /// Table rows: an entry per sample.
    Rows {
        /// Text tokens per sample.
        text_tokens: Vec<u32>,
        /// Images per sample. Empty if the file contains none. For preprocessed media: encoder
        /// items, b(d).
        images: Vec<u32>,
        /// Item lengths for preprocessed media. Default: the model's item length.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shaped: Option<ShapedItems>,
    },
    /// Histogram on text tokens.
    Histogram {
        /// Bin edges; length is `counts.len() + 1`. Equal neighbours define a point mass.
        edges: Vec<f64>,
        /// Samples per bin.
        counts: Vec<f64>,
    },
}
