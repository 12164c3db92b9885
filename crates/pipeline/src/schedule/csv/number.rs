//! Validation of stage and microbatch numbers: no gaps, and one rank per stage.

use std::collections::{BTreeMap, BTreeSet};

use super::CellAddress;
use super::parse::Table;
use super::problem::Problems;
use planscope_core::action::{Action, ActionKind};

/// Corrects known numbering variants and reports invalid numbers.
pub(super) fn number(table: &mut Table) {
    split_copies(table);
    number_from_zero(table);
    let mut problems = std::mem::take(&mut table.problems);
    no_gaps(table, &mut problems, "stage", |action| action.stage);
    no_gaps(table, &mut problems, "microbatch", |action| action.microbatch);
    no_split_stages(table, &mut problems);
    table.problems = problems;
}

/// If all stages occur in rows r and p - 1 - r, with r as the stage number, renumbers the copies in
/// the latter rows from p.
fn split_copies(table: &mut Table) {
    let ranks = table.ranks as u32;
    let mirrored = |rank: usize, stage: u32| rank as u32 + stage + 1 == ranks;
    let mut is_shared = false;
    for placed in &table.actions {
        let (is_direct, other) =
            (placed.rank as u32 == placed.action.stage, mirrored(placed.rank, placed.action.stage));
        if !(is_direct || other) || placed.action.stage >= ranks || ranks % 2 == 1 {
            return;
        }
        is_shared |= other;
    }
    let has_direct = table.actions.iter().any(|placed| placed.rank as u32 == placed.action.stage);
    if !(is_shared && has_direct) {
        return;
    }
    let (mut first, mut second) = (BTreeSet::new(), BTreeSet::new());
    for placed in &mut table.actions {
        let Action { stage, microbatch, .. } = &mut placed.action;
        if mirrored(placed.rank, *stage) {
            *stage += ranks;
            second.insert(*microbatch);
        } else {
            first.insert(*microbatch);
        }
    }
    table.notes.push(format!(
        "stages stand on two rows: microbatches enter at both ends, and the second copy is numbered from stage {ranks} on"
    ));
    let Some(behind) = first.last().map(|last| last + 1).filter(|_| !first.is_disjoint(&second)) else { return };
    for placed in table.actions.iter_mut().filter(|placed| placed.action.stage >= ranks) {
        placed.action.microbatch += behind;
    }
    table.notes.push(format!("both ends number their microbatches from 0: those of the second copy from {behind} on"));
}

/// Reports gaps in numbers, which must start at 0.
fn no_gaps(table: &Table, problems: &mut Problems, kind: &str, number: impl Fn(&Action) -> u32) {
    let mut first: BTreeMap<u32, CellAddress> = BTreeMap::new();
    for placed in &table.actions {
        first.entry(number(&placed.action)).or_insert(placed.address);
    }
    let mut expected = 0;
    for (&found, &address) in &first {
        if found > expected {
            let missing = if found == expected + 1 {
                format!("{kind} {expected}")
            } else {
                format!("{kind} {expected} to {}", found - 1)
            };
            problems.add(Some(address), format!("{kind} {found} is here, but {missing} is nowhere"));
        }
        expected = found + 1;
    }
}

/// Reports stages in more than one row.
fn no_split_stages(table: &Table, problems: &mut Problems) {
    let mut counts: BTreeMap<u32, BTreeMap<usize, usize>> = BTreeMap::new();
    for placed in &table.actions {
        *counts.entry(placed.action.stage).or_default().entry(placed.rank).or_default() += 1;
    }
    // The row with the maximum number of actions is assumed to be correct.
    let home = |stage: &u32| {
        counts[stage].iter().max_by_key(|&(&rank, &count)| (count, std::cmp::Reverse(rank))).map(|(&rank, _)| rank)
    };
    let homes: BTreeMap<u32, Option<usize>> = counts.keys().map(|stage| (*stage, home(stage))).collect();
    let mut rows = vec![0; table.ranks];
    for placed in &table.actions {
        rows[placed.rank] = placed.address.row;
    }
    for placed in &table.actions {
        let stage = placed.action.stage;
        if let Some(Some(home)) = homes.get(&stage)
            && *home != placed.rank
        {
            let detail =
                format!("{} stands on the wrong rank: stage {stage} is that of row {}", placed.action, rows[*home]);
            problems.add(Some(placed.address), detail);
        }
    }
}

/// Renumbers the forwards on the last stage if they run from 1 to m and all others from 0 to m - 1.
fn number_from_zero(table: &mut Table) {
    let last = table.actions.iter().map(|placed| placed.action.stage).max().unwrap_or(0);
    let (mut shifted, mut others) = (BTreeSet::new(), BTreeSet::new());
    let mut row = 0;
    for placed in &table.actions {
        if placed.action.stage == last && placed.action.kind == ActionKind::Forward {
            shifted.insert(placed.action.microbatch);
            row = placed.address.row;
        } else {
            others.insert(placed.action.microbatch);
        }
    }
    let count = shifted.len() as u32;
    if count == 0 || !shifted.iter().copied().eq(1..=count) || !others.iter().copied().eq(0..count) {
        return;
    }
    for placed in &mut table.actions {
        if placed.action.stage == last && placed.action.kind == ActionKind::Forward {
            placed.action.microbatch -= 1;
        }
    }
    table.notes.push(format!(
        "the forwards of the last stage (row {row}) are numbered 1 to {count}, as torch 2.9 prints its 1F1B table; read as 0 to {}",
        count - 1
    ));
}
