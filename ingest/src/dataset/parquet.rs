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

use super::number::Number;
use super::profile::Column;
use super::reader::Reader;
use super::value::{Place, Row, Value as Field};
use super::{ImportError, Imported, Kind, MAX_ROWS, Options};
use footer::Footer;

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

/// Reads the columns that are chosen by their names and types.
pub(super) fn import(bytes: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    let footer = Footer::read(bytes)?;
    if footer.rows > MAX_ROWS as u64 {
        return Err(ImportError::TooManyRows);
    }
    let kind = |leaf: &footer::Leaf| match (leaf.is_number(), leaf.is_list()) {
        (true, _) => Kind::Number,
        (_, true) => Kind::ListOfNumbers,
        _ => Kind::Binary,
    };
    let columns: Vec<Column> =
        footer.leaves.iter().map(|leaf| Column { name: leaf.name.clone(), kind: Some(kind(leaf)) }).collect();
    let is_list: Vec<bool> = footer.leaves.iter().map(footer::Leaf::is_list).collect();
    let mut reader = Reader::typed(options, columns);
    reader.decide()?;
    let read = |index: usize| reader.is_needed(index).then(|| column::read(bytes, &footer, index)).transpose();
    let values: Vec<Option<Vec<Value>>> = (0..footer.leaves.len()).map(read).collect::<Result<_, ImportError>>()?;
    let rows = values.iter().flatten().map(Vec::len).max().unwrap_or(0);
    for row in 0..rows {
        let cell =
            |(index, values): (usize, &Option<Vec<Value>>)| match values.as_ref().and_then(|values| values.get(row)) {
                Some(Value::Number(Number::Whole(count))) if is_list[index] => Field::count(*count as usize),
                Some(Value::Number(number)) => Field::Number(*number),
                Some(Value::NotFinite) => Field::Other("NaN or an infinity"),
                Some(Value::Missing) | None => Field::Missing,
            };
        let cells = values.iter().enumerate().map(cell).collect();
        reader.push(Place { what: "row", number: row as u64 + 1 }, Row::Cells(cells))?;
    }
    reader.finish(FORMAT)
}

#[cfg(test)]
mod tests;
