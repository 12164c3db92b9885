use proptest::prelude::*;

use super::*;
use planscope_core::model::presets::model;
use planscope_core::workload::{MicrobatchContents, PackedBatch, PackingRule, SampleShape, packing};

fn packed(samples: &[SampleShape], model: &Model, packing: Packing) -> PackedBatch {
    let rule = PackingRule { packing, context_length: 8192, max_samples: None, max_video_ms: Some(16_000) };
    packing::pack(samples, model, &rule)
}

fn contents(batch: &PackedBatch) -> MicrobatchContents {
    batch.contents(&(0..batch.sequences.len() as u32).collect::<Vec<_>>())
}

const fn sample(text_tokens: u32, images: u32, audio_clips: u32, video_ms: u32) -> SampleShape {
    SampleShape { text_tokens, images, audio_clips, video_ms, shaped: None }
}

#[test]
fn every_module_load_counts_its_inputs() {
    let omni = model("omni-7b").unwrap();
    let batch = packed(&[sample(100, 2, 1, 0), sample(50, 0, 3, 0)], &omni, Packing::Packed);
    let load = MicrobatchLoad::new(&batch.sequences, &omni, Packing::Packed);
    // 2 images with 1,024 patches, 4 clips with 1,500 frames, 100 + 2 x 256 + 750 and 50 + 3 x 750
    // tokens.
    let (first, second) = (1362.0_f64, 2300.0_f64);
    for (module, tokens, squared, items) in [
        (0, 2048.0, 2.0 * 1024.0 * 1024.0, 2.0),
        (1, 6000.0, 4.0 * 1500.0 * 1500.0, 4.0),
        (2, first + second, first * first + second * second, 0.0),
    ] {
        assert_eq!(load.modules[module], ModuleLoad { items, ..ModuleLoad::unpadded(tokens, squared) }, "{module}");
    }
    let shape = MicrobatchShape { samples: 2, tokens: 3662, images: 2, audio_clips: 4, video_ms: 0 };
    assert_eq!(load.shape, shape);
    // The audio encoder receives no image tokens. The backbone receives image and audio tokens.
    let entering = |module| load.entering(&omni, module).to_bits();
    assert_eq!([entering(1), entering(2)], [512.0, 512.0 + 3000.0].map(f64::to_bits));
}

/// 2.5 s and 16 s at 512 tokens per second: 1,280 and 8,192 tokens, with captions of 30 and 70
/// tokens.
#[test]
fn a_generator_is_loaded_by_its_video_and_gets_the_text() {
    let t2v = model("t2v-s").unwrap();
    let batch = packed(&[sample(30, 0, 0, 2500), sample(70, 0, 0, 20_000)], &t2v, Packing::Packed);
    let load = MicrobatchLoad::new(&batch.sequences, &t2v, Packing::Packed);
    assert_eq!(load.modules[0], ModuleLoad::unpadded(100.0, 900.0 + 4900.0));
    let video = ModuleLoad::unpadded(9472.0, 1280.0 * 1280.0 + 8192.0 * 8192.0);
    assert_eq!(load.modules[1], ModuleLoad { items: 2.0, ..video });
    assert_eq!(load.shape.video_ms, 18_500);
    assert!((load.entering(&t2v, 1) - 100.0).abs() < 1e-9);
    // The text encoder has no head, so 3 x 2 n h V operations are not counted.
    let with_head = {
        let mut model = t2v.clone();
        model.modules[0].headless = false;
        load.model_flops(&model)
    };
    let head = 6.0 * 100.0 * 4096.0 * 128_256.0;
    assert!(((with_head.get() - load.model_flops(&t2v).get()) / head - 1.0).abs() < 1e-9);
}

#[test]
fn parts_are_equal_and_know_their_samples() {
    let vlm = model("vlm-s").unwrap();
    let batch = packed(&[sample(10, 3, 0, 0), sample(10, 0, 0, 0), sample(10, 4, 0, 0)], &vlm, Packing::Packed);
    let contents = contents(&batch);
    let images = Instances::new(&contents, &vlm.modules[0], Packing::Packed);
    assert_eq!(images.count(), 7);
    let parts: Vec<_> = images.parts(3).collect();
    assert_eq!(parts, [0..2, 2..4, 4..7], "three parts of at most three");
    let members: Vec<_> = parts.iter().map(|part| images.members(part.clone())).collect();
    assert_eq!(members, [0..1, 0..3, 2..3], "image 2 is of the first sample, image 3 of the third");
    let patches = 2704.0;
    let load = ModuleLoad { items: 3.0, ..ModuleLoad::unpadded(3.0 * patches, 3.0 * patches * patches) };
    assert_eq!(images.load(4..7), load);
    assert_eq!(images.shape(4..7), MicrobatchShape { samples: 1, images: 3, ..MicrobatchShape::default() });
    assert_eq!(images.load(2..2), ModuleLoad::default());
    let sequences = Instances::new(&contents, &vlm.modules[1], Packing::Packed);
    assert_eq!((sequences.count(), sequences.members(0..1)), (1, 0..3));
}

#[test]
fn nothing_to_read_is_no_instance() {
    let vlm = model("vlm-s").unwrap();
    let batch = packed(&[sample(10, 0, 0, 0)], &vlm, Packing::Single);
    let contents = contents(&batch);
    let images = Instances::new(&contents, &vlm.modules[0], Packing::Single);
    assert_eq!((images.count(), images.parts(8).count()), (0, 0));
    assert_eq!((images.load(0..0), images.members(0..0).len()), (ModuleLoad::default(), 0));
}

/// Number of items in a sample for a module.
fn item_count(sample: &Sequence, module: &Module) -> u32 {
    match module.role {
        ModuleRole::AudioEncoder => sample.audio_clips,
        ModuleRole::Generator if module.video.is_some() => sample.video_clips,
        _ => sample.images,
    }
}

proptest! {
    /// For all models, packing rules and sub-microbatch sizes, the loads add up to the microbatch
    /// load, and an instance belongs to exactly one sample.
    #[test]
    fn parts_add_up_to_the_microbatch(
        samples in prop::collection::vec((1_u32..4000, 0_u32..9, 0_u32..4, 0_u32..20_000), 1..40),
        size in 1_u32..12,
    ) {
        for id in ["omni-7b", "t2v-s", "vlm-s", "dit-xl-2", "qwen2-audio-7b"] {
            let model = model(id).unwrap();
            for packing in [Packing::Packed, Packing::Single, Packing::Padded] {
                let samples: Vec<_> = samples.iter().map(|&(text, i, a, v)| sample(text, i, a, v)).collect();
                let batch = packed(&samples, &model, packing);
                let contents = contents(&batch);
                let total = MicrobatchLoad::new(&batch.sequences, &model, packing);
                for (module, module_total) in model.modules.iter().zip(&total.modules) {
                    let instances = Instances::new(&contents, module, packing);
                    let parts: Vec<_> = instances.parts(size).collect();
                    prop_assert!(parts.iter().all(|part| part.len() <= size as usize));
                    prop_assert_eq!(parts.len(), instances.count().div_ceil(size) as usize);
                    let sum = ModuleLoad::sum(parts.iter().map(|part| instances.load(part.clone())));
                    prop_assert_eq!(sum, *module_total, "{} of {}", module.name, id);
                    if module.role != ModuleRole::Backbone {
                        let mut carried = vec![0; contents.members().len()];
                        for instance in 0..instances.count() {
                            let members = instances.members(instance..instance + 1);
                            prop_assert_eq!(members.len(), 1, "one sample has it");
                            carried[members.start] += 1;
                        }
                        let member_items: Vec<u32> = contents.members().iter().map(|member| item_count(member, module)).collect();
                        prop_assert_eq!(carried, member_items);
                    }
                }
            }
        }
    }
}
