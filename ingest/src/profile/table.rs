//! CSV tables with a header.

use csv::{Position, Reader, ReaderBuilder, StringRecord, Trim};
use planner::units::Seconds;

use super::ProfileError;
use super::refused::Refused;

/// Maximum shape or message size. Larger integers are not exact in `f64`.
const MAX_WHOLE: f64 = 1e15;

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
    /// Describes the position of a column in this row. The header is row 1.
    pub(super) fn place(&self, column: &str) -> String {
        format!("row {}, column {column}", self.line)
    }

    /// Describes position and cell text.
    pub(super) fn shown(&self, column: &str) -> String {
        let cell = self.raw(column).unwrap_or_default();
        let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let cell: String = cell.chars().take(40).map(clean).collect();
        if cell.is_empty() { self.place(column) } else { format!("{}: {cell}", self.place(column)) }
    }

    /// Returns the cell text; `None` if the column is missing or the cell is empty.
    pub(super) fn optional(&self, column: &str) -> Result<Option<&'t str>, Refused> {
        // Decimal commas and thousands separators shift all subsequent cells.
        if self.record.iter().skip(self.header.len()).any(|cell| !cell.is_empty()) {
            let found = format!("row {}: {} cells below {} names", self.line, self.record.len(), self.header.len());
            return Err(Refused::new("a row has more cells than the header", found));
        }
        Ok(self.raw(column).filter(|cell| !cell.is_empty()))
    }

    /// Returns the text of a required cell.
    pub(super) fn text(&self, column: &str) -> Result<&'t str, Refused> {
        self.optional(column)?.ok_or_else(|| Refused::new("a needed cell is empty", self.place(column)))
    }

    /// Parses a positive number.
    pub(super) fn positive(&self, column: &str) -> Result<f64, Refused> {
        let number: f64 =
            self.text(column)?.parse().map_err(|_| Refused::new("a cell holds no number", self.shown(column)))?;
        if !number.is_finite() {
            Err(Refused::new("a number is not finite", self.shown(column)))
        } else if number <= 0.0 {
            Err(Refused::new("a number is zero or negative", self.shown(column)))
        } else {
            Ok(number)
        }
    }

    /// Parses a positive integer. Zero decimals (`8.0`) are accepted because data frames write
    /// them.
    pub(super) fn whole(&self, column: &str) -> Result<f64, Refused> {
        let number = self.positive(column)?;
        if number.fract() == 0.0 && number <= MAX_WHOLE {
            Ok(number)
        } else {
            Err(Refused::new("a size is not a whole number in range", self.shown(column)))
        }
    }

    pub(super) fn devices(&self, column: &str) -> Result<u32, Refused> {
        let number = self.whole(column)?;
        if number <= f64::from(u32::MAX) {
            Ok(number as u32)
        } else {
            Err(Refused::new("a size is not a whole number in range", self.shown(column)))
        }
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool, Refused> {
        match self.text(column)?.to_lowercase().as_str() {
            "true" | "1" | "1.0" => Ok(true),
            "false" | "0" | "0.0" => Ok(false),
            _ => Err(Refused::new("a cell is neither true nor false", self.shown(column))),
        }
    }

    /// Parses a time with a unit of `unit` seconds.
    pub(super) fn time(&self, column: &str, unit: f64) -> Result<Seconds, Refused> {
        self.positive(column).map(|time| Seconds::from_secs(time * unit))
    }

    fn raw(&self, column: &str) -> Option<&'t str> {
        let index = self.header.iter().position(|name| name == column)?;
        self.record.get(index).map(unquoted)
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
