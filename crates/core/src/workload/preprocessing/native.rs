//! Images in native resolution.

use super::{ImageSize, InputShape};

/// Image edges are multiples of 28 pixels: patches of 14 pixels, merged 2 x 2.
const STEP_PX: f64 = 28.0;
/// Minimum and maximum tokens of 28 x 28 pixels: 4 and 16,384 per image, 128 and 768 per frame.
const IMAGE_TOKENS: (f64, f64) = (4.0, 16_384.0);
const FRAME_TOKENS: (f64, f64) = (128.0, 768.0);

/// Adds images and video for Qwen2-VL. An image is one patch sequence; four patches are merged into
/// one token. Two video frames form common patches.
pub(crate) fn qwen_vl(shape: &mut InputShape, images: &[ImageSize], video: Option<(ImageSize, u32)>) {
    for &image in images {
        let tokens = resized(image, IMAGE_TOKENS);
        shape.read(1, 4 * tokens, u64::from(tokens));
    }
    if let Some((frame, frames)) = video {
        let (tokens, pairs) = (resized(frame, FRAME_TOKENS), frames.div_ceil(2));
        shape.read(pairs, 4 * tokens, u64::from(tokens) * u64::from(pairs));
    }
}

/// Returns the number of tokens after rounding the edges to multiples of the step and scaling the
/// image into the limits.
fn resized(image: ImageSize, (min_tokens, max_tokens): (f64, f64)) -> u32 {
    let (width, height) = (f64::from(image.width), f64::from(image.height));
    let nearest = |edge: f64| libm::rint(edge / STEP_PX).max(1.0);
    let tokens = nearest(width) * nearest(height);
    let pixels = STEP_PX * STEP_PX;
    let (wide, high) = if tokens > max_tokens {
        let shrink = (width * height / (max_tokens * pixels)).sqrt();
        let fewer = |edge: f64| (edge / shrink / STEP_PX).floor().max(1.0);
        (fewer(width), fewer(height))
    } else if tokens < min_tokens {
        let grow = (min_tokens * pixels / (width * height)).sqrt();
        let more = |edge: f64| (edge * grow / STEP_PX).ceil();
        (more(width), more(height))
    } else {
        (nearest(width), nearest(height))
    };
    (wide * high) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::preprocessing::{Media, Preprocessing};

    #[test]
    fn qwen_vl_reads_images_as_they_are() {
        for (width, height, tokens) in [
            // 640 / 28 = 22.9, 480 / 28 = 17.1.
            (640, 480, 23 * 17),
            // 42 / 28 = 1.5 and 70 / 28 = 2.5 are rounded to even: 2 x 2.
            (42, 70, 4),
            // One token is below the minimum; the image is scaled to 56 x 56.
            (28, 28, 4),
            // 10,000 x 3,000 pixels exceed the limit by a factor of 2.336, the edges by 1.528:
            // 233.7 x 70.1 steps.
            (10_000, 3000, 233 * 70),
        ] {
            let media = Media { images: vec![ImageSize { width, height }], ..Media::default() };
            let shape = Preprocessing::QwenVl.shape(&media);
            assert_eq!(
                (shape.encoder.clone(), shape.backbone),
                (vec![4 * tokens], u64::from(tokens)),
                "{width} x {height}"
            );
        }
    }

    /// 1,280 x 720 pixels are 46 x 26 = 1,196 tokens, above 768. The image is scaled by 1 / 1.237
    /// to 36 x 20.
    #[test]
    fn two_frames_are_merged() {
        let frame = Some(ImageSize { width: 1280, height: 720 });
        let shape = Preprocessing::QwenVl.shape(&Media { frames: 5, frame, ..Media::default() });
        assert_eq!((shape.encoder, shape.backbone), (vec![2880; 3], 3 * 720));
    }
}
