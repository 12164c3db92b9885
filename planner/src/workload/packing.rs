//! Packing: samples become the sequences that microbatches are made of.

use super::{Packing, SampleShape};
use crate::model::Model;
use crate::outcome::BatchSummary;

/// One sequence of the backbone, with the images that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sequence {
    /// Samples joined in it.
    pub samples: u32,
    /// Tokens that carry data, images included.
    pub tokens: u32,
    /// Tokens that are computed, padding included.
    pub computed_tokens: u32,
    /// Sum of the squared lengths between which attention acts, padding included.
    pub squared: u64,
    /// Sum of the squared lengths of the samples, padding not included.
    pub useful_squared: u64,
    /// Images.
    pub images: u32,
}

/// The sequences of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedBatch {
    /// In data-loader order (by first sample).
    pub sequences: Vec<Sequence>,
    /// What the batch holds.
    pub summary: BatchSummary,
}

/// Cuts samples to the context length and joins them by the packing rule.
///
/// A sample of `i` images and `n` text tokens is `n + i x tokens_per_image` long. What exceeds the context length
/// is cut: text first, then whole images.
pub fn pack(samples: &[SampleShape], model: &Model, context_length: u32, packing: Packing) -> PackedBatch {
    let tokens_per_image = model.tokens_per_image();
    let mut truncated = 0;
    let cut: Vec<Sequence> = samples
        .iter()
        .map(|sample| {
            let images = sample.images.min(context_length.checked_div(tokens_per_image).unwrap_or(u32::MAX));
            let text = sample.text_tokens.min(context_length - images * tokens_per_image);
            truncated += u32::from(images < sample.images || text < sample.text_tokens);
            let tokens = text + images * tokens_per_image;
            let squared = u64::from(tokens).pow(2);
            Sequence { samples: 1, tokens, computed_tokens: tokens, squared, useful_squared: squared, images }
        })
        .collect();
    let sequences = match packing {
        Packing::Single => cut,
        Packing::Padded => cut.into_iter().map(|sequence| padded(sequence, context_length)).collect(),
        Packing::Packed => first_fit(&cut, context_length),
    };
    let summary = BatchSummary {
        samples: samples.len() as u32,
        sequences: sequences.len() as u32,
        tokens: sequences.iter().map(|sequence| u64::from(sequence.tokens)).sum(),
        images: sequences.iter().map(|sequence| u64::from(sequence.images)).sum(),
        truncated,
    };
    PackedBatch { sequences, summary }
}

fn padded(sequence: Sequence, length: u32) -> Sequence {
    Sequence { computed_tokens: length, squared: u64::from(length).pow(2), ..sequence }
}

/// First fit in data-loader order: each sample goes to the first sequence with room for it.
///
/// The search for that sequence is a tree of maxima over the room left, O(log n) a sample.
fn first_fit(samples: &[Sequence], length: u32) -> Vec<Sequence> {
    let leaves = samples.len().next_power_of_two().max(1);
    let mut room = vec![length; 2 * leaves];
    let mut sequences = vec![Sequence::default(); samples.len()];
    for sample in samples {
        let mut node = 1;
        while node < leaves {
            node = 2 * node + usize::from(room[2 * node] < sample.tokens);
        }
        let sequence = &mut sequences[node - leaves];
        sequence.samples += sample.samples;
        sequence.tokens += sample.tokens;
        sequence.computed_tokens += sample.computed_tokens;
        sequence.squared += sample.squared;
        sequence.useful_squared += sample.useful_squared;
        sequence.images += sample.images;
        room[node] -= sample.tokens;
        while node > 1 {
            node /= 2;
            room[node] = room[2 * node].max(room[2 * node + 1]);
        }
    }
    sequences.retain(|sequence| sequence.samples > 0);
    sequences
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::presets::model;

    fn shapes(lengths: &[u32]) -> Vec<SampleShape> {
        lengths.iter().map(|&text_tokens| SampleShape { text_tokens, images: 0 }).collect()
    }

    #[test]
    fn first_fit_fills_the_first_sequence_with_room() {
        let packed = pack(&shapes(&[6, 5, 4, 5]), &model("llama-2-7b").unwrap(), 10, Packing::Packed);
        let lengths: Vec<u32> = packed.sequences.iter().map(|sequence| sequence.tokens).collect();
        assert_eq!(lengths, [10, 10], "6+4 and 5+5");
        assert_eq!(packed.sequences[0].squared, 36 + 16, "attention stays inside each sample");
    }

    #[test]
    fn a_long_sample_loses_text_before_images() {
        let vlm = model("vlm-s").unwrap();
        let samples = [SampleShape { text_tokens: 8192, images: 10 }, SampleShape { text_tokens: 5, images: 90 }];
        let packed = pack(&samples, &vlm, 8192, Packing::Single);
        assert_eq!((packed.sequences[0].images, packed.sequences[0].tokens), (10, 8192));
        assert_eq!((packed.sequences[1].images, packed.sequences[1].tokens), (48, 48 * 169 + 5));
        assert_eq!(packed.summary.truncated, 2);
    }

    #[test]
    fn padding_is_computed_but_not_counted() {
        let packed = pack(&shapes(&[100]), &model("llama-2-7b").unwrap(), 4096, Packing::Padded);
        assert_eq!((packed.sequences[0].tokens, packed.sequences[0].computed_tokens), (100, 4096));
    }

    proptest! {
        #[test]
        fn packing_loses_no_token_and_overfills_no_sequence(lengths in prop::collection::vec(1_u32..5000, 1..200)) {
            let packed = pack(&shapes(&lengths), &model("llama-2-7b").unwrap(), 4096, Packing::Packed);
            let cut: u64 = lengths.iter().map(|&length| u64::from(length.min(4096))).sum();
            prop_assert_eq!(packed.summary.tokens, cut);
            prop_assert!(packed.sequences.iter().all(|sequence| sequence.tokens <= 4096));
            prop_assert_eq!(packed.sequences.iter().map(|s| s.samples as usize).sum::<usize>(), lengths.len());
        }
    }
}
