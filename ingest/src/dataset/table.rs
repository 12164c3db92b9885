//! CSV and its relatives: cells between delimiters, between bars, or between blanks.

use csv::{ReaderBuilder, StringRecord, Trim};

use super::commas::Commas;
use super::number::is_grouped;
use super::profile::{self, Column};
use super::reader::{self, Reader};
use super::sniff::Delimiter;
use super::value::Place;
use super::{ImportError, Imported, Kind, Options};

/// Reason of a row that is left out.
const WIDE: &str = "more values than the table has columns; a comma within a value needs quotes";

/// Reads a table. Its first line is a header if it holds a text that is neither a number nor a time.
pub(super) fn import(text: &str, delimiter: Delimiter, options: &Options<'_>) -> Result<Imported, ImportError> {
    let (comment, first_line, body) = without_comments(text);
    let mut table = Table::new(options, first_line, delimiter);
    let mut seen = false;
    match delimiter {
        Delimiter::Byte(_) | Delimiter::None => {
            let byte = if let Delimiter::Byte(byte) = delimiter { byte } else { 0 };
            let mut records = ReaderBuilder::new()
                .delimiter(byte)
                .has_headers(false)
                .flexible(true)
                .trim(Trim::All)
                .from_reader(body.as_bytes());
            let mut record = StringRecord::new();
            // Reading from memory, of UTF-8 and with rows of any width, has no error; should the crate add one, it is the file's.
            while records
                .read_record(&mut record)
                .map_err(|error| ImportError::Shape { found: format!("a broken table ({error})") })?
            {
                let line = record.position().map_or(0, csv::Position::line);
                if !seen && let Some(header) = comment_header(comment, delimiter, record.len()) {
                    table.begin(header);
                }
                seen = true;
                table.push(line, &record.iter().collect::<Vec<_>>())?;
            }
        }
        Delimiter::Bar | Delimiter::Blank => {
            for (line, cells) in lines(body, delimiter) {
                table.push(line, &cells)?;
            }
        }
    }
    table.finish()
}

/// The last comment in front of the table, the number of the first line of the table, and the table.
fn without_comments(text: &str) -> (Option<&str>, u64, &str) {
    let (mut comment, mut line, mut rest) = (None, 0, text);
    while let Some(first) = rest.lines().next() {
        let trimmed = first.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            break;
        }
        comment = trimmed.strip_prefix('#').map(str::trim).or(comment);
        line += 1;
        rest = rest[first.len()..]
            .strip_prefix("\r\n")
            .unwrap_or_else(|| rest[first.len()..].strip_prefix(['\n', '\r']).unwrap_or(&rest[first.len()..]));
    }
    (comment, line, rest)
}

/// Names of columns in a comment, as `numpy.savetxt` writes them: as many as the table has columns.
fn comment_header(comment: Option<&str>, delimiter: Delimiter, width: usize) -> Option<Vec<String>> {
    let Delimiter::Byte(byte) = delimiter else { return None };
    let names: Vec<String> = comment?.split(char::from(byte)).map(|name| name.trim().to_owned()).collect();
    (names.len() == width && names.iter().all(|name| !name.is_empty() && profile::kind_of_text(name) == Kind::Text))
        .then_some(names)
}

/// Lines of cells between bars or blanks; lines of dashes are left out.
fn lines(text: &str, delimiter: Delimiter) -> impl Iterator<Item = (u64, Vec<&str>)> {
    (1..).zip(text.lines()).filter_map(move |(line, text)| {
        let text = text.trim();
        let is_rule = text.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'|' | b'+' | b':' | b' '));
        if is_rule {
            return None;
        }
        let cells = match delimiter {
            Delimiter::Bar => text.trim_matches('|').split('|').map(str::trim).collect(),
            _ => text.split_whitespace().collect(),
        };
        Some((line, cells))
    })
}

/// A table while it is read.
pub(super) struct Table<'o> {
    options: &'o Options<'o>,
    delimiter: Delimiter,
    /// Lines in front of the table.
    offset: u64,
    header: Option<Vec<String>>,
    /// The header's line is not yet followed by a row.
    pending: bool,
    reader: Option<Reader<'o>>,
    width: usize,
    has_header: bool,
    /// Commas in the numbers of each column, if semicolons separate the cells.
    commas: Vec<Commas>,
    /// Names of the columns, if semicolons separate the cells.
    names: Vec<String>,
    /// The only column of a table without a header holds thousands separators.
    has_thousands: bool,
}

impl<'o> Table<'o> {
    pub(super) const fn new(options: &'o Options<'o>, offset: u64, delimiter: Delimiter) -> Self {
        Self {
            options,
            delimiter,
            offset,
            header: None,
            pending: false,
            reader: None,
            width: 0,
            has_header: false,
            commas: Vec::new(),
            names: Vec::new(),
            has_thousands: false,
        }
    }

    /// Takes names of columns that are no line of the table.
    pub(super) fn begin(&mut self, header: Vec<String>) {
        self.header = Some(header);
        self.pending = true;
    }

    pub(super) fn push(&mut self, line: u64, cells: &[&str]) -> Result<(), ImportError> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                if !self.pending
                    && cells.iter().any(|cell| !cell.is_empty() && profile::kind_of_text(cell) == Kind::Text)
                {
                    let name = |(index, &cell): (usize, &&str)| {
                        if cell.is_empty() { format!("Unnamed: {index}") } else { cell.to_owned() }
                    };
                    self.header = Some(cells.iter().enumerate().map(name).collect());
                    self.pending = true;
                    return Ok(());
                }
                self.has_header = self.header.is_some();
                let reader = if let Some(mut names) = self.header.take() {
                    // pandas prints no name above the row numbers.
                    if self.delimiter == Delimiter::Blank && cells.len() == names.len() + 1 {
                        names.insert(0, "index".to_owned());
                    }
                    self.width = names.len();
                    self.names.clone_from(&names);
                    let columns = names.into_iter().map(|name| Column { name, kind: None }).collect();
                    Reader::typed(self.options, columns)
                } else {
                    self.width = cells.len();
                    self.names = (1..=cells.len()).map(|number| number.to_string()).collect();
                    Reader::headerless(self.options, cells.len())
                };
                none.insert(reader)
            }
        };
        let place = Place { what: "line", number: line + self.offset };
        // A value beyond the columns has no name: a comma within a number, or in a text without quotes.
        if cells.iter().skip(self.width).any(|cell| !cell.is_empty()) {
            reader.skip(place, WIDE);
            return Ok(());
        }
        if self.delimiter == Delimiter::Byte(b';') {
            self.commas.resize_with(self.width, Commas::default);
            self.commas.iter_mut().zip(cells).for_each(|(commas, cell)| commas.see(cell));
        }
        if self.delimiter == Delimiter::None {
            let is_thousands = |cell: &&str| cell.contains(',') && is_grouped(cell.trim_end_matches(','), ',');
            self.has_thousands |= !self.has_header && cells.iter().any(is_thousands);
            return reader.push(place, reader::cells(cells.iter().map(|cell| cell.trim_end_matches(','))));
        }
        reader.push(place, reader::cells(cells.iter().copied()))
    }

    pub(super) fn finish(self) -> Result<Imported, ImportError> {
        let Some(mut reader) = self.reader else { return Err(ImportError::NoNumbers { format: "a table" }) };
        if !self.commas.is_empty() {
            reader.decide()?;
        }
        for (index, (commas, name)) in self.commas.iter().zip(&self.names).enumerate() {
            if reader.is_needed(index)
                && let Some(value) = commas.ambiguous()
            {
                return Err(ImportError::TwoReadings { column: name.clone(), value: value.to_owned() });
            }
        }
        let format = match (self.delimiter, self.has_header) {
            (Delimiter::Bar, _) => "table between bars",
            (Delimiter::Blank, true) => "aligned table with header",
            (Delimiter::Blank, false) => "aligned table without header",
            (_, true) => "CSV with header",
            (_, false) => "CSV without header",
        };
        let mut imported = reader.finish(format)?;
        if self.has_thousands {
            imported.report.warnings.push(
                "Commas are read as thousands separators: each line holds one number, for example 1,234 for 1234."
                    .to_owned(),
            );
        }
        Ok(imported)
    }
}
