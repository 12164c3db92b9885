//! CSV tables with a header.

use csv::{Position, Reader, ReaderBuilder, StringRecord, Trim};

use super::ProfileError;
use super::cells::{Cells, described};
use super::refused::Rejection;

/// A table with sequential row access.
pub(super) struct Table<'a> {
    reader: Reader<&'a [u8]>,
    header: Vec<String>,
    record: StringRecord,
}

impl<'a> Table<'a> {
    /// Reads the header. Names are compared in lower case.
    pub(super) fn new(text: &'a str) -> Result<Self, ProfileError> {
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter(text))
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            // With quoting enabled, an unclosed quote would consume the subsequent rows.
            .quoting(false)
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let mut record = StringRecord::new();
        if !next(&mut reader, &mut record)? {
            return Err(ProfileError::Empty);
        }
        let header = record.iter().map(|name| unquoted(name).to_lowercase()).collect();
        Ok(Self { reader, header, record })
    }

    /// Returns the column names, at least one.
    pub(super) fn header(&self) -> &[String] {
        &self.header
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.header.iter().any(|name| name == column)
    }

    /// Returns an error if a required column is missing or duplicated.
    pub(super) fn require(&self, format: &'static str, columns: &[&str]) -> Result<(), ProfileError> {
        for &column in columns {
            match self.header.iter().filter(|name| *name == column).count() {
                0 => return Err(ProfileError::MissingColumn { format, column: column.to_owned() }),
                1 => {}
                _ => return Err(ProfileError::RepeatedColumn { format, column: column.to_owned() }),
            }
        }
        Ok(())
    }

    pub(super) fn next_row(&mut self) -> Result<Option<Row<'_>>, ProfileError> {
        if !next(&mut self.reader, &mut self.record)? {
            return Ok(None);
        }
        let line = self.record.position().map_or(0, Position::line);
        Ok(Some(Row { header: &self.header, record: &self.record, line }))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'t> {
    header: &'t [String],
    record: &'t StringRecord,
    line: u64,
}

impl<'t> Row<'t> {
    fn raw(&self, column: &str) -> Option<&'t str> {
        let index = self.header.iter().position(|name| name == column)?;
        self.record.get(index).map(unquoted)
    }
}

impl Cells for Row<'_> {
    fn location(&self, column: &str) -> String {
        format!("row {}, column {column}", self.line)
    }

    fn describe(&self, column: &str) -> String {
        described(self.location(column), self.raw(column).unwrap_or_default())
    }

    fn optional(&self, column: &str) -> Result<Option<&str>, Rejection> {
        // Decimal commas and thousands separators shift all subsequent cells.
        if self.record.iter().skip(self.header.len()).any(|cell| !cell.is_empty()) {
            let found = format!("row {}: {} cells below {} names", self.line, self.record.len(), self.header.len());
            return Err(Rejection::new("a row has more cells than the header", found));
        }
        Ok(self.raw(column).filter(|cell| !cell.is_empty()))
    }
}

/// Returns the most frequent delimiter in the header.
fn delimiter(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let count = |delimiter: u8| header.bytes().filter(|&byte| byte == delimiter).count();
    // `max_by_key` returns the last maximum, so a comma wins a tie.
    [b'\t', b';', b','].into_iter().max_by_key(|&delimiter| count(delimiter)).unwrap_or(b',')
}

fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell).trim()
}

fn next(reader: &mut Reader<&[u8]>, record: &mut StringRecord) -> Result<bool, ProfileError> {
    // Reading UTF-8 from memory with flexible row width cannot fail. Errors in future reader
    // versions would be caused by the file.
    reader.read_record(record).map_err(|error| ProfileError::Table { detail: error.to_string() })
}
