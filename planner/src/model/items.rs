//! What modules read or make beside text: images, clips of sound, clips of video, and how they become tokens.

use serde::{Deserialize, Serialize};

/// How an image becomes tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// Edge of a square patch, in pixels.
    pub patch_px: u32,
    /// Patches of one image: the length of the encoder's sequence.
    pub patches_per_image: u32,
    /// Tokens of one image in the backbone's sequence, after merging patches.
    pub tokens_per_image: u32,
    /// Width that merged patches are projected to by a two-layer perceptron; absent: no projection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projected_width: Option<u32>,
    /// Further perceptrons of the same size, which merge and project the output of inner layers (DeepStack of Qwen3-VL);
    /// absent: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deepstack: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// How sound becomes tokens: two convolutions over a spectrogram, the second of stride two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Audio {
    /// Bins of the spectrogram.
    pub mel_bins: u32,
    /// Frames of one clip; the encoder's sequence is half as long.
    pub frames_per_clip: u32,
    /// Tokens of one clip in the backbone's sequence, after pooling.
    pub tokens_per_clip: u32,
}

/// How a clip of video becomes tokens: frames are compressed to a latent, the latent is cut into patches.
///
/// tokens per second = (frames per second / temporal compression) · (height / (spatial compression · patch)) ·
/// (width / (spatial compression · patch)). With 16 frames a second, compression by 8 in time and by 8 in each direction
/// of space, and patches of 2 x 2, 256 x 256 pixels come to (16 / 8) · (256 / 16)² = 512. Tokens attend to each other
/// within a clip and never across clips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Tokens of one second of video.
    pub tokens_per_second: u32,
    /// Numbers of the latent in one token: channels times patch; they are projected to the width.
    pub values_per_token: u32,
}

impl Video {
    /// Length of the sequence that a clip of `video_ms` milliseconds is, rounded up to whole tokens.
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
        let longest = Video { tokens_per_second: u32::MAX, ..video };
        assert_eq!(longest.tokens(u32::MAX), u64::from(u32::MAX).pow(2).div_ceil(1000), "no overflow");
    }
}
