//! Converts values inside objects to separate columns: token counts, conversations, and columns
//! that the user names.

use super::super::profile::Column;
use super::super::value::{List, Members, Row, Value};
use super::super::{Kind, Meaning, Options, names, profile};

/// Maximum number of nested columns.
const MAX_NESTED: usize = 50;

/// Nested columns of a table.
#[derive(Debug, Default)]
pub(super) struct Nested {
    /// Names that the user chooses.
    requested: Vec<String>,
    /// Index of each nested column, and index of its outer column.
    places: Vec<(usize, usize)>,
}

impl Nested {
    pub(super) fn new(options: &Options<'_>) -> Self {
        let requested = [options.column, options.add, options.weight].into_iter().flatten();
        Self { requested: requested.filter(|name| name.contains('.')).map(str::to_owned).collect(), places: Vec::new() }
    }

    /// Returns the columns nested in a column.
    pub(super) fn inside(&self, column: usize) -> impl Iterator<Item = usize> {
        self.places.iter().filter(move |(_, outer)| *outer == column).map(|(inner, _)| *inner)
    }

    /// Adds the values inside objects to a row.
    pub(super) fn flatten(&mut self, row: &mut Row<'_>, columns: &mut Vec<Column>) {
        let requested = &self.requested;
        let is_wanted = |path: &str, name: &str, value: &Value<'_>| {
            is_wanted(name, value) || requested.iter().any(|requested_name| names::is_same(requested_name, path))
        };
        let cells = match row {
            Row::Cells(cells) => cells,
            row => return row.flatten(&is_wanted),
        };
        let mut found: Vec<(usize, Members<'_>)> = Vec::new();
        for (index, (cell, column)) in cells.iter().zip(columns.iter()).enumerate() {
            let mut inner = Vec::new();
            cell.collect(&column.name, &is_wanted, &mut inner);
            if !inner.is_empty() {
                found.push((index, inner));
            }
        }
        for (outer, inner) in found {
            for (name, value) in inner {
                let Some(position) = self.column_index(&name, outer, columns) else { continue };
                if cells.len() <= position {
                    cells.resize(position + 1, Value::Missing);
                }
                cells[position] = value;
            }
        }
    }

    /// Returns the index of a nested column; adds a column for a new name.
    fn column_index(&mut self, name: &str, outer: usize, columns: &mut Vec<Column>) -> Option<usize> {
        if let Some(index) = columns.iter().position(|column| column.name == name) {
            // A file column may have the same name.
            return self.places.iter().any(|(inner, _)| *inner == index).then_some(index);
        }
        if self.places.len() >= MAX_NESTED {
            return None;
        }
        columns.push(Column { name: name.to_owned(), kind: None });
        self.places.push((columns.len() - 1, outer));
        Some(columns.len() - 1)
    }
}

/// Returns whether a nested value is offered: a number with a length name, or a conversation.
fn is_wanted(name: &str, value: &Value<'_>) -> bool {
    match value {
        Value::Number(_) => {
            matches!(names::meaning(name).0, Meaning::Length(_) | Meaning::Prompt | Meaning::Completion)
                || names::is_media_tokens(name)
                || names::is_cache_tokens(name)
        }
        Value::List(List { items, .. }) => {
            matches!(items.first(), Some(Value::Object(_)))
                && names::meaning(name).0 == Meaning::Chat
                && profile::value_kind(value) == Kind::Chat
        }
        _ => false,
    }
}
