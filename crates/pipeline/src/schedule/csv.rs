//! Import of schedules as CSV tables in the torch action grammar: one row per rank, one cell per
//! action, empty cells for idle time. The text format of torch's `_format_pipeline_order` is also
//! supported.
//!
//! The import validates all cells. Every microbatch must visit every stage once forward and once
//! backward, on the same rank, and the orders must not deadlock. Errors contain cell addresses in
//! spreadsheet notation.

mod cells;
mod grid;
mod number;
mod parse;
mod problem;
mod ways;

pub use problem::{CellAddress, CellWait, TableProblem, TableRejection, describe_deadlock};

use super::Schedule;
use crate::simulate::{execute, wait_cycle};
use planscope_core::stage_graph::Flows;
use planscope_core::units::Nanos;
use planscope_cost::cost::{PipelineCosts, UniformTimes};

/// Maximum table size in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// Maximum number of cells, including empty cells.
pub const MAX_CELLS: usize = 4_000_000;

/// A valid imported schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Orders; ranks correspond to rows.
    pub schedule: Schedule,
    /// Microbatch routes. Stages are on the rank of their row.
    pub flows: Flows,
    /// Messages about corrected or ignored cells.
    pub notes: Vec<String>,
}

/// Parses and validates a table.
///
/// Communication actions (sends, receives, waits, sharded weights) are counted but ignored, because
/// the simulation adds them. The forwards on the last stage can be numbered from 1, as in torch 2.9
/// output for 1F1B.
///
/// A stage can occur in two rows, `r` and `p - 1 - r`, if microbatches enter at both ends
/// (DualPipe). The copy that starts at the last rank then gets stage numbers from p.
///
/// # Errors
/// All invalid cells, or the cycle of actions that causes a deadlock.
pub fn read(text: &str) -> Result<Imported, TableRejection> {
    let rows = grid::rows_by_rank(text);
    let mut table = parse::parse(rows.as_deref().unwrap_or(text))?;
    if rows.is_some() {
        table.notes.insert(0, "a grid of steps and ranks, read as one row per rank and one column per step".to_owned());
    }
    number::number(&mut table);
    cells::judge(&mut table);
    std::mem::take(&mut table.problems).finish()?;
    let flows = ways::derive_flows(&table)?;
    let mut orders = vec![Vec::new(); table.ranks];
    let mut addresses = vec![Vec::new(); table.ranks];
    for placed in &table.actions {
        orders[placed.rank].push(placed.action);
        addresses[placed.rank].push(placed.address);
    }
    let schedule = Schedule { stages: flows.stages(), microbatches: flows.microbatches(), orders };
    let unit = Nanos::new(1);
    let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: Nanos::ZERO };
    let costs = PipelineCosts::uniform_over(flows, times);
    if let Err(deadlock) = execute(&schedule, &costs) {
        let waits = wait_cycle(&schedule, &costs.flows, &deadlock);
        return Err(TableRejection::deadlock(&waits, |placed| addresses[placed.rank][placed.index]));
    }
    Ok(Imported { schedule, flows: costs.flows, notes: table.notes })
}

#[cfg(test)]
mod tests;
