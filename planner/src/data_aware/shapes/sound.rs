//! Sound.

use super::InputShape;

/// Longest clip, in seconds; what is longer is cut.
const CLIP_S: f64 = 30.0;
/// Samples of sound in a second.
const SAMPLES_PER_S: f64 = 16_000.0;
/// Samples from one frame of the spectrogram to the next; a frame that has begun counts.
const HOP: u64 = 160;
/// What the encoder computes of every clip, padded to its full length: 3,000 frames, halved by a convolution.
pub(super) const ENCODER_FRAMES: u32 = 1500;

/// Qwen2-Audio: every clip is padded for the encoder; of its own frames a convolution of stride two leaves half, pooling by two
/// a fourth.
pub(super) fn qwen2_audio(shape: &mut InputShape, clips_s: &[f64]) {
    for &seconds in clips_s.iter().filter(|seconds| **seconds > 0.0) {
        let samples = (seconds.min(CLIP_S) * SAMPLES_PER_S).round() as u64;
        let convolved = samples.div_ceil(HOP).div_ceil(2);
        shape.read(1, ENCODER_FRAMES, convolved / 2);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Media, Preprocessing};

    /// 30 s: 3,000 frames, 1,500, 750. 4.37 s: 437, 219, 109. 4.421 s: 442.1, so 443, 222, 111. 1.1 s: 17,600 samples, however its
    /// product is rounded, 110, 55, 27. 40 s is cut to 30.
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
