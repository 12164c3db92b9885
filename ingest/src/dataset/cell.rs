//! A value of a file that holds nothing but lengths.

use super::number::Number;

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// A number.
    Number(Number),
    /// A value that is no number.
    Other(&'static str),
}
