//! Paths for microbatches through stages: visited stages, their ranks, and dependencies.
//!
//! In a basic pipeline, every microbatch passes all stages. In a multimodal pipeline split by
//! module, encoder sub-microbatches pass only the encoder stages, and the backbone microbatch waits
//! for all of them. These are the *stage flows* of PipeWeaver Sec. 5. In a bidirectional pipeline,
//! half the microbatches pass a duplicate set of stages on the same ranks.
//!
//! With variable context-parallel groups, several ranks process a microbatch at the same time
//! instead of passing it on. Its cells form a *gang*, which starts when all ranks involved are
//! free.

mod boundary_kind;
mod placement;

pub use boundary_kind::BoundaryKind;
pub use placement::Placement;

use std::ops::Range;

/// Path for a microbatch or sub-microbatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Consecutive stages on the path.
    pub stages: Range<usize>,
    /// Microbatches that must leave their final stage before this microbatch enters its initial
    /// stage.
    pub inputs: Vec<usize>,
}

/// An item that several ranks process at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// Ranks of the item.
    pub ranks: Vec<u32>,
    /// Gang number. Items of a gang start together.
    pub gang: u32,
}

/// An invalid set of paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// A microbatch visits no stage, or a stage that does not exist.
    #[error("microbatch {microbatch} visits stages {first}..{end} of {stages}")]
    Stages {
        /// The microbatch.
        microbatch: usize,
        /// First stage.
        first: usize,
        /// Stage range end (exclusive).
        end: usize,
        /// Number of stages.
        stages: usize,
    },
    /// An input has a higher number than the dependent microbatch. This excludes cycles.
    #[error("microbatch {microbatch} takes its input from microbatch {input}, which does not stand before it")]
    Order {
        /// The microbatch.
        microbatch: usize,
        /// The input microbatch.
        input: usize,
    },
    /// A stage is on a rank that does not exist.
    #[error("stage {stage} stands on rank {rank} of {ranks}")]
    Rank {
        /// The stage.
        stage: usize,
        /// The rank.
        rank: u32,
        /// Number of ranks.
        ranks: usize,
    },
}

/// Paths for all microbatches in a pipeline. A cell is a pair of microbatch and visited stage.
/// Cells are numbered by microbatch, then in stage order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flows {
    ranks: usize,
    stage_rank: Vec<u32>,
    /// First stage by microbatch.
    first: Vec<u32>,
    /// First cell by microbatch, followed by the total number of cells.
    offsets: Vec<u32>,
    inputs: Neighbours,
    outputs: Neighbours,
    /// Gang by microbatch. Empty if microbatches pass from stage to stage.
    gangs: Vec<u32>,
}

/// Adjacency lists of microbatches in compressed form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Neighbours {
    offsets: Vec<u32>,
    list: Vec<u32>,
}

impl Neighbours {
    fn none(count: usize) -> Self {
        Self { offsets: vec![0; count + 1], list: Vec::new() }
    }

    fn from_lists(lists: &[Vec<u32>]) -> Self {
        let mut offsets = vec![0];
        let mut list = Vec::new();
        for entries in lists {
            list.extend_from_slice(entries);
            offsets.push(list.len() as u32);
        }
        Self { offsets, list }
    }

    fn get(&self, index: usize) -> &[u32] {
        &self.list[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl Flows {
    /// Builds paths through all stages, with stage `s` on rank `s mod p`.
    pub fn cyclic(ranks: usize, stages: usize, microbatches: usize) -> Self {
        Self::chain(ranks, (0..stages).map(|stage| (stage % ranks) as u32).collect(), microbatches)
    }

    /// Builds paths through all stages, with the given rank per stage.
    pub fn chain(ranks: usize, stage_rank: Vec<u32>, microbatches: usize) -> Self {
        let stages = stage_rank.len();
        Self {
            ranks,
            stage_rank,
            first: vec![0; microbatches],
            offsets: (0..=microbatches).map(|microbatch| (microbatch * stages) as u32).collect(),
            inputs: Neighbours::none(microbatches),
            outputs: Neighbours::none(microbatches),
            gangs: Vec::new(),
        }
    }

    /// Builds paths for items that several ranks process at the same time. Each rank is a separate
    /// stage of the item. All items in a gang start at the same time: the forward when all their
    /// ranks are free, and likewise the backward. Gangs are numbered from 0.
    ///
    /// # Errors
    /// Returns the first item that has no ranks or a rank that does not exist.
    pub fn together(ranks: usize, items: &[Gathered]) -> Result<Self, FlowError> {
        let mut stage = 0;
        let path = |item: &Gathered| {
            let first = stage;
            stage += item.ranks.len();
            Path { stages: first..stage, inputs: Vec::new() }
        };
        let paths: Vec<Path> = items.iter().map(path).collect();
        let placed = items.iter().flat_map(|item| &item.ranks).copied().collect();
        let mut flows = Self::new(ranks, placed, &paths)?;
        flows.gangs = items.iter().map(|item| item.gang).collect();
        Ok(flows)
    }

    /// Builds paths through all stages of a placement. If it is bidirectional, half the
    /// microbatches use the first copy of the stages, the remaining half the second.
    pub fn placed(ranks: usize, stages: usize, microbatches: usize, placement: Placement) -> Self {
        let stage_rank = placement.stage_ranks(stages, ranks);
        if placement != Placement::Bidirectional {
            return Self::chain(ranks, stage_rank, microbatches);
        }
        let copy = |microbatch: usize| if 2 * microbatch < microbatches { 0..ranks } else { ranks..2 * ranks };
        let paths: Vec<Path> =
            (0..microbatches).map(|microbatch| Path { stages: copy(microbatch), inputs: Vec::new() }).collect();
        Self::new(ranks, stage_rank, &paths).expect("both copies stand on the ranks")
    }

    /// Builds arbitrary paths.
    ///
    /// # Errors
    /// Returns the first invalid stage, rank or input.
    pub fn new(ranks: usize, stage_rank: Vec<u32>, paths: &[Path]) -> Result<Self, FlowError> {
        let stages = stage_rank.len();
        if let Some((stage, &rank)) = stage_rank.iter().enumerate().find(|(_, rank)| **rank as usize >= ranks) {
            return Err(FlowError::Rank { stage, rank, ranks });
        }
        let mut outputs = vec![Vec::new(); paths.len()];
        let mut inputs = Vec::with_capacity(paths.len());
        let mut offsets = vec![0];
        for (microbatch, path) in paths.iter().enumerate() {
            let Range { start: first, end } = path.stages;
            if first >= end || end > stages {
                return Err(FlowError::Stages { microbatch, first, end, stages });
            }
            for &input in &path.inputs {
                if input >= microbatch {
                    return Err(FlowError::Order { microbatch, input });
                }
                outputs[input].push(microbatch as u32);
            }
            inputs.push(path.inputs.iter().map(|&input| input as u32).collect());
            offsets.push(offsets[microbatch] + (end - first) as u32);
        }
        Ok(Self {
            ranks,
            stage_rank,
            first: paths.iter().map(|path| path.stages.start as u32).collect(),
            offsets,
            inputs: Neighbours::from_lists(&inputs),
            outputs: Neighbours::from_lists(&outputs),
            gangs: Vec::new(),
        })
    }

    /// Number of pipeline ranks, p.
    pub const fn ranks(&self) -> usize {
        self.ranks
    }

    /// Stages over all modules and directions.
    pub fn stages(&self) -> usize {
        self.stage_rank.len()
    }

    /// Number of microbatches; sub-microbatches count individually.
    pub fn microbatches(&self) -> usize {
        self.first.len()
    }

    /// Number of cells.
    pub fn cells(&self) -> usize {
        self.offsets.last().map_or(0, |&cells| cells as usize)
    }

    /// Returns the rank of a stage.
    pub fn rank_for_stage(&self, stage: usize) -> usize {
        self.stage_rank[stage] as usize
    }

    /// Stages visited by a microbatch.
    pub fn microbatch_stages(&self, microbatch: usize) -> Range<usize> {
        let first = self.first[microbatch] as usize;
        first..first + self.microbatch_cells(microbatch).len()
    }

    /// Cells of a microbatch, in stage order.
    pub fn microbatch_cells(&self, microbatch: usize) -> Range<usize> {
        self.offsets[microbatch] as usize..self.offsets[microbatch + 1] as usize
    }

    /// Cell of a microbatch at a visited stage.
    pub fn cell(&self, stage: usize, microbatch: usize) -> usize {
        self.offsets[microbatch] as usize + stage - self.first[microbatch] as usize
    }

    /// Returns true if the microbatch exists and visits the stage.
    pub fn visits(&self, stage: usize, microbatch: usize) -> bool {
        microbatch < self.microbatches() && self.microbatch_stages(microbatch).contains(&stage)
    }

    /// Inputs of a microbatch.
    pub fn inputs(&self, microbatch: usize) -> &[u32] {
        self.inputs.get(microbatch)
    }

    /// Microbatches that depend on this microbatch.
    pub fn outputs(&self, microbatch: usize) -> &[u32] {
        self.outputs.get(microbatch)
    }

    /// Gang for a microbatch. `None` if microbatches pass from stage to stage.
    pub fn microbatch_gang(&self, microbatch: usize) -> Option<usize> {
        self.gangs.get(microbatch).map(|&gang| gang as usize)
    }

    /// Number of gangs.
    pub fn gangs(&self) -> usize {
        self.gangs.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// Returns true if all microbatches visit all stages, and stage `s` is on rank `s mod p`.
    pub fn is_cyclic(&self) -> bool {
        let chain = self.gangs.is_empty()
            && (0..self.microbatches()).all(|microbatch| self.microbatch_stages(microbatch) == (0..self.stages()));
        chain && self.stage_rank.iter().enumerate().all(|(stage, &rank)| rank as usize == stage % self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(stages: Range<usize>, inputs: &[usize]) -> Path {
        Path { stages, inputs: inputs.to_vec() }
    }

    /// Two ranks, an encoder on stages 0 and 1, a backbone on stages 2 to 5. Two image parts are
    /// inputs of a microbatch.
    #[test]
    fn sub_microbatches_join_in_the_microbatch_that_waits_for_them() {
        let ranks = vec![0, 1, 0, 1, 0, 1];
        let flows = Flows::new(2, ranks, &[path(0..2, &[]), path(0..2, &[]), path(2..6, &[0, 1])]).unwrap();
        assert_eq!((flows.stages(), flows.microbatches(), flows.cells()), (6, 3, 8));
        assert_eq!((flows.cell(1, 1), flows.cell(2, 2), flows.cell(5, 2)), (3, 4, 7));
        assert_eq!((flows.inputs(2), flows.outputs(0)), (&[0, 1][..], &[2][..]));
        assert!(flows.visits(1, 0) && !flows.visits(2, 0) && !flows.visits(0, 3));
        assert!(!flows.is_cyclic() && Flows::cyclic(2, 4, 3).is_cyclic());
    }

    #[test]
    fn invalid_graphs_are_named() {
        let new = |paths: &[Path]| Flows::new(2, vec![0, 1], paths).unwrap_err();
        assert_eq!(new(&[path(0..3, &[])]), FlowError::Stages { microbatch: 0, first: 0, end: 3, stages: 2 });
        assert_eq!(new(&[path(1..1, &[])]), FlowError::Stages { microbatch: 0, first: 1, end: 1, stages: 2 });
        assert_eq!(new(&[path(0..1, &[]), path(1..2, &[1])]), FlowError::Order { microbatch: 1, input: 1 });
        assert_eq!(Flows::new(2, vec![0, 2], &[]).unwrap_err(), FlowError::Rank { stage: 1, rank: 2, ranks: 2 });
    }
}
