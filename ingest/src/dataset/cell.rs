//! A value as a file shows it.

use super::number::Number;

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    /// Text that may be a number.
    Text(&'a str),
    /// A number.
    Number(Number),
    /// Nothing.
    Missing,
    /// Something that is no number.
    Other(&'static str),
}

/// A value short enough for a message.
pub(super) fn clip(text: &str) -> String {
    text.trim().chars().take(40).collect()
}
