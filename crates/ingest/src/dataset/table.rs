//! Reads CSV and related formats: cells between delimiters, bars or blanks.

use std::collections::{HashMap, HashSet};

use csv::{ReaderBuilder, StringRecord, Trim};

use super::commas::Commas;
use super::number::{self, is_grouped};
use super::profile::{self, Column};
use super::reader::{self, Reader};
use super::sniff::Delimiter;
use super::stated::{self, Stated};
use super::value::Location;
use super::{Candidate, ImportError, Imported, Kind, Meaning, Options, Unit, names, quotes};

/// Maximum number of columns. A table with one column per sample has more.
const MAX_COLUMNS: usize = 20_000;
/// Skip reason for a row with too many values.
const WIDE: &str = "more values than the table has columns; a comma within a value needs quotes";

/// Reads a table. The first line is a header if it contains a text that is neither a number nor a
/// time.
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
            // Reading UTF-8 rows of any width from memory cannot fail. If the crate adds an error,
            // it is reported as an error of the file.
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

/// Returns a warning if the comment above a table names a quantity or unit other than tokens.
pub(super) fn unread_comment(text: &str) -> Option<String> {
    let comment = without_comments(text).0.filter(|comment| !comment.contains([',', ';', '\t']))?;
    let is_other = matches!(stated::parse(comment), Stated::Other | Stated::Unit(_));
    let comment: String = comment.chars().take(80).collect();
    is_other.then(|| {
        format!("The comment {comment:?} is not read. If it states the quantity of the lengths, convert them first.")
    })
}

/// Returns the last comment above the table, the first line number of the table, and the table.
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

/// Parses column names in a comment, as `numpy.savetxt` writes them. Their count must equal the
/// column count.
fn comment_header(comment: Option<&str>, delimiter: Delimiter, width: usize) -> Option<Vec<String>> {
    let Delimiter::Byte(byte) = delimiter else { return None };
    let names: Vec<String> = comment?.split(char::from(byte)).map(|name| name.trim().to_owned()).collect();
    // `#` may be the name of the first column, which contains row numbers.
    let is_name = |(index, name): (usize, &String)| {
        if name.is_empty() { index == 0 && width > 1 } else { profile::text_kind(name) == Kind::Text }
    };
    (names.len() == width && names.iter().enumerate().all(is_name)).then_some(names)
}

/// Splits lines into cells between bars or blanks; skips lines of dashes.
fn lines(text: &str, delimiter: Delimiter) -> impl Iterator<Item = (u64, Vec<&str>)> {
    (1..).zip(text.lines()).filter_map(move |(line, text)| {
        let text = text.trim();
        let is_rule = text.bytes().all(|byte| matches!(byte, b'-' | b'=' | b'|' | b'+' | b':' | b' '));
        if is_rule {
            return None;
        }
        let cells = match delimiter {
            Delimiter::Bar => text.trim_matches('|').split('|').map(str::trim).collect(),
            _ => blank_cells(text),
        };
        Some((line, cells))
    })
}

/// Returns the length column and its unit if a row without numbers names a unit other than tokens.
fn other_unit<'c>(cells: &[&'c str], header: &'c [String]) -> Option<(&'c str, &'c str)> {
    let is_length = |name: &str| {
        matches!(names::meaning(name).0, Meaning::Length(Unit::Tokens) | Meaning::Prompt | Meaning::Completion)
    };
    let unit = |cell: &'c str| cell.trim_matches(['(', ')', '[', ']']);
    let is_text = |cell: &&str| cell.is_empty() || profile::text_kind(cell) == Kind::Text;
    if cells.len() != header.len() || !cells.iter().all(is_text) {
        return None;
    }
    let mut pairs = cells.iter().zip(header).map(|(cell, name)| (name.as_str(), unit(cell)));
    pairs.find(|(name, unit)| is_length(name) && names::unit_quantity(unit).is_some() && !names::is_tokens(unit))
}

/// Returns the column name found in a length cell, in a row of names: another table starts there.
fn other_header<'c>(cells: &[&'c str], header: &[String]) -> Option<&'c str> {
    let meaning = |name: &str| names::meaning(name).0;
    let is_length = |name: &str| matches!(meaning(name), Meaning::Length(_) | Meaning::Prompt | Meaning::Completion);
    let is_text = |cell: &&str| !cell.is_empty() && cell.len() <= 80 && profile::text_kind(cell) == Kind::Text;
    if cells.len() != header.len() || !cells.iter().all(is_text) {
        return None;
    }
    // A unit row below the header is not a row of names.
    if cells.iter().any(|cell| names::is_tokens(cell))
        && cells.iter().all(|cell| header.iter().all(|name| name != cell))
    {
        return None;
    }
    let is_name = |cell: &str| {
        is_length(cell) || meaning(cell) == Meaning::Images || header.iter().any(|name| names::is_same(name, cell))
    };
    let mut pairs = cells.iter().zip(header);
    pairs.find(|(cell, name)| **cell != *name && is_length(name) && is_name(cell)).map(|(cell, _)| *cell)
}

/// Splits cells at blanks. A unit in brackets belongs to the previous name.
fn blank_cells(text: &str) -> Vec<&str> {
    let mut cells: Vec<&str> = Vec::new();
    let mut starts: Vec<usize> = Vec::new();
    for word in number::words(text) {
        let at = word.as_ptr().addr() - text.as_ptr().addr();
        let is_unit = [('(', ')'), ('[', ']')].iter().any(|&(open, close)| {
            word.strip_prefix(open)
                .and_then(|word| word.strip_suffix(close))
                .is_some_and(|word| names::unit_quantity(word).is_some())
        });
        match (cells.last_mut(), starts.last()) {
            (Some(last), Some(&start)) if is_unit => *last = text.get(start..at + word.len()).unwrap_or(last),
            _ => {
                cells.push(word);
                starts.push(at);
            }
        }
    }
    cells
}

/// State while a table is read.
pub(super) struct Table<'o> {
    options: &'o Options<'o>,
    delimiter: Delimiter,
    /// Number of lines before the table.
    offset: u64,
    header: Option<Vec<String>>,
    /// Line and cells of the header, until the row below it is read.
    first: Option<(u64, Vec<String>)>,
    /// True if no row has followed the header line.
    pending: bool,
    reader: Option<Reader<'o>>,
    width: usize,
    has_header: bool,
    /// Comma notation of each column, if semicolons separate the cells.
    commas: Vec<Commas>,
    /// Column names, if semicolons separate the cells.
    names: Vec<String>,
    /// True if the only column of a headerless table contains thousands separators.
    has_thousands: bool,
    /// Per column, two cells of a split number, such as `1` and `061`, if commas separate the
    /// cells.
    halves: Vec<Option<String>>,
    /// Line of the first unmatched quotation mark.
    stray: Option<u64>,
    /// Duplicate column names of the file, and their renamed versions.
    doubles: Vec<(String, String)>,
}

impl<'o> Table<'o> {
    pub(super) const fn new(options: &'o Options<'o>, offset: u64, delimiter: Delimiter) -> Self {
        Self {
            options,
            delimiter,
            offset,
            header: None,
            first: None,
            pending: false,
            reader: None,
            width: 0,
            has_header: false,
            commas: Vec::new(),
            names: Vec::new(),
            has_thousands: false,
            halves: Vec::new(),
            stray: None,
            doubles: Vec::new(),
        }
    }

    /// Records the line of an unmatched quotation mark.
    pub(super) fn note_stray(&mut self, line: u64) {
        self.stray.get_or_insert(line);
    }

    /// Sets column names that are not a line of the table.
    pub(super) fn begin(&mut self, header: Vec<String>) {
        self.header = Some(header);
        self.pending = true;
    }

    /// Makes names distinct. A repeated name gets the column number as suffix.
    fn distinct(&mut self, names: Vec<String>) -> Vec<String> {
        let mut distinct: Vec<String> = Vec::with_capacity(names.len());
        let mut known: HashSet<String> = HashSet::with_capacity(names.len());
        let mut similar: HashMap<String, String> = HashMap::with_capacity(names.len());
        for (index, name) in names.into_iter().enumerate() {
            let other = if known.contains(&name) { format!("{name}.{}", index + 1) } else { name.clone() };
            if let Some(first) = similar.get(&names::letters(&name)) {
                self.doubles.push((first.clone(), other.clone()));
            } else if !name.is_empty() {
                similar.insert(names::letters(&name), name);
            }
            known.insert(other.clone());
            distinct.push(other);
        }
        distinct
    }

    /// Returns the header if it is a row without a header above it: texts and numbers are in the same columns as in the
    /// row below. With more numbers it is the header of a histogram in columns. Names such as 0 are those of pandas.
    fn take_first_row(&mut self, cells: &[&str]) -> Option<(u64, Vec<String>)> {
        let is_number = |cell: &&str| profile::text_kind(cell) == Kind::Number;
        let is_same_kind =
            |(first, cell): (&String, &&str)| !first.is_empty() && is_number(&&**first) == is_number(cell);
        let is_row = |(_, first): &(u64, Vec<String>)| {
            let numbers = || first.iter().map(String::as_str).filter(is_number);
            let are_long = numbers().all(|number| number.len() > 1);
            first.len() == cells.len()
                && (1..=2).contains(&numbers().count())
                && are_long
                && first.iter().zip(cells).all(is_same_kind)
        };
        let first = self.first.take().filter(is_row)?;
        self.header = None;
        self.doubles.clear();
        Some(first)
    }

    pub(super) fn push(&mut self, line: u64, cells: &[&str]) -> Result<(), ImportError> {
        if self.reader.is_none() && cells.len() > MAX_COLUMNS {
            let detail =
                format!("it has {} columns, at most {MAX_COLUMNS} are read. Write a sample per line", cells.len());
            return Err(ImportError::Broken { format: "table", detail });
        }
        let first = if self.pending { self.take_first_row(cells) } else { None };
        if let Some((line, first)) = first {
            self.push(line, &first.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                if !self.pending && cells.iter().any(|cell| !cell.is_empty() && profile::text_kind(cell) == Kind::Text)
                {
                    let name = |(index, &cell): (usize, &&str)| {
                        if cell.is_empty() { format!("Unnamed: {index}") } else { cell.to_owned() }
                    };
                    self.header = Some(self.distinct(cells.iter().enumerate().map(name).collect()));
                    self.first = Some((line, cells.iter().copied().map(str::to_owned).collect()));
                    self.pending = true;
                    return Ok(());
                }
                self.has_header = self.header.is_some();
                let reader = if let Some(mut names) = self.header.take() {
                    // pandas prints no name above the index, which contains row numbers or values.
                    if self.delimiter == Delimiter::Blank && cells.len() == names.len() + 1 {
                        names.insert(0, "Unnamed: 0".to_owned());
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
        let location = Location { item: "line", number: line + self.offset };
        if self.has_header
            && let Some((name, unit)) = other_unit(cells, &self.names)
        {
            return Err(ImportError::BadNumber {
                location: location.to_string(),
                value: format!("{unit:?}"),
                why: format!("is the unit of {name}, and not tokens; convert the lengths first"),
            });
        }
        if self.has_header
            && let Some(name) = other_header(cells, &self.names)
        {
            return Err(ImportError::BadNumber {
                location: location.to_string(),
                value: format!("{name:?}"),
                why:
                    "is the name of another column: a second table begins here. Upload each table as a file of its own"
                        .to_owned(),
            });
        }
        // A value beyond the last column has no name. The cause is a comma inside a number, or
        // inside an unquoted text.
        if cells.iter().skip(self.width).any(|cell| !cell.is_empty()) {
            reader.skip(location, WIDE);
            return Ok(());
        }
        if self.delimiter == Delimiter::Byte(b',') {
            self.halves.resize(self.width, None);
            for ([previous, next], half) in cells.array_windows().zip(&mut self.halves) {
                let is_digits = |cell: &str| cell.bytes().all(|byte| byte.is_ascii_digit());
                if half.is_none()
                    && next.len() == 3
                    && next.starts_with('0')
                    && (1..=3).contains(&previous.len())
                    && is_digits(next)
                    && is_digits(previous)
                {
                    *half = Some(format!("{previous},{next}"));
                }
            }
        }
        if self.delimiter == Delimiter::Byte(b';') {
            self.commas.resize_with(self.width, Commas::default);
            self.commas.iter_mut().zip(cells).for_each(|(commas, cell)| commas.see(cell));
        }
        if self.delimiter == Delimiter::None {
            let is_thousands = |cell: &&str| cell.contains(',') && is_grouped(cell.trim_end_matches(','), ',');
            self.has_thousands |= !self.has_header && cells.iter().any(is_thousands);
            return reader.push(location, reader::cells(cells.iter().map(|cell| cell.trim_end_matches(','))));
        }
        reader.push(location, reader::cells(cells.iter().copied()))
    }

    pub(super) fn finish(self) -> Result<Imported, ImportError> {
        let Some(mut reader) = self.reader else { return Err(ImportError::NoNumbers { format: "a table" }) };
        if !self.commas.is_empty() || !self.doubles.is_empty() || self.halves.iter().any(Option::is_some) {
            reader.decide()?;
        }
        let is_half = |index: usize| reader.is_decided() && reader.is_needed(index) && reader.is_needed(index + 1);
        if let Some((index, value)) = self
            .halves
            .iter()
            .enumerate()
            .find_map(|(index, half)| Some((index, half.clone()?)).filter(|_| is_half(index)))
        {
            return Err(ImportError::TwoReadings { column: self.names.get(index).cloned().unwrap_or_default(), value });
        }
        let is_read =
            |name: &str| self.names.iter().position(|known| known == name).is_some_and(|index| reader.is_needed(index));
        if self.options.column.is_none()
            && let Some((name, other)) = self.doubles.iter().find(|(name, other)| is_read(name) || is_read(other))
        {
            let note = format!("the file has two columns of the name {name}");
            return Err(ImportError::Unclear {
                candidates: vec![Candidate::noted(name, &note), Candidate::noted(other, &note)],
            });
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
        imported.report.warnings.extend(self.stray.map(quotes::sentence));
        if self.has_thousands {
            imported.report.warnings.push(
                "Commas are read as thousands separators: each line holds one number, for example 1,234 for 1234."
                    .to_owned(),
            );
        }
        Ok(imported)
    }
}
