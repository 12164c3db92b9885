use proptest::prelude::*;

use super::*;
use crate::model::presets::model;

const fn rule(packing: Packing, context_length: u32) -> PackingRule {
    PackingRule { packing, context_length, max_samples: None, max_video_ms: None }
}

fn shapes(lengths: &[u32]) -> Vec<SampleShape> {
    lengths.iter().map(|&text_tokens| SampleShape { text_tokens, ..SampleShape::default() }).collect()
}

/// One-token captions with clips of the given durations in milliseconds.
fn clips(durations: &[u32]) -> Vec<SampleShape> {
    durations.iter().map(|&video_ms| SampleShape { text_tokens: 1, video_ms, ..SampleShape::default() }).collect()
}

#[test]
fn first_fit_fills_the_first_sequence_with_capacity() {
    let llama = model("llama-2-7b").unwrap();
    let packed = pack(&shapes(&[6, 5, 4, 5]), &llama, &rule(Packing::Packed, 10));
    let lengths: Vec<u32> = packed.sequences.iter().map(|sequence| sequence.tokens).collect();
    assert_eq!(lengths, [10, 10], "6+4 and 5+5");
    assert_eq!(packed.sequences[0].squared, 36 + 16, "attention stays inside each sample");
    let members = |sequence| packed.members(sequence).iter().map(|member| member.tokens).collect::<Vec<_>>();
    assert_eq!((members(0), members(1)), (vec![6, 4], vec![5, 5]));
}

#[test]
fn a_long_sample_loses_text_before_images() {
    let vlm = model("vlm-s").unwrap();
    let sample = |text_tokens, images| SampleShape { text_tokens, images, ..SampleShape::default() };
    let packed = pack(&[sample(8192, 10), sample(5, 90)], &vlm, &rule(Packing::Single, 8192));
    assert_eq!((packed.sequences[0].images, packed.sequences[0].tokens), (10, 8192));
    assert_eq!((packed.sequences[1].images, packed.sequences[1].tokens), (48, 48 * 169 + 5));
    assert_eq!(packed.summary.truncated, 2);
}

/// Images have 256 tokens and clips 750, in a context of 2,000.
#[test]
fn sound_goes_after_text_and_before_images() {
    let omni = model("omni-7b").unwrap();
    for (sample, retained, tokens) in [
        ((100, 2, 1), (2, 1), 512 + 750 + 100),
        ((1000, 2, 1), (2, 1), 2000),
        ((100, 4, 2), (4, 1), 1024 + 750 + 100),
        ((0, 9, 1), (7, 0), 7 * 256),
    ] {
        let (text_tokens, images, audio_clips) = sample;
        let shape = SampleShape { text_tokens, images, audio_clips, video_ms: 0, shaped: None };
        let packed = pack(&[shape], &omni, &rule(Packing::Single, 2000));
        let sequence = packed.sequences[0];
        assert_eq!(((sequence.images, sequence.audio_clips), sequence.tokens), (retained, tokens), "{sample:?}");
        assert_eq!(
            packed.summary.truncated,
            u32::from(retained != (images, audio_clips) || tokens == 2000),
            "{sample:?}"
        );
    }
}

#[test]
fn images_are_audio_clips_for_audio_only_models() {
    let sample = SampleShape { text_tokens: 10, images: 2, audio_clips: 1, video_ms: 0, shaped: None };
    let packed = pack(&[sample], &model("qwen2-audio-7b").unwrap(), &rule(Packing::Single, 8192));
    assert_eq!((packed.summary.images, packed.summary.audio_clips), (0, 3));
    assert_eq!(packed.summary.tokens, 10 + 3 * 750);
    assert_eq!(packed.summary.truncated, 0);
}

#[test]
fn padding_is_computed_but_not_counted() {
    let packed = pack(&shapes(&[100]), &model("llama-2-7b").unwrap(), &rule(Packing::Padded, 4096));
    assert_eq!((packed.sequences[0].tokens, packed.sequences[0].computed_tokens), (100, 4096));
}

/// 512 tokens per second. A clip attends only to itself.
#[test]
fn video_is_packed_up_to_its_limits_and_longer_clips_are_cut() {
    let t2v = model("t2v-s").unwrap();
    let limits = PackingRule { max_samples: Some(3), max_video_ms: Some(16_000), ..rule(Packing::Packed, 8192) };
    let packed = pack(&clips(&[10_000, 20_000, 5000, 1500, 500, 500, 500]), &t2v, &limits);
    let contents: Vec<(u32, u64)> =
        packed.sequences.iter().map(|sequence| (sequence.samples, sequence.video_ms)).collect();
    // 10 + 5 s leave 0.5 s. 20 s are truncated to 16 s. 1.5, 0.5 and 0.5 s in the first sequence
    // would exceed three samples.
    assert_eq!(contents, [(3, 15_500), (1, 16_000), (3, 2500)]);
    assert_eq!((packed.summary.truncated, packed.summary.video_ms), (1, 34_000));
    let first = packed.sequences[0];
    assert_eq!((first.video_clips, first.video_tokens), (3, 5120 + 2560 + 256));
    assert_eq!(first.video_squared, 5120 * 5120 + 2560 * 2560 + 256 * 256);
    assert_eq!(first.tokens, 3, "video does not stand in the text encoder's sequence");
}

proptest! {
    #[test]
    fn packing_loses_no_token_and_overfills_no_sequence(lengths in prop::collection::vec(1_u32..5000, 1..200)) {
        let packed = pack(&shapes(&lengths), &model("llama-2-7b").unwrap(), &rule(Packing::Packed, 4096));
        let cut: u64 = lengths.iter().map(|&length| u64::from(length.min(4096))).sum();
        prop_assert_eq!(packed.summary.tokens, cut);
        prop_assert!(packed.sequences.iter().all(|sequence| sequence.tokens <= 4096));
        prop_assert_eq!(packed.sequences.iter().map(|s| s.samples as usize).sum::<usize>(), lengths.len());
    }

    /// Compares the result to naive first fit, which scans all sequences in order.
    #[test]
    fn packing_under_several_limits_is_first_fit_and_loses_no_video(
        samples in prop::collection::vec((1_u32..3000, 0_u32..20_000), 1..120),
        sample_limit in 1_u32..9,
    ) {
        let shapes: Vec<SampleShape> = samples
            .iter()
            .map(|&(text_tokens, video_ms)| SampleShape { text_tokens, video_ms, ..SampleShape::default() })
            .collect();
        let limits = PackingRule { max_samples: Some(sample_limit), max_video_ms: Some(16_000), ..rule(Packing::Packed, 4096) };
        let packed = pack(&shapes, &model("t2v-s").unwrap(), &limits);
        let mut expected: Vec<(u32, u32, u32)> = Vec::new();
        for (text, video) in samples.iter().map(|&(text, video)| (text, video.min(16_000))) {
            let fits = |totals: &&mut (u32, u32, u32)| totals.0 < sample_limit && totals.1 + text <= 4096 && totals.2 + video <= 16_000;
            match expected.iter_mut().find(fits) {
                Some(partial) => *partial = (partial.0 + 1, partial.1 + text, partial.2 + video),
                None => expected.push((1, text, video)),
            }
        }
        let found: Vec<(u32, u32, u32)> =
            packed.sequences.iter().map(|packed_sequence| (packed_sequence.samples, packed_sequence.tokens, packed_sequence.video_ms as u32)).collect();
        prop_assert_eq!(found, expected);
        let expected_video: u64 = samples.iter().map(|&(_, video)| u64::from(video.min(16_000))).sum();
        prop_assert_eq!(packed.summary.video_ms, expected_video);
        for (index, sequence) in packed.sequences.iter().enumerate() {
            let mut sum = Sequence::default();
            packed.members(index).iter().for_each(|member| sum.join(member));
            prop_assert_eq!(sum, *sequence, "a sequence is its members");
        }
    }
}
