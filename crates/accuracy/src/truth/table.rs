//! CSV file with named columns.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Error;

/// File content in memory.
#[derive(Debug)]
pub(super) struct Table {
    path: PathBuf,
    header: csv::StringRecord,
    records: Vec<csv::StringRecord>,
}

/// A line of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    table: &'a Table,
    record: &'a csv::StringRecord,
}

impl Table {
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self, Error> {
        let path = folder.join(name);
        let read = || -> Result<_, csv::Error> {
            let mut reader = csv::Reader::from_path(&path)?;
            let header = reader.headers()?.clone();
            Ok((header, reader.records().collect::<Result<Vec<_>, _>>()?))
        };
        match read() {
            Ok((header, records)) => Ok(Self { path, header, records }),
            Err(error) => Err(Error::File { path, error }),
        }
    }

    /// Returns the lines without the header.
    pub(super) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.records.iter().map(|record| Line { table: self, record })
    }
}

impl<'a> Line<'a> {
    /// Returns the cell text. Empty if the column is missing.
    pub(super) fn text(self, column: &str) -> &'a str {
        let column_index = self.table.header.iter().position(|name| name == column);
        column_index.and_then(|index| self.record.get(index)).unwrap_or_default()
    }

    /// True if the cell is empty.
    pub(super) fn lacks(self, column: &str) -> bool {
        self.text(column).is_empty()
    }

    /// Parses the cell as a number.
    pub(super) fn number<T: FromStr>(self, column: &str) -> Result<T, Error> {
        self.text(column).parse().map_err(|_| Error::Cell {
            path: self.table.path.clone(),
            line: self.record.position().map_or(0, csv::Position::line),
            column: column.to_owned(),
            value: self.text(column).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named_with_its_path() {
        let error = Table::read(Path::new("nowhere"), "rows.csv").unwrap_err().to_string();
        assert!(error.starts_with("nowhere/rows.csv: "), "{error}");
    }
}
