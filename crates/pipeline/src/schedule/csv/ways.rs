//! Microbatch routes: a microbatch visits all stages, or all stages in one of two copies.

use super::cells::sorted;
use super::parse::Table;
use super::problem::Problems;
use super::{CellAddress, TableRejection};
use planscope_core::action::Action;
use planscope_core::stage_graph::{Flows, Path, Placement};

/// Returns the routes for a table with gap-free numbers and complete cells. Returns an error if
/// cells are missing.
pub(super) fn derive_flows(table: &Table) -> Result<Flows, TableRejection> {
    let count = |number: &dyn Fn(&Action) -> u32| {
        table.actions.iter().map(|placed| number(&placed.action) as usize + 1).max().unwrap_or(0)
    };
    let (stages, microbatches) = (count(&|action| action.stage), count(&|action| action.microbatch));
    let mut stage_rank = vec![0_u32; stages];
    let mut stage_row = vec![0_u32; stages];
    for placed in &table.actions {
        stage_rank[placed.action.stage as usize] = placed.rank as u32;
        stage_row[placed.action.stage as usize] = placed.address.row;
    }
    let seconds = seconds(table, &stage_rank, microbatches);
    let visited = |microbatch: usize| match &seconds {
        None => 0..stages,
        Some(seconds) if seconds[microbatch] => stages / 2..stages,
        Some(_) => 0..stages / 2,
    };
    let mut present = sorted(table).into_iter().map(|index| {
        let Action { stage, microbatch, .. } = table.actions[index].action;
        (microbatch as usize, stage as usize)
    });
    let mut next = present.next();
    let mut problems = Problems::default();
    'microbatches: for microbatch in 0..microbatches {
        for stage in visited(microbatch) {
            if next == Some((microbatch, stage)) {
                next = present.by_ref().find(|&cell| cell != (microbatch, stage));
                continue;
            }
            let row = CellAddress { row: stage_row[stage], column: None };
            problems.add(Some(row), format!("{} and its backward are missing", Action::forward(stage, microbatch)));
            if problems.is_full() {
                break 'microbatches;
            }
        }
    }
    problems.finish()?;
    if seconds.is_none() {
        return Ok(Flows::chain(table.ranks, stage_rank, microbatches));
    }
    let path = |microbatch| Path { stages: visited(microbatch), inputs: Vec::new() };
    let paths: Vec<Path> = (0..microbatches).map(path).collect();
    Flows::new(table.ranks, stage_rank, &paths).map_err(|error| TableRejection::from_detail(error.to_string()))
}

/// For two mirrored copies, returns whether each microbatch uses the second copy. Returns `None` if
/// there are no mirrored copies, or a microbatch uses both.
fn seconds(table: &Table, stage_rank: &[u32], microbatches: usize) -> Option<Vec<bool>> {
    let ranks = table.ranks;
    if stage_rank != Placement::Bidirectional.stage_ranks(2 * ranks, ranks) {
        return None;
    }
    let mut copies = vec![None; microbatches];
    for placed in &table.actions {
        let is_second = placed.action.stage as usize >= ranks;
        if *copies[placed.action.microbatch as usize].get_or_insert(is_second) != is_second {
            return None;
        }
    }
    copies
        .into_iter()
        .collect::<Option<Vec<bool>>>()
        .filter(|seconds| seconds.contains(&true) && seconds.contains(&false))
}
