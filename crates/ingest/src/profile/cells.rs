//! Typed access to the cells of a measured row, in a table or in a JSON document.

use planner::units::Seconds;

use super::refused::Rejection;

/// Maximum shape or message size. Larger integers are not exact in `f64`.
const MAX_SIZE: f64 = 1e15;

/// A row with named cells.
pub(super) trait Cells {
    /// Describes the position of a cell.
    fn location(&self, column: &str) -> String;

    /// Describes position and text of a cell.
    fn describe(&self, column: &str) -> String;

    /// Returns the cell text; `None` if the cell is missing or empty.
    fn optional(&self, column: &str) -> Result<Option<&str>, Rejection>;

    /// Returns the text of a required cell.
    fn text(&self, column: &str) -> Result<&str, Rejection> {
        self.optional(column)?.ok_or_else(|| Rejection::new("a needed cell is empty", self.location(column)))
    }

    /// Parses a positive number.
    fn positive(&self, column: &str) -> Result<f64, Rejection> {
        let number: f64 =
            self.text(column)?.parse().map_err(|_| Rejection::new("a cell holds no number", self.describe(column)))?;
        if !number.is_finite() {
            Err(Rejection::new("a number is not finite", self.describe(column)))
        } else if number <= 0.0 {
            Err(Rejection::new("a number is zero or negative", self.describe(column)))
        } else {
            Ok(number)
        }
    }

    /// Parses a positive integer. Zero decimals (`8.0`) are accepted because data frames write
    /// them.
    fn size(&self, column: &str) -> Result<f64, Rejection> {
        let number = self.positive(column)?;
        if number.fract() == 0.0 && number <= MAX_SIZE {
            Ok(number)
        } else {
            Err(Rejection::new("a size is not a whole number in range", self.describe(column)))
        }
    }

    fn devices(&self, column: &str) -> Result<u32, Rejection> {
        let number = self.size(column)?;
        if number <= f64::from(u32::MAX) {
            Ok(number as u32)
        } else {
            Err(Rejection::new("a size is not a whole number in range", self.describe(column)))
        }
    }

    fn flag(&self, column: &str) -> Result<bool, Rejection> {
        match self.text(column)?.to_lowercase().as_str() {
            "true" | "1" | "1.0" => Ok(true),
            "false" | "0" | "0.0" => Ok(false),
            _ => Err(Rejection::new("a cell is neither true nor false", self.describe(column))),
        }
    }

    /// Parses a time with a unit of `unit` seconds.
    fn time(&self, column: &str, unit: f64) -> Result<Seconds, Rejection> {
        self.positive(column).map(|time| Seconds::from_secs(time * unit))
    }
}

/// Returns a position with the start of a cell's text.
pub(super) fn described(place: String, cell: &str) -> String {
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let cell: String = cell.chars().take(40).map(clean).collect();
    if cell.is_empty() { place } else { format!("{place}: {cell}") }
}
