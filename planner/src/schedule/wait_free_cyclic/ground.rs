//! What all walks over the same costs share.

use crate::cost::PipelineCosts;
use crate::units::{Bytes, Nanos};

/// The costs of every action, close together, and what is certain of a rank whatever order is taken.
pub struct Ground {
    stages: usize,
    microbatches: usize,
    /// By microbatch, then stage.
    cells: Vec<Cell>,
    stage_rank: Vec<usize>,
    ranks: Vec<Rank>,
    /// By microbatch, then stage: from the end of its backward there to the end of the iteration, if nothing else were to do.
    ways_back: Vec<Nanos>,
}

/// What a microbatch takes on a stage.
#[derive(Clone, Copy)]
pub(super) struct Cell {
    pub forward: Nanos,
    pub backward: Nanos,
    pub send_forward: Nanos,
    pub send_backward: Nanos,
    pub activation: Bytes,
}

struct Rank {
    work: Nanos,
    /// Synchronisation and optimizer.
    closing: Nanos,
    lowest_stage: usize,
    /// From its lowest stage: where its last action is. Shortest first, with the microbatch.
    ways_back: Vec<(Nanos, u32)>,
}

impl Ground {
    /// Of a pipeline whose microbatches all visit all stages.
    pub fn of(costs: &PipelineCosts) -> Self {
        let (stages, microbatches) = (costs.stages(), costs.microbatches());
        let cell = |stage: usize, microbatch: usize| {
            let cell = costs.cell(stage, microbatch);
            Cell {
                forward: costs.forward[cell],
                backward: costs.backward(cell),
                send_forward: costs.send_forward[cell],
                send_backward: costs.send_backward[cell],
                activation: costs.activation[cell],
            }
        };
        let stage_rank: Vec<usize> = (0..stages).map(|stage| costs.rank_of(stage)).collect();
        let closing = |rank: usize| costs.sync[rank] + costs.optimizer[rank];
        let mut cells = Vec::with_capacity(stages * microbatches);
        let mut ways_back = Vec::with_capacity(stages * microbatches);
        let mut work = vec![Nanos::ZERO; costs.ranks()];
        for microbatch in 0..microbatches {
            let mut below: Option<(Cell, Nanos)> = None;
            for stage in 0..stages {
                let own = cell(stage, microbatch);
                let down = below.map_or(Nanos::ZERO, |(next, way)| own.send_backward + next.backward + way);
                let way = down.max(closing(stage_rank[stage]));
                work[stage_rank[stage]] += own.forward + own.backward;
                cells.push(own);
                ways_back.push(way);
                below = Some((own, way));
            }
        }
        let rank = |(rank, work): (usize, Nanos)| {
            let lowest_stage = stage_rank.iter().position(|&of| of == rank).unwrap_or(0);
            let way = |microbatch: usize| (ways_back[microbatch * stages + lowest_stage], microbatch as u32);
            let mut ways: Vec<(Nanos, u32)> = (0..microbatches).map(way).collect();
            ways.sort_unstable();
            Rank { work, closing: closing(rank), lowest_stage, ways_back: ways }
        };
        let ranks = work.into_iter().enumerate().map(rank).collect();
        Self { stages, microbatches, cells, stage_rank, ranks, ways_back }
    }

    /// No order ends earlier: a rank begins when the fastest microbatch has come to its lowest stage, has all its work one after the
    /// other, and from the last of it goes the shortest way back.
    ///
    /// Backwards are whole here, so this is above [`crate::compare::lower_bound`], which lets weight gradients wait.
    pub(super) fn least_end(&self) -> Nanos {
        let head = |stage: usize, microbatch: usize| -> Nanos {
            let before = (0..stage).map(|stage| self.cell(stage, microbatch));
            before.map(|cell| cell.forward + cell.send_forward).sum()
        };
        let of_rank = |rank: &Rank| {
            let head = (0..self.microbatches).map(|microbatch| head(rank.lowest_stage, microbatch)).min();
            let way_back = rank.ways_back.first().map(|&(way, _)| way);
            head.unwrap_or(Nanos::ZERO) + rank.work + way_back.unwrap_or(rank.closing)
        };
        self.ranks.iter().map(of_rank).max().unwrap_or(Nanos::ZERO)
    }

    pub(super) const fn stages(&self) -> usize {
        self.stages
    }

    pub(super) const fn microbatches(&self) -> usize {
        self.microbatches
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks.len()
    }

    pub(super) fn rank_of(&self, stage: usize) -> usize {
        self.stage_rank[stage]
    }

    pub(super) fn cell(&self, stage: usize, microbatch: usize) -> Cell {
        self.cells[microbatch * self.stages + stage]
    }

    /// All forwards and backwards of a rank.
    pub(super) fn work(&self, rank: usize) -> Nanos {
        self.ranks[rank].work
    }

    /// What a rank does when all its backwards are done.
    pub(super) fn closing(&self, rank: usize) -> Nanos {
        self.ranks[rank].closing
    }

    /// Where the last action of a rank is.
    pub(super) fn lowest_stage(&self, rank: usize) -> u32 {
        self.ranks[rank].lowest_stage as u32
    }

    /// From the end of a backward to the end of the iteration at the earliest.
    pub(super) fn way_back(&self, stage: usize, microbatch: usize) -> Nanos {
        self.ways_back[microbatch * self.stages + stage]
    }

    /// From the lowest stage of a rank, shortest first, with the microbatch.
    pub(super) fn ways_back(&self, rank: usize) -> &[(Nanos, u32)] {
        &self.ranks[rank].ways_back
    }
}
