//! What an item of a data set is to encoder and backbone: the data profiler of DFLOP (section 3.2.2).
//!
//! The same image is one tile to one model and thirteen to another. The rules are those of the released preprocessors; each
//! names its source in docs/models.md, section 13.

mod native;
mod sound;
mod tiles;

use serde::{Deserialize, Serialize};

use crate::workload::Modality;

/// An image, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageSize {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// What an item of a data set holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Media {
    /// Tokens of text.
    pub text_tokens: u32,
    /// Images.
    pub images: Vec<ImageSize>,
    /// Sampled frames of a video, all of one size.
    pub frames: u32,
    /// Size of the frames.
    pub frame: Option<ImageSize>,
    /// Clips of sound, in seconds.
    pub clips_s: Vec<f64>,
}

/// What the item is to the two modules.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputShape {
    /// Lengths of what the encoder computes side by side, in its own tokens: tiles, images, clips. Their number is the effective
    /// batch b(d) where all are equally long.
    pub encoder: Vec<u32>,
    /// Tokens of the backbone's sequence, s(d).
    pub backbone: u64,
}

impl InputShape {
    /// Effective batch, b(d).
    pub fn batch(&self) -> u32 {
        self.encoder.len() as u32
    }

    fn read(&mut self, count: u32, length: u32, tokens: u64) {
        self.encoder.extend(std::iter::repeat_n(length, count as usize));
        self.backbone += tokens;
    }
}

/// How a family of models reads images, video and sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Preprocessing {
    /// LLaVA-OneVision: tiles of 384 pixels by aspect ratio (anyres, at most 9 tiles' worth of tokens).
    #[serde(rename = "llava-onevision")]
    LlavaOneVision,
    /// InternVL 1.5 and later: 1 to 12 tiles of 448 pixels and a thumbnail.
    #[serde(rename = "internvl")]
    InternVl,
    /// Qwen2-VL: any resolution in patches of 14 pixels, merged 2 x 2.
    #[serde(rename = "qwen-vl")]
    QwenVl,
    /// Qwen2-Audio: clips of 30 s, pooled.
    #[serde(rename = "qwen2-audio")]
    Qwen2Audio,
}

impl Preprocessing {
    /// Every family.
    pub const ALL: [Self; 4] = [Self::LlavaOneVision, Self::InternVl, Self::QwenVl, Self::Qwen2Audio];

    /// Stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::LlavaOneVision => "llava-onevision",
            Self::InternVl => "internvl",
            Self::QwenVl => "qwen-vl",
            Self::Qwen2Audio => "qwen2-audio",
        }
    }

    /// The rule of that identifier.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.id() == id)
    }

    /// Name as shown.
    pub const fn title(self) -> &'static str {
        match self {
            Self::LlavaOneVision => "LLaVA-OneVision",
            Self::InternVl => "InternVL",
            Self::QwenVl => "Qwen-VL",
            Self::Qwen2Audio => "Qwen2-Audio",
        }
    }

    /// What it reads beside text; of everything else nothing is left.
    pub const fn modality(self) -> Modality {
        match self {
            Self::LlavaOneVision | Self::InternVl | Self::QwenVl => Modality::Images,
            Self::Qwen2Audio => Modality::Clips,
        }
    }

    /// Length of every item in the encoder, in tokens; `None` where items differ.
    pub const fn item_tokens(self) -> Option<u32> {
        match self {
            Self::LlavaOneVision => Some(tiles::LLAVA_PATCHES),
            Self::InternVl => Some(tiles::INTERNVL_PATCHES),
            Self::QwenVl => None,
            Self::Qwen2Audio => Some(sound::ENCODER_FRAMES),
        }
    }

    /// What an item is to the modules. What a model does not read is left out; images and frames without pixels count for
    /// nothing.
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
    fn what_is_not_read_is_left_out() {
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
