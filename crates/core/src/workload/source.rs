//! Sample sources.

use serde::{Deserialize, Serialize};

use super::{Distribution, PhasePoint, RealDistribution};

/// A sample source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SampleSource {
    /// Independent distributions for text tokens and items. `text_per_item` adds text that
    /// accompanies the items.
    Drawn {
        /// Text tokens per sample.
        text_tokens: Distribution,
        /// Images per sample, or audio clips if the model supports sound but no images. Default: 0.
        #[serde(default = "Distribution::none")]
        images: Distribution,
        /// Audio clips per sample. Default: 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_clips: Option<Distribution>,
        /// Video clip duration per sample in seconds. Default: no video. A drawn 0 means no video.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        video_s: Option<RealDistribution>,
        /// Additional text tokens per image, audio clip and video second, drawn once per sample:
        /// captions, or text between document images. Default: 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_per_item: Option<RealDistribution>,
    },
    /// Rows of an uploaded dataset, drawn with replacement.
    Dataset {
        /// Content address of the dataset.
        id: String,
        /// Images per sample, replacing the dataset's images. Default: the dataset's images, or 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Distribution>,
        /// Audio clips per sample. Default: 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_clips: Option<Distribution>,
        /// Video clip duration per sample in seconds. Default: no video.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        video_s: Option<RealDistribution>,
    },
    /// A mixture: the sampler selects a source per sample by weight.
    Mixture {
        /// Sources. Weights need not sum to 1.
        parts: Vec<MixturePart>,
    },
    /// Images per sample that vary by iteration.
    Phases {
        /// Source for all properties except images.
        #[cfg_attr(feature = "openapi", schema(no_recursion))]
        source: Box<SampleSource>,
        /// Period in iterations.
        period: u32,
        /// Bounds on images per sample, sorted by iteration within the period.
        images: Vec<PhasePoint>,
    },
}

/// A source in a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MixturePart {
    /// Relative weight, in samples.
    pub weight: f64,
    /// Sample source.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub source: SampleSource,
}
