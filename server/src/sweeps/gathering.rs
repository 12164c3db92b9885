//! Rows that others have planned: read, held against their sweep, and stored.

use std::collections::BTreeMap;

use api::sweep::Gathered;
use jiff::Timestamp;
use planner::sweep::{PointRow, Sheet, SheetError, runs};

use crate::store::{Store, StoreError};

/// Lines of a file that belong to its sweep, until they are stored.
#[derive(Debug)]
pub struct Lines {
    sheet: Sheet,
    rows: BTreeMap<u32, (PointRow, String)>,
}

impl Lines {
    /// None yet.
    pub const fn new(sheet: Sheet) -> Self {
        Self { sheet, rows: BTreeMap::new() }
    }

    /// Takes a line that is a row of the sweep.
    pub fn push(&mut self, line: &str) -> Result<(), SheetError> {
        let row = self.sheet.row(line)?;
        self.rows.insert(row.index, (row, line.to_owned()));
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The file that they come from.
    pub const fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// They are stored.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// A file of them, heading first.
    pub fn text(&self) -> String {
        let mut text = self.sheet.heading.line();
        for (_, line) in self.rows.values() {
            text.push('\n');
            text.push_str(line);
        }
        text.push('\n');
        text
    }
}

/// Stores the lines so far, with their sweep where it is not there yet. What is there already stays as it is.
pub async fn store(store: &Store, lines: &Lines, now: Timestamp) -> Result<Gathered, StoreError> {
    let sheet = &lines.sheet;
    let (sweep, engine) = (&sheet.sweep, sheet.heading.engine.as_str());
    store.writer().store_sweep(sweep, now).await?;
    let id = sweep.id();
    let rows: Vec<(PointRow, String)> = lines.rows.values().cloned().collect();
    let added = store.writer().store_sweep_rows(id.as_str(), &rows).await?;
    let present = store.reader().sweep_present(id.as_str(), engine).await?;
    let missing = runs((0..sweep.points()).filter(|point| !present.contains(point)));
    Ok(Gathered { sweep: id.to_string(), points: sweep.points(), added, missing })
}
