use super::*;
use crate::model::presets;
use crate::workload::preprocessing::{ImageSize, Media};
use crate::workload::{Packing, PackingRule, SampleShape, Sequence, packing};

fn columns(rule: Preprocessing, medias: &[Media]) -> ShapedItems {
    let mut columns = ShapedItems::new(rule);
    for media in medias {
        columns.push(&rule.shape(media), media.text_tokens);
    }
    columns
}

fn image(width: u32, height: u32) -> Media {
    Media { text_tokens: 10, images: vec![ImageSize { width, height }], ..Media::default() }
}

const RULE: PackingRule =
    PackingRule { packing: Packing::Packed, context_length: 4096, max_samples: None, max_video_ms: None };

/// InternVL: 448 x 448 pixels form a tile with 1,024 patches and 256 tokens; 896 x 448 form two
/// tiles plus the thumbnail. Qwen2-VL: 280 x 560 pixels are 20 x 40 patches in a single sequence,
/// merged four to a token.
#[test]
fn columns_match_the_rule_output() {
    let wide = columns(Preprocessing::InternVl, &[image(448, 448), image(896, 448), Media::default()]);
    assert_eq!(wide.encoder_tokens, [1024, 3 * 1024, 0]);
    assert_eq!(wide.encoder_squared, [1 << 20, 3 << 20, 0]);
    assert_eq!(wide.backbone_tokens, [256, 768, 0]);
    let native = columns(Preprocessing::QwenVl, &[image(280, 560)]);
    assert_eq!((native.encoder_tokens[0], native.encoder_squared[0], native.backbone_tokens[0]), (800, 640_000, 200));
    assert_eq!(native.get(1), None);
}

/// LLaVA-OneVision 7B has 729 patches and 729 tokens per image. For it two InternVL tiles are 2,048
/// patches and 512 tokens, equivalent to 512 / 729 images.
#[test]
fn the_data_say_how_long_items_are() {
    let model = presets::model("llava-ov-7b").unwrap();
    let shaped =
        Shaped { modality: Modality::Images, encoder_tokens: 2048, encoder_squared: 2 << 20, backbone_tokens: 512 };
    let sample = SampleShape { text_tokens: 100, images: 2, shaped: Some(shaped), ..SampleShape::default() };
    assert_eq!(sample.backbone_tokens(&model), 612);
    let default_sample = SampleShape { text_tokens: 100, images: 2, ..SampleShape::default() };
    assert_eq!(default_sample.backbone_tokens(&model), 100 + 2 * 729);

    let batch = packing::pack(&[sample, default_sample], &model, &RULE);
    assert_eq!(batch.sequences[0].tokens, 612 + 1558);
}

/// Four tiles with 1,000 tokens in a context of 600: two tiles remain (500 tokens), and truncation
/// leaves 100 text tokens.
#[test]
fn excess_is_removed_in_full_items() {
    let model = presets::model("internvl3-8b").unwrap();
    let shaped =
        Shaped { modality: Modality::Images, encoder_tokens: 4096, encoder_squared: 4 << 20, backbone_tokens: 1000 };
    let sample = SampleShape { text_tokens: 300, images: 4, shaped: Some(shaped), ..SampleShape::default() };
    let rule = PackingRule { context_length: 600, ..RULE };
    let (sequence, is_cut) = Sequence::from_sample(sample, &model, &rule);
    assert!(is_cut);
    assert_eq!((sequence.tokens, sequence.images), (600, 2));
    let lengths = ItemLengths { items: 2, tokens: 2048, squared: 2 << 20, backbone_tokens: 500 };
    assert_eq!(sequence.image_lengths, lengths);
    let (sequence, is_cut) = Sequence::from_sample(sample, &model, &RULE);
    assert_eq!((sequence.tokens, sequence.images, is_cut), (1300, 4, false));
}

/// InternVL tiles contain 1,024 patches; SigLIP expects 729. Whisper clips equal Qwen2-Audio clips.
/// The Qwen2-VL encoder in Omni 7B supports any resolution in 14-pixel patches. Qwen3-VL uses 16
/// pixels. InternViT uses learned positions for a fixed resolution.
#[test]
fn a_rule_from_another_model_is_reported() {
    for (rule, model, expected) in [
        (Preprocessing::InternVl, "internvl3-8b", None),
        (Preprocessing::InternVl, "llava-ov-7b", Some("items of 1024 tokens in the encoder, where those of")),
        (Preprocessing::LlavaOneVision, "llava-ov-llama-3-8b", None),
        (Preprocessing::QwenVl, "omni-7b", None),
        (Preprocessing::QwenVl, "qwen3-vl-8b", Some("patches of 14 pixels, where")),
        (Preprocessing::QwenVl, "internvl3-8b", Some("have 1024 tokens in the encoder")),
        (Preprocessing::QwenVl, "llava-ov-7b", Some("images in their own resolution")),
        (Preprocessing::Qwen2Audio, "qwen2-audio-7b", None),
        (Preprocessing::Qwen2Audio, "llava-ov-7b", None),
    ] {
        let mismatch = ShapedItems::new(rule).mismatch(&presets::model(model).unwrap());
        assert_eq!(mismatch.is_some(), expected.is_some(), "{rule:?} {model}: {mismatch:?}");
        assert!(mismatch.unwrap_or_default().contains(expected.unwrap_or_default()), "{rule:?} {model}");
    }
}
