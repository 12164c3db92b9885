//! Reads tables that pandas' `to_json` and Weights & Biases write.

use super::super::profile::Column;
use super::super::reader::Reader;
use super::super::value::{List, Location, Members, Row, Value};
use super::super::{ImportError, Imported, Meaning, Options, names};
use super::is_split;

/// Table layout of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// `{"columns": [..], "data": [[..], ..]}`: pandas' "split", and Weights & Biases tables.
    Split,
    /// `{"num_tokens": {"0": 5, "1": 7}}`: pandas without an orientation.
    Columns,
    /// `{"0": {"num_tokens": 5}, "1": {..}}`: pandas' "index".
    Rows,
    /// Nested objects with an ambiguous layout.
    Unclear,
}

/// Detects the table layout; returns `None` if the object is not a table.
pub(super) fn frame(fields: &Members<'_>) -> Option<Frame> {
    if split(fields).is_some() {
        return Some(Frame::Split);
    }
    let inner: Vec<&Members<'_>> = fields
        .iter()
        .map(|(_, value)| match value {
            Value::Object(members) if !members.is_empty() => Some(members),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let first = *inner.first()?;
    match (are_numbers(fields), are_numbers(first)) {
        (true, true) => Some(Frame::Unclear),
        (true, false) => Some(Frame::Rows),
        (false, true) => {
            let is_range = |members: &&Members<'_>| {
                members.len() == first.len()
                    && members.iter().enumerate().all(|(index, (name, _))| **name == index.to_string())
            };
            Some(if inner.iter().all(is_range) { Frame::Columns } else { Frame::Unclear })
        }
        // Rows with file names or identifiers as keys.
        (false, false) if fields.len() > 1 && !are_known(fields) && inner.iter().all(|members| are_known(members)) => {
            Some(if fields.iter().any(|(name, _)| is_split(name)) { Frame::Unclear } else { Frame::Rows })
        }
        (false, false) => None,
    }
}

/// Reads a table.
pub(super) fn read(frame: Frame, fields: Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    match frame {
        Frame::Split => read_split(&fields, options),
        Frame::Columns => read_columns(fields, options),
        Frame::Rows => read_rows(fields, options),
        Frame::Unclear => Err(ImportError::Shape {
            found: "objects inside an object, which may be rows, columns, or counts; write a row per line with \
                    df.to_json(path, orient=\"records\", lines=True)"
                .to_owned(),
        }),
    }
}

/// Returns the column names and the rows.
fn split<'f, 'v>(fields: &'f Members<'v>) -> Option<(Vec<String>, &'f List<'v>)> {
    let list = |known: &str| {
        fields.iter().find_map(|(name, value)| match value {
            Value::List(list) if name == known => Some(list),
            _ => None,
        })
    };
    let (columns, data) = (list("columns")?, list("data")?);
    let names: Vec<String> = columns
        .items
        .iter()
        .map(|name| match name {
            Value::Text(text) => Some(text.to_string()),
            Value::Number(_) => Some(name.display_text()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    matches!(data.items.first(), Some(Value::List(row)) if row.count == names.len()).then_some((names, data))
}

fn read_split(fields: &Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let Some((names, data)) = split(fields) else {
        return Err(ImportError::Shape { found: "no table".to_owned() });
    };
    let width = names.len();
    let columns = names.into_iter().map(|name| Column { name, kind: None }).collect();
    let mut reader = Reader::keyed(options, columns);
    for (number, row) in (1..).zip(&data.items) {
        let location = Location { item: "row", number };
        match row {
            Value::List(row) if row.count == width => reader.push(location, Row::Cells(row.items.clone()))?,
            Value::List(row) => reader.skip(location, &format!("{} values for {width} columns", row.count)),
            _ => reader.skip(location, "it is not a list"),
        }
    }
    reader.finish("JSON table of columns and data")
}

fn read_columns(fields: Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for (name, value) in fields {
        if let Value::Object(members) = value {
            columns.push(Column { name: name.into_owned(), kind: None });
            values.push(members.into_iter());
        }
    }
    let rows = values.first().map_or(0, ExactSizeIterator::len);
    let mut reader = Reader::keyed(options, columns);
    for row in 0..rows {
        let cell = |members: &mut std::vec::IntoIter<_>| members.next().map_or(Value::Missing, |(_, value)| value);
        let cells = Row::Cells(values.iter_mut().map(cell).collect());
        reader.push(Location { item: "row", number: row as u64 + 1 }, cells)?;
    }
    reader.finish("JSON columns by name")
}

fn read_rows(fields: Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let mut reader = Reader::new(options);
    for (number, (_, value)) in (1..).zip(fields) {
        let location = Location { item: "row", number };
        match value {
            Value::Object(members) => reader.push(location, Row::Object(members))?,
            other => reader.push(location, Row::Single(other))?,
        }
    }
    reader.finish("JSON rows by key")
}

/// Returns whether all names are integers.
fn are_numbers(members: &Members<'_>) -> bool {
    members.iter().all(|(name, _)| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether an object maps several keys to numbers, and no key names a quantity: `{"doc1":
/// 735, "doc2": 512}`.
pub(super) fn are_named_numbers(fields: &Members<'_>) -> bool {
    let is_unnamed = |name: &str| names::meaning(name).0 == Meaning::Unknown;
    fields.len() > 3 && fields.iter().all(|(name, value)| matches!(value, Value::Number(_)) && is_unnamed(name))
}

/// Reads an object as rows of key and value.
pub(super) fn read_named_numbers(fields: Members<'_>, options: &Options<'_>) -> Result<Imported, ImportError> {
    let mut reader = Reader::new(options);
    for (number, (name, value)) in (1..).zip(fields) {
        let row = Row::Object(vec![("key".into(), Value::Text(name)), ("value".into(), value)]);
        reader.push(Location { item: "key", number }, row)?;
    }
    reader.finish("JSON numbers by key")
}

/// Returns whether any name denotes a length or a text.
fn are_known(members: &Members<'_>) -> bool {
    members.iter().any(|(name, _)| {
        matches!(
            names::meaning(name).0,
            Meaning::Length(_)
                | Meaning::Prompt
                | Meaning::Completion
                | Meaning::Chat
                | Meaning::Text
                | Meaning::PromptText
                | Meaning::CompletionText
        )
    })
}
