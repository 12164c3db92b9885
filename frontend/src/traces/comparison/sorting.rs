//! Rows of a table in an order.

use std::cmp::Ordering;

/// A cell with its sort key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) key: Key,
}

/// Sort key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Key {
    Text(String),
    Number(f64),
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { key: Key::Text(text.to_lowercase()), text }
    }

    pub(super) fn number(text: impl Into<String>, key: f64) -> Self {
        Self { text: text.into(), key: Key::Number(key) }
    }
}

impl Key {
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Number(left), Self::Number(right)) => left.total_cmp(right),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// Returns row indices sorted by a column. Equal rows stay in their order.
pub(super) fn order(rows: &[Vec<Cell>], column: usize, descending: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&left, &right| {
        let compared = match (rows[left].get(column), rows[right].get(column)) {
            (Some(left), Some(right)) => left.key.compare(&right.key),
            _ => Ordering::Equal,
        };
        if descending { compared.reverse() } else { compared }
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_key() {
        let rows: Vec<Vec<Cell>> = [("b", 2.0), ("A", 10.0), ("c", 2.0)]
            .into_iter()
            .map(|(text, number)| vec![Cell::text(text), Cell::number(format!("{number} ms"), number)])
            .collect();
        assert_eq!(order(&rows, 0, false), [1, 0, 2]);
        assert_eq!(order(&rows, 0, true), [2, 0, 1]);
        assert_eq!(order(&rows, 1, false), [0, 2, 1]);
        assert_eq!(order(&rows, 1, true), [1, 0, 2]);
        assert_eq!(order(&rows, 7, true), [0, 1, 2]);
    }
}
