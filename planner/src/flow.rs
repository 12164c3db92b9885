//! The ways of microbatches through the stages: which stages each visits, on which ranks these stand, what feeds what.
//!
//! In the simplest pipeline every microbatch goes through every stage. In a multimodal one cut by module, an encoder's
//! sub-microbatches go through the encoder's stages only, and the backbone's microbatch waits for all of them:
//! PipeWeaver's *stage flows* (section 5). Where a pipeline runs in both directions, half of the microbatches go
//! through a second copy of the stages on the same ranks.
//!
//! Where sequences are cut over groups of ranks (context parallelism whose groups change), a microbatch is not handed on
//! but worked on by several ranks at once: its cells are a *gang*, which starts when the last of its ranks is free.

mod placement;

pub use placement::Placement;

use std::ops::Range;

/// The way of one microbatch or sub-microbatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The consecutive stages that it visits.
    pub stages: Range<usize>,
    /// What must have come through its own last stage before this enters its first.
    pub inputs: Vec<usize>,
}

/// What several ranks work on at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered {
    /// The ranks.
    pub ranks: Vec<u32>,
    /// What starts together has the same number.
    pub gang: u32,
}

/// Why ways cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// A microbatch visits no stage, or one that does not exist.
    #[error("microbatch {microbatch} visits stages {first}..{end} of {stages}")]
    Stages {
        /// The microbatch.
        microbatch: usize,
        /// First stage.
        first: usize,
        /// One behind its last.
        end: usize,
        /// Stages that there are.
        stages: usize,
    },
    /// Inputs must stand before what they feed; a cycle cannot be numbered so.
    #[error("microbatch {microbatch} takes its input from microbatch {input}, which does not stand before it")]
    Order {
        /// The microbatch.
        microbatch: usize,
        /// What it waits for.
        input: usize,
    },
    /// A stage stands on a rank that does not exist.
    #[error("stage {stage} stands on rank {rank} of {ranks}")]
    Rank {
        /// The stage.
        stage: usize,
        /// The rank.
        rank: u32,
        /// Ranks that there are.
        ranks: usize,
    },
}

/// The ways of all microbatches of a pipeline. Cells, the pairs of a microbatch and a stage that it visits, are
/// numbered microbatch by microbatch, each in the order of its stages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flows {
    ranks: usize,
    stage_rank: Vec<u32>,
    /// First stage of each microbatch.
    first: Vec<u32>,
    /// First cell of each microbatch, and the number of cells.
    offsets: Vec<u32>,
    inputs: Neighbours,
    outputs: Neighbours,
    /// Of each microbatch the gang that it belongs to; empty where microbatches are handed from stage to stage.
    gangs: Vec<u32>,
}

/// Lists of microbatches by microbatch, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Neighbours {
    offsets: Vec<u32>,
    list: Vec<u32>,
}

impl Neighbours {
    fn none(count: usize) -> Self {
        Self { offsets: vec![0; count + 1], list: Vec::new() }
    }

    fn of(lists: &[Vec<u32>]) -> Self {
        let mut offsets = vec![0];
        let mut list = Vec::new();
        for own in lists {
            list.extend_from_slice(own);
            offsets.push(list.len() as u32);
        }
        Self { offsets, list }
    }

    fn get(&self, index: usize) -> &[u32] {
        &self.list[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

impl Flows {
    /// Every microbatch goes through every stage; stage `s` stands on rank `s mod p`.
    pub fn cyclic(ranks: usize, stages: usize, microbatches: usize) -> Self {
        Self::chain(ranks, (0..stages).map(|stage| (stage % ranks) as u32).collect(), microbatches)
    }

    /// Every microbatch goes through every stage, each standing on the given rank.
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

    /// Every item is worked on by several ranks at once, each of which is a stage of the item's own. Items of one gang
    /// start together: forward when the last of all their ranks is free, backward likewise. Gangs are numbered from 0.
    ///
    /// # Errors
    /// Names the first item without a rank, or on ranks that do not exist.
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

    /// Every microbatch goes through every stage of a placement; where that is bidirectional, the first half of the
    /// microbatches through the first copy and the others through the second.
    pub fn placed(ranks: usize, stages: usize, microbatches: usize, placement: Placement) -> Self {
        let stage_rank = placement.ranks_of(stages, ranks);
        if placement != Placement::Bidirectional {
            return Self::chain(ranks, stage_rank, microbatches);
        }
        let copy = |microbatch: usize| if 2 * microbatch < microbatches { 0..ranks } else { ranks..2 * ranks };
        let paths: Vec<Path> =
            (0..microbatches).map(|microbatch| Path { stages: copy(microbatch), inputs: Vec::new() }).collect();
        Self::new(ranks, stage_rank, &paths).expect("both copies stand on the ranks")
    }

    /// Ways of their own.
    ///
    /// # Errors
    /// Names the first stage, rank or input that cannot be.
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
            inputs: Neighbours::of(&inputs),
            outputs: Neighbours::of(&outputs),
            gangs: Vec::new(),
        })
    }

    /// Pipeline ranks, p.
    pub const fn ranks(&self) -> usize {
        self.ranks
    }

    /// Stages of all modules and directions.
    pub fn stages(&self) -> usize {
        self.stage_rank.len()
    }

    /// Microbatches, sub-microbatches counted each.
    pub fn microbatches(&self) -> usize {
        self.first.len()
    }

    /// Pairs of a microbatch and a stage that it visits.
    pub fn cells(&self) -> usize {
        self.offsets.last().map_or(0, |&cells| cells as usize)
    }

    /// The rank of a stage.
    pub fn rank_of(&self, stage: usize) -> usize {
        self.stage_rank[stage] as usize
    }

    /// The stages that a microbatch visits.
    pub fn stages_of(&self, microbatch: usize) -> Range<usize> {
        let first = self.first[microbatch] as usize;
        first..first + self.cells_of(microbatch).len()
    }

    /// The cells of a microbatch, in the order of its stages.
    pub fn cells_of(&self, microbatch: usize) -> Range<usize> {
        self.offsets[microbatch] as usize..self.offsets[microbatch + 1] as usize
    }

    /// The cell of a stage and a microbatch that visits it.
    pub fn cell(&self, stage: usize, microbatch: usize) -> usize {
        self.offsets[microbatch] as usize + stage - self.first[microbatch] as usize
    }

    /// Whether a microbatch exists and visits a stage.
    pub fn visits(&self, stage: usize, microbatch: usize) -> bool {
        microbatch < self.microbatches() && self.stages_of(microbatch).contains(&stage)
    }

    /// What must have come through before this microbatch enters.
    pub fn inputs(&self, microbatch: usize) -> &[u32] {
        self.inputs.get(microbatch)
    }

    /// What this microbatch feeds.
    pub fn outputs(&self, microbatch: usize) -> &[u32] {
        self.outputs.get(microbatch)
    }

    /// The gang of a microbatch whose stages work on it at once; `None` where it is handed from stage to stage.
    pub fn gang_of(&self, microbatch: usize) -> Option<usize> {
        self.gangs.get(microbatch).map(|&gang| gang as usize)
    }

    /// Gangs that there are.
    pub fn gangs(&self) -> usize {
        self.gangs.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// Whether every microbatch visits every stage, and stage `s` stands on rank `s mod p`.
    pub fn is_cyclic(&self) -> bool {
        let chain = self.gangs.is_empty()
            && (0..self.microbatches()).all(|microbatch| self.stages_of(microbatch) == (0..self.stages()));
        chain && self.stage_rank.iter().enumerate().all(|(stage, &rank)| rank as usize == stage % self.ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(stages: Range<usize>, inputs: &[usize]) -> Path {
        Path { stages, inputs: inputs.to_vec() }
    }

    /// Two ranks; an encoder on stages 0 and 1, a backbone on 2 to 5; two parts of images feed one microbatch.
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
    fn what_cannot_be_is_named() {
        let new = |paths: &[Path]| Flows::new(2, vec![0, 1], paths).unwrap_err();
        assert_eq!(new(&[path(0..3, &[])]), FlowError::Stages { microbatch: 0, first: 0, end: 3, stages: 2 });
        assert_eq!(new(&[path(1..1, &[])]), FlowError::Stages { microbatch: 0, first: 1, end: 1, stages: 2 });
        assert_eq!(new(&[path(0..1, &[]), path(1..2, &[1])]), FlowError::Order { microbatch: 1, input: 1 });
        assert_eq!(Flows::new(2, vec![0, 2], &[]).unwrap_err(), FlowError::Rank { stage: 1, rank: 2, ranks: 2 });
    }
}
