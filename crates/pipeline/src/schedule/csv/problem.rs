//! Import errors with cell addresses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::simulate::{Placed, Wait};
use planscope_core::action::Schedule;

/// Maximum number of listed problems.
const MAX_PROBLEMS: usize = 100;

/// A cell in a table; indices start at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CellAddress {
    /// Row number: rank + 1, if no row is empty.
    pub row: u32,
    /// Column number; `None` for a full row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl CellAddress {
    /// Creates a cell address.
    pub const fn new(row: u32, column: u32) -> Self {
        Self { row, column: Some(column) }
    }

    /// Returns the address of an action in the table that [`crate::export::schedule_csv`] writes
    /// for `schedule`.
    pub fn from_schedule(schedule: &Schedule, Placed { rank, index, .. }: Placed) -> Self {
        let column = crate::export::torch_csv_column(&schedule.orders[rank], index);
        Self::new(rank as u32 + 1, column as u32 + 1)
    }

    /// Returns the spreadsheet notation, for example "C2", or the row number.
    pub fn name(self) -> String {
        let mut letters = Vec::new();
        let mut left = self.column.unwrap_or(0);
        while left > 0 {
            letters.push(char::from(b'A' + ((left - 1) % 26) as u8));
            left = (left - 1) / 26;
        }
        letters.into_iter().rev().collect::<String>() + &self.row.to_string()
    }
}

impl fmt::Display for CellAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "row {}, column {column} ({})", self.row, self.name()),
            None => write!(f, "row {}", self.row),
        }
    }
}

/// A problem in a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TableProblem {
    /// Address; `None` for a problem with the table as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<CellAddress>,
    /// Address in spreadsheet notation, for example "C2".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Description of the problem and the expected content.
    pub detail: String,
}

impl fmt::Display for TableProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{at}: {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}

/// A step in a deadlock cycle: a blocked action requires another action, queued behind the blocked
/// action of the following step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CellWait {
    /// Address of the blocked action.
    pub at: CellAddress,
    /// The same address in spreadsheet notation.
    pub cell: String,
    /// The blocked action in torch grammar.
    pub action: String,
    /// Address of the required action.
    pub needs_at: CellAddress,
    /// The same address in spreadsheet notation.
    pub needs_cell: String,
    /// The required action in torch grammar.
    pub needs: String,
}

impl CellWait {
    /// Creates a deadlock step from `wait`. `address` maps positions to cells.
    pub fn new(wait: &Wait, address: impl Fn(Placed) -> CellAddress) -> Self {
        let (at, needs_at) = (address(wait.waiting), address(wait.needs));
        Self {
            at,
            cell: at.name(),
            action: wait.waiting.action.to_string(),
            needs_at,
            needs_cell: needs_at.name(),
            needs: wait.needs.action.to_string(),
        }
    }
}

/// Import error.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
#[error("{}", describe(self))]
pub struct TableRejection {
    /// Up to 100 problems, sorted by row and column.
    pub problems: Vec<TableProblem>,
    /// Number of problems not listed.
    pub further: usize,
    /// Deadlock cycle, if all cells are valid.
    pub deadlock: Vec<CellWait>,
}

fn describe(rejection: &TableRejection) -> String {
    match rejection.problems.first() {
        None => describe_deadlock(&rejection.deadlock),
        Some(first) => match rejection.problems.len() - 1 + rejection.further {
            0 => first.to_string(),
            more => format!("{first} (and {more} more)"),
        },
    }
}

/// Formats a cycle as "deadlock: C2 1B0 waits for 2B0 in D3, behind B3 2F1, which waits for ..."
pub fn describe_deadlock(waits: &[CellWait]) -> String {
    let links = waits.iter().enumerate().map(|(index, wait)| {
        let next = &waits[(index + 1) % waits.len()];
        format!("waits for {} {} behind {} {}", wait.needs_cell, wait.needs, next.cell, next.action)
    });
    let start = waits.first().map_or(String::new(), |wait| format!("{} {} ", wait.cell, wait.action));
    format!("deadlock: {start}{}", links.collect::<Vec<_>>().join(", which "))
}

impl TableRejection {
    pub(super) fn deadlock(waits: &[Wait], address: impl Fn(Placed) -> CellAddress) -> Self {
        Self { deadlock: waits.iter().map(|wait| CellWait::new(wait, &address)).collect(), ..Self::default() }
    }

    /// Creates an error for the table as a whole.
    pub(super) fn from_detail(detail: String) -> Self {
        Self { problems: vec![TableProblem { at: None, cell: None, detail }], ..Self::default() }
    }
}

/// Collects problems.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<TableProblem>,
    further: usize,
}

impl Problems {
    /// Adds a problem for a cell, a row or the table as a whole.
    pub(super) fn add(&mut self, at: Option<CellAddress>, detail: String) {
        if self.found.len() < MAX_PROBLEMS {
            let cell = at.filter(|at| at.column.is_some()).map(CellAddress::name);
            self.found.push(TableProblem { at, cell, detail });
        } else {
            self.further += 1;
        }
    }

    /// Returns whether the list is full.
    pub(super) const fn is_full(&self) -> bool {
        self.further > 0
    }

    /// Returns an error with all problems in cell order, if any.
    pub(super) fn finish(mut self) -> Result<(), TableRejection> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|problem| problem.at);
        Err(TableRejection { problems: self.found, further: self.further, deadlock: Vec::new() })
    }
}
