//! Schedule kinds: sizes, placement, source and generator function.

use serde::{Deserialize, Serialize};

use super::{
    Grouping, Schedule, ScheduleError, dual_pipe, dual_pipe_v, gpipe, interleaved, interleaved_zero_bubble, looped_bfs,
    one_f_one_b, v_half, v_min, wait_free_cyclic, zb_h1, zb_h2, zbv,
};
use crate::simulate::execute;
use planscope_core::stage_graph::{Flows, Placement};
use planscope_core::units::Bytes;
use planscope_cost::cost::PipelineCosts;

/// Schedule kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// All forwards, then all backwards.
    Gpipe,
    /// Breadth-first over chunks.
    LoopedBfs,
    /// 1F1B.
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// 1F1B, several model chunks per rank (VPP).
    Interleaved,
    /// Interleaved, split backwards (ZB1P).
    InterleavedZeroBubble,
    /// Generated for the given times. Memory of 1F1B.
    ZbH1,
    /// Generated for the given times. Twice the memory of 1F1B.
    ZbH2,
    /// V-shaped placement of two chunks. Memory of 1F1B.
    Zbv,
    /// V-shaped placement of two chunks. Half the memory of 1F1B.
    VHalf,
    /// V-shaped placement of two chunks. A third of the memory of 1F1B.
    VMin,
    /// Bidirectional, overlapped forwards and backwards.
    DualPipe,
    /// DualPipe, V-shaped placement of two chunks.
    DualPipeV,
    /// Dynamic: a free rank runs any ready action.
    WaitFreeCyclic,
}

/// Allowed number of model chunks per rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunksRule {
    /// A fixed number.
    Exactly(usize),
    /// Any positive number.
    Any {
        /// Default number.
        default: usize,
    },
}

/// Sizes of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of pipeline ranks, p.
    pub ranks: usize,
    /// Model chunks per rank, v. In DualPipe, each model copy contributes a chunk.
    pub chunks: usize,
    /// Number of microbatches, m.
    pub microbatches: usize,
    /// Consecutive microbatches per chunk, g, for schedules with groups.
    pub group: Option<usize>,
}

impl ScheduleKind {
    /// All kinds, in display order.
    pub const ALL: [Self; 13] = [
        Self::Gpipe,
        Self::LoopedBfs,
        Self::OneFOneB,
        Self::Interleaved,
        Self::InterleavedZeroBubble,
        Self::ZbH1,
        Self::ZbH2,
        Self::Zbv,
        Self::VHalf,
        Self::VMin,
        Self::DualPipe,
        Self::DualPipeV,
        Self::WaitFreeCyclic,
    ];

    /// Returns the stable identifier for JSON, URLs and the command line.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Gpipe => "gpipe",
            Self::LoopedBfs => "looped_bfs",
            Self::OneFOneB => "1f1b",
            Self::Interleaved => "interleaved",
            Self::InterleavedZeroBubble => "interleaved_zero_bubble",
            Self::ZbH1 => "zb_h1",
            Self::ZbH2 => "zb_h2",
            Self::Zbv => "zbv",
            Self::VHalf => "v_half",
            Self::VMin => "v_min",
            Self::DualPipe => "dual_pipe",
            Self::DualPipeV => "dual_pipe_v",
            Self::WaitFreeCyclic => "wait_free_cyclic",
        }
    }

    /// Parses an identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Returns the display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Gpipe => "GPipe",
            Self::LoopedBfs => "Looped BFS",
            Self::OneFOneB => "1F1B",
            Self::Interleaved => "Interleaved 1F1B (VPP)",
            Self::InterleavedZeroBubble => "Interleaved zero bubble (ZB1P)",
            Self::ZbH1 => "ZB-H1",
            Self::ZbH2 => "ZB-H2",
            Self::Zbv => "ZBV",
            Self::VHalf => "V-Half",
            Self::VMin => "V-Min",
            Self::DualPipe => "DualPipe",
            Self::DualPipeV => "DualPipeV",
            Self::WaitFreeCyclic => "Wait-free cyclic",
        }
    }

    /// Returns the publication.
    pub const fn source(self) -> &'static str {
        match self {
            Self::Gpipe => "Huang et al., 2019, GPipe",
            Self::LoopedBfs => "Lamy-Poirier, 2023, Breadth-First Pipeline Parallelism",
            Self::OneFOneB => "Narayanan et al., 2021, PipeDream-Flush; Megatron-LM",
            Self::Interleaved => "Narayanan et al., 2021, Megatron-LM, section 2.2",
            Self::InterleavedZeroBubble | Self::ZbH1 | Self::ZbH2 | Self::Zbv => {
                "Qi et al., 2023, Zero Bubble Pipeline Parallelism"
            }
            Self::VHalf | Self::VMin => "Qi et al., 2024, Pipeline Parallelism with Controllable Memory",
            Self::DualPipe => "DeepSeek-AI, 2024, DeepSeek-V3 Technical Report",
            Self::DualPipeV => "DeepSeek-AI, 2025, DualPipe; Qi et al., 2025, cut in half",
            Self::WaitFreeCyclic => "Jiang et al., 2024, DynaPipe",
        }
    }

    /// Returns the placement of stages on ranks.
    pub const fn placement(self) -> Placement {
        match self {
            Self::Zbv | Self::VHalf | Self::VMin | Self::DualPipeV => Placement::Zigzag,
            Self::DualPipe => Placement::Bidirectional,
            _ => Placement::Cyclic,
        }
    }

    /// Returns the allowed number of model chunks per rank.
    pub const fn chunks_rule(self) -> ChunksRule {
        match self {
            Self::Gpipe | Self::OneFOneB | Self::ZbH1 | Self::ZbH2 => ChunksRule::Exactly(1),
            Self::Zbv | Self::VHalf | Self::VMin | Self::DualPipe | Self::DualPipeV => ChunksRule::Exactly(2),
            Self::LoopedBfs | Self::Interleaved | Self::InterleavedZeroBubble => ChunksRule::Any { default: 2 },
            Self::WaitFreeCyclic => ChunksRule::Any { default: 1 },
        }
    }

    /// Returns the number of chunks per rank: fixed by the kind, otherwise `asked` or the default.
    pub fn chunks(self, requested: Option<usize>) -> usize {
        match self.chunks_rule() {
            ChunksRule::Exactly(chunks) => chunks,
            ChunksRule::Any { default } => requested.unwrap_or(default),
        }
    }

    /// Returns whether the kind uses microbatch groups.
    pub const fn has_groups(self) -> bool {
        matches!(self, Self::Interleaved | Self::InterleavedZeroBubble)
    }

    /// Returns whether weight gradients are separate actions.
    pub const fn splits_backward(self) -> bool {
        !matches!(self, Self::Gpipe | Self::LoopedBfs | Self::OneFOneB | Self::Interleaved | Self::WaitFreeCyclic)
    }

    /// Returns whether forwards and backwards overlap.
    pub const fn overlaps(self) -> bool {
        matches!(self, Self::DualPipe | Self::DualPipeV)
    }

    /// Returns whether the order depends on times and memory. For all other kinds, it depends only
    /// on the sizes.
    pub const fn is_cost_dependent(self) -> bool {
        matches!(self, Self::ZbH1 | Self::ZbH2 | Self::WaitFreeCyclic)
    }

    /// Returns the microbatch routes for which the [`PipelineCosts`] must be computed.
    pub fn flows(self, ranks: usize, chunks: usize, microbatches: usize) -> Flows {
        Flows::placed(ranks, ranks * chunks, microbatches, self.placement())
    }

    /// Validates the sizes.
    ///
    /// # Errors
    /// Names the invalid size.
    pub fn check(self, shape: Shape) -> Result<(), ScheduleError> {
        let Shape { ranks, chunks, microbatches, group } = shape;
        if ranks == 0 || chunks == 0 || microbatches == 0 {
            return Err(ScheduleError::Empty { ranks, chunks, microbatches });
        }
        match self.chunks_rule() {
            ChunksRule::Exactly(needs) if needs != chunks => {
                return Err(ScheduleError::Chunks { kind: self, needs, chunks });
            }
            _ => {}
        }
        if group == Some(0) || (group.is_some() && !self.has_groups()) {
            return Err(ScheduleError::Group { kind: self });
        }
        match self {
            Self::DualPipe => dual_pipe::admits(ranks, microbatches),
            Self::DualPipeV => dual_pipe_v::admits(ranks, microbatches),
            _ => Ok(()),
        }
    }

    /// Generates the schedule. ZB-H1, ZB-H2 and the dynamic schedule depend on the costs and never
    /// exceed `memory_cap` bytes per rank, including static memory. All other kinds have a fixed
    /// order, which can exceed this limit.
    ///
    /// # Errors
    /// Names the invalid size, or the rank on which a single microbatch does not fit.
    pub fn generate(
        self,
        shape: Shape,
        costs: &PipelineCosts,
        memory_cap: Option<Bytes>,
    ) -> Result<Schedule, ScheduleError> {
        self.check(shape)?;
        let Shape { ranks, chunks, microbatches, group } = shape;
        if costs.flows != self.flows(ranks, chunks, microbatches) {
            return Err(ScheduleError::Costs { kind: self });
        }
        Ok(match self {
            Self::Gpipe => gpipe(ranks, microbatches),
            Self::LoopedBfs => looped_bfs(ranks, chunks, microbatches),
            Self::OneFOneB => one_f_one_b(ranks, microbatches),
            Self::Interleaved => {
                let fixed = interleaved(ranks, chunks, microbatches, Grouping::Fixed(group.unwrap_or(ranks)));
                // A small final group can deadlock. This is accepted only for an explicit group
                // size.
                let is_short = microbatches % ranks != 0;
                if group.is_none() && is_short && execute(&fixed, costs).is_err() {
                    interleaved(ranks, chunks, microbatches, Grouping::Balanced)
                } else {
                    fixed
                }
            }
            Self::InterleavedZeroBubble => {
                interleaved_zero_bubble(ranks, chunks, microbatches, Grouping::Fixed(group.unwrap_or(ranks)))
            }
            Self::ZbH1 => zb_h1(costs, memory_cap)?,
            Self::ZbH2 => zb_h2(costs, memory_cap)?,
            Self::Zbv => zbv(ranks, microbatches),
            Self::VHalf => v_half(ranks, microbatches),
            Self::VMin => v_min(ranks, microbatches),
            Self::DualPipe => dual_pipe(ranks, microbatches)?,
            Self::DualPipeV => dual_pipe_v(ranks, microbatches)?,
            Self::WaitFreeCyclic => self.searched(costs, memory_cap)?,
        })
    }

    fn searched(self, costs: &PipelineCosts, memory_cap: Option<Bytes>) -> Result<Schedule, ScheduleError> {
        let limit = memory_cap.unwrap_or(Bytes::new(u64::MAX));
        wait_free_cyclic::within_seconds(costs, limit).map_err(|too_large| {
            let wait_free_cyclic::TooLarge { rank, needs } = too_large;
            if needs > limit {
                ScheduleError::Memory { kind: self, rank, needs, limit }
            } else {
                ScheduleError::NoOrder { kind: self, limit }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_match_json() {
        for kind in ScheduleKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.id()));
            assert_eq!(ScheduleKind::from_id(kind.id()), Some(kind));
        }
    }
}
