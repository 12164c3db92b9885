//! Where samples come from.

use serde::{Deserialize, Serialize};

use super::{Distribution, PhasePoint, RealDistribution};

/// Where samples come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SampleSource {
    /// Text tokens and items drawn independently of each other, text that belongs to the items apart.
    Drawn {
        /// Text tokens of a sample.
        text_tokens: Distribution,
        /// Images of a sample; clips of sound where the model reads sound and no images. Absent: none.
        #[serde(default = "Distribution::none")]
        images: Distribution,
        /// Clips of sound of a sample; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_clips: Option<Distribution>,
        /// Duration of a sample's clip of video, in seconds; absent, or 0 for a sample: no video.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        video_s: Option<RealDistribution>,
        /// Further text tokens for every image, clip of sound and second of video of a sample, drawn once a sample:
        /// captions, or the text between the images of a document; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text_per_item: Option<RealDistribution>,
    },
    /// Rows of an uploaded dataset, drawn with replacement.
    Dataset {
        /// Content address of the dataset.
        id: String,
        /// Images of a sample in place of what the dataset says; absent: as it says, or none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Distribution>,
        /// Clips of sound of a sample; absent: none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio_clips: Option<Distribution>,
        /// Duration of a sample's clip of video, in seconds; absent: no video.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        video_s: Option<RealDistribution>,
    },
    /// Each sample from one of several sources, chosen by weight.
    Mixture {
        /// The sources; weights need not sum to one.
        parts: Vec<MixturePart>,
    },
    /// Images that become more and fewer over the iterations.
    Phases {
        /// Everything but the images.
        #[cfg_attr(feature = "openapi", schema(no_recursion))]
        source: Box<SampleSource>,
        /// Iterations after which it begins again.
        period: u32,
        /// Bounds of the images of a sample at some iterations of the period, in their order.
        images: Vec<PhasePoint>,
    },
}

/// One source of a mixture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MixturePart {
    /// Relative weight, in samples.
    pub weight: f64,
    /// The source.
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub source: SampleSource,
}
