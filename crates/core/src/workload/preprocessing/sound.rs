//! Audio clips.

use super::InputShape;

/// Maximum clip duration in seconds; longer clips are truncated.
pub(crate) const CLIP_S: f64 = 30.0;
/// Sample rate in Hz.
const SAMPLES_PER_S: f64 = 16_000.0;
/// Samples per spectrogram frame; a partial frame is counted.
const HOP: u64 = 160;
/// Encoder tokens per clip after padding: 3,000 frames, halved by a convolution.
pub(crate) const ENCODER_FRAMES: u32 = 1500;

/// Adds clips for Qwen2-Audio. The encoder processes padded clips. The backbone receives a quarter
/// of the unpadded frames: a convolution with stride two, then a pooling by two.
pub(crate) fn qwen2_audio(shape: &mut InputShape, clips_s: &[f64]) {
    for &seconds in clips_s.iter().filter(|seconds| **seconds > 0.0) {
        let samples = (seconds.min(CLIP_S) * SAMPLES_PER_S).round() as u64;
        let convolved = samples.div_ceil(HOP).div_ceil(2);
        shape.read(1, ENCODER_FRAMES, convolved / 2);
    }
}

#[cfg(test)]
mod tests {
    use crate::workload::preprocessing::{Media, Preprocessing};

    /// 30 s: 3,000 frames, 1,500, 750. 4.37 s: 437, 219, 109. 4.421 s: 442.1, so 443, 222, 111. 1.1
    /// s: exactly 17,600 samples in spite of floating-point rounding, 110, 55, 27. 40 s is
    /// truncated to 30 s.
    #[test]
    fn tokens_follow_the_seconds_and_the_encoder_does_not() {
        let cases =
            [(vec![30.0], 750), (vec![4.37], 109), (vec![4.421], 111), (vec![1.1], 27), (vec![40.0, 4.37, 0.0], 859)];
        for (clips_s, tokens) in cases {
            let batch = clips_s.iter().filter(|&&seconds| seconds > 0.0).count();
            let shape = Preprocessing::Qwen2Audio.shape(&Media { clips_s, ..Media::default() });
            assert_eq!((shape.encoder, shape.backbone), (vec![1500; batch], tokens));
        }
    }
}
