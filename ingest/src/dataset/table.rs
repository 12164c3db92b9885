//! CSV and its relatives.

use csv::{ReaderBuilder, StringRecord, Trim};
use planner::data_aware::Preprocessing;

use super::cell::Cell;
use super::column::{self, Choice, Column};
use super::media::{self, RowMedia};
use super::number;
use super::rows::Rows;
use super::{ImportError, Imported};

/// Why a row is left out.
const WIDE: &str = "more values than the table has columns; a comma within a value needs quotes";

/// Reads a table. Its first line is a header when it holds a cell that is no number.
pub(super) fn import(
    text: &str,
    delimiter: u8,
    asked: Option<&str>,
    rule: Option<Preprocessing>,
) -> Result<Imported, ImportError> {
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    if !read(&mut reader, &mut record)? {
        return Err(ImportError::NoNumbers { format: "a table" });
    }
    let first = record.clone();
    let headed = first.iter().any(|cell| number::read(cell).is_none());
    // With a header the columns show what they hold on the next line.
    let mut pending = if headed { read(&mut reader, &mut record)? } else { true };
    let columns = columns(&first, headed, &record);
    let format = if headed { "CSV with header" } else { "CSV without header" };
    let of_media = if headed { media::columns(&columns) } else { Vec::new() };
    let mut rows = Rows::of(rule.filter(|_| !of_media.is_empty()));
    for &(_, index) in &of_media {
        rows.saw_media(&columns[index].name);
    }
    // What stands beyond the columns has no name: a comma within a number, or in a text without quotes.
    let is_wide = |record: &StringRecord| record.iter().skip(columns.len()).any(|cell| !cell.is_empty());
    if rows.has_rule() {
        let text = column::choose_text(&columns, asked)?;
        while pending {
            let line = record.position().map_or(0, csv::Position::line);
            let cell = |index: usize| match record.get(index) {
                Some("") | None => Cell::Missing,
                Some(text) => Cell::Text(text),
            };
            if is_wide(&record) {
                rows.skip(|| format!("line {line}"), WIDE);
                pending = read(&mut reader, &mut record)?;
                continue;
            }
            let mut own = RowMedia::default();
            let read_all = of_media.iter().try_for_each(|&(field, index)| own.cell(field, cell(index)));
            let media = read_all.and_then(|()| own.finish());
            rows.push_with_media(|| format!("line {line}"), text.map_or(Cell::Missing, cell), media)?;
            pending = read(&mut reader, &mut record)?;
        }
        let source =
            text.map_or_else(|| "no column of text".to_owned(), |text| format!("column {}", columns[text].name));
        return rows.finish(format, source, Vec::new());
    }
    let Choice { lengths, images, alternatives } = column::choose(&columns, asked)?;
    while pending {
        let line = record.position().map_or(0, csv::Position::line);
        let place = || format!("line {line}");
        let cell = |index: usize| match record.get(index) {
            Some("") | None => Cell::Missing,
            Some(text) => Cell::Text(text),
        };
        match images {
            _ if is_wide(&record) => rows.skip(place, WIDE),
            Some(images) => rows.push_with_images(place, cell(lengths), cell(images))?,
            None => rows.push(place, cell(lengths))?,
        }
        pending = read(&mut reader, &mut record)?;
    }
    rows.finish(format, format!("column {}", columns[lengths].name), alternatives)
}

fn columns(first: &StringRecord, headed: bool, values: &StringRecord) -> Vec<Column> {
    first
        .iter()
        .enumerate()
        .map(|(index, cell)| Column {
            name: if headed { cell.to_owned() } else { (index + 1).to_string() },
            numeric: values.get(index).is_some_and(|value| number::read(value).is_some()),
        })
        .collect()
}

fn read(reader: &mut csv::Reader<&[u8]>, record: &mut StringRecord) -> Result<bool, ImportError> {
    // Reading from memory, of text that is UTF-8 and with rows of any width, cannot fail; should the reader
    // learn new errors, they are the file's.
    reader.read_record(record).map_err(|error| ImportError::Shape { found: format!("a broken table ({error})") })
}
