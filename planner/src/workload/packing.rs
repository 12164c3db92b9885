//! Packing: samples become the sequences that microbatches are made of.

use super::{MicrobatchContents, Packing, SampleShape, Sequence};
use crate::model::Model;
use crate::outcome::BatchSummary;

/// How samples become sequences, and what one sequence may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingRule {
    /// How samples are joined.
    pub packing: Packing,
    /// Most tokens of a sequence.
    pub context_length: u32,
    /// Most samples packed into a sequence.
    pub max_samples: Option<u32>,
    /// Most milliseconds of video of a sequence; a longer clip is cut.
    pub max_video_ms: Option<u32>,
}

/// The sequences of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedBatch {
    /// In data-loader order (by first sample).
    pub sequences: Vec<Sequence>,
    /// What the batch holds.
    pub summary: BatchSummary,
    /// The cut samples, each as a sequence of its own: those of the first sequence in data-loader order, then those of
    /// the second, and so on.
    members: Vec<Sequence>,
    /// Of every sequence the index of its first member, and the number of members at the end.
    first_member: Vec<u32>,
}

impl PackedBatch {
    /// The samples of a sequence, cut, in the order in which they stand in it.
    pub fn members(&self, sequence: usize) -> &[Sequence] {
        &self.members[self.first_member[sequence] as usize..self.first_member[sequence + 1] as usize]
    }

    /// The samples of a sequence, by index in the batch.
    pub fn member_range(&self, sequence: usize) -> std::ops::Range<u32> {
        self.first_member[sequence]..self.first_member[sequence + 1]
    }

    /// What the microbatch of these sequences holds.
    pub fn contents(&self, sequences: &[u32]) -> MicrobatchContents {
        let of = |&index: &u32| (self.sequences[index as usize], self.members(index as usize));
        MicrobatchContents::new(sequences.iter().map(of))
    }
}

/// Cuts samples to the limits and joins them by the packing rule.
///
/// A sample of `i` images, `c` clips of sound and `n` text tokens is `n + i x tokens_per_image + c x tokens_per_clip`
/// long ([`Sequence::of_sample`]).
pub fn pack(samples: &[SampleShape], model: &Model, rule: &PackingRule) -> PackedBatch {
    let mut truncated = 0;
    let cut: Vec<Sequence> = samples
        .iter()
        .map(|&sample| {
            let (sequence, is_cut) = Sequence::of_sample(sample, model, rule);
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
    let sum = |of: fn(&Sequence) -> u64| sequences.iter().map(of).sum();
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

/// What still fits into a sequence, or at most into one of several; also what a sample takes.
#[derive(Debug, Clone, Copy)]
struct Room {
    tokens: u32,
    samples: u32,
    video_ms: u64,
}

impl Room {
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

/// First fit in data-loader order: each sample goes to the first sequence with room for it. Gives the sequence of every
/// sample.
///
/// The search for that sequence walks a tree of maxima over the room left and leaves out branches in which a maximum is
/// too small. Under the context length alone a branch with room holds a sequence with room, which makes it O(log n) a
/// sample; under several limits a branch may turn out to hold none, and the walk goes back.
fn first_fit(samples: &[Sequence], rule: &PackingRule) -> Vec<usize> {
    let empty = Room {
        tokens: rule.context_length,
        samples: rule.max_samples.unwrap_or(u32::MAX),
        video_ms: rule.max_video_ms.map_or(u64::MAX, u64::from),
    };
    let leaves = samples.len().next_power_of_two().max(1);
    let mut room = vec![empty; 2 * leaves];
    let place = |sample: &Sequence| {
        let need = Room { tokens: sample.tokens, samples: sample.samples, video_ms: sample.video_ms };
        let leaf = first_with_room(&room, need, 1).expect("an empty sequence has room for a cut sample");
        room[leaf] = room[leaf].less(need);
        let mut node = leaf;
        while node > 1 {
            node /= 2;
            room[node] = room[2 * node].or(room[2 * node + 1]);
        }
        leaf - leaves
    };
    samples.iter().map(place).collect()
}

/// The first leaf below a node of the tree in which a sample fits.
fn first_with_room(room: &[Room], need: Room, node: usize) -> Option<usize> {
    if !room[node].fits(need) {
        return None;
    }
    if 2 * node >= room.len() {
        return Some(node);
    }
    first_with_room(room, need, 2 * node).or_else(|| first_with_room(room, need, 2 * node + 1))
}

/// The sequences that samples become at their places, which are dense from 0.
fn joined(samples: &[Sequence], places: &[usize]) -> Vec<Sequence> {
    let count = places.iter().max().map_or(0, |&last| last + 1);
    let mut sequences = vec![Sequence::default(); count];
    for (sample, &place) in samples.iter().zip(places) {
        sequences[place].join(sample);
    }
    sequences
}

/// The samples by place, keeping their order, and the first of every place.
fn grouped(samples: &[Sequence], places: &[usize], count: usize) -> (Vec<Sequence>, Vec<u32>) {
    let mut first = vec![0; count + 1];
    for &place in places {
        first[place + 1] += 1;
    }
    for place in 0..count {
        first[place + 1] += first[place];
    }
    let mut next = first.clone();
    let mut members = vec![Sequence::default(); samples.len()];
    for (sample, &place) in samples.iter().zip(places) {
        members[next[place] as usize] = *sample;
        next[place] += 1;
    }
    (members, first)
}

#[cfg(test)]
mod tests;
