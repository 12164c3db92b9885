//! Precomputed data, common to all walks with the same costs.

use planscope_core::units::{Bytes, Nanos};
use planscope_cost::cost::PipelineCosts;

/// Compact costs per action, and lower bounds per rank that hold for all orders.
pub struct Ground {
    stages: usize,
    microbatches: usize,
    /// By microbatch, then stage.
    cells: Vec<Cell>,
    stage_rank: Vec<usize>,
    ranks: Vec<Rank>,
    /// By microbatch, then stage: minimum time from this backward's end to the iteration end.
    return_times: Vec<Nanos>,
}

/// Costs of a microbatch on a stage.
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
    /// Gradient synchronization and optimizer time.
    closing: Nanos,
    lowest_stage: usize,
    /// Pairs (minimum time, microbatch) in ascending order. The time runs from the end of a
    /// backward on the lowest stage, which contains the rank's final action, to the iteration end.
    return_times: Vec<(Nanos, u32)>,
}

impl Ground {
    /// Precomputes a pipeline in which all microbatches visit all stages.
    pub fn new(costs: &PipelineCosts) -> Self {
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
        let stage_rank: Vec<usize> = (0..stages).map(|stage| costs.rank_for_stage(stage)).collect();
        let closing = |rank: usize| costs.sync[rank] + costs.optimizer[rank];
        let mut cells = Vec::with_capacity(stages * microbatches);
        let mut return_times = Vec::with_capacity(stages * microbatches);
        let mut work = vec![Nanos::ZERO; costs.ranks()];
        for microbatch in 0..microbatches {
            let mut below: Option<(Cell, Nanos)> = None;
            for stage in 0..stages {
                let current = cell(stage, microbatch);
                let down = below.map_or(Nanos::ZERO, |(next, way)| current.send_backward + next.backward + way);
                let way = down.max(closing(stage_rank[stage]));
                work[stage_rank[stage]] += current.forward + current.backward;
                cells.push(current);
                return_times.push(way);
                below = Some((current, way));
            }
        }
        let rank = |(rank, work): (usize, Nanos)| {
            let lowest_stage = stage_rank.iter().position(|&candidate| candidate == rank).unwrap_or(0);
            let way = |microbatch: usize| (return_times[microbatch * stages + lowest_stage], microbatch as u32);
            let mut sorted_times: Vec<(Nanos, u32)> = (0..microbatches).map(way).collect();
            sorted_times.sort_unstable();
            Rank { work, closing: closing(rank), lowest_stage, return_times: sorted_times }
        };
        let ranks = work.into_iter().enumerate().map(rank).collect();
        Self { stages, microbatches, cells, stage_rank, ranks, return_times }
    }

    /// No order ends earlier: a rank begins when the fastest microbatch has come to its lowest stage, has all its work one after the
    /// other, and from the last of it goes the shortest way back.
    ///
    /// Backwards are whole here, so this is above [`crate::lower_bound::lower_bound`], which lets weight gradients wait.
    pub(super) fn end_bound(&self) -> Nanos {
        let head = |stage: usize, microbatch: usize| -> Nanos {
            let before = (0..stage).map(|stage| self.cell(stage, microbatch));
            before.map(|cell| cell.forward + cell.send_forward).sum()
        };
        let rank_end = |rank: &Rank| {
            let head = (0..self.microbatches).map(|microbatch| head(rank.lowest_stage, microbatch)).min();
            let way_back = rank.return_times.first().map(|&(way, _)| way);
            head.unwrap_or(Nanos::ZERO) + rank.work + way_back.unwrap_or(rank.closing)
        };
        self.ranks.iter().map(rank_end).max().unwrap_or(Nanos::ZERO)
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

    pub(super) fn rank_for_stage(&self, stage: usize) -> usize {
        self.stage_rank[stage]
    }

    pub(super) fn cell(&self, stage: usize, microbatch: usize) -> Cell {
        self.cells[microbatch * self.stages + stage]
    }

    /// Total forward and backward time of a rank.
    pub(super) fn work(&self, rank: usize) -> Nanos {
        self.ranks[rank].work
    }

    /// Gradient synchronization and optimizer time of a rank.
    pub(super) fn closing(&self, rank: usize) -> Nanos {
        self.ranks[rank].closing
    }

    /// Lowest stage of a rank, which contains the final action.
    pub(super) fn lowest_stage(&self, rank: usize) -> u32 {
        self.ranks[rank].lowest_stage as u32
    }

    /// Minimum time from a backward's end to the iteration end.
    pub(super) fn way_back(&self, stage: usize, microbatch: usize) -> Nanos {
        self.return_times[microbatch * self.stages + stage]
    }

    /// Pairs (minimum time to the iteration end, microbatch) for a rank's lowest stage, in
    /// ascending order.
    pub(super) fn return_times(&self, rank: usize) -> &[(Nanos, u32)] {
        &self.ranks[rank].return_times
    }
}
