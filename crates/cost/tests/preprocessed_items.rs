//! Loads of microbatches whose items have the lengths of a preprocessing rule.

use planscope_core::model::presets;
use planscope_core::workload::preprocessed::Shaped;
use planscope_core::workload::{Modality, Packing, PackingRule, SampleShape, packing};
use planscope_cost::cost::MicrobatchLoad;
use planscope_cost::cost::load::Instances;

const RULE: PackingRule =
    PackingRule { packing: Packing::Packed, context_length: 4096, max_samples: None, max_video_ms: None };

/// LLaVA-OneVision 7B has 729 patches and 729 tokens per image. For it two InternVL tiles are 2,048
/// patches and 512 tokens, equivalent to 512 / 729 images.
#[test]
fn loads_use_the_lengths_of_the_data() {
    let model = presets::model("llava-ov-7b").unwrap();
    let shaped =
        Shaped { modality: Modality::Images, encoder_tokens: 2048, encoder_squared: 2 << 20, backbone_tokens: 512 };
    let sample = SampleShape { text_tokens: 100, images: 2, shaped: Some(shaped), ..SampleShape::default() };
    let default_sample = SampleShape { text_tokens: 100, images: 2, ..SampleShape::default() };
    let batch = packing::pack(&[sample, default_sample], &model, &RULE);
    let load = MicrobatchLoad::new(&batch.sequences, &model, Packing::Packed);
    assert!((load.modules[0].tokens - f64::from(2048 + 2 * 729)).abs() < 1e-9);
    assert!((load.modules[0].squared - f64::from((2 << 20) + 2 * 729 * 729)).abs() < 1e-6);
    assert!((load.entering(&model, 1) - f64::from(512 + 2 * 729)).abs() < 1e-9);

    // Four images; the first two are tiles.
    let contents = batch.contents(&[0]);
    let parts = Instances::new(&contents, &model.modules[0], Packing::Packed);
    assert_eq!(parts.count(), 4);
    for (range, tokens, squared) in
        [(0..1, 1024, 1 << 20), (1..3, 1024 + 729, (1 << 20) + 729 * 729), (3..4, 729, 729 * 729), (2..2, 0, 0)]
    {
        let load = parts.load(range.clone());
        assert!((load.tokens - f64::from(tokens)).abs() < 1e-9, "{range:?}: {load:?}");
        assert!((load.squared - f64::from(squared)).abs() < 1e-6, "{range:?}: {load:?}");
    }
}
