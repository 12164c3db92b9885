//! Reads tables of training configurations. Each row is one configuration and is estimated
//! independently.
//!
//! The input is CSV. The delimiter (comma, semicolon or tab) is detected from the header. Columns
//! may appear in any order, and unknown columns are copied but ignored. Column names are
//! case-insensitive, surrounding blanks and a byte order mark are ignored. An empty cell or a
//! missing column means the default.
//!
//! docs/estimate.md lists the columns, their values and defaults, and all assumptions.
//!
//! # Output
//!
//! [`write`] copies all input cells unchanged and appends the columns [`ANSWERS`]. An inconsistent
//! row has `feasible` false, no numbers, and a `reason` that starts with the column name. A row
//! that exceeds device memory also has its numbers. A line with too few or too many cells still
//! produces a row at the same position.

mod answer;
mod architecture;
mod cells;
mod column;
mod configure;
mod copies;
mod defaults;
mod degrees;
mod error;
mod heading;
mod kernels;
mod presets;
mod records;
mod suggestion;
mod without_effect;

pub use answer::{ANSWERS, Obstacle, Summary, write};
pub use cells::Rejection;
pub use column::{COLUMNS, Column, Holds, describe_columns, similar};
pub use error::ConfigurationsError;
pub use heading::ALIASES;
pub use without_effect::StatedColumn;

use csv::StringRecord;
use planner::estimate::Configuration;

use architecture::Origin;
use cells::Cells;
use column::{Facts, PresetParts};
use configure::Finished;
use heading::{Heading, Meaning};
use presets::Presets;
use records::{Record, Records};

/// Maximum input size in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Maximum number of columns.
pub const MAX_COLUMNS: usize = 1000;

/// A table of configurations. Rows are parsed lazily.
#[derive(Debug, Clone)]
pub struct Table<'t> {
    header: Vec<String>,
    /// Known column at each header position.
    columns: Vec<Option<Heading>>,
    records: Records<'t>,
    presets: Presets,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Cells of the row, padded or cut to the header width.
    pub cells: StringRecord,
    /// Parsed configuration, or the reason for rejection.
    pub configuration: Result<Configuration, Rejection>,
    /// Values that the row does not state, for example "attention flash2; zero 1".
    pub defaults: String,
    /// Columns that the row states. Empty if the row is rejected.
    pub stated: Vec<StatedColumn>,
}

/// Reads the header of a table of configurations.
pub fn read(bytes: &[u8]) -> Result<Table<'_>, ConfigurationsError> {
    if bytes.len() > MAX_BYTES {
        return Err(ConfigurationsError::TooLarge);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ConfigurationsError::NotText { detail: format!("byte {} is not", error.valid_up_to()) })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ConfigurationsError::Empty);
    }
    let mut records = Records::new(text.trim_start());
    let header: Vec<String> =
        records.next_record(None).iter().flat_map(|record| &record.cells).map(str::to_owned).collect();
    if header.len() > MAX_COLUMNS {
        return Err(ConfigurationsError::TooManyColumns { columns: header.len() });
    }
    let columns = columns(&header)?;
    if columns.iter().all(Option::is_none) {
        return Err(ConfigurationsError::NoHeader { found: cells::quoted(&header.join(",")) });
    }
    Ok(Table { header, columns, records, presets: Presets::new() })
}

/// Returns the known column at each position. The exact name of a column has priority over other names of it, which are
/// copies.
fn columns(header: &[String]) -> Result<Vec<Option<Heading>>, ConfigurationsError> {
    let meanings: Vec<Meaning> = header.iter().map(|name| heading::meaning(name)).collect();
    let is_exact: Vec<bool> = header.iter().map(|name| heading::is_exact(name)).collect();
    let position = |column: &str, exact: bool| {
        let is_it = |meaning: &Meaning| matches!(meaning, Meaning::Known(heading) if heading.column == column);
        (0..header.len()).find(|&index| is_it(&meanings[index]) && (!exact || is_exact[index]))
    };
    let mut columns = Vec::with_capacity(header.len());
    for (index, (name, meaning)) in header.iter().zip(&meanings).enumerate() {
        columns.push(match *meaning {
            Meaning::Unknown => None,
            Meaning::Ambiguous(choices) if choices.iter().all(|column| position(column, false).is_some()) => None,
            Meaning::Ambiguous(choices) => {
                return Err(ConfigurationsError::AmbiguousColumn { name: cells::quoted(name.trim()), choices });
            }
            Meaning::Known(heading) => match position(heading.column, true) {
                Some(exact) if !is_exact[index] && exact != index => Some(Heading { is_copy: true, ..heading }),
                exact => {
                    let first = exact.or_else(|| position(heading.column, false)).unwrap_or(index);
                    if first < index {
                        let names = [first, index].map(|index| cells::quoted(header[index].trim()));
                        return Err(ConfigurationsError::RepeatedColumn { column: heading.column, names });
                    }
                    Some(heading)
                }
            },
        });
    }
    Ok(columns)
}

impl Table<'_> {
    /// Returns the column names as written in the file.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the names of unknown columns.
    pub fn ignored(&self) -> impl Iterator<Item = &str> {
        self.header.iter().zip(&self.columns).filter(|(_, known)| known.is_none()).map(|(name, _)| name.trim())
    }

    /// Iterates over the rows in file order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let mut records = self.records.clone();
        std::iter::from_fn(move || records.next_record(Some(self.header.len())).map(|record| self.row(record)))
    }

    const fn delimiter(&self) -> u8 {
        self.records.delimiter()
    }

    fn row(&self, Record { mut cells, torn }: Record) -> Row {
        let (found, width) = (cells.len(), self.header.len());
        // Spreadsheets append commas for empty columns.
        let surplus = cells.iter().skip(width).any(|cell| !cell.is_empty());
        cells.truncate(width);
        (found..width).for_each(|_| cells.push_field(""));
        let malformed = |says: String| Err(Rejection { column: "cells", says });
        let known_cells = Cells { columns: &self.columns, record: &cells };
        let finished = if torn {
            malformed("a quote is not closed".to_owned())
        } else if surplus || found < width {
            malformed(format!("{found} where the header has {width}"))
        } else if cells.iter().zip(&self.header).all(|(cell, name)| cell.trim() == name.trim()) {
            malformed("the header again".to_owned())
        } else {
            configure::configuration(known_cells, &self.presets)
        };
        let (configuration, defaults, stated) = match finished {
            Err(rejection) => (Err(rejection), String::new(), Vec::new()),
            Ok(Finished { configuration, origin }) => {
                let preset = if let Origin::Preset(parts) = origin { parts } else { PresetParts::default() };
                let facts = Facts::new(known_cells, &configuration, preset);
                let defaults = defaults::used(known_cells, &configuration, origin, &facts);
                let stated = without_effect::stated(known_cells, &facts);
                (Ok(configuration), defaults, stated)
            }
        };
        Row { cells, configuration, defaults, stated }
    }
}

#[cfg(test)]
mod tests;
