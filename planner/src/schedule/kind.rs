//! Every schedule by name: its shape, its placement, its source, and the call that makes it.

use serde::{Deserialize, Serialize};

use super::{
    Grouping, Schedule, ScheduleError, dual_pipe, dual_pipe_v, gpipe, interleaved, interleaved_zero_bubble, looped_bfs,
    one_f_one_b, v_half, v_min, wait_free_cyclic, zb_h1, zb_h2, zbv,
};
use crate::cost::PipelineCosts;
use crate::flow::{Flows, Placement};
use crate::simulate::execute;
use crate::units::Bytes;

/// A kind of schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// All forwards, then all backwards.
    Gpipe,
    /// All microbatches through one chunk before the next.
    LoopedBfs,
    /// One forward, one backward.
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// 1F1B over several model chunks (VPP).
    Interleaved,
    /// Interleaved with split backwards (ZB1P).
    InterleavedZeroBubble,
    /// Made for the times, with the memory of 1F1B.
    ZbH1,
    /// Made for the times, with twice the memory of 1F1B.
    ZbH2,
    /// A V of two chunks, with the memory of 1F1B.
    Zbv,
    /// A V of two chunks, with half the memory of 1F1B.
    VHalf,
    /// A V of two chunks, with a third of the memory of 1F1B.
    VMin,
    /// Both ends at once, forwards overlapped with backwards.
    DualPipe,
    /// DualPipe as a V of two chunks.
    DualPipeV,
    /// Whatever is ready, dynamic.
    WaitFreeCyclic,
}

/// How many model chunks a rank may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunksRule {
    /// That many.
    Exactly(usize),
    /// Any number from one.
    Any {
        /// Where none is given.
        default: usize,
    },
}

/// The sizes of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Pipeline ranks, p.
    pub ranks: usize,
    /// Model chunks of a rank, v; in DualPipe one of each copy of the model.
    pub chunks: usize,
    /// Microbatches, m.
    pub microbatches: usize,
    /// Microbatches that run through one chunk before the next, g, in the schedules that have groups.
    pub group: Option<usize>,
}

impl ScheduleKind {
    /// Every kind, in the order in which pickers list them.
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

    /// Stable identifier, as in JSON, URLs and on the command line.
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

    /// The kind of that identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Name shown to people.
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

    /// Where it was published.
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

    /// On which rank each stage stands.
    pub const fn placement(self) -> Placement {
        match self {
            Self::Zbv | Self::VHalf | Self::VMin | Self::DualPipeV => Placement::Zigzag,
            Self::DualPipe => Placement::Bidirectional,
            _ => Placement::Cyclic,
        }
    }

    /// How many model chunks a rank holds.
    pub const fn chunks_rule(self) -> ChunksRule {
        match self {
            Self::Gpipe | Self::OneFOneB | Self::ZbH1 | Self::ZbH2 => ChunksRule::Exactly(1),
            Self::Zbv | Self::VHalf | Self::VMin | Self::DualPipe | Self::DualPipeV => ChunksRule::Exactly(2),
            Self::LoopedBfs | Self::Interleaved | Self::InterleavedZeroBubble => ChunksRule::Any { default: 2 },
            Self::WaitFreeCyclic => ChunksRule::Any { default: 1 },
        }
    }

    /// Chunks of a rank where `asked` are asked for of the kinds that leave it open.
    pub fn chunks(self, asked: Option<usize>) -> usize {
        match self.chunks_rule() {
            ChunksRule::Exactly(chunks) => chunks,
            ChunksRule::Any { default } => asked.unwrap_or(default),
        }
    }

    /// Whether microbatches go through the chunks in groups.
    pub const fn has_groups(self) -> bool {
        matches!(self, Self::Interleaved | Self::InterleavedZeroBubble)
    }

    /// Whether gradients of weights are actions of their own.
    pub const fn splits_backward(self) -> bool {
        !matches!(self, Self::Gpipe | Self::LoopedBfs | Self::OneFOneB | Self::Interleaved | Self::WaitFreeCyclic)
    }

    /// Whether forwards and backwards run overlapped.
    pub const fn overlaps(self) -> bool {
        matches!(self, Self::DualPipe | Self::DualPipeV)
    }

    /// Whether the order is made for the times and the memory; the others have one order for each shape.
    pub const fn is_made_to_measure(self) -> bool {
        matches!(self, Self::ZbH1 | Self::ZbH2 | Self::WaitFreeCyclic)
    }

    /// The ways of the microbatches, for [`PipelineCosts`] to be made for.
    pub fn flows(self, ranks: usize, chunks: usize, microbatches: usize) -> Flows {
        Flows::placed(ranks, ranks * chunks, microbatches, self.placement())
    }

    /// Whether there is such a schedule.
    ///
    /// # Errors
    /// Names the size that cannot be.
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

    /// Makes the schedule of a shape. ZB-H1, ZB-H2 and the dynamic schedule are made for the costs and stay within
    /// `memory_cap` bytes on every rank, static memory included; the others have an order of their own, which may need more.
    ///
    /// # Errors
    /// Names the size that cannot be, or the rank on which one microbatch does not fit.
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
                // A short last group can deadlock; groups that nobody asked for must not.
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
    fn identifiers_are_those_of_json() {
        for kind in ScheduleKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.id()));
            assert_eq!(ScheduleKind::from_id(kind.id()), Some(kind));
        }
    }
}
