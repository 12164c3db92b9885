//! Parquet files: the footer, and one or two columns of it.
//!
//! Read are columns of numbers, and lists, of which the length counts; encodings PLAIN and dictionary; uncompressed,
//! Snappy and gzip. This is what the writers of datasets use by default; anything else is refused with what to write in
//! its place. (The Rust implementation of Apache panics on some broken files, which an upload must never do.)

mod column;
mod footer;
mod levels;
mod page;
mod thrift;

use planner::data_aware::Preprocessing;

use super::cell::Cell;
use super::column::{self as choice, Choice, Column};
use super::media::{self, RowMedia};
use super::number::Number;
use super::rows::Rows;
use super::{ImportError, Imported, MAX_ROWS};
use footer::{Footer, Leaf};

/// First and last bytes.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// What it is called.
const FORMAT: &str = "Parquet file";

fn broken(detail: impl Into<String>) -> ImportError {
    ImportError::Broken { format: FORMAT, detail: detail.into() }
}

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    Number(Number),
    Missing,
    NotFinite,
}

/// Reads the column of lengths, and that of images where there is one.
pub(super) fn import(bytes: &[u8], asked: Option<&str>, rule: Option<Preprocessing>) -> Result<Imported, ImportError> {
    let footer = Footer::read(bytes)?;
    let columns: Vec<Column> = footer
        .leaves
        .iter()
        .map(|leaf| Column { name: leaf.name.clone(), numeric: leaf.is_number() || leaf.is_list() })
        .collect();
    if footer.rows > MAX_ROWS as u64 {
        return Err(ImportError::TooManyRows);
    }
    let plain = |&(_, index): &(media::Field, usize)| footer.leaves[index].is_number();
    let of_media: Vec<_> = media::columns(&columns).into_iter().filter(plain).collect();
    let mut rows = Rows::of(rule.filter(|_| !of_media.is_empty()));
    for &(_, index) in &of_media {
        rows.saw_media(&columns[index].name);
    }
    if rows.has_rule() {
        let text = choice::choose_text(&columns, asked)?;
        return with_media(bytes, &footer, rows, text, &of_media);
    }
    // Of a list of records every member is a leaf by the same name; any of them counts.
    let Choice { lengths, images, mut alternatives } = choice::choose(&columns, asked)?;
    alternatives.dedup();
    let leaf = &footer.leaves[lengths];
    let values = column::read(bytes, &footer, lengths)?;
    let images = images.filter(|&images| footer.leaves[images].is_number() || footer.leaves[images].is_list());
    match images {
        Some(images) => {
            let counts = column::read(bytes, &footer, images)?;
            for (index, (length, count)) in values.iter().zip(&counts).enumerate() {
                rows.push_with_images(|| format!("row {}", index + 1), cell(*length), cell(*count))?;
            }
        }
        None => {
            for (index, length) in values.iter().enumerate() {
                rows.push(|| format!("row {}", index + 1), cell(*length))?;
            }
        }
    }
    rows.finish(FORMAT, source(leaf, &footer, lengths), alternatives)
}

/// Reads the columns of media beside that of text, if there is one.
fn with_media(
    bytes: &[u8],
    footer: &Footer,
    mut rows: Rows,
    text: Option<usize>,
    of_media: &[(media::Field, usize)],
) -> Result<Imported, ImportError> {
    let lengths = text.map(|text| column::read(bytes, footer, text)).transpose()?;
    let columns = of_media
        .iter()
        .map(|&(field, index)| Ok((field, column::read(bytes, footer, index)?)))
        .collect::<Result<Vec<_>, ImportError>>()?;
    let at = |values: &[Value], row: usize| values.get(row).map_or(Cell::Missing, |value| cell(*value));
    let count = columns.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    for row in 0..count {
        let mut own = RowMedia::default();
        let read_all = columns.iter().try_for_each(|(field, values)| own.cell(*field, at(values, row)));
        let media = read_all.and_then(|()| own.finish());
        let length = lengths.as_ref().map_or(Cell::Missing, |lengths| at(lengths, row));
        rows.push_with_media(|| format!("row {}", row + 1), length, media)?;
    }
    let named = text.map_or_else(|| "no column of text".to_owned(), |text| source(&footer.leaves[text], footer, text));
    rows.finish(FORMAT, named, Vec::new())
}

fn source(leaf: &Leaf, footer: &Footer, column: usize) -> String {
    let what = if leaf.is_list() { "lengths of the lists of column" } else { "column" };
    match footer.range(column) {
        Some((least, most)) => format!("{what} {} ({least} to {most} by the footer)", leaf.name),
        None => format!("{what} {}", leaf.name),
    }
}

fn cell(value: Value) -> Cell<'static> {
    match value {
        Value::Number(number) => Cell::Number(number),
        Value::Missing => Cell::Missing,
        Value::NotFinite => Cell::Other("NaN or an infinity"),
    }
}

#[cfg(test)]
mod tests;
