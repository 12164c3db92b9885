//! Placements: on which rank each stage stands.

/// A rule by which stages are dealt to p ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum Placement {
    /// Stage `s` on rank `s mod p` (Megatron-LM).
    #[default]
    Cyclic,
    /// Chunks run to and fro: stage `s` of an even chunk on rank `s mod p`, of an odd one on rank `p - 1 - s mod p`
    /// (ZBV, V-Half, V-Min, DualPipeV; Qi et al., 2024).
    Zigzag,
    /// Two copies of p stages that face each other: stage `s` on rank `s`, stage `p + s` on rank `p - 1 - s`, the
    /// second copy being that of the layers of stage `s` (DualPipe; DeepSeek-V3).
    Bidirectional,
}

impl Placement {
    /// The rank of a stage.
    pub const fn rank_of(self, stage: usize, ranks: usize) -> usize {
        let turned = match self {
            Self::Cyclic => false,
            Self::Zigzag | Self::Bidirectional => (stage / ranks) % 2 == 1,
        };
        if turned { ranks - 1 - stage % ranks } else { stage % ranks }
    }

    /// The rank of every one of `stages` stages.
    pub fn ranks_of(self, stages: usize, ranks: usize) -> Vec<u32> {
        (0..stages).map(|stage| self.rank_of(stage, ranks) as u32).collect()
    }
}
