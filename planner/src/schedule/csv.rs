//! Schedules from tables in the torch action grammar: one row per rank, one cell per action, an empty cell for idling. The
//! text of torch's `_format_pipeline_order` is read as well.
//!
//! Every cell is checked: every microbatch must go forward and backward through every stage once and on one rank, and the
//! orders must run. Problems have the addresses of their cells, as a spreadsheet names them.

mod cells;
mod grid;
mod number;
mod parse;
mod problem;
mod ways;

pub use problem::{CellAddress, CellWait, Refused, TableProblem, describe_deadlock};

use super::Schedule;
use crate::cost::{PipelineCosts, UniformTimes};
use crate::flow::Flows;
use crate::simulate::{execute, wait_cycle};
use crate::units::Nanos;

/// Largest table, in bytes.
pub const MAX_BYTES: usize = 16 << 20;
/// Most cells of a table, empty ones included.
pub const MAX_CELLS: usize = 4_000_000;

/// A table that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its orders; ranks are rows.
    pub schedule: Schedule,
    /// The ways of its microbatches, with every stage on the rank of its row.
    pub flows: Flows,
    /// What was set right or left out, for people.
    pub notes: Vec<String>,
}

/// Reads a table.
///
/// Sends, receives and waits, and the gathering and reducing of sharded weights, are counted and left out: the simulation
/// adds its own. The forwards of the last stage may be numbered from 1, as torch 2.9 prints its 1F1B.
///
/// A stage may stand on two rows, `r` and `p - 1 - r`, where microbatches enter at both ends (DualPipe); the copy that is
/// entered at the last rank then gets stage numbers from p on.
///
/// # Errors
/// Everything that is wrong, or the circle of actions that wait for each other.
pub fn read(text: &str) -> Result<Imported, Refused> {
    let rows = grid::rows_by_rank(text);
    let mut table = parse::parse(rows.as_deref().unwrap_or(text))?;
    if rows.is_some() {
        table.notes.insert(0, "a grid of steps and ranks, read as one row per rank and one column per step".to_owned());
    }
    number::number(&mut table);
    cells::judge(&mut table);
    std::mem::take(&mut table.problems).finish()?;
    let flows = ways::ways(&table)?;
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
        return Err(Refused::deadlock(&waits, |placed| addresses[placed.rank][placed.place]));
    }
    Ok(Imported { schedule, flows: costs.flows, notes: table.notes })
}

#[cfg(test)]
mod tests;
