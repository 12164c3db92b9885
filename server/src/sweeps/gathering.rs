//! Import of rows planned by separate processes: parsing, validation and storage.

use std::collections::BTreeMap;

use api::sweep::Gathered;
use jiff::Timestamp;
use planner::sweep::{PointRow, Sheet, SheetError, runs};

use crate::store::{Store, StoreError};

/// Validated rows from a file, not stored yet.
#[derive(Debug)]
pub struct Lines {
    sheet: Sheet,
    rows: BTreeMap<u32, (PointRow, String)>,
}

impl Lines {
    /// Creates an empty set.
    pub const fn new(sheet: Sheet) -> Self {
        Self { sheet, rows: BTreeMap::new() }
    }

    /// Parses a line, checks that it matches the sweep, and adds the row.
    pub fn push(&mut self, line: &str) -> Result<(), SheetError> {
        let row = self.sheet.row(line)?;
        self.rows.insert(row.index, (row, line.to_owned()));
        Ok(())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the file header.
    pub const fn sheet(&self) -> &Sheet {
        &self.sheet
    }

    /// Removes all rows. Called when the rows are stored.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Returns the file text: header line and rows.
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

/// Stores the rows, and the sweep if it is new. Existing data is unchanged.
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
