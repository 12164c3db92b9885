//! Packs samples into sequences.

use super::BatchSummary;
use super::{MicrobatchContents, Packing, SampleShape, Sequence};
use crate::model::Model;

/// Packing method and sequence limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingRule {
    /// Packing method.
    pub packing: Packing,
    /// Maximum tokens per sequence.
    pub context_length: u32,
    /// Maximum samples per packed sequence.
    pub max_samples: Option<u32>,
    /// Maximum video per sequence in milliseconds. Longer clips are truncated.
    pub max_video_ms: Option<u32>,
}

/// Sequences of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedBatch {
    /// Sequences in data-loader order (by first sample).
    pub sequences: Vec<Sequence>,
    /// Batch statistics.
    pub summary: BatchSummary,
    /// Truncated samples, each as a separate sequence, grouped by packed sequence in data-loader
    /// order.
    members: Vec<Sequence>,
    /// Member offset per sequence, plus the member total.
    first_member: Vec<u32>,
}

impl PackedBatch {
    /// Returns the truncated samples in a sequence, in order.
    pub fn members(&self, sequence: usize) -> &[Sequence] {
        &self.members[self.first_member[sequence] as usize..self.first_member[sequence + 1] as usize]
    }

    /// Returns the sample indices of a sequence.
    pub fn member_range(&self, sequence: usize) -> std::ops::Range<u32> {
        self.first_member[sequence]..self.first_member[sequence + 1]
    }

    /// Returns the microbatch contents for these sequences.
    pub fn contents(&self, sequences: &[u32]) -> MicrobatchContents {
        let sequence_with_members = |&index: &u32| (self.sequences[index as usize], self.members(index as usize));
        MicrobatchContents::new(sequences.iter().map(sequence_with_members))
    }
}

/// Truncates samples to the limits and packs them according to the rule.
///
/// A sample that contains `i` images, `c` audio clips and `n` text tokens has length `n + i x
/// tokens_per_image + c x tokens_per_clip` ([`Sequence::of_sample`]).
pub fn pack(samples: &[SampleShape], model: &Model, rule: &PackingRule) -> PackedBatch {
    let mut truncated = 0;
    let cut: Vec<Sequence> = samples
        .iter()
        .map(|&sample| {
            let (sequence, is_cut) = Sequence::from_sample(sample, model, rule);
            truncated += u32::from(is_cut);
            sequence
        })
        .collect();
    let places = match rule.packing {
        Packing::Single | Packing::Padded => (0..cut.len()).collect(),
        Packing::Packed => first_fit(&cut, rule),
    };
    let sequences = joined(&cut, &places);
    let (members, first_member) = grouped(&cut, &places, sequences.len());
    let sum = |value: fn(&Sequence) -> u64| sequences.iter().map(value).sum();
    let summary = BatchSummary {
        samples: samples.len() as u32,
        sequences: sequences.len() as u32,
        tokens: sum(|sequence| u64::from(sequence.tokens)),
        images: sum(|sequence| u64::from(sequence.images)),
        audio_clips: sum(|sequence| u64::from(sequence.audio_clips)),
        video_ms: sum(|sequence| sequence.video_ms),
        truncated,
    };
    PackedBatch { sequences, summary, members, first_member }
}

/// Remaining capacity in a sequence, or component-wise maximum for several sequences. Also a
/// sample's requirement.
#[derive(Debug, Clone, Copy)]
struct Capacity {
    tokens: u32,
    samples: u32,
    video_ms: u64,
}

impl Capacity {
    fn fits(self, need: Self) -> bool {
        self.tokens >= need.tokens && self.samples >= need.samples && self.video_ms >= need.video_ms
    }

    fn less(self, need: Self) -> Self {
        Self {
            tokens: self.tokens - need.tokens,
            samples: self.samples - need.samples,
            video_ms: self.video_ms - need.video_ms,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            samples: self.samples.max(other.samples),
            video_ms: self.video_ms.max(other.video_ms),
        }
    }
}

/// First fit in data-loader order: each sample joins the first sequence that has enough capacity.
/// Returns the sequence index per sample.
///
/// The search uses a segment tree that stores the maximum remaining capacity, so it skips subtrees
/// that are too small. If only the context length is limited, a matching subtree always contains a
/// matching sequence, so a search is O(log n) per sample. If several limits apply, the maxima can
/// come from different sequences, so the search backtracks.
fn first_fit(samples: &[Sequence], rule: &PackingRule) -> Vec<usize> {
    let empty = Capacity {
        tokens: rule.context_length,
        samples: rule.max_samples.unwrap_or(u32::MAX),
        video_ms: rule.max_video_ms.map_or(u64::MAX, u64::from),
    };
    let leaves = samples.len().next_power_of_two().max(1);
    let mut capacities = vec![empty; 2 * leaves];
    let assign = |sample: &Sequence| {
        let need = Capacity { tokens: sample.tokens, samples: sample.samples, video_ms: sample.video_ms };
        let leaf = first_fitting(&capacities, need, 1).expect("an empty sequence has room for a cut sample");
        capacities[leaf] = capacities[leaf].less(need);
        let mut node = leaf;
        while node > 1 {
            node /= 2;
            capacities[node] = capacities[2 * node].or(capacities[2 * node + 1]);
        }
        leaf - leaves
    };
    samples.iter().map(assign).collect()
}

/// Returns the first leaf below a tree node that has enough capacity.
fn first_fitting(capacities: &[Capacity], need: Capacity, node: usize) -> Option<usize> {
    if !capacities[node].fits(need) {
        return None;
    }
    if 2 * node >= capacities.len() {
        return Some(node);
    }
    first_fitting(capacities, need, 2 * node).or_else(|| first_fitting(capacities, need, 2 * node + 1))
}

/// Merges samples by sequence index. The indices are dense from 0.
fn joined(samples: &[Sequence], places: &[usize]) -> Vec<Sequence> {
    let count = places.iter().max().map_or(0, |&last| last + 1);
    let mut sequences = vec![Sequence::default(); count];
    for (sample, &index) in samples.iter().zip(places) {
        sequences[index].join(sample);
    }
    sequences
}

/// Groups samples by sequence index in stable order. Returns the samples, and the first sample
/// index per group.
fn grouped(samples: &[Sequence], places: &[usize], count: usize) -> (Vec<Sequence>, Vec<u32>) {
    let mut first = vec![0; count + 1];
    for &group in places {
        first[group + 1] += 1;
    }
    for index in 0..count {
        first[index + 1] += first[index];
    }
    let mut next = first.clone();
    let mut members = vec![Sequence::default(); samples.len()];
    for (sample, &sequence_index) in samples.iter().zip(places) {
        members[next[sequence_index] as usize] = *sample;
        next[sequence_index] += 1;
    }
    (members, first)
}

#[cfg(test)]
mod tests;
