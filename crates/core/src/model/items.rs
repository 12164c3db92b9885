//! Non-text inputs and outputs of modules (images, audio clips, video clips) and their
//! tokenization.

use serde::{Deserialize, Serialize};

/// Image tokenization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Edge length of a square patch in pixels.
    pub patch_px: u32,
    /// Patches per image, the sequence length in the encoder.
    pub patches_per_image: u32,
    /// Tokens per image in the backbone's sequence, after merging patches.
    pub tokens_per_image: u32,
    /// Output width of the two-layer MLP that projects merged patches. Default: no projection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projected_width: Option<u32>,
    /// Width between the two products of this MLP. Default: that of the merged patches. InternVL and LLaVA have the
    /// output width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner_width: Option<u32>,
    /// Number of additional MLPs with the same size, which merge and project outputs of inner
    /// layers (DeepStack in Qwen3-VL). Default: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deepstack: u32,
    /// The patches of a token are averaged, and one product without bias projects them (Gemma 3). Default: they are
    /// concatenated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pooled: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Audio tokenization: two convolutions over a spectrogram, with strides one and two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Audio {
    /// Number of spectrogram bins.
    pub mel_bins: u32,
    /// Frames per clip. The sequence in the encoder is half as long.
    pub frames_per_clip: u32,
    /// Tokens per clip in the backbone's sequence, after pooling.
    pub tokens_per_clip: u32,
}

/// Video tokenization: frames are compressed to a latent, which is divided into patches.
///
/// tokens per second = (frames per second / temporal compression) · (height / (spatial compression
/// · patch)) · (width / (spatial compression · patch)). With 16 frames per second, a compression
/// factor of 8 in time, height and width, and 2 x 2 patches, 256 x 256 pixels give (16 / 8) · (256
/// / 16)² = 512. Tokens attend to each other within a clip, but never across clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Tokens per second of video.
    pub tokens_per_second: u32,
    /// Latent values per token (channels x patch size), which are projected to the hidden size.
    pub values_per_token: u32,
}

impl Video {
    /// Returns the sequence length for a clip with `video_ms` milliseconds, rounded up.
    pub fn tokens(&self, video_ms: u32) -> u64 {
        (u64::from(self.tokens_per_second) * u64::from(video_ms)).div_ceil(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_is_as_long_as_its_duration() {
        let video = Video { tokens_per_second: 512, values_per_token: 64 };
        for (ms, tokens) in [(0, 0), (1, 1), (1000, 512), (2500, 1280), (16_000, 8192), (1001, 513)] {
            assert_eq!(video.tokens(ms), tokens, "{ms} ms");
        }
        let densest = Video { tokens_per_second: u32::MAX, ..video };
        assert_eq!(densest.tokens(u32::MAX), u64::from(u32::MAX).pow(2).div_ceil(1000), "no overflow");
    }
}
