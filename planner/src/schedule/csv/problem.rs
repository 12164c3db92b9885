//! What is wrong with a table, by cell.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use crate::simulate::{Placed, Wait};

/// Most problems that are told one by one.
const MOST: usize = 100;

/// A cell of a table, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CellAddress {
    /// Row, the rank plus one where no row is empty.
    pub row: u32,
    /// Column; absent where the whole row is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl CellAddress {
    /// A cell.
    pub const fn new(row: u32, column: u32) -> Self {
        Self { row, column: Some(column) }
    }

    /// Where an action of a schedule stands in the table that [`crate::export::torch_csv_of`] makes of it.
    pub fn of(schedule: &Schedule, Placed { rank, place, .. }: Placed) -> Self {
        let column = crate::export::torch_csv_column(&schedule.orders[rank], place);
        Self::new(rank as u32 + 1, column as u32 + 1)
    }

    /// As spreadsheets name it, "C2"; a row by its number.
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

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TableProblem {
    /// Where; absent where the table as a whole is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<CellAddress>,
    /// The cell as spreadsheets name it, "C2".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// What is wrong, and what would be right.
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

/// A link of a deadlock: an action that cannot start before another, which stands behind the action of the next link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CellWait {
    /// Where the action stands that cannot start.
    pub at: CellAddress,
    /// That cell as spreadsheets name it.
    pub cell: String,
    /// The action in the torch grammar.
    pub action: String,
    /// Where the action stands that it waits for.
    pub needs_at: CellAddress,
    /// That cell as spreadsheets name it.
    pub needs_cell: String,
    /// The action that it waits for.
    pub needs: String,
}

impl CellWait {
    /// A wait, with the addresses of its ends.
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

/// Why a table is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, thiserror::Error)]
#[error("{}", describe(self))]
pub struct Refused {
    /// What is wrong, in the order of the rows and columns; the first hundred.
    pub problems: Vec<TableProblem>,
    /// Problems beyond those.
    pub further: usize,
    /// Where every cell is right: the actions that wait for each other in a circle.
    pub deadlock: Vec<CellWait>,
}

fn describe(refused: &Refused) -> String {
    match refused.problems.first() {
        None => describe_deadlock(&refused.deadlock),
        Some(first) => match refused.problems.len() - 1 + refused.further {
            0 => first.to_string(),
            more => format!("{first} (and {more} more)"),
        },
    }
}

/// "deadlock: C2 1B0 waits for 2B0 in D3, behind B3 2F1, which waits for ..."
pub fn describe_deadlock(waits: &[CellWait]) -> String {
    let links = waits.iter().enumerate().map(|(index, wait)| {
        let next = &waits[(index + 1) % waits.len()];
        format!("waits for {} {} behind {} {}", wait.needs_cell, wait.needs, next.cell, next.action)
    });
    let start = waits.first().map_or(String::new(), |wait| format!("{} {} ", wait.cell, wait.action));
    format!("deadlock: {start}{}", links.collect::<Vec<_>>().join(", which "))
}

impl Refused {
    pub(super) fn deadlock(waits: &[Wait], address: impl Fn(Placed) -> CellAddress) -> Self {
        Self { deadlock: waits.iter().map(|wait| CellWait::new(wait, &address)).collect(), ..Self::default() }
    }

    /// A table that is wrong as a whole.
    pub(super) fn whole(detail: String) -> Self {
        Self { problems: vec![TableProblem { at: None, cell: None, detail }], ..Self::default() }
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<TableProblem>,
    further: usize,
}

impl Problems {
    /// Notes a problem at a cell or a row, or of the whole table.
    pub(super) fn add(&mut self, at: Option<CellAddress>, detail: String) {
        if self.found.len() < MOST {
            let cell = at.filter(|at| at.column.is_some()).map(CellAddress::name);
            self.found.push(TableProblem { at, cell, detail });
        } else {
            self.further += 1;
        }
    }

    /// Whether no more can be told one by one.
    pub(super) const fn is_full(&self) -> bool {
        self.further > 0
    }

    /// The problems in the order of their cells, if there are any.
    pub(super) fn finish(mut self) -> Result<(), Refused> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort_by_key(|problem| problem.at);
        Err(Refused { problems: self.found, further: self.further, deadlock: Vec::new() })
    }
}
