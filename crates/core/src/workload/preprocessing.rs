//! Input sizes of a data item for encoder and backbone: the data profiler (DFLOP Sec. 3.2.2).
//!
//! The same image is one tile for one model and thirteen for another. The rules follow the released
//! preprocessors; docs/models.md, section 13 lists the sources.

mod native;
mod sound;
mod tiles;

use serde::{Deserialize, Serialize};

use crate::workload::{InputShape, Modality};

/// Image size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// Contents of a data item.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Media {
    /// Text tokens.
    pub text_tokens: u32,
    /// Image sizes.
    pub images: Vec<ImageSize>,
    /// Number of sampled video frames; all have the same size.
    pub frames: u32,
    /// Video frame size.
    pub frame: Option<ImageSize>,
    /// Audio clip durations in seconds.
    pub clips_s: Vec<f64>,
}

/// Preprocessing rule of a model family for images, video and audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Preprocessing {
    /// LLaVA-OneVision: tiles of 384 pixels by aspect ratio (anyres, up to the tokens of 9 tiles).
    #[serde(rename = "llava-onevision")]
    LlavaOneVision,
    /// InternVL 1.5 and later: 1 to 12 tiles of 448 pixels and a thumbnail.
    #[serde(rename = "internvl")]
    InternVl,
    /// Qwen2-VL: native resolution in patches of 14 pixels, merged 2 x 2.
    #[serde(rename = "qwen-vl")]
    QwenVl,
    /// Qwen2-Audio: clips of 30 s, pooled.
    #[serde(rename = "qwen2-audio")]
    Qwen2Audio,
}

impl Preprocessing {
    /// All rules.
    pub const ALL: [Self; 4] = [Self::LlavaOneVision, Self::InternVl, Self::QwenVl, Self::Qwen2Audio];

    /// Returns the stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::LlavaOneVision => "llava-onevision",
            Self::InternVl => "internvl",
            Self::QwenVl => "qwen-vl",
            Self::Qwen2Audio => "qwen2-audio",
        }
    }

    /// Returns the rule for this identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.id() == id)
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::LlavaOneVision => "LLaVA-OneVision",
            Self::InternVl => "InternVL",
            Self::QwenVl => "Qwen-VL",
            Self::Qwen2Audio => "Qwen2-Audio",
        }
    }

    /// Returns the supported modality besides text. Other modalities are ignored.
    pub const fn modality(self) -> Modality {
        match self {
            Self::LlavaOneVision | Self::InternVl | Self::QwenVl => Modality::Images,
            Self::Qwen2Audio => Modality::Clips,
        }
    }

    /// Returns the encoder tokens per tile or clip; `None` if the length varies.
    pub const fn item_tokens(self) -> Option<u32> {
        match self {
            Self::LlavaOneVision => Some(tiles::LLAVA_PATCHES),
            Self::InternVl => Some(tiles::INTERNVL_PATCHES),
            Self::QwenVl => None,
            Self::Qwen2Audio => Some(sound::ENCODER_FRAMES),
        }
    }

    /// Returns the maximum duration of a clip in seconds; longer clips are truncated. `None` if the rule reads no audio.
    pub const fn max_clip_s(self) -> Option<f64> {
        match self {
            Self::LlavaOneVision | Self::InternVl | Self::QwenVl => None,
            Self::Qwen2Audio => Some(sound::CLIP_S),
        }
    }

    /// Returns the input sizes for encoder and backbone. Unsupported modalities are ignored, as are
    /// images and frames with zero pixels.
    pub fn shape(self, media: &Media) -> InputShape {
        let mut shape = InputShape { encoder: Vec::new(), backbone: u64::from(media.text_tokens) };
        let images: Vec<ImageSize> =
            media.images.iter().copied().filter(|image| image.width > 0 && image.height > 0).collect();
        let frame = media.frame.filter(|frame| frame.width > 0 && frame.height > 0 && media.frames > 0);
        match self {
            Self::LlavaOneVision => tiles::llava_onevision(&mut shape, &images, frame.map_or(0, |_| media.frames)),
            Self::InternVl => tiles::internvl(&mut shape, &images, frame.map_or(0, |_| media.frames)),
            Self::QwenVl => native::qwen_vl(&mut shape, &images, frame.map(|frame| (frame, media.frames))),
            Self::Qwen2Audio => sound::qwen2_audio(&mut shape, &media.clips_s),
        }
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_media_are_left_out() {
        let image = ImageSize { width: 500, height: 300 };
        let media = Media {
            text_tokens: 7,
            images: vec![image, ImageSize { width: 0, height: 9 }],
            clips_s: vec![3.0],
            ..Media::default()
        };
        let sound = Preprocessing::Qwen2Audio.shape(&media);
        assert_eq!((sound.batch(), sound.backbone), (1, 7 + 75), "no images");
        let images = Preprocessing::InternVl.shape(&Media { images: vec![image], ..media.clone() });
        assert_eq!(Preprocessing::InternVl.shape(&media), images, "no sound, and no image without pixels");
        let text = Preprocessing::QwenVl.shape(&Media { text_tokens: 7, ..Media::default() });
        assert_eq!(text, InputShape { encoder: Vec::new(), backbone: 7 });
    }
}
