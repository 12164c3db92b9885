//! Microbatch contents: sequences and samples.

use std::ops::Range;

use super::Sequence;

/// Microbatch sequences and samples, in order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct MicrobatchContents {
    sequences: Vec<Sequence>,
    members: Vec<Sequence>,
    /// Member offset per sequence, plus the member total.
    first_member: Vec<usize>,
}

impl MicrobatchContents {
    /// Creates the contents from pairs (sequence, samples).
    pub fn new<'a>(sequences: impl IntoIterator<Item = (Sequence, &'a [Sequence])>) -> Self {
        let mut contents = Self { first_member: vec![0], ..Self::default() };
        for (sequence, members) in sequences {
            contents.sequences.push(sequence);
            contents.members.extend_from_slice(members);
            contents.first_member.push(contents.members.len());
        }
        contents
    }

    /// Returns the sequences.
    pub fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// Returns the samples of all sequences, grouped by sequence.
    pub fn members(&self) -> &[Sequence] {
        &self.members
    }

    /// Returns the member range for a sequence range.
    pub fn sequence_members(&self, sequences: Range<usize>) -> Range<usize> {
        self.first_member[sequences.start]..self.first_member[sequences.end.max(sequences.start)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_sequence() {
        let sample = |tokens| Sequence { samples: 1, tokens, ..Sequence::default() };
        let samples = [sample(1), sample(2), sample(3)];
        let contents = MicrobatchContents::new([(sample(3), &samples[..2]), (sample(3), &samples[2..])]);
        assert_eq!(contents.members().iter().map(|member| member.tokens).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(contents.sequence_members(0..2), 0..3);
        assert_eq!(contents.sequence_members(1..2), 2..3);
        assert_eq!(contents.sequence_members(1..1), 2..2);
    }
}
