//! Placements: the rank of each stage.

/// A rule that maps stages to p ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Placement {
    /// Stage `s` is on rank `s mod p` (Megatron-LM).
    #[default]
    Cyclic,
    /// Chunks alternate in direction: stage `s` is on rank `s mod p` in an even chunk, and on rank
    /// `p - 1 - s mod p` in an odd chunk (ZBV, V-Half, V-Min, DualPipeV; Qi et al., 2024).
    Zigzag,
    /// Two copies of p stages in opposite directions: stage `s` is on rank `s` and stage `p + s` on
    /// rank `p - 1 - s`. The second copy has the same layers as stage `s` (DualPipe; DeepSeek-V3).
    Bidirectional,
}

impl Placement {
    /// The rank of a stage.
    pub const fn rank_for_stage(self, stage: usize, ranks: usize) -> usize {
        let turned = match self {
            Self::Cyclic => false,
            Self::Zigzag | Self::Bidirectional => (stage / ranks) % 2 == 1,
        };
        if turned { ranks - 1 - stage % ranks } else { stage % ranks }
    }

    /// Ranks of the first `stages` stages.
    pub fn stage_ranks(self, stages: usize, ranks: usize) -> Vec<u32> {
        (0..stages).map(|stage| self.rank_for_stage(stage, ranks) as u32).collect()
    }
}
