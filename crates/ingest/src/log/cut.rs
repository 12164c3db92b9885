//! Lines and rows that may be cut inside a value.

use super::quantity::{multiplier, quantity, unit};
use super::reading::{Reading, Tear};

/// Problem text for a table whose last cell has no line end.
pub(super) const LAST_CELL: &str = "the last cell of the file has no line end, so that it may be cut: it is not read";

/// How the current line ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LineEnd {
    #[default]
    Terminated,
    /// The log ends inside the line.
    Missing,
}

/// Returns true if the last value of a line without a terminator may be cut: it is a number that a
/// further character could continue, or missing behind an equals sign. A closing bracket, bar, quote, percent sign or unit completes
/// it.
pub(super) fn may_continue(text: &str) -> bool {
    if text.ends_with('=') {
        return true;
    }
    let is_boundary = |c: char| c.is_whitespace() || matches!(c, ':' | '=' | '|' | '(' | '[' | '/');
    let value = text.rsplit(is_boundary).next().unwrap_or_default();
    if value.ends_with(['}', ']', ')', '>', '"', '\'', ';', '%']) {
        return false;
    }
    if !value.contains(|c: char| c.is_ascii_digit()) {
        return value.ends_with(['.', ',', '-', '+']);
    }
    let suffix = quantity(value).map_or("", |quantity| quantity.suffix);
    unit(suffix).is_none() && multiplier(suffix).is_none()
}

/// Returns true if a color code ends a line, so that its last value is complete.
pub(super) fn ends_with_colour(line: &str) -> bool {
    let code = line.rsplit_once("\u{1b}[").and_then(|(_, code)| code.strip_suffix('m'));
    code.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
}

/// Returns the reading of a line whose last value may be cut.
pub(super) fn cut(reading: Reading) -> Option<Reading> {
    match reading {
        reading @ (Reading::Torn(_) | Reading::Skipped(_)) => Some(reading),
        Reading::Bar(_) | Reading::Length(_) | Reading::Job(_) | Reading::Table(_) => None,
        _ => Some(Reading::Torn(Tear::Cut)),
    }
}

/// Returns true if a table ends without a line end or a quote, so that its last cell may be cut.
pub(super) fn has_open_end(table: &[u8]) -> bool {
    table.last().is_some_and(|byte| !b"\n\r\"".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_continue() {
        for text in [
            "loss: 2",
            "loss: 2.",
            "tps: 2,",
            "lr: 1e-",
            "a | time (ms): 10.1",
            "x=3",
            "num_updates=",
            "step: 100",
            "eta 12:3",
        ] {
            assert!(may_continue(text), "{text}");
        }
        for text in [
            "loss: 2 ",
            "loss: 2.0 |",
            "mfu: 9.5%",
            "{'loss': 2}",
            "[step=1/9]",
            "10.1K",
            "2.5s",
            "500.00 ms",
            "done",
            "",
            "loss: nan",
            "[batch=1/9]:",
        ] {
            assert!(!may_continue(text), "{text}");
        }
        assert!(ends_with_colour("tps: 2,048\u{1b}[39m") && !ends_with_colour("\u{1b}[39mtps: 2m"));
    }
}
